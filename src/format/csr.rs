//! Compressed sparse rows: the format that every source makes and every backend starts from.
//!
//! Row `i` holds the entries `row_offsets[i] .. row_offsets[i + 1]` of `col_indices` and `values`, columns strictly
//! increasing. Column indices are 32-bit; row offsets are 32-bit while the number of entries allows it and 64-bit
//! beyond. The pattern is shared, so that a matrix in another precision costs only its values.

use crate::error::{CsrFault, Error, Result};
use rayon::prelude::*;
use std::sync::Arc;

/// An index into the arrays of a matrix, 32-bit or 64-bit.
pub trait Offset: Copy + Send + Sync + cudarc::driver::DeviceRepr + 'static {
    /// The name of the same type in CUDA C++.
    const CUDA_NAME: &'static str;
    /// As an index.
    fn at(self) -> usize;
}

impl Offset for u32 {
    const CUDA_NAME: &'static str = "unsigned int";
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

impl Offset for u64 {
    const CUDA_NAME: &'static str = "unsigned long long";
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

/// Row offsets in the narrowest width that holds the number of entries.
#[derive(Clone, Debug, PartialEq)]
pub enum Offsets {
    /// Fewer than 2^32 entries.
    U32(Vec<u32>),
    /// More.
    U64(Vec<u64>),
}

impl Offsets {
    /// Entries beyond which offsets are 64-bit: a little below 2^32, so that a kernel may step past the end of a row.
    pub const MOST_NARROW: u64 = u32::MAX as u64 - 4096;

    /// The narrowest width that holds the last (largest) offset.
    pub fn narrowest(offsets: Vec<u64>) -> Offsets {
        match offsets.last() {
            Some(&last) if last > Offsets::MOST_NARROW => Offsets::U64(offsets),
            _ => Offsets::U32(offsets.iter().map(|&o| o as u32).collect()),
        }
    }

    /// Number of offsets: rows + 1.
    pub fn len(&self) -> usize {
        match self {
            Offsets::U32(o) => o.len(),
            Offsets::U64(o) => o.len(),
        }
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Offset `i`.
    #[inline]
    pub fn get(&self, i: usize) -> usize {
        match self {
            Offsets::U32(o) => o[i].at(),
            Offsets::U64(o) => o[i].at(),
        }
    }

    /// Bytes of one offset.
    pub fn width(&self) -> usize {
        match self {
            Offsets::U32(_) => 4,
            Offsets::U64(_) => 8,
        }
    }
}

/// The values of a matrix, apart from its pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Every entry is 1 and none is stored: a graph moves 4 bytes an edge.
    Ones,
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl Values {
    /// Value `j` in double precision.
    #[inline]
    pub fn get(&self, j: usize) -> f64 {
        match self {
            Values::Ones => 1.0,
            Values::F32(v) => f64::from(v[j]),
            Values::F64(v) => v[j],
        }
    }

    /// Bytes of one stored value.
    pub fn width(&self) -> usize {
        match self {
            Values::Ones => 0,
            Values::F32(_) => 4,
            Values::F64(_) => 8,
        }
    }
}

/// Where the entries of a matrix stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    rows: usize,
    cols: usize,
    row_offsets: Offsets,
    col_indices: Vec<u32>,
}

/// A validated matrix in compressed sparse rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr {
    pattern: Arc<Pattern>,
    values: Values,
}

impl Pattern {
    /// Checks the arrays and takes them over.
    pub fn new(rows: usize, cols: usize, row_offsets: Offsets, col_indices: Vec<u32>) -> Result<Pattern> {
        let pattern = Pattern { rows, cols, row_offsets, col_indices };
        pattern.check()?;
        Ok(pattern)
    }

    fn check(&self) -> std::result::Result<(), CsrFault> {
        if self.cols > u32::MAX as usize {
            return Err(CsrFault::TooManyColumns { cols: self.cols });
        }
        if Some(self.row_offsets.len()) != self.rows.checked_add(1) {
            return Err(CsrFault::OffsetCount { rows: self.rows, got: self.row_offsets.len() });
        }
        match &self.row_offsets {
            Offsets::U32(offsets) => self.check_rows(offsets),
            Offsets::U64(offsets) => self.check_rows(offsets),
        }
    }

    fn check_rows<O: Offset>(&self, offsets: &[O]) -> std::result::Result<(), CsrFault> {
        if offsets[0].at() != 0 {
            return Err(CsrFault::FirstOffset { got: offsets[0].at() as u64 });
        }
        let entries = self.col_indices.len();
        if let Some(row) = offsets.windows(2).position(|w| w[1].at() < w[0].at()) {
            let (this, next) = (offsets[row].at() as u64, offsets[row + 1].at() as u64);
            return Err(CsrFault::DecreasingOffset { row, this, next });
        }
        if offsets[self.rows].at() != entries {
            return Err(CsrFault::EntryCount { offset: offsets[self.rows].at() as u64, entries });
        }
        for (row, w) in offsets.windows(2).enumerate() {
            let columns = &self.col_indices[w[0].at()..w[1].at()];
            if let Some(w) = columns.windows(2).find(|w| w[0] >= w[1]) {
                return Err(CsrFault::ColumnOrder { row, col: w[0], next: w[1] });
            }
            // Columns increase, so the last one is the largest.
            if let Some(&col) = columns.last().filter(|&&c| c as usize >= self.cols) {
                return Err(CsrFault::ColumnRange { row, col, cols: self.cols });
            }
        }
        Ok(())
    }
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
        let given = match &values {
            Values::Ones => entries,
            Values::F32(v) => v.len(),
            Values::F64(v) => v.len(),
        };
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

    /// The entry at (row, col) where one is stored.
    pub fn get(&self, row: usize, col: usize) -> Option<f64> {
        let range = self.row_range(row);
        let columns = &self.pattern.col_indices[range.clone()];
        let place = columns.binary_search(&u32::try_from(col).ok()?).ok()?;
        Some(self.values.get(range.start + place))
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
    pub fn with_wide_offsets(&self) -> Csr {
        let wide = (0..=self.rows()).map(|i| self.row_offsets().get(i) as u64).collect();
        let p = &self.pattern;
        let pattern = Pattern {
            rows: p.rows,
            cols: p.cols,
            row_offsets: Offsets::U64(wide),
            col_indices: p.col_indices.clone(),
        };
        Csr { pattern: Arc::new(pattern), values: self.values.clone() }
    }

    /// The transpose.
    pub fn transposed(&self) -> Result<Csr> {
        let row_of = (0..self.rows()).flat_map(|i| self.row_range(i).map(move |_| i as u32)).collect();
        let values = match &self.values {
            Values::Ones => Vec::new(),
            values => (0..self.nnz()).map(|j| values.get(j)).collect(),
        };
        super::Coo::new(self.cols(), self.rows(), self.col_indices().to_vec(), row_of, values)?.into_csr()
    }

    /// Bytes of the arrays: offsets, column indices and values.
    pub fn storage_bytes(&self) -> u64 {
        let p = &self.pattern;
        let offsets = p.row_offsets.len() * p.row_offsets.width();
        (offsets + self.nnz() * (4 + self.values.width())) as u64
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
