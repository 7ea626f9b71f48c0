//! Statistics of a matrix, for the choice of a method and a backend.
//!
//! # Passes
//! 1. `rows`: one parallel pass over rows, column indices and values, in pieces that stay in cache. It
//!    computes row lengths, row sums, the diagonal, the bandwidth, statistics of the values, the
//!    components of the undirected pattern (`components`) and the number of blocks of every size from
//!    2 x 2 to 8 x 8 (`blocks`).
//! 2. `symmetry`: one parallel pass that compares each pair of mirrored entries once, and others if the
//!    matrix does not equal its transpose. It is skipped if the source guarantees symmetry.
//!
//! In addition, the row lengths are read once for the slots of SELL (`memory`), and the parents of the
//! components once for their sizes: n numbers each.
//!
//! # Memory
//! Four bytes per row for the components, about 16 per row for the symmetry, and for each worker up to two
//! bytes per column for the blocks. The number of workers is limited so that their memory does not exceed
//! that of the matrix. The matrix is not transposed.
//!
//! # Determinism
//! The workers combine only counts, extremes and sets, so the result does not depend on their number.
//! Floating-point sums are taken only within rows, in the order of columns.

mod blocks;
mod components;
pub(crate) mod density;
mod distinct;
mod memory;
mod rows;
mod symmetry;

pub use blocks::Block;
pub(crate) use blocks::Blocks;
pub(crate) use components::{Components, component_of_each_row};
pub use density::Density;
pub use memory::FormatBytes;
pub use symmetry::{Asymmetry, Rounding, Symmetry, Verdict, first_unpaired};
pub(crate) use symmetry::{PartRows, PartVerdict, symmetry_of};

use super::Csr;
use crate::error::Error;
use components::Parents;

/// Statistics of the row lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct RowLength {
    /// Shortest length.
    pub min: usize,
    /// Mean length.
    pub mean: f64,
    /// Longest length.
    pub max: usize,
    /// Standard deviation over all rows.
    pub deviation: f64,
}

/// A bin of the histogram of row lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LengthBin {
    /// Shortest length in the bin: 0, 1, 2, 4, 8, ...
    pub from: usize,
    /// Longest length in the bin: 0, 1, 3, 7, 15, ...
    pub to: usize,
    /// Number of rows.
    pub rows: usize,
}

/// Sums of rows that have entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct RowSums {
    /// Smallest sum.
    pub min: f64,
    /// Largest sum.
    pub max: f64,
    /// The largest magnitude of a row sum relative to the sum of magnitudes in the same row.
    pub largest_share: f64,
}

/// Statistics of the values of stored entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct ValueStats {
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Number of negative values.
    pub negative: usize,
    /// Number of stored zeros.
    pub zero: usize,
    /// Number of values that are NaN or infinite.
    pub not_finite: usize,
    /// Number of values that single precision does not represent exactly.
    pub beyond_f32: usize,
    /// Number of distinct values, up to 65,536; -0 counts as 0.
    pub distinct: usize,
    /// Whether there are fewer than 65,536 distinct values, so that `distinct` is exact.
    pub distinct_is_exact: bool,
}

/// Statistics of the diagonal of a square matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Diagonal {
    /// Rows without a stored diagonal entry.
    pub missing: usize,
    /// Stored zeros on the diagonal.
    pub zero: usize,
    /// Negative diagonal entries.
    pub negative: usize,
    /// Positive diagonal entries.
    pub positive: usize,
    /// Rows in which the magnitude of the diagonal entry is at least the sum of the other magnitudes.
    pub dominant_rows: usize,
    /// Rows in which the magnitude of the diagonal entry is larger than the sum of the other magnitudes.
    pub strictly_dominant_rows: usize,
    /// The first row, counted from 0, with a missing or not positive diagonal entry.
    pub first_not_positive: Option<usize>,
}

/// Bandwidth and profile of a square matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Bandwidth {
    /// Largest distance of an entry below the diagonal.
    pub lower: usize,
    /// Largest distance of an entry above the diagonal.
    pub upper: usize,
    /// Sum over all rows of the distance from the first entry to the diagonal, if that entry is below the
    /// diagonal: the positions that a factorization without pivoting may fill.
    pub profile: u64,
}

/// Statistics of a matrix. Rows and columns are counted from 0.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Stats {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Number of entries, including stored zeros.
    pub nnz: usize,
    /// Statistics of the row lengths.
    pub row_length: RowLength,
    /// Histogram of the row lengths by powers of two, up to the longest.
    pub row_histogram: Vec<LengthBin>,
    /// The first of the longest rows, if there are entries.
    pub longest_row: Option<usize>,
    /// Number of rows without entries.
    pub empty_rows: usize,
    /// The first row without entries.
    pub first_empty_row: Option<usize>,
    /// Sums of rows.
    pub row_sums: RowSums,
    /// Statistics of the values.
    pub values: ValueStats,
    /// Whether the matrix equals its transpose; entries that are not stored count as 0.
    pub symmetric: bool,
    /// Numbers of entries that have a mirrored entry, for square matrices.
    pub symmetry: Option<Symmetry>,
    /// The pairs that differ, if the matrix is symmetric to rounding.
    pub rounding: Option<Rounding>,
    /// The first entry that differs from its mirrored entry by more than rounding; none for
    /// rectangular matrices.
    pub asymmetry: Option<Asymmetry>,
    /// Statistics of the diagonal, for square matrices.
    pub diagonal: Option<Diagonal>,
    /// Bandwidth and profile, for square matrices.
    pub bandwidth: Option<Bandwidth>,
    /// The components of the undirected pattern, for square matrices; none if memory did not suffice.
    pub components: Option<Components>,
    /// Number, fill and bytes of blocks of every size.
    pub blocks: Blocks,
    /// Bytes in each format without blocks; [`FormatBytes::of_block`] returns those in blocks.
    pub memory: Vec<FormatBytes>,
}

impl Stats {
    /// Computes the statistics from all entries. With `symmetric_by_construction`, symmetry is not checked.
    pub(crate) fn of(matrix: &Csr, symmetric_by_construction: bool) -> Stats {
        // Repeated entries count as their sum.
        let warn = |error: &Error| log::warn!("repeated entries are counted separately: {error}");
        let summed = matrix.pattern().has_repeats().then(|| matrix.summed().inspect_err(warn).ok()).flatten();
        let matrix = summed.as_ref().unwrap_or(matrix);
        let (rows, nnz) = (matrix.rows(), matrix.nnz());
        let square = rows == matrix.cols();
        let warn = |error: &Error| log::warn!("the components of the matrix are not counted: {error}");
        let parents = if square { Parents::new(rows).inspect_err(warn).ok() } else { None };
        let part = rows::describe(matrix, parents.as_ref());
        let diagonal = square.then_some(part.diagonal);
        let off_diagonal = nnz - (rows - part.diagonal.missing) * usize::from(square);
        let across = square.then(|| match symmetric_by_construction {
            true => (Symmetry::vouched(off_diagonal), Verdict::Exact),
            false => symmetry::counted(matrix, off_diagonal),
        });
        let (rounding, asymmetry) = match across {
            Some((_, Verdict::ToRounding(rounding))) => (Some(rounding), None),
            Some((_, Verdict::No(asymmetry))) => (None, Some(asymmetry)),
            _ => (None, None),
        };
        let blocks = match &part.blocks {
            Some(counts) => Blocks::from_counts(matrix, counts),
            None => Blocks::unknown(matrix),
        };
        Stats {
            rows,
            cols: matrix.cols(),
            nnz,
            row_length: part.row_length(rows, nnz),
            row_histogram: part.histogram(),
            longest_row: part.longest.map(|longest| longest.row),
            empty_rows: part.empty,
            first_empty_row: part.first_empty,
            row_sums: part.sums.unwrap_or_default(),
            values: part.values(nnz),
            symmetric: across.is_some_and(|(_, verdict)| verdict == Verdict::Exact),
            symmetry: across.map(|(symmetry, _)| symmetry),
            rounding,
            asymmetry,
            diagonal,
            bandwidth: square.then_some(part.bandwidth),
            components: parents.and_then(|parents| parents.components().inspect_err(warn).ok()),
            memory: memory::in_each_format(matrix, part.empty, part.longest.map_or(0, |l| l.length)),
            blocks,
        }
    }
}

#[cfg(test)]
mod tests;
