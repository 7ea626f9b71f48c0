//! The sparsity pattern of a matrix, and its validation.
//!
//! The check runs at memory bandwidth: over many rows at once, it counts without a branch the adjacent column
//! indices that do not increase, and compares the count with the number of row boundaries at which this is
//! allowed. If the counts differ, the rows are searched one by one for the first fault, so that the reported
//! fault is the same for any number of threads.

use super::columns::Columns;
use super::pieces::{cut, pieces_for};
use crate::error::{CsrFault, Result};
use crate::parallel::{copied, run_all};
use bytemuck::Pod;
use std::ops::Range;
use std::sync::Arc;

/// An index into the arrays of a matrix, 32-bit or 64-bit.
pub(crate) trait Offset: Pod + Send + Sync {
    /// Converts to an index.
    fn at(self) -> usize;
    /// Converts from an index that fits.
    fn from_index(index: usize) -> Self;
    /// Wraps offsets of this width.
    fn wrap(offsets: Vec<Self>) -> Offsets;
}

impl Offset for u32 {
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn from_index(index: usize) -> u32 {
        debug_assert!(u32::try_from(index).is_ok(), "{index} does not fit");
        index as u32
    }
    fn wrap(offsets: Vec<u32>) -> Offsets {
        Offsets::U32(offsets)
    }
}

impl Offset for u64 {
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn from_index(index: usize) -> u64 {
        index as u64
    }
    fn wrap(offsets: Vec<u64>) -> Offsets {
        Offsets::U64(offsets)
    }
}

/// Row offsets in the narrowest width that holds the number of entries.
#[derive(Clone, Debug, PartialEq)]
pub enum Offsets {
    /// 32-bit offsets, for up to 2^32 - 4097 entries.
    U32(Vec<u32>),
    /// 64-bit offsets, for more entries.
    U64(Vec<u64>),
}

impl Offsets {
    /// Largest number of entries with 32-bit offsets: a little below 2^32, so that a kernel may
    /// step past the end of a row.
    pub(crate) const MOST_NARROW: u64 = u32::MAX as u64 - 4096;

    /// Stores offsets in the narrowest width that holds the last (largest) one.
    pub fn narrowest(offsets: Vec<u64>) -> Offsets {
        match offsets.last() {
            Some(&last) if last > Offsets::MOST_NARROW => Offsets::U64(offsets),
            _ => Offsets::U32(offsets.iter().map(|&o| o as u32).collect()),
        }
    }

    /// Returns the number of offsets: rows + 1.
    pub fn len(&self) -> usize {
        match self {
            Offsets::U32(o) => o.len(),
            Offsets::U64(o) => o.len(),
        }
    }

    /// Returns whether there are no offsets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns offset `i`.
    #[inline]
    pub fn get(&self, i: usize) -> usize {
        match self {
            Offsets::U32(o) => o[i].at(),
            Offsets::U64(o) => o[i].at(),
        }
    }

    /// Returns the bytes of one offset.
    pub fn width(&self) -> usize {
        match self {
            Offsets::U32(_) => 4,
            Offsets::U64(_) => 8,
        }
    }
}

/// The sparsity pattern of a matrix: row offsets and column indices.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) row_offsets: Offsets,
    pub(super) col_indices: Columns,
    pub(super) repeats: bool,
}

impl Pattern {
    /// Checks the arrays and takes ownership of them. Column indices must increase strictly within a row.
    pub fn new(rows: usize, cols: usize, row_offsets: Offsets, col_indices: Vec<u32>) -> Result<Pattern> {
        check(rows, cols, &row_offsets, &col_indices, false)?;
        Ok(Pattern { rows, cols, row_offsets, col_indices: col_indices.into(), repeats: false })
    }

    /// Checks the arrays and takes ownership of them, or returns them if they are not valid.
    pub(crate) fn or_arrays(
        (rows, cols): (usize, usize),
        row_offsets: Offsets,
        col_indices: Vec<u32>,
    ) -> std::result::Result<Pattern, (Offsets, Vec<u32>)> {
        match check(rows, cols, &row_offsets, &col_indices, false) {
            Ok(_) => Ok(Pattern { rows, cols, row_offsets, col_indices: col_indices.into(), repeats: false }),
            Err(_) => Err((row_offsets, col_indices)),
        }
    }

    /// Checks the arrays as [`new`](Pattern::new) does, but allows repeated column indices within a row, next
    /// to each other: a graph with parallel edges. The values of repeated entries add up.
    pub(crate) fn with_repeats(
        rows: usize,
        cols: usize,
        row_offsets: Offsets,
        col_indices: Vec<u32>,
    ) -> Result<Pattern> {
        let repeats = check(rows, cols, &row_offsets, &col_indices, true)?;
        Ok(Pattern { rows, cols, row_offsets, col_indices: col_indices.into(), repeats })
    }

    /// Returns the row offsets and the column indices.
    pub fn into_arrays(self) -> (Offsets, Vec<u32>) {
        (self.row_offsets, self.col_indices.into_vec())
    }

    /// Wraps arrays that the caller guarantees to be valid; debug builds check them.
    pub(super) fn trusted(
        rows: usize,
        cols: usize,
        row_offsets: Offsets,
        col_indices: impl Into<Columns>,
        repeats: bool,
    ) -> Pattern {
        let col_indices = col_indices.into();
        debug_assert_eq!(check(rows, cols, &row_offsets, &col_indices, repeats), Ok(repeats));
        Pattern { rows, cols, row_offsets, col_indices, repeats }
    }

    /// Wraps arrays that a device has checked or computed; debug builds check them again.
    pub(crate) fn checked_elsewhere(
        (rows, cols): (usize, usize),
        row_offsets: Offsets,
        col_indices: Vec<u32>,
        repeats: bool,
    ) -> Pattern {
        Pattern::trusted(rows, cols, row_offsets, col_indices, repeats)
    }

    /// Wraps a pattern whose columns the host does not need at first: `later` computes all `entries` of them
    /// at the first use, on the thread that reads them. It must not use other threads, which may all be
    /// waiting for the columns. The caller guarantees that they are valid.
    pub(crate) fn with_columns_later(
        (rows, cols): (usize, usize),
        row_offsets: Offsets,
        entries: usize,
        repeats: bool,
        later: impl FnOnce() -> Vec<u32> + Send + 'static,
    ) -> Pattern {
        let col_indices = Columns::later(entries, Box::new(later));
        Pattern { rows, cols, row_offsets, col_indices, repeats }
    }

    /// Returns the pattern itself if the `Arc` is its only owner, or else a copy.
    pub(super) fn unshared(pattern: Arc<Pattern>) -> Result<Pattern> {
        Arc::try_unwrap(pattern).or_else(|shared| {
            let row_offsets = match &shared.row_offsets {
                Offsets::U32(offsets) => Offsets::U32(copied(offsets)?),
                Offsets::U64(offsets) => Offsets::U64(copied(offsets)?),
            };
            let col_indices = copied(&shared.col_indices)?.into();
            Ok(Pattern { row_offsets, col_indices, ..*shared })
        })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the offset at which each row begins, and the number of entries as the last offset.
    pub fn row_offsets(&self) -> &Offsets {
        &self.row_offsets
    }

    /// Returns the column index of each entry.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// Returns the number of column indices.
    pub(crate) fn entries(&self) -> usize {
        self.col_indices.len()
    }

    /// Returns whether the column indices are in memory, and not computed when they are first read.
    pub(crate) fn has_columns(&self) -> bool {
        self.col_indices.are_ready()
    }

    /// Returns whether any row has a repeated column index.
    pub fn has_repeats(&self) -> bool {
        self.repeats
    }

    /// Refuses repeated column indices, for formats and libraries that do not support them. The
    /// error names the first one.
    pub(crate) fn refuse_repeats(&self) -> Result<()> {
        if self.repeats {
            check(self.rows, self.cols, &self.row_offsets, &self.col_indices, false)?;
        }
        Ok(())
    }

    /// Returns the bytes of the arrays.
    pub(crate) fn storage_bytes(&self) -> u64 {
        (self.row_offsets.len() * self.row_offsets.width() + self.col_indices.len() * 4) as u64
    }
}

/// Checks a pattern. Returns the first fault, or whether any row has a repeated column index.
pub(super) fn check(
    rows: usize,
    cols: usize,
    offsets: &Offsets,
    columns: &[u32],
    repeats: bool,
) -> std::result::Result<bool, CsrFault> {
    if cols > u32::MAX as usize {
        return Err(CsrFault::TooManyColumns { cols });
    }
    if Some(offsets.len()) != rows.checked_add(1) {
        return Err(CsrFault::OffsetCount { rows, got: offsets.len() });
    }
    match offsets {
        Offsets::U32(offsets) => Rows { offsets, columns, cols, repeats }.check(),
        Offsets::U64(offsets) => Rows { offsets, columns, cols, repeats }.check(),
    }
}

/// The arrays of a pattern under check.
struct Rows<'a, O> {
    offsets: &'a [O],
    columns: &'a [u32],
    cols: usize,
    /// Whether repeated column indices are allowed.
    repeats: bool,
}

/// Rows whose column indices are checked together: few enough to stay in cache for a second pass.
const TOGETHER: usize = 256;

impl<O: Offset> Rows<'_, O> {
    fn check(&self) -> std::result::Result<bool, CsrFault> {
        let rows = self.offsets.len() - 1;
        if self.offsets[0].at() != 0 {
            return Err(CsrFault::FirstOffset { got: self.offsets[0].at() as u64 });
        }
        let bands = cut(rows, pieces_for(size_of_val(self.offsets)), |row| row);
        let decreasing = run_all(bands, |band| self.first_decrease(band));
        if let Some(row) = decreasing.into_iter().flatten().next() {
            let (this, next) = (self.offsets[row].at() as u64, self.offsets[row + 1].at() as u64);
            return Err(CsrFault::DecreasingOffset { row, this, next });
        }
        let entries = self.columns.len();
        if self.offsets[rows].at() != entries {
            return Err(CsrFault::EntryCount { offset: self.offsets[rows].at() as u64, entries });
        }
        let pieces = pieces_for(size_of_val(self.columns) + size_of_val(self.offsets));
        let bands = cut(rows, pieces, |row| self.offsets[row].at().saturating_add(row));
        let mut repeats = false;
        for found in run_all(bands, |band| self.check_band(band)) {
            repeats |= found?;
        }
        Ok(repeats)
    }

    fn first_decrease(&self, band: Range<usize>) -> Option<usize> {
        let offsets = &self.offsets[band.start..=band.end];
        let row = offsets.windows(2).position(|w| w[1].at() < w[0].at())?;
        Some(band.start + row)
    }

    fn check_band(&self, band: Range<usize>) -> std::result::Result<bool, CsrFault> {
        let mut repeats = false;
        for start in band.clone().step_by(TOGETHER) {
            let rows = start..(start + TOGETHER).min(band.end);
            if !self.all_increase(rows.clone()) {
                repeats |= self.check_each(rows)?;
            }
        }
        Ok(repeats)
    }

    /// Returns whether the column indices of every row increase strictly and are in range.
    fn all_increase(&self, rows: Range<usize>) -> bool {
        let offsets = &self.offsets[rows.start..=rows.end];
        let (first, end) = (offsets[0].at(), offsets[rows.len()].at());
        let (mut at_ends, mut inside) = (0, true);
        for row in offsets.windows(2).filter(|w| w[0].at() < w[1].at()) {
            let (from, to) = (row[0].at(), row[1].at());
            // If the column indices increase, the last one is the largest.
            inside &= (self.columns[to - 1] as usize) < self.cols;
            if from > first {
                at_ends += usize::from(self.columns[from - 1] >= self.columns[from]);
            }
        }
        inside && count_not_increasing(&self.columns[first..end]) == at_ends
    }

    /// Returns the first fault of these rows, or whether any of them has a repeated column index.
    #[cold]
    fn check_each(&self, rows: Range<usize>) -> std::result::Result<bool, CsrFault> {
        let mut repeats = false;
        for row in rows {
            let columns = &self.columns[self.offsets[row].at()..self.offsets[row + 1].at()];
            let wrong = |w: &&[u32]| w[0] > w[1] || (w[0] == w[1] && !self.repeats);
            if let Some(w) = columns.windows(2).find(wrong) {
                return Err(CsrFault::ColumnOrder { row, col: w[0], next: w[1] });
            }
            if let Some(&col) = columns.last().filter(|&&col| col as usize >= self.cols) {
                return Err(CsrFault::ColumnRange { row, col, cols: self.cols });
            }
            repeats |= columns.windows(2).any(|w| w[0] == w[1]);
        }
        Ok(repeats)
    }
}

/// Counts the column indices that are not larger than the one before.
fn count_not_increasing(columns: &[u32]) -> usize {
    /// Few enough for a 32-bit counter, with which the compiler vectorizes the loop.
    const PIECE: usize = 1 << 20;
    let Some(following) = columns.get(1..) else { return 0 };
    let pieces = columns.chunks(PIECE).zip(following.chunks(PIECE));
    pieces
        .map(|(this, next)| this.iter().zip(next).map(|(a, b)| u32::from(a >= b)).sum::<u32>() as usize)
        .sum()
}
