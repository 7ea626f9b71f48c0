//! Pattern and values across the diagonal, and whether a matrix is symmetric.
//!
//! # What is symmetric
//! A pair a(i,j), a(j,i) that differs by at most [`ROUNDING`] of its size is equal to rounding. Its size is the largest
//! of |a(i,j)|, |a(j,i)| and sqrt(|a(i,i) a(j,j)|): the entries of a positive definite matrix are smaller than that root, and
//! an entry that cancels in assembly is rounded relative to it. A place where nothing is stored holds 0.
//!
//! # Passes
//! The two entries of a pair are compared once: from the longer of rows i and j, the one above where both are as long, the
//! shorter is searched. A hub with a million entries is walked along, never searched. Only where some entries of
//! shorter rows have no partner, a second pass searches the longer rows for these. Only where a pair differs by more than
//! rounding, rows are searched from the top for the first such pair.

use super::super::Csr;
use crate::error::{Error, Result};
use crate::parallel::{CHUNKS_PER_THREAD, run_all, threads_for};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The difference between the two entries of a pair that counts as rounding, relative to their size.
pub const ROUNDING: f64 = 1e-12;

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

/// Whether a square matrix equals its transpose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Every entry equals the one across the diagonal.
    Exact,
    /// Some pairs differ, but none by more than [`ROUNDING`].
    ToRounding(Rounding),
    /// The first entry, by rows, that differs by more from the one across the diagonal.
    No(Asymmetry),
}

/// Pairs across the diagonal that differ by rounding. Places count from 0.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Rounding {
    /// How many.
    pub pairs: usize,
    /// The largest difference, relative to the size of its pair.
    pub largest: f64,
    /// The row of that pair, the smaller of the two.
    pub row: usize,
    /// Its column.
    pub col: usize,
    /// The first entry, by rows, of such a pair.
    pub first: Asymmetry,
}

/// Whether a square matrix is symmetric, exactly or to rounding. Entries at one place count as their sum.
pub fn symmetry_of(matrix: &Csr) -> Result<Verdict> {
    if !matrix.is_square() {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        return Err(Error::NotSquare { rows, cols, solver: "the test for symmetry" });
    }
    let summed = if matrix.pattern().has_repeats() { Some(matrix.summed()?) } else { None };
    let matrix = summed.as_ref().unwrap_or(matrix);
    Ok(compare(matrix, false).verdict(matrix))
}

/// Counts pairs across the diagonal of a square matrix, and decides.
pub(super) fn counted(matrix: &Csr, off_diagonal: usize) -> (Symmetry, Verdict) {
    let pairs = compare(matrix, true);
    (Symmetry::new(off_diagonal, 2 * pairs.mirrored, 2 * pairs.equal), pairs.verdict(matrix))
}

/// The first entry of a square matrix, by rows, without an entry of the same value across the diagonal. A stored zero whose
/// mirror image is not stored is one.
pub fn first_unpaired(matrix: &Csr) -> Option<Asymmetry> {
    first(matrix, |a| a.mirrored != Some(a.value))
}

fn first(matrix: &Csr, differs: impl Fn(&Asymmetry) -> bool + Sync) -> Option<Asymmetry> {
    let repeats = matrix.pattern().has_repeats();
    (0..matrix.rows()).into_par_iter().find_map_first(|row| {
        matrix.row(row).find_map(|(col, entry)| {
            let value = if repeats { matrix.get(row, col).unwrap_or(entry) } else { entry };
            let mirrored = matrix.get(col, row);
            Some(Asymmetry { row, col, value, mirrored }).filter(&differs)
        })
    })
}

/// The difference of a pair relative to its size, where it is rounding. NaN, and whatever is as large as infinity, is not.
fn rounding(matrix: &Csr, pair: &Asymmetry) -> Option<f64> {
    let (value, mirrored) = (pair.value, pair.mirrored.unwrap_or(0.0));
    // Roots before the product, which could overflow or underflow.
    let root = |i: usize| matrix.get(i, i).unwrap_or(0.0).abs().sqrt();
    let size = value.abs().max(mirrored.abs()).max(root(pair.row) * root(pair.col));
    let share = (value - mirrored).abs() / size;
    (size.is_finite() && share <= ROUNDING).then_some(share)
}

/// What a comparison of pairs has found.
#[derive(Clone, Copy, Default)]
struct Pairs {
    /// Pairs of which both entries are stored, and those of them that are equal.
    mirrored: usize,
    equal: usize,
    /// Entries that are left to the other row of their pair.
    left: usize,
    /// Those that differ by rounding.
    rounded: Option<Rounding>,
    /// Whether one differs by more.
    beyond: bool,
}

impl Pairs {
    fn join(self, other: Pairs) -> Pairs {
        Pairs {
            mirrored: self.mirrored + other.mirrored,
            equal: self.equal + other.equal,
            left: self.left + other.left,
            rounded: match (self.rounded, other.rounded) {
                (Some(a), Some(b)) => Some(a.join(b)),
                (a, b) => a.or(b),
            },
            beyond: self.beyond || other.beyond,
        }
    }

    /// Takes in a pair that is not equal.
    fn add(&mut self, matrix: &Csr, pair: Asymmetry) {
        let Some(largest) = rounding(matrix, &pair) else {
            self.beyond = true;
            return;
        };
        let Asymmetry { row, col, .. } = pair;
        let one = Rounding { pairs: 1, largest, row: row.min(col), col: row.max(col), first: pair };
        self.rounded = Some(self.rounded.map_or(one, |rounded| rounded.join(one)));
    }

    fn verdict(self, matrix: &Csr) -> Verdict {
        let differs = |a: &Asymmetry| a.mirrored.unwrap_or(0.0) != a.value && rounding(matrix, a).is_none();
        let no = if self.beyond { first(matrix, differs) } else { None };
        no.map(Verdict::No).or(self.rounded.map(Verdict::ToRounding)).unwrap_or(Verdict::Exact)
    }
}

impl Rounding {
    fn join(self, other: Rounding) -> Rounding {
        let place = |r: &Rounding| (r.row, r.col);
        let larger = match self.largest.total_cmp(&other.largest).then(place(&other).cmp(&place(&self))) {
            std::cmp::Ordering::Less => other,
            _ => self,
        };
        let first =
            if (other.first.row, other.first.col) < (self.first.row, self.first.col) { other } else { self };
        Rounding { pairs: self.pairs + other.pairs, first: first.first, ..larger }
    }
}

/// Compares all pairs, or, unless `all` are counted, those up to one that differs by more than rounding.
fn compare(matrix: &Csr, all: bool) -> Pairs {
    let beyond = AtomicBool::new(false);
    let over = |of_row: fn(&Csr, usize, &mut Pairs)| {
        let pieces = run_all(pieces(matrix), |piece| {
            let mut pairs = Pairs::default();
            for row in piece {
                if !all && beyond.load(Ordering::Relaxed) {
                    break;
                }
                of_row(matrix, row, &mut pairs);
                if pairs.beyond {
                    beyond.store(true, Ordering::Relaxed);
                }
            }
            pairs
        });
        pieces.into_iter().fold(Pairs::default(), Pairs::join)
    };
    let pairs = over(compare_row);
    if pairs.beyond || pairs.left == pairs.mirrored {
        return pairs;
    }
    pairs.join(over(find_partners))
}

/// Rows for the threads.
fn pieces(matrix: &Csr) -> Vec<Range<usize>> {
    let rows = matrix.rows();
    let threads = threads_for(matrix.nnz() * 4);
    let step = rows.div_ceil(if threads > 1 { threads * CHUNKS_PER_THREAD } else { 1 }).max(1);
    (0..rows).step_by(step).map(|row| row..(row + step).min(rows)).collect()
}

/// Whether a pair is compared from this row: each has one end that is longer, or as long and above.
fn compares(row: usize, length: usize, col: usize, other: usize) -> bool {
    (length, Reverse(row)) > (other, Reverse(col))
}

/// Compares the pairs of this row that no other row compares.
fn compare_row(matrix: &Csr, row: usize, pairs: &mut Pairs) {
    let range = matrix.row_range(row);
    let (columns, values) = (matrix.col_indices(), matrix.values());
    for place in range.clone() {
        let col = columns[place] as usize;
        let other = matrix.row_range(col);
        if col == row {
            // A value that is no number does not equal itself.
            pairs.beyond |= values.get(place).is_nan();
            continue;
        }
        if !compares(row, range.len(), col, other.len()) {
            pairs.left += 1;
            continue;
        }
        let value = values.get(place);
        // The rows of a square matrix fit 32 bits, as its columns do.
        let found = columns[other.clone()].binary_search(&(row as u32)).ok();
        let mirrored = found.map(|found| values.get(other.start + found));
        pairs.mirrored += usize::from(found.is_some());
        if mirrored == Some(value) {
            pairs.equal += 1;
        } else if mirrored.unwrap_or(0.0) != value {
            pairs.add(matrix, entry_above(row, col, value, mirrored));
        }
    }
}

/// The pair by the first of its entries that are stored.
fn entry_above(row: usize, col: usize, value: f64, mirrored: Option<f64>) -> Asymmetry {
    match mirrored {
        Some(above) if col < row => Asymmetry { row: col, col: row, value: above, mirrored: Some(value) },
        _ => Asymmetry { row, col, value, mirrored },
    }
}

/// Finds the entries of this row without a partner in a longer row.
fn find_partners(matrix: &Csr, row: usize, pairs: &mut Pairs) {
    let range = matrix.row_range(row);
    let (columns, values) = (matrix.col_indices(), matrix.values());
    for place in range.clone() {
        let (col, value) = (columns[place] as usize, values.get(place));
        let other = matrix.row_range(col);
        let compared = col == row || compares(row, range.len(), col, other.len());
        if compared || value == 0.0 || columns[other].binary_search(&(row as u32)).is_ok() {
            continue;
        }
        pairs.add(matrix, Asymmetry { row, col, value, mirrored: None });
    }
}
