//! What there is to know of a matrix before solving with it, in one parallel pass over its rows.

use super::Csr;
use rayon::prelude::*;

/// Lengths of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct RowLength {
    /// Shortest.
    pub min: usize,
    /// Mean.
    pub mean: f64,
    /// Longest.
    pub max: usize,
}

/// The diagonal of a square matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Diagonal {
    /// Rows without a stored diagonal entry.
    pub missing: usize,
    /// Stored entries that are zero.
    pub zero: usize,
    /// Negative entries.
    pub negative: usize,
    /// Rows in which it outweighs or equals the sum of the others' magnitudes.
    pub dominant_rows: usize,
}

/// An entry that has no equal across the diagonal. Places count from 0.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Asymmetry {
    /// Its row.
    pub row: usize,
    /// Its column.
    pub col: usize,
    /// Its value.
    pub value: f64,
    /// The value across the diagonal, if one is stored.
    pub mirrored: Option<f64>,
}

/// Statistics of a matrix.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Stats {
    /// Lengths of rows.
    pub row_length: RowLength,
    /// Rows without entries.
    pub empty_rows: usize,
    /// Whether pattern and values equal those of the transpose.
    pub symmetric: bool,
    /// The first entry that shows that it is not symmetric; none for rectangular matrices.
    pub asymmetry: Option<Asymmetry>,
    /// The diagonal, for square matrices.
    pub diagonal: Option<Diagonal>,
}

/// What one row, or several, add to the statistics.
#[derive(Clone, Copy)]
struct Part {
    min: usize,
    max: usize,
    empty: usize,
    diagonal: Diagonal,
}

impl Part {
    const NONE: Part = Part {
        min: usize::MAX,
        max: 0,
        empty: 0,
        diagonal: Diagonal { missing: 0, zero: 0, negative: 0, dominant_rows: 0 },
    };

    fn of_row(matrix: &Csr, row: usize) -> Part {
        let length = matrix.row_range(row).len();
        let (mut stored, mut others) = (None, 0.0);
        for (col, value) in matrix.row(row) {
            if col == row { stored = Some(value) } else { others += value.abs() }
        }
        let is = |holds: bool| usize::from(holds);
        let diagonal = Diagonal {
            missing: is(stored.is_none()),
            zero: is(stored == Some(0.0)),
            negative: is(stored.is_some_and(|d| d < 0.0)),
            dominant_rows: is(stored.unwrap_or(0.0).abs() >= others),
        };
        Part { min: length, max: length, empty: is(length == 0), diagonal }
    }

    fn join(self, other: Part) -> Part {
        let (a, b) = (self.diagonal, other.diagonal);
        Part {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            empty: self.empty + other.empty,
            diagonal: Diagonal {
                missing: a.missing + b.missing,
                zero: a.zero + b.zero,
                negative: a.negative + b.negative,
                dominant_rows: a.dominant_rows + b.dominant_rows,
            },
        }
    }
}

/// The first entry, by rows, that has no equal across the diagonal of a square matrix.
pub fn first_asymmetry(matrix: &Csr) -> Option<Asymmetry> {
    (0..matrix.rows()).into_par_iter().find_map_first(|row| {
        matrix.row(row).find_map(|(col, value)| {
            let mirrored = matrix.get(col, row);
            (mirrored != Some(value)).then_some(Asymmetry { row, col, value, mirrored })
        })
    })
}

impl Stats {
    /// Looks at every entry; symmetry is taken for granted where the source vouches for it.
    pub fn of(matrix: &Csr, symmetric_by_construction: bool) -> Stats {
        let rows = matrix.rows();
        let part = (0..rows)
            .into_par_iter()
            .with_min_len(1024)
            .map(|row| Part::of_row(matrix, row))
            .reduce(|| Part::NONE, Part::join);
        let square = rows == matrix.cols();
        let asymmetry = if square && !symmetric_by_construction { first_asymmetry(matrix) } else { None };
        Stats {
            row_length: RowLength {
                min: if rows == 0 { 0 } else { part.min },
                mean: matrix.nnz() as f64 / rows.max(1) as f64,
                max: part.max,
            },
            empty_rows: part.empty,
            symmetric: square && asymmetry.is_none(),
            asymmetry,
            diagonal: square.then_some(part.diagonal),
        }
    }
}
