//! Triplets to compressed rows: a counting sort by row that keeps the order of the triplets, then each row by column.
//!
//! Threads own contiguous bands of rows with about equally many entries each, and so disjoint parts of every array.
//! Triplets that already come row after row become the matrix where they lie.

use super::{Coo, Csr, Offset, Offsets, Values};
use crate::error::{Error, Result};
use crate::parallel::{CHUNKS_PER_THREAD, room, run_all, split_front, threads_for, zeros};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Makes the matrix; duplicates are summed. With `mirror`, every entry off the diagonal stands for the one across it
/// too, times that sign.
pub(crate) fn assemble(triplets: Coo, mirror: Option<f64>) -> Result<Csr> {
    if triplets.row_indices.len() as u64 > u64::from(u32::MAX) / 2 {
        Builder::<u64>::build(triplets, mirror)
    } else {
        Builder::<u32>::build(triplets, mirror)
    }
}

/// The width of row offsets while the matrix is made.
trait Width: Offset {
    type Counter: Send + Sync;
    fn counter() -> Self::Counter;
    fn add(counter: &Self::Counter, n: usize);
    fn counted(counter: Self::Counter) -> Self;
    fn of(n: usize) -> Self;
    fn offsets(offsets: Vec<Self>) -> Offsets;
}

impl Width for u32 {
    type Counter = AtomicU32;
    fn counter() -> AtomicU32 {
        AtomicU32::new(0)
    }
    #[inline(always)]
    fn add(counter: &AtomicU32, n: usize) {
        counter.fetch_add(n as u32, Ordering::Relaxed);
    }
    fn counted(counter: AtomicU32) -> u32 {
        counter.into_inner()
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
    fn counter() -> AtomicU64 {
        AtomicU64::new(0)
    }
    #[inline(always)]
    fn add(counter: &AtomicU64, n: usize) {
        counter.fetch_add(n as u64, Ordering::Relaxed);
    }
    fn counted(counter: AtomicU64) -> u64 {
        counter.into_inner()
    }
    #[inline(always)]
    fn of(n: usize) -> u64 {
        n as u64
    }
    fn offsets(offsets: Vec<u64>) -> Offsets {
        Offsets::narrowest(offsets)
    }
}

/// A piece of the triplets, and the rows of the matrix that it has entries for.
struct Piece {
    entries: Range<usize>,
    /// Smallest and largest row.
    rows: (u32, u32),
    /// The same for the mirrored entries.
    mirrored: (u32, u32),
    /// Whether rows never decrease.
    sorted: bool,
}

impl Piece {
    fn touches(&self, rows: &Range<u32>) -> bool {
        let overlap = |(low, high): (u32, u32)| low < rows.end && high >= rows.start;
        overlap(self.rows) || overlap(self.mirrored)
    }
}

/// The part of the matrix under construction that one thread owns.
struct Band<'a, W> {
    rows: Range<u32>,
    /// The first entry.
    base: usize,
    /// Where each row's next entry goes, and so at last where each row ends.
    ends: &'a mut [W],
    cols: &'a mut [u32],
    values: &'a mut [f64],
}

struct Builder<W> {
    /// Row offsets from 0 on, one more than rows. Before the entries are placed, number `i + 1` is where row `i`
    /// begins; placing them moves each on to where its row ends, which is what it has to be.
    offsets: Vec<W>,
    cols: Vec<u32>,
    /// Empty for a pattern.
    values: Vec<f64>,
    /// First row and first entry of each band, and of the one that would come after the last.
    cuts: Vec<(u32, usize)>,
}

impl<W: Width> Builder<W> {
    fn build(triplets: Coo, mirror: Option<f64>) -> Result<Csr> {
        let (rows, cols) = (triplets.rows, triplets.cols);
        let valued = !triplets.values.is_empty();
        let threads = threads_for(8 * triplets.row_indices.len());
        let (mut offsets, pieces) = count_rows::<W>(&triplets, mirror.is_some(), threads)?;
        let mut total = 0;
        for offset in &mut offsets[1..] {
            let count = offset.at();
            *offset = W::of(total);
            total += count;
        }
        let cuts = cut(&offsets[1..], total, threads);
        let in_place = mirror.is_none()
            && pieces.iter().all(|piece| piece.sorted)
            && pieces.windows(2).all(|pair| pair[0].rows.1 <= pair[1].rows.0);
        let mut builder = if in_place {
            if offsets.len() > 1 {
                offsets.copy_within(2.., 1);
                offsets[rows] = W::of(total);
            }
            drop(triplets.row_indices);
            Builder { offsets, cols: triplets.col_indices, values: triplets.values, cuts }
        } else {
            let values = if valued { zeros(total)? } else { Vec::new() };
            let mut builder = Builder { offsets, cols: zeros(total)?, values, cuts };
            run_all(builder.bands(), |band| place(band, &triplets, &pieces, mirror));
            drop(triplets);
            builder
        };
        let duplicates = run_all(builder.bands(), sort_rows).contains(&true);
        if duplicates {
            builder.sum_duplicates()?;
        }
        let values = if valued || duplicates { Values::F64(builder.values) } else { Values::Ones };
        Csr::new(rows, cols, W::offsets(builder.offsets), builder.cols, values)
    }

    fn bands(&mut self) -> Vec<Band<'_, W>> {
        let mut ends = &mut self.offsets[1..];
        let (mut cols, mut values) = (&mut self.cols[..], &mut self.values[..]);
        let mut bands = Vec::with_capacity(self.cuts.len());
        for cut in self.cuts.windows(2) {
            let ((first_row, base), (end_row, end)) = (cut[0], cut[1]);
            bands.push(Band {
                rows: first_row..end_row,
                base,
                ends: split_front(&mut ends, (end_row - first_row) as usize),
                cols: split_front(&mut cols, end - base),
                values: split_front(&mut values, end - base),
            });
        }
        bands
    }

    fn sum_duplicates(&mut self) -> Result<()> {
        if self.values.is_empty() {
            self.values = room(self.cols.len())?;
            self.values.resize(self.cols.len(), 1.0);
        }
        let mut kept = Vec::new();
        for band in run_all(self.bands(), merge_duplicates) {
            kept.push(band?);
        }
        let mut to = 0;
        for (cut, kept) in self.cuts.windows(2).zip(kept) {
            let ((first_row, base), (end_row, _)) = (cut[0], cut[1]);
            for end in &mut self.offsets[first_row as usize + 1..end_row as usize + 1] {
                *end = W::of(end.at() - (base - to));
            }
            self.cols.copy_within(base..base + kept, to);
            self.values.copy_within(base..base + kept, to);
            to += kept;
        }
        self.cols.truncate(to);
        self.values.truncate(to);
        self.cols.shrink_to_fit();
        self.values.shrink_to_fit();
        Ok(())
    }
}

/// Counts the entries of each row; the count of row `i` is at `i + 1`.
fn count_rows<W: Width>(triplets: &Coo, mirror: bool, threads: usize) -> Result<(Vec<W>, Vec<Piece>)> {
    let mut counters: Vec<W::Counter> = room(triplets.rows + 1)?;
    counters.resize_with(triplets.rows + 1, W::counter);
    let entries = triplets.row_indices.len();
    let length = entries.div_ceil(if threads == 1 { 1 } else { threads * CHUNKS_PER_THREAD }).max(1);
    let ranges = (0..entries).step_by(length).map(|start| start..(start + length).min(entries)).collect();
    let pieces = run_all(ranges, |entries| count_piece::<W>(&counters, triplets, entries, mirror));
    Ok((counters.into_iter().map(W::counted).collect(), pieces))
}

fn count_piece<W: Width>(
    counters: &[W::Counter],
    triplets: &Coo,
    entries: Range<usize>,
    mirror: bool,
) -> Piece {
    let (rows, cols) = (&triplets.row_indices[entries.clone()], &triplets.col_indices[entries.clone()]);
    let (rows_span, sorted) = count_runs::<W>(counters, rows.iter().copied());
    let mut mirrored = (u32::MAX, 0);
    if mirror {
        let across = rows.iter().zip(cols).filter(|(row, col)| row != col).map(|(_, &col)| col);
        mirrored = count_runs::<W>(counters, across).0;
    }
    Piece { entries, rows: rows_span, mirrored, sorted }
}

/// Counts indices, one addition for each run of equal ones; returns the smallest and the largest, and whether they
/// never decrease.
fn count_runs<W: Width>(counters: &[W::Counter], indices: impl Iterator<Item = u32>) -> ((u32, u32), bool) {
    let (mut span, mut sorted) = ((u32::MAX, 0), true);
    let (mut current, mut run) = (0, 0);
    for index in indices {
        if index == current {
            run += 1;
            continue;
        }
        if run > 0 {
            W::add(&counters[current as usize + 1], run);
            span = (span.0.min(current), span.1.max(current));
            sorted &= current < index;
        }
        (current, run) = (index, 1);
    }
    if run > 0 {
        W::add(&counters[current as usize + 1], run);
        span = (span.0.min(current), span.1.max(current));
    }
    (span, sorted)
}

/// Cuts the rows into one band for each thread; `starts` holds the first entry of each row.
fn cut<W: Width>(starts: &[W], total: usize, threads: usize) -> Vec<(u32, usize)> {
    let mut cuts = vec![(0, 0)];
    for part in 1..threads {
        let target = (total as u128 * part as u128 / threads as u128) as usize;
        let row = starts.partition_point(|start| start.at() < target);
        cuts.push((row as u32, starts.get(row).map_or(total, |start| start.at())));
    }
    cuts.push((starts.len() as u32, total));
    cuts
}

/// Puts the triplets of a band's rows in their places, in their order. `mirror` is the sign that an entry takes across the
/// diagonal.
fn place<W: Width>(band: Band<W>, triplets: &Coo, pieces: &[Piece], mirror: Option<f64>) {
    let Band { rows: owned, base, ends, cols, values } = band;
    let mut put = |row: u32, col: u32, value: f64| {
        let next = &mut ends[(row - owned.start) as usize];
        let place = next.at() - base;
        *next = W::of(place + base + 1);
        cols[place] = col;
        if let Some(slot) = values.get_mut(place) {
            *slot = value;
        }
    };
    for piece in pieces.iter().filter(|piece| piece.touches(&owned)) {
        for entry in piece.entries.clone() {
            let (row, col) = (triplets.row_indices[entry], triplets.col_indices[entry]);
            let value = || triplets.values.get(entry).copied().unwrap_or(1.0);
            if owned.contains(&row) {
                put(row, col, value());
            }
            if let Some(sign) = mirror
                && row != col
                && owned.contains(&col)
            {
                put(col, row, sign * value());
            }
        }
    }
}

/// Sorts each row by column, equal columns in the order of the triplets; says whether there are any.
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

/// Sums equal columns of each row and moves the entries of the band together; returns how many are left.
fn merge_duplicates<W: Width>(band: Band<W>) -> Result<usize> {
    let Band { rows, base, ends, cols, values } = band;
    let (mut from, mut to) = (0, 0);
    for (row, end) in rows.zip(ends.iter_mut()) {
        let first = to;
        while from < end.at() - base {
            if to > first && cols[to - 1] == cols[from] {
                values[to - 1] += values[from];
                if !values[to - 1].is_finite() {
                    return Err(Error::DuplicateOverflow { row: row as usize, col: cols[from] as usize });
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
