//! Compressed sparse rows: the format that every source produces and every backend is built from.
//!
//! Row `i` holds the entries `row_offsets[i] .. row_offsets[i + 1]` of `col_indices` and `values`, with
//! strictly increasing column indices. Column indices are 32-bit. Row offsets are 32-bit if the number of
//! entries allows it, and 64-bit otherwise. The pattern is shared, so that a copy of the matrix in another
//! precision allocates only values.
//!
//! A graph may keep parallel edges ([`Pattern::with_repeats`]): a row then has repeated column indices next
//! to each other, and the values of repeated entries add up. Products and [`Csr::get`] sum them.

use super::pieces::{cut, pieces_for};
use super::{Offsets, Pattern, Values};
use crate::error::{CsrFault, Error, Result};
use crate::parallel::{collected, collected_in};
use std::sync::Arc;

/// A validated matrix in compressed sparse rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr {
    pattern: Arc<Pattern>,
    values: Values,
}

impl Csr {
    /// Checks the arrays and takes ownership of them. The error names the first fault and its location.
    pub fn new(
        rows: usize,
        cols: usize,
        row_offsets: Offsets,
        col_indices: Vec<u32>,
        values: Values,
    ) -> Result<Csr> {
        Csr::with_pattern(Arc::new(Pattern::new(rows, cols, row_offsets, col_indices)?), values)
    }

    /// Combines a checked pattern with values.
    pub fn with_pattern(pattern: Arc<Pattern>, values: Values) -> Result<Csr> {
        let entries = pattern.col_indices.len();
        let given = values.stored().unwrap_or(entries);
        if given != entries {
            return Err(Error::InvalidCsr(CsrFault::ValueCount { entries, values: given }));
        }
        Ok(Csr { pattern, values })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.pattern.rows
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.pattern.cols
    }

    /// Returns whether there are as many rows as columns.
    pub fn is_square(&self) -> bool {
        self.rows() == self.cols()
    }

    /// Returns the number of entries, including explicit zeros.
    pub fn nnz(&self) -> usize {
        self.pattern.col_indices.len()
    }

    /// Returns the offset at which each row begins, and the number of entries as the last offset.
    pub fn row_offsets(&self) -> &Offsets {
        &self.pattern.row_offsets
    }

    /// Returns the column index of each entry.
    pub fn col_indices(&self) -> &[u32] {
        &self.pattern.col_indices
    }

    /// Returns the value of each entry.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Returns the shared pattern.
    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// Returns the range of entries of row `i`.
    #[inline]
    pub fn row_range(&self, i: usize) -> std::ops::Range<usize> {
        self.pattern.row_offsets.get(i)..self.pattern.row_offsets.get(i + 1)
    }

    /// Returns the entries of row `i` as (column, value).
    pub fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.row_range(i);
        let columns = &self.pattern.col_indices[range.clone()];
        range.zip(columns).map(|(j, &column)| (column as usize, self.values.get(j)))
    }

    /// Returns the stored value at (row, col), or the sum of the repeated entries there.
    pub fn get(&self, row: usize, col: usize) -> Option<f64> {
        let range = self.row_range(row);
        let columns = &self.pattern.col_indices[range.clone()];
        let col = u32::try_from(col).ok()?;
        let found = columns.binary_search(&col).ok()?;
        if !self.pattern.repeats {
            return Some(self.values.get(range.start + found));
        }
        let first = columns.partition_point(|&other| other < col);
        let end = columns.partition_point(|&other| other <= col);
        // Not a sum that begins with 0, which would change the sign of -0.
        (first..end).map(|entry| self.values.get(range.start + entry)).reduce(|sum, value| sum + value)
    }

    /// Returns the diagonal, with 0 for entries that are not stored. Its length is the smaller
    /// of rows and columns.
    pub fn diagonal(&self) -> Vec<f64> {
        let length = self.rows().min(self.cols());
        collected(length, |i| self.get(i, i).unwrap_or(0.0))
    }

    /// Returns the matrix with its values in single precision; the pattern is shared. Ones stay implicit.
    pub fn to_f32(&self) -> Csr {
        let values = match &self.values {
            Values::F64(v) => Values::F32(collected(v.len(), |j| v[j] as f32)),
            other => other.clone(),
        };
        Csr { pattern: Arc::clone(&self.pattern), values }
    }

    /// Returns the matrix with its values in single precision if `narrow`, or else itself.
    pub(crate) fn narrowed(self: &Arc<Csr>, narrow: bool) -> Arc<Csr> {
        if narrow { Arc::new(self.to_f32()) } else { Arc::clone(self) }
    }

    /// Returns the matrix with a 1 in place of each value; no values are stored, and the pattern is shared.
    pub(crate) fn without_values(&self) -> Csr {
        Csr { pattern: Arc::clone(&self.pattern), values: Values::Ones }
    }

    /// Returns the matrix with 64-bit row offsets even if it does not need them, for tests of that path.
    #[doc(hidden)]
    pub fn with_wide_offsets(&self) -> Csr {
        let wide = (0..=self.rows()).map(|i| self.row_offsets().get(i) as u64).collect();
        let p = &self.pattern;
        let pattern = Pattern {
            rows: p.rows,
            cols: p.cols,
            row_offsets: Offsets::U64(wide),
            col_indices: p.col_indices.clone(),
            repeats: p.repeats,
        };
        Csr { pattern: Arc::new(pattern), values: self.values.clone() }
    }

    /// Returns the column indices of row `i`.
    #[inline]
    pub fn row_columns(&self, i: usize) -> &[u32] {
        &self.pattern.col_indices[self.row_range(i)]
    }

    /// Splits the matrix into pattern and values.
    pub fn into_parts(self) -> (Arc<Pattern>, Values) {
        (self.pattern, self.values)
    }

    /// Returns the bytes of the arrays: offsets, column indices and values.
    pub fn storage_bytes(&self) -> u64 {
        self.pattern.storage_bytes() + (self.nnz() * self.values.width()) as u64
    }

    /// Computes y = A x in double precision, with each row summed in order: the reference for verdicts and
    /// tests. Rows are independent, so that the result does not depend on the number of threads.
    pub fn multiply_reference(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.cols(), "x must have one entry per column");
        self.map_rows(|i| self.row(i).map(|(j, v)| v * x[j]).sum())
    }

    /// Returns `f(row)` for every row, in order, computed on the threads of rayon's current pool. A task has
    /// about as many entries as the others.
    pub(crate) fn map_rows<R: Send>(&self, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
        let work = |rows: usize| self.row_offsets().get(rows) + rows;
        let pieces = pieces_for(8 * work(self.rows()));
        collected_in(cut(self.rows(), pieces, work), f)
    }
}
