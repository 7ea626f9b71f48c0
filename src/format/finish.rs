//! Conversion of rows with unsorted and repeated column indices to compressed rows: each row is sorted and
//! its duplicates are summed, in place.
//!
//! Threads own contiguous bands of rows with about equally many entries each, and so disjoint
//! parts of every array.

use super::{Csr, Offset, Offsets, Pattern, Values};
use crate::error::{CsrFault, Error, Result};
use crate::parallel::{PIECES_PER_THREAD, room, run_all, split_front, threads_for, zeros};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The treatment of duplicate entries, which have the same row and column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// Duplicates are replaced by their sum, taken in their order.
    #[default]
    Sum,
    /// Duplicates are stored next to each other in their order: the parallel edges of a graph.
    Keep,
}

/// Returns whether 32-bit counters suffice for `entries` and for one more, as an excess entry is
/// counted before it is refused.
pub(crate) fn narrow(entries: usize, mirrored: bool) -> bool {
    (entries as u128 + 1) * if mirrored { 2 } else { 1 } <= u128::from(Offsets::MOST_NARROW)
}

/// The width of row offsets during assembly.
pub(crate) trait Width: Offset + Default + PartialOrd {
    /// The atomic of this width, to which several threads can add.
    type Counter: Send + Sync;
    fn counters(n: usize) -> Result<Vec<Self::Counter>>;
    fn add(counter: &Self::Counter, n: usize);
    fn counted(counters: Vec<Self::Counter>) -> Vec<Self>;
    fn of(n: usize) -> Self;
    fn offsets(offsets: Vec<Self>) -> Offsets;
}

// The vectors of atomics below are collected in place: the same bytes with another type.
impl Width for u32 {
    type Counter = AtomicU32;
    fn counters(n: usize) -> Result<Vec<AtomicU32>> {
        Ok(zeros::<u32>(n)?.into_iter().map(AtomicU32::new).collect())
    }
    #[inline(always)]
    fn add(counter: &AtomicU32, n: usize) {
        counter.fetch_add(n as u32, Ordering::Relaxed);
    }
    fn counted(counters: Vec<AtomicU32>) -> Vec<u32> {
        counters.into_iter().map(AtomicU32::into_inner).collect()
    }
    #[inline(always)]
    fn of(n: usize) -> u32 {
        n as u32
    }
    fn offsets(offsets: Vec<u32>) -> Offsets {
        Offsets::U32(offsets)
    }
}

impl Width for u64 {
    type Counter = AtomicU64;
    fn counters(n: usize) -> Result<Vec<AtomicU64>> {
        Ok(zeros::<u64>(n)?.into_iter().map(AtomicU64::new).collect())
    }
    #[inline(always)]
    fn add(counter: &AtomicU64, n: usize) {
        counter.fetch_add(n as u64, Ordering::Relaxed);
    }
    fn counted(counters: Vec<AtomicU64>) -> Vec<u64> {
        counters.into_iter().map(AtomicU64::into_inner).collect()
    }
    #[inline(always)]
    fn of(n: usize) -> u64 {
        n as u64
    }
    fn offsets(offsets: Vec<u64>) -> Offsets {
        Offsets::narrowest(offsets)
    }
}

/// Builds the matrix from rows with unsorted and repeated column indices: sorts each row, and sums duplicates
/// or keeps them in their order.
pub(crate) fn finish<W: Width>(
    cols: usize,
    offsets: Vec<W>,
    col_indices: Vec<u32>,
    values: Option<Vec<f64>>,
    duplicates: Duplicates,
) -> Result<Csr> {
    if let Some(row) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        let (this, next) = (offsets[row].at() as u64, offsets[row + 1].at() as u64);
        return Err(CsrFault::DecreasingOffset { row, this, next }.into());
    }
    let rows = offsets.len() - 1;
    if offsets[rows].at() != col_indices.len() {
        let (offset, entries) = (offsets[rows].at() as u64, col_indices.len());
        return Err(CsrFault::EntryCount { offset, entries }.into());
    }
    let cuts = cut(&offsets[..rows], col_indices.len());
    let mut valued = values.is_some();
    let mut unfinished = Unfinished { offsets, col_indices, values: values.unwrap_or_default(), cuts };
    let repeats = run_all(unfinished.bands(), sort_rows).contains(&true);
    if repeats && duplicates == Duplicates::Sum {
        unfinished.sum_duplicates()?;
        valued = true;
    }
    let Unfinished { offsets, col_indices, values, .. } = unfinished;
    let values = if valued { Values::F64(values) } else { Values::Ones };
    let offsets = W::offsets(offsets);
    let pattern = match duplicates {
        Duplicates::Sum => Pattern::new(rows, cols, offsets, col_indices),
        Duplicates::Keep => Pattern::with_repeats(rows, cols, offsets, col_indices),
    };
    Csr::with_pattern(Arc::new(pattern?), values)
}

/// Cuts the rows into bands with about equally many entries; `starts` holds the first entry of each row.
fn cut<W: Width>(starts: &[W], total: usize) -> Vec<(usize, usize)> {
    let threads = threads_for(8 * total);
    let bands = if threads == 1 { 1 } else { threads * PIECES_PER_THREAD };
    let mut cuts = vec![(0, 0)];
    for band in 1..bands {
        let target = (total as u128 * band as u128 / bands as u128) as usize;
        let row = starts.partition_point(|start| start.at() < target);
        cuts.push((row, starts.get(row).map_or(total, |start| start.at())));
    }
    cuts.push((starts.len(), total));
    cuts
}

/// A matrix whose rows are complete but not yet sorted.
struct Unfinished<W> {
    offsets: Vec<W>,
    col_indices: Vec<u32>,
    /// Empty for a pattern.
    values: Vec<f64>,
    /// First row and first entry of each band, followed by the numbers of rows and entries.
    cuts: Vec<(usize, usize)>,
}

/// Contiguous rows that one thread works on.
struct Band<'a, W> {
    rows: Range<usize>,
    /// The first entry.
    base: usize,
    /// Where each row ends.
    ends: &'a mut [W],
    cols: &'a mut [u32],
    values: &'a mut [f64],
}

impl<W: Width> Unfinished<W> {
    fn bands(&mut self) -> Vec<Band<'_, W>> {
        let mut ends = &mut self.offsets[1..];
        let (mut cols, mut values) = (&mut self.col_indices[..], &mut self.values[..]);
        let mut bands = Vec::with_capacity(self.cuts.len());
        for cut in self.cuts.windows(2) {
            let ((first_row, base), (end_row, end)) = (cut[0], cut[1]);
            bands.push(Band {
                rows: first_row..end_row,
                base,
                ends: split_front(&mut ends, end_row - first_row),
                cols: split_front(&mut cols, end - base),
                values: split_front(&mut values, end - base),
            });
        }
        bands
    }

    fn sum_duplicates(&mut self) -> Result<()> {
        if self.values.is_empty() {
            self.values = room(self.col_indices.len())?;
            self.values.resize(self.col_indices.len(), 1.0);
        }
        let mut kept = Vec::new();
        for band in run_all(self.bands(), merge_duplicates) {
            kept.push(band?);
        }
        let mut to = 0;
        for (cut, kept) in self.cuts.windows(2).zip(kept) {
            let ((first_row, base), (end_row, _)) = (cut[0], cut[1]);
            for end in &mut self.offsets[first_row + 1..end_row + 1] {
                *end = W::of(end.at() - (base - to));
            }
            self.col_indices.copy_within(base..base + kept, to);
            self.values.copy_within(base..base + kept, to);
            to += kept;
        }
        self.col_indices.truncate(to);
        self.values.truncate(to);
        self.col_indices.shrink_to_fit();
        self.values.shrink_to_fit();
        Ok(())
    }
}

/// Sorts each row by column index, equal ones in the order of the entries. Returns whether any
/// column index is repeated.
fn sort_rows<W: Width>(band: Band<W>) -> bool {
    let mut duplicates = false;
    let mut sorted: Vec<(u32, f64)> = Vec::new();
    let mut start = 0;
    for end in band.ends.iter() {
        let row = start..end.at() - band.base;
        start = row.end;
        let cols = &mut band.cols[row.clone()];
        if cols.is_sorted_by(|a, b| a < b) {
            continue;
        }
        if band.values.is_empty() {
            cols.sort_unstable();
        } else {
            let values = &mut band.values[row];
            sorted.clear();
            sorted.extend(cols.iter().copied().zip(values.iter().copied()));
            sorted.sort_by_key(|&(col, _)| col);
            for ((col, value), &entry) in cols.iter_mut().zip(values).zip(&sorted) {
                (*col, *value) = entry;
            }
        }
        duplicates |= cols.windows(2).any(|pair| pair[0] == pair[1]);
    }
    duplicates
}

/// Sums the duplicates of each row and compacts the entries of the band. Returns the number of
/// remaining entries.
fn merge_duplicates<W: Width>(band: Band<W>) -> Result<usize> {
    let Band { rows, base, ends, cols, values } = band;
    let (mut from, mut to) = (0, 0);
    for (row, end) in rows.zip(ends.iter_mut()) {
        let first = to;
        while from < end.at() - base {
            if to > first && cols[to - 1] == cols[from] {
                values[to - 1] += values[from];
                if !values[to - 1].is_finite() {
                    return Err(Error::DuplicateOverflow { row, col: cols[from] as usize });
                }
            } else {
                (cols[to], values[to]) = (cols[from], values[from]);
                to += 1;
            }
            from += 1;
        }
        *end = W::of(base + to);
    }
    Ok(to)
}
