//! The symmetry of a matrix of which a process has some rows, and the same rows of the transpose.
//!
//! The process compares each entry of its rows with the mirrored one, so every pair is compared from both of
//! its rows. A pair that differs by rounding counts where its smaller index is a row. Joined in the order of
//! rows, the results are those of the whole matrix.

use super::super::super::Csr;
use super::{Asymmetry, Rounding, Verdict, share_of};
use crate::parallel::{PIECES_PER_THREAD, run_all, threads_for};
use std::ops::Range;

/// The pairs of some rows that are not equal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PartVerdict {
    /// The pairs that differ by rounding.
    pub rounded: Option<Rounding>,
    /// The first entry that differs by more than rounding from its mirrored entry.
    pub beyond: Option<Asymmetry>,
}

impl PartVerdict {
    /// Joins the results of neighbouring rows, in their order.
    pub(crate) fn join(self, below: PartVerdict) -> PartVerdict {
        let rounded = match (self.rounded, below.rounded) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (a, b) => a.or(b),
        };
        PartVerdict { rounded, beyond: self.beyond.or(below.beyond) }
    }

    /// Returns the verdict on the whole matrix.
    pub(crate) fn verdict(self) -> Verdict {
        let rounded = self.rounded.map_or(Verdict::Exact, Verdict::ToRounding);
        self.beyond.map_or(rounded, Verdict::No)
    }
}

/// Some rows of a square matrix, and the same rows of its transpose; columns of both are those of the whole
/// matrix, and no entry is repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartRows<'a> {
    /// The index of the first row.
    pub first: usize,
    /// The rows of the matrix.
    pub rows: &'a Csr,
    /// The rows of the transpose.
    pub transposed: &'a Csr,
}

impl PartRows<'_> {
    /// Calls `visit` with the column of each pair of a row, with its entry and its mirrored entry.
    fn each_pair(&self, row: usize, mut visit: impl FnMut(usize, Option<f64>, Option<f64>)) {
        let mut here = self.rows.row(row).peekable();
        let mut mirrored = self.transposed.row(row).peekable();
        loop {
            let column = match (here.peek(), mirrored.peek()) {
                (Some((a, _)), Some((b, _))) => *a.min(b),
                (Some((column, _)), None) | (None, Some((column, _))) => *column,
                (None, None) => return,
            };
            let value = here.next_if(|(other, _)| *other == column).map(|(_, value)| value);
            let other = mirrored.next_if(|(other, _)| *other == column).map(|(_, value)| value);
            visit(column, value, other);
        }
    }

    /// Returns whether every pair of these rows is equal.
    pub(crate) fn is_symmetric(&self) -> bool {
        let equal = self.over_rows(|rows| {
            let mut equal = true;
            for row in rows {
                self.each_pair(row, |_, value, other| equal &= value.unwrap_or(0.0) == other.unwrap_or(0.0));
            }
            equal
        });
        equal.into_iter().all(|equal| equal)
    }

    /// Compares the pairs; `diagonal` returns the entry on the diagonal of any row, 0 if it is not stored.
    pub(crate) fn compare(&self, diagonal: impl Fn(usize) -> f64 + Sync) -> PartVerdict {
        let parts = self.over_rows(|rows| {
            let mut all = PartVerdict::default();
            rows.for_each(|row| self.compare_row(row, &diagonal, &mut all));
            all
        });
        parts.into_iter().fold(PartVerdict::default(), PartVerdict::join)
    }

    fn compare_row(&self, row: usize, diagonal: &impl Fn(usize) -> f64, all: &mut PartVerdict) {
        let index = self.first + row;
        self.each_pair(row, |column, value, other| {
            // NaN does not equal itself.
            if value.unwrap_or(0.0) == other.unwrap_or(0.0) {
                return;
            }
            // The upper of the stored entries names the pair.
            let pair = match value {
                Some(value) => Asymmetry { row: index, col: column, value, mirrored: other },
                None => Asymmetry { row: column, col: index, value: other.unwrap_or(0.0), mirrored: None },
            };
            match share_of(&pair, diagonal) {
                Some(largest) if index < column => {
                    let new = Rounding { pairs: 1, largest, row: index, col: column, first: pair };
                    all.rounded = Some(all.rounded.map_or(new, |rounded| rounded.join(new)));
                }
                Some(_) => {}
                None if value.is_some() => all.beyond = all.beyond.or(Some(pair)),
                None => {}
            }
        });
    }

    /// Runs `work` for pieces of the rows on all threads; returns the results in the order of rows.
    fn over_rows<R: Send>(&self, work: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
        let rows = self.rows.rows();
        let threads = threads_for(self.rows.nnz() * 8);
        let step = rows.div_ceil(if threads > 1 { threads * PIECES_PER_THREAD } else { 1 }).max(1);
        run_all((0..rows).step_by(step).map(|row| row..(row + step).min(rows)).collect(), work)
    }
}
