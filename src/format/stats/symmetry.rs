//! Pattern and values across the diagonal.
//!
//! The two entries of a pair (i, j), (j, i) are looked at once: from the longer of rows i and j, the one above where
//! both are as long, the shorter is searched. A hub with a million entries is walked along, never searched.

use super::super::Csr;
use crate::parallel::{CHUNKS_PER_THREAD, run_all, threads_for};
use rayon::prelude::*;
use std::cmp::Reverse;

/// How many entries off the diagonal have a partner across it.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Symmetry {
    /// Entries off the diagonal.
    pub off_diagonal: usize,
    /// Those with an entry across the diagonal.
    pub mirrored: usize,
    /// Those with an entry of the same value across the diagonal.
    pub equal: usize,
    /// Share of entries off the diagonal with an entry across it; 1 where there are none.
    pub pattern: f64,
    /// Share with an entry of the same value across it.
    pub value: f64,
}

/// An entry whose value differs from the one across the diagonal. Places count from 0.
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

impl Symmetry {
    fn new(off_diagonal: usize, mirrored: usize, equal: usize) -> Symmetry {
        let share = |n: usize| if off_diagonal == 0 { 1.0 } else { n as f64 / off_diagonal as f64 };
        Symmetry { off_diagonal, mirrored, equal, pattern: share(mirrored), value: share(equal) }
    }

    /// Of a matrix that its source vouches for.
    pub(super) fn vouched(off_diagonal: usize) -> Symmetry {
        Symmetry::new(off_diagonal, off_diagonal, off_diagonal)
    }
}

/// The first entry of a square matrix, by rows, whose value differs from the one across the diagonal. A place where
/// nothing is stored holds 0.
pub fn first_asymmetry(matrix: &Csr) -> Option<Asymmetry> {
    first(matrix, |value, mirrored| mirrored.unwrap_or(0.0) != value)
}

/// The first entry of a square matrix, by rows, without an entry of the same value across the diagonal. Unlike
/// [`first_asymmetry`] it finds a stored zero whose mirror image is not stored.
pub fn first_unpaired(matrix: &Csr) -> Option<Asymmetry> {
    first(matrix, |value, mirrored| mirrored != Some(value))
}

fn first(matrix: &Csr, differs: impl Fn(f64, Option<f64>) -> bool + Sync) -> Option<Asymmetry> {
    let repeats = matrix.pattern().has_repeats();
    (0..matrix.rows()).into_par_iter().find_map_first(|row| {
        matrix.row(row).find_map(|(col, entry)| {
            let value = if repeats { matrix.get(row, col).unwrap_or(entry) } else { entry };
            let mirrored = matrix.get(col, row);
            differs(value, mirrored).then_some(Asymmetry { row, col, value, mirrored })
        })
    })
}

/// Counts pairs across the diagonal of a square matrix.
pub(super) fn count(matrix: &Csr, off_diagonal: usize) -> Symmetry {
    let rows = matrix.rows();
    let threads = threads_for(matrix.nnz() * 4);
    let step = rows.div_ceil(if threads > 1 { threads * CHUNKS_PER_THREAD } else { 1 }).max(1);
    let pieces: Vec<_> = (0..rows).step_by(step).map(|row| row..(row + step).min(rows)).collect();
    let pairs = run_all(pieces, |piece| {
        piece.map(|row| pairs_of_row(matrix, row)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    });
    let (mirrored, equal) = pairs.into_iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    Symmetry::new(off_diagonal, 2 * mirrored, 2 * equal)
}

/// Pairs that are looked at from this row: those with both entries, and those with equal ones.
fn pairs_of_row(matrix: &Csr, row: usize) -> (usize, usize) {
    let range = matrix.row_range(row);
    let (columns, values) = (matrix.col_indices(), matrix.values());
    let (mut mirrored, mut equal) = (0, 0);
    for place in range.clone() {
        let col = columns[place] as usize;
        let other = matrix.row_range(col);
        // Each pair has one end that is longer, or as long and above.
        if (range.len(), Reverse(row)) <= (other.len(), Reverse(col)) {
            continue;
        }
        // The rows of a square matrix fit 32 bits, as its columns do.
        if let Ok(found) = columns[other.clone()].binary_search(&(row as u32)) {
            mirrored += 1;
            equal += usize::from(values.get(place) == values.get(other.start + found));
        }
    }
    (mirrored, equal)
}
