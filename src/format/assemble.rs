//! Entries to compressed rows: a counting sort by row that keeps the order of the entries, then each row by column.
//!
//! The entries come in pieces, one for each thread, and are gone over twice: first the entries of each row are counted,
//! then each is put in its place. Every piece has cursors of its own that begin where those of the pieces before it
//! end. So no thread waits for another, entries keep their order within a row, duplicates are summed in that order, and
//! the matrix is the same for any number of threads. Beside the matrix there is only one cursor a row and piece; the
//! last piece's become the row offsets, and the number of pieces is held down where rows are short.

use super::Csr;
use super::finish::{Duplicates, Width, finish, narrow};
use crate::error::Result;
use crate::memory::fetch;
use crate::parallel::{run_all, threads_for, zeros};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What a matrix is made of: entries that can be gone over twice.
pub(crate) trait Entries: Sync {
    /// A part of the entries that follow one another.
    type Piece: Sync;
    /// Rows and columns.
    fn shape(&self) -> (usize, usize);
    /// Whether entries have values; all are 1 otherwise.
    fn valued(&self) -> bool;
    /// The most entries that there can be.
    fn most(&self) -> usize;
    /// Cuts the entries into so many pieces, or fewer.
    fn cut(&self, pieces: usize) -> Result<Vec<Self::Piece>>;
    /// Calls `visit(row)` for each entry of a piece; returns how many are stored, those passed over included.
    fn rows(&self, piece: &Self::Piece, visit: impl FnMut(u32)) -> Result<u64>;
    /// Calls `visit(row, column)` likewise.
    fn places(&self, piece: &Self::Piece, visit: impl FnMut(u32, u32)) -> Result<u64>;
    /// Calls `visit(row, column, value)` likewise, for the same entries in the same order.
    fn entries(&self, piece: &Self::Piece, visit: impl FnMut(u32, u32, f64)) -> Result<u64>;
    /// Whether this many stored entries are all there should be; asked after each of the two rounds.
    fn check(&self, stored: u64) -> Result<()>;
}

/// Makes the matrix; duplicates are summed, or kept in their order. With `mirror`, every entry off the diagonal stands
/// for the one across it too, times that sign.
pub(crate) fn assemble<E: Entries>(entries: &E, mirror: Option<f64>, duplicates: Duplicates) -> Result<Csr> {
    if narrow(entries.most(), mirror.is_some()) {
        build::<u32, E>(entries, mirror, duplicates)
    } else {
        build::<u64, E>(entries, mirror, duplicates)
    }
}

fn build<W: Width, E: Entries>(entries: &E, mirror: Option<f64>, duplicates: Duplicates) -> Result<Csr> {
    let (rows, cols) = entries.shape();
    let pieces = entries.cut(piece_count::<W, E>(entries, mirror.is_some()))?;
    let mut offsets: Vec<W> = zeros(rows + 1)?;
    let mut earlier = (1..pieces.len()).map(|_| zeros(rows)).collect::<Result<Vec<Vec<W>>>>()?;
    let mut cursors: Vec<&mut [W]> = earlier.iter_mut().map(|cursors| &mut cursors[..]).collect();
    cursors.push(&mut offsets[1..]);

    let tasks = pieces.iter().zip(&mut cursors).collect();
    let counted = run_all(tasks, |(piece, counts)| count(entries, piece, counts, mirror.is_some()));
    entries.check(sum(counted)?)?;
    let total = begin(&mut cursors, rows);
    let slots = Slots::new(total, entries.valued())?;
    let tasks = pieces.iter().zip(&mut cursors).collect();
    let placed = run_all(tasks, |(piece, cursors)| place(entries, piece, cursors, &slots, mirror));
    entries.check(sum(placed)?)?;
    drop(earlier);
    let (col_indices, values) = slots.filled();
    finish(cols, offsets, col_indices, entries.valued().then_some(values), duplicates)
}

/// As many pieces as threads, but no more than have cursors that take two fifths of the matrix.
fn piece_count<W: Width, E: Entries>(entries: &E, mirrored: bool) -> usize {
    let rows = entries.shape().0 as u128;
    let most = entries.most() as u128 * if mirrored { 2 } else { 1 };
    let cursors = size_of::<W>() as u128 * rows;
    let matrix = most * if entries.valued() { 12 } else { 4 } + cursors;
    let attached = matrix * 2 / 5 / cursors.max(1);
    threads_for(8 * entries.most()).min(usize::try_from(attached + 1).unwrap_or(usize::MAX))
}

fn sum(counts: Vec<Result<u64>>) -> Result<u64> {
    counts.into_iter().sum()
}

fn count<W: Width, E: Entries>(
    entries: &E,
    piece: &E::Piece,
    counts: &mut [W],
    mirrored: bool,
) -> Result<u64> {
    let mut batch = Batch::new(|rows: &[u32]| {
        for &row in rows {
            let count = &mut counts[row as usize];
            *count = W::of(count.at() + 1);
        }
    });
    let stored = if mirrored {
        entries.places(piece, |row, col| {
            batch.add(row);
            if row != col {
                batch.add(col);
            }
        })
    } else {
        entries.rows(piece, |row| batch.add(row))
    };
    batch.run();
    stored
}

/// Turns counts into the places of first entries, row by row and in each row piece by piece; returns their sum.
fn begin<W: Width>(cursors: &mut [&mut [W]], rows: usize) -> usize {
    let mut total = 0;
    for row in 0..rows {
        for cursors in cursors.iter_mut() {
            let count = cursors[row].at();
            cursors[row] = W::of(total);
            total += count;
        }
    }
    total
}

/// The entries of the matrix while threads put them in place: no two write to the same slot, and atomics say so to the
/// compiler at no cost.
struct Slots {
    cols: Vec<AtomicU32>,
    /// The bits of each value; empty for a pattern.
    values: Vec<AtomicU64>,
}

impl Slots {
    fn new(entries: usize, valued: bool) -> Result<Slots> {
        let cols = u32::counters(entries)?;
        Ok(Slots { cols, values: u64::counters(if valued { entries } else { 0 })? })
    }

    /// What cannot be put, because the entries are not those that were counted, is left out; others notice.
    #[inline(always)]
    fn put(&self, place: usize, col: u32, value: f64) {
        if let Some(slot) = self.cols.get(place) {
            slot.store(col, Ordering::Relaxed);
        }
        if let Some(slot) = self.values.get(place) {
            slot.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn fetch(&self, place: usize) {
        fetch(&self.cols, place);
        fetch(&self.values, place);
    }

    fn filled(self) -> (Vec<u32>, Vec<f64>) {
        let values = self.values.into_iter().map(|bits| f64::from_bits(bits.into_inner())).collect();
        (u32::counted(self.cols), values)
    }
}

fn place<W: Width, E: Entries>(
    entries: &E,
    piece: &E::Piece,
    cursors: &mut [W],
    slots: &Slots,
    mirror: Option<f64>,
) -> Result<u64> {
    let mut batch = Batch::new(|entries: &[(u32, u32, f64)]| {
        let mut places = [0; BATCH];
        for &(row, ..) in entries {
            fetch(cursors, row as usize);
        }
        for (place, &(row, ..)) in places.iter_mut().zip(entries) {
            let next = &mut cursors[row as usize];
            *place = next.at();
            *next = W::of(*place + 1);
            slots.fetch(*place);
        }
        for (&place, &(_, col, value)) in places.iter().zip(entries) {
            slots.put(place, col, value);
        }
    });
    let stored = entries.entries(piece, |row, col, value| {
        batch.add((row, col, value));
        if let Some(sign) = mirror
            && row != col
        {
            batch.add((col, row, sign * value));
        }
    });
    batch.run();
    stored
}

/// Does the same with items that come one by one, but with many of them in a row: where they lead to places in memory
/// that are far from each other, the processor then waits for many at once instead of one after the other.
struct Batch<T, F> {
    items: [T; BATCH],
    waiting: usize,
    work: F,
}

const BATCH: usize = 64;

impl<T: Copy + Default, F: FnMut(&[T])> Batch<T, F> {
    fn new(work: F) -> Batch<T, F> {
        Batch { items: [T::default(); BATCH], waiting: 0, work }
    }

    #[inline(always)]
    fn add(&mut self, item: T) {
        self.items[self.waiting] = item;
        self.waiting += 1;
        if self.waiting == BATCH {
            self.run();
        }
    }

    #[inline(always)]
    fn run(&mut self) {
        (self.work)(&self.items[..self.waiting]);
        self.waiting = 0;
    }
}
