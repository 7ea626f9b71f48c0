//! The symmetry of the pattern and of the values of a matrix.
//!
//! # Symmetry to rounding
//! A pair a(i,j), a(j,i) that differs by at most [`ROUNDING`] of its size is equal to rounding. The size of
//! the pair is the largest of |a(i,j)|, |a(j,i)| and sqrt(|a(i,i) a(j,j)|): the entries of a positive
//! definite matrix are smaller than that root, and an entry that cancels in assembly is rounded relative to
//! it. Entries that are not stored count as 0.
//!
//! # Passes
//! The first pass (`exact`) answers for a matrix that equals its transpose. Of the others, it stops at a pair
//! that differs. The passes after it find how the pairs differ.
//!
//! The two entries of a pair are compared once. The comparison iterates over the longer of rows i and j, or
//! over the upper one if both have the same length, and searches the other row. So a hub with a million
//! entries is iterated over, never searched. If entries of shorter rows have no mirrored entry, a second pass
//! searches the longer rows for their mirrored entries. If a pair differs by more than rounding, the rows are
//! searched from the top for the first such pair.

mod exact;
mod part;

use super::super::Csr;
use crate::error::{Error, Result};
use crate::parallel::{PIECES_PER_THREAD, run_all, threads_for};
pub(crate) use part::{PartRows, PartVerdict};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The difference between the two entries of a pair that counts as rounding, relative to their size.
pub(crate) const ROUNDING: f64 = 1e-12;

/// Numbers of entries off the diagonal that have a mirrored entry. Entry (j, i) is the
/// mirrored entry of entry (i, j).
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Symmetry {
    /// Number of entries off the diagonal.
    pub off_diagonal: usize,
    /// Number of entries off the diagonal with a mirrored entry.
    pub mirrored: usize,
    /// Number of entries off the diagonal with a mirrored entry of the same value.
    pub equal: usize,
    /// `mirrored` as a share of `off_diagonal`; 1 if there are no entries off the diagonal.
    pub pattern: f64,
    /// `equal` as a share of `off_diagonal`; 1 if there are no entries off the diagonal.
    pub value: f64,
}

/// An entry whose value differs from that of the mirrored entry. Rows and columns are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Asymmetry {
    /// The row of the entry.
    pub row: usize,
    /// The column of the entry.
    pub col: usize,
    /// The value of the entry.
    pub value: f64,
    /// The value of the mirrored entry, if it is stored.
    pub mirrored: Option<f64>,
}

impl Symmetry {
    fn new(off_diagonal: usize, mirrored: usize, equal: usize) -> Symmetry {
        let share = |n: usize| if off_diagonal == 0 { 1.0 } else { n as f64 / off_diagonal as f64 };
        Symmetry { off_diagonal, mirrored, equal, pattern: share(mirrored), value: share(equal) }
    }

    /// Returns the numbers of a matrix that is symmetric.
    pub(super) fn vouched(off_diagonal: usize) -> Symmetry {
        Symmetry::new(off_diagonal, off_diagonal, off_diagonal)
    }
}

/// Whether a square matrix equals its transpose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Every entry equals its mirrored entry.
    Exact,
    /// Some pairs differ, but none by more than 1e-12 of their size.
    ToRounding(Rounding),
    /// The first entry, by rows, that differs by more than rounding from its mirrored entry.
    No(Asymmetry),
}

/// Pairs of mirrored entries that differ by rounding. Rows and columns are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Rounding {
    /// Number of pairs.
    pub pairs: usize,
    /// The largest difference, relative to the size of its pair.
    pub largest: f64,
    /// The smaller index of the pair with the largest difference.
    pub row: usize,
    /// The larger index of that pair.
    pub col: usize,
    /// The first entry, by rows, of a pair that differs by rounding.
    pub first: Asymmetry,
}

/// Returns whether a square matrix is symmetric, exactly or to rounding. Repeated entries count as their sum.
pub(crate) fn symmetry_of(matrix: &Csr) -> Result<Verdict> {
    if !matrix.is_square() {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        return Err(Error::NotSquare { rows, cols, solver: "the test for symmetry" });
    }
    let summed = if matrix.pattern().has_repeats() { Some(matrix.summed()?) } else { None };
    let matrix = summed.as_ref().unwrap_or(matrix);
    if exact::is_mirrored(matrix) {
        return Ok(Verdict::Exact);
    }
    Ok(compare(matrix, false).verdict(matrix))
}

/// Counts mirrored and equal entries of a square matrix, and returns whether it is symmetric.
pub(super) fn counted(matrix: &Csr, off_diagonal: usize) -> (Symmetry, Verdict) {
    if exact::is_mirrored(matrix) {
        return (Symmetry::vouched(off_diagonal), Verdict::Exact);
    }
    let pairs = compare(matrix, true);
    (Symmetry::new(off_diagonal, 2 * pairs.mirrored, 2 * pairs.equal), pairs.verdict(matrix))
}

/// Returns the first entry of a square matrix, by rows, without a mirrored entry of the same value. A stored
/// zero without a stored mirrored entry counts too.
pub fn first_unpaired(matrix: &Csr) -> Option<Asymmetry> {
    if exact::is_mirrored(matrix) {
        return None;
    }
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

/// Returns the difference of a pair relative to its size, if that is rounding. NaN and
/// infinity are never rounding.
fn rounding(matrix: &Csr, pair: &Asymmetry) -> Option<f64> {
    share_of(pair, |row| matrix.get(row, row).unwrap_or(0.0))
}

/// Returns the difference of a pair relative to its size, if that is rounding; `diagonal` returns the entries
/// on the diagonal.
fn share_of(pair: &Asymmetry, diagonal: impl Fn(usize) -> f64) -> Option<f64> {
    let (value, mirrored) = (pair.value, pair.mirrored.unwrap_or(0.0));
    // The product of roots cannot overflow or underflow, unlike the root of the product.
    let root = |i: usize| diagonal(i).abs().sqrt();
    let size = value.abs().max(mirrored.abs()).max(root(pair.row) * root(pair.col));
    let share = (value - mirrored).abs() / size;
    (size.is_finite() && share <= ROUNDING).then_some(share)
}

/// The result of comparing pairs.
#[derive(Clone, Copy, Default)]
struct Pairs {
    /// Pairs with both entries stored, and those of them that are equal.
    mirrored: usize,
    equal: usize,
    /// Entries whose pair is compared from the other row.
    left: usize,
    /// Pairs that differ by rounding.
    rounded: Option<Rounding>,
    /// Whether a pair differs by more than rounding.
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

    /// Adds a pair that is not equal.
    fn add(&mut self, matrix: &Csr, pair: Asymmetry) {
        let Some(largest) = rounding(matrix, &pair) else {
            self.beyond = true;
            return;
        };
        let Asymmetry { row, col, .. } = pair;
        let new = Rounding { pairs: 1, largest, row: row.min(col), col: row.max(col), first: pair };
        self.rounded = Some(self.rounded.map_or(new, |rounded| rounded.join(new)));
    }

    fn verdict(self, matrix: &Csr) -> Verdict {
        let differs = |a: &Asymmetry| a.mirrored.unwrap_or(0.0) != a.value && rounding(matrix, a).is_none();
        let no = if self.beyond { first(matrix, differs) } else { None };
        no.map(Verdict::No).or(self.rounded.map(Verdict::ToRounding)).unwrap_or(Verdict::Exact)
    }
}

impl Rounding {
    fn join(self, other: Rounding) -> Rounding {
        let position = |r: &Rounding| (r.row, r.col);
        let by_size = self.largest.total_cmp(&other.largest);
        let larger = match by_size.then(position(&other).cmp(&position(&self))) {
            std::cmp::Ordering::Less => other,
            _ => self,
        };
        let first =
            if (other.first.row, other.first.col) < (self.first.row, self.first.col) { other } else { self };
        Rounding { pairs: self.pairs + other.pairs, first: first.first, ..larger }
    }
}

/// Compares all pairs. Unless `all`, stops at a pair that differs by more than rounding.
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
    pairs.join(over(find_unmirrored))
}

/// Cuts the rows into pieces for the threads.
fn pieces(matrix: &Csr) -> Vec<Range<usize>> {
    let rows = matrix.rows();
    let threads = threads_for(matrix.nnz() * 4);
    let step = rows.div_ceil(if threads > 1 { threads * PIECES_PER_THREAD } else { 1 }).max(1);
    (0..rows).step_by(step).map(|row| row..(row + step).min(rows)).collect()
}

/// Returns whether a pair is compared from this row: if the row is longer than the other one,
/// or as long and above it.
fn compares(row: usize, length: usize, col: usize, other: usize) -> bool {
    (length, Reverse(row)) > (other, Reverse(col))
}

/// Compares the pairs of this row that are not compared from another row.
fn compare_row(matrix: &Csr, row: usize, pairs: &mut Pairs) {
    let range = matrix.row_range(row);
    let (columns, values) = (matrix.col_indices(), matrix.values());
    for entry in range.clone() {
        let col = columns[entry] as usize;
        let other = matrix.row_range(col);
        if col == row {
            // NaN does not equal itself.
            pairs.beyond |= values.get(entry).is_nan();
            continue;
        }
        if !compares(row, range.len(), col, other.len()) {
            pairs.left += 1;
            continue;
        }
        let value = values.get(entry);
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

/// Returns the pair by the upper of its stored entries.
fn entry_above(row: usize, col: usize, value: f64, mirrored: Option<f64>) -> Asymmetry {
    match mirrored {
        Some(above) if col < row => Asymmetry { row: col, col: row, value: above, mirrored: Some(value) },
        _ => Asymmetry { row, col, value, mirrored },
    }
}

/// Finds the entries of this row whose mirrored entry, in a longer row, is not stored.
fn find_unmirrored(matrix: &Csr, row: usize, pairs: &mut Pairs) {
    let range = matrix.row_range(row);
    let (columns, values) = (matrix.col_indices(), matrix.values());
    for entry in range.clone() {
        let (col, value) = (columns[entry] as usize, values.get(entry));
        let other = matrix.row_range(col);
        let compared = col == row || compares(row, range.len(), col, other.len());
        if compared || value == 0.0 || columns[other].binary_search(&(row as u32)).is_ok() {
            continue;
        }
        pairs.add(matrix, Asymmetry { row, col, value, mirrored: None });
    }
}

#[cfg(test)]
mod tests;
