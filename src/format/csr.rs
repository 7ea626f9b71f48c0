//! Compressed sparse rows: the format that every source makes and every backend starts from.
//!
//! Row `i` holds the entries `row_offsets[i] .. row_offsets[i + 1]` of `col_indices` and `values`, columns strictly
//! increasing. Column indices are 32-bit; row offsets are 32-bit while the number of entries allows it and 64-bit
//! beyond. The pattern is shared, so that a matrix in another precision costs only its values.
//!
//! A graph with parallel edges may keep them ([`Pattern::with_repeats`]): a row then holds a column several times, one
//! after the other, and the entries at one place add up. Products do so by themselves, and so does [`Csr::get`].

use super::{Offsets, Pattern, Values};
use crate::error::{CsrFault, Error, Result};
use rayon::prelude::*;
use std::sync::Arc;

/// A validated matrix in compressed sparse rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr {
    pattern: Arc<Pattern>,
    values: Values,
}

impl Csr {
    /// Checks the arrays and takes them over; the error names the first fault and its place.
    pub fn new(
        rows: usize,
        cols: usize,
        row_offsets: Offsets,
        col_indices: Vec<u32>,
        values: Values,
    ) -> Result<Csr> {
        Csr::with_pattern(Arc::new(Pattern::new(rows, cols, row_offsets, col_indices)?), values)
    }

    /// New values on a pattern that is already checked.
    pub fn with_pattern(pattern: Arc<Pattern>, values: Values) -> Result<Csr> {
        let entries = pattern.col_indices.len();
        let given = values.stored().unwrap_or(entries);
        if given != entries {
            return Err(Error::InvalidCsr(CsrFault::ValueCount { entries, values: given }));
        }
        Ok(Csr { pattern, values })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.pattern.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.pattern.cols
    }

    /// Whether there are as many rows as columns.
    pub fn is_square(&self) -> bool {
        self.rows() == self.cols()
    }

    /// Number of entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.pattern.col_indices.len()
    }

    /// Where each row begins; one more than there are rows.
    pub fn row_offsets(&self) -> &Offsets {
        &self.pattern.row_offsets
    }

    /// The column of each entry.
    pub fn col_indices(&self) -> &[u32] {
        &self.pattern.col_indices
    }

    /// The value of each entry.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The shared pattern.
    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// The range of entries that row `i` owns.
    #[inline]
    pub fn row_range(&self, i: usize) -> std::ops::Range<usize> {
        self.pattern.row_offsets.get(i)..self.pattern.row_offsets.get(i + 1)
    }

    /// The entries of row `i` as (column, value).
    pub fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.row_range(i).map(|j| (self.pattern.col_indices[j] as usize, self.values.get(j)))
    }

    /// The value at (row, col) where it is stored: the sum of the entries there, should they be several.
    pub fn get(&self, row: usize, col: usize) -> Option<f64> {
        let range = self.row_range(row);
        let columns = &self.pattern.col_indices[range.clone()];
        let col = u32::try_from(col).ok()?;
        let place = columns.binary_search(&col).ok()?;
        if !self.pattern.repeats {
            return Some(self.values.get(range.start + place));
        }
        let first = columns.partition_point(|&other| other < col);
        let end = columns.partition_point(|&other| other <= col);
        // Not a sum that begins with 0, which would change the sign of -0.
        (first..end).map(|place| self.values.get(range.start + place)).reduce(|sum, value| sum + value)
    }

    /// The diagonal, as long as the shorter side; 0 where nothing is stored.
    pub fn diagonal(&self) -> Vec<f64> {
        let length = self.rows().min(self.cols());
        (0..length).into_par_iter().with_min_len(4096).map(|i| self.get(i, i).unwrap_or(0.0)).collect()
    }

    /// The same matrix with its values in single precision; the pattern is shared. Ones stay ones.
    pub fn to_f32(&self) -> Csr {
        let values = match &self.values {
            Values::F64(v) => Values::F32(v.iter().map(|&v| v as f32).collect()),
            other => other.clone(),
        };
        Csr { pattern: Arc::clone(&self.pattern), values }
    }

    /// The same matrix with 64-bit row offsets, whether it needs them or not: for tests of that path.
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

    /// The columns of row `i`.
    #[inline]
    pub fn row_columns(&self, i: usize) -> &[u32] {
        &self.pattern.col_indices[self.row_range(i)]
    }

    /// The pattern and the values apart.
    pub fn into_parts(self) -> (Arc<Pattern>, Values) {
        (self.pattern, self.values)
    }

    /// Bytes of the arrays: offsets, column indices and values.
    pub fn storage_bytes(&self) -> u64 {
        self.pattern.storage_bytes() + (self.nnz() * self.values.width()) as u64
    }

    /// y = A x in double precision, each row summed in order: the reference that verdicts and tests rest on. Rows are
    /// independent, so working on several at once changes no bit of it.
    pub fn multiply_reference(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.cols(), "x must have one entry a column");
        self.map_rows(|i| self.row(i).map(|(j, v)| v * x[j]).sum())
    }

    /// `f(row)` for every row, in order, computed on the threads of rayon's current pool.
    pub fn map_rows<R: Send>(&self, f: impl Fn(usize) -> R + Send + Sync) -> Vec<R> {
        (0..self.rows()).into_par_iter().with_min_len(4096).map(f).collect()
    }
}
