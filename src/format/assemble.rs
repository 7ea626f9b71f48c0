//! Conversion of entries to compressed rows: a stable counting sort by row, then a sort of
//! each row by column.
//!
//! The entries are cut into pieces, one per thread, and read twice: the first pass counts the entries of each
//! row, the second moves each entry to its slot. Every piece has a cursor per row, which begins where the
//! cursor of the piece before it ends. So no thread waits for another, entries keep their order within a row,
//! duplicates are summed in that order, and the matrix is the same for any number of threads. The only
//! additional memory is one cursor per row and piece. The cursors of the last piece become the row offsets.
//! If rows are short, there are fewer pieces.

use super::Csr;
use super::finish::{Duplicates, Width, finish, narrow};
use crate::error::Result;
use crate::memory::fetch;
use crate::parallel::{run_all, threads_for, zeros};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A source of entries that can be read twice.
pub(crate) trait Entries: Sync {
    /// A contiguous part of the entries.
    type Piece: Sync;
    /// Returns the numbers of rows and columns.
    fn shape(&self) -> (usize, usize);
    /// Returns whether entries have values. If not, every entry is 1.
    fn valued(&self) -> bool;
    /// Returns an upper bound on the number of entries.
    fn most(&self) -> usize;
    /// Cuts the entries into at most `pieces` pieces.
    fn cut(&self, pieces: usize) -> Result<Vec<Self::Piece>>;
    /// Calls `visit(row)` for each entry of a piece. Returns the number of stored entries,
    /// including skipped ones.
    fn rows(&self, piece: &Self::Piece, visit: impl FnMut(u32)) -> Result<u64>;
    /// Calls `visit(row, column)` for the same entries, and returns the same number.
    fn places(&self, piece: &Self::Piece, visit: impl FnMut(u32, u32)) -> Result<u64>;
    /// Calls `visit(row, column, value)` for the same entries in the same order, and returns the same number.
    fn entries(&self, piece: &Self::Piece, visit: impl FnMut(u32, u32, f64)) -> Result<u64>;
    /// Checks that `stored` is the expected number of stored entries; called after each of the two passes.
    fn check(&self, stored: u64) -> Result<()>;
}

/// Assembles the matrix. Duplicates are summed, or kept in their order. With `mirror`, every entry off the
/// diagonal is also stored at its mirrored position, multiplied by that sign.
pub(crate) fn assemble<E: Entries>(entries: &E, mirror: Option<f64>, duplicates: Duplicates) -> Result<Csr> {
    if narrow(entries.most(), mirror.is_some()) {
        build::<u32, E>(entries, mirror, duplicates)
    } else {
        build::<u64, E>(entries, mirror, duplicates)
    }
}

fn build<W: Width, E: Entries>(entries: &E, mirror: Option<f64>, duplicates: Duplicates) -> Result<Csr> {
    let Rows { offsets, columns, values } = by_row::<W, E>(entries, mirror)?;
    finish(entries.shape().1, offsets, columns, entries.valued().then_some(values), duplicates)
}

/// Entries by row, in their order within a row.
pub(super) struct Rows<W> {
    pub offsets: Vec<W>,
    pub columns: Vec<u32>,
    /// Empty if entries have no values.
    pub values: Vec<f64>,
}

/// Sorts the entries by row. With `mirror`, does the same as [`assemble`].
pub(super) fn by_row<W: Width, E: Entries>(entries: &E, mirror: Option<f64>) -> Result<Rows<W>> {
    let rows = entries.shape().0;
    let pieces = entries.cut(piece_count::<W, E>(entries, mirror.is_some()))?;
    let mut ends: Vec<W> = zeros(rows + 1)?;
    let mut earlier = (1..pieces.len()).map(|_| zeros(rows)).collect::<Result<Vec<Vec<W>>>>()?;
    let mut cursors: Vec<&mut [W]> = earlier.iter_mut().map(|cursors| &mut cursors[..]).collect();
    cursors.push(&mut ends[1..]);

    let tasks = pieces.iter().zip(&mut cursors).collect();
    let counted = run_all(tasks, |(piece, counts)| count(entries, piece, counts, mirror.is_some()));
    entries.check(sum(counted)?)?;
    let total = counts_to_starts(&mut cursors, rows);
    let slots = Slots::new(total, entries.valued())?;
    let tasks = pieces.iter().zip(&mut cursors).collect();
    let placed = run_all(tasks, |(piece, cursors)| write_entries(entries, piece, cursors, &slots, mirror));
    entries.check(sum(placed)?)?;
    drop(earlier);
    let (columns, values) = slots.filled();
    Ok(Rows { offsets: ends, columns, values })
}

/// Returns the number of pieces: one per thread, but no more than keep all cursors within two
/// fifths of the matrix.
fn piece_count<W: Width, E: Entries>(entries: &E, mirrored: bool) -> usize {
    let rows = entries.shape().0 as u128;
    let most = entries.most() as u128 * if mirrored { 2 } else { 1 };
    let cursors = size_of::<W>() as u128 * rows;
    let matrix = most * if entries.valued() { 12 } else { 4 } + cursors;
    let additional = matrix * 2 / 5 / cursors.max(1);
    threads_for(8 * entries.most()).min(usize::try_from(additional + 1).unwrap_or(usize::MAX))
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
    let mut collected = Collected::new(|rows: &[u32]| {
        for &row in rows {
            let count = &mut counts[row as usize];
            *count = W::of(count.at() + 1);
        }
    });
    let stored = if mirrored {
        entries.places(piece, |row, col| {
            collected.add(row);
            if row != col {
                collected.add(col);
            }
        })
    } else {
        entries.rows(piece, |row| collected.add(row))
    };
    collected.run();
    stored
}

/// Replaces counts by the slots of first entries, row by row and within a row piece by piece.
/// Returns the sum of the counts.
fn counts_to_starts<W: Width>(cursors: &mut [&mut [W]], rows: usize) -> usize {
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

/// The entries of the matrix while threads write them. No two threads write to the same slot; relaxed atomics
/// make the shared writes safe Rust at no cost.
pub(super) struct Slots {
    cols: Vec<AtomicU32>,
    /// The bits of each value; empty for a pattern.
    values: Vec<AtomicU64>,
}

impl Slots {
    pub(crate) fn new(entries: usize, valued: bool) -> Result<Slots> {
        let cols = u32::counters(entries)?;
        Ok(Slots { cols, values: u64::counters(if valued { entries } else { 0 })? })
    }

    /// Writes the column of an entry. An index out of range, possible if the entries differ from those
    /// counted, is ignored; later checks report the difference.
    #[inline(always)]
    pub(crate) fn put(&self, index: usize, col: u32) {
        if let Some(slot) = self.cols.get(index) {
            slot.store(col, Ordering::Relaxed);
        }
    }

    /// Writes the column and the value of an entry; ignores an index out of range, as [`put`](Self::put)
    /// does.
    #[inline(always)]
    pub(crate) fn put_valued(&self, index: usize, col: u32, value: f64) {
        self.put(index, col);
        if let Some(slot) = self.values.get(index) {
            slot.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub(crate) fn fetch(&self, index: usize) {
        fetch(&self.cols, index);
        // A prefetch far from any memory of the program is slow.
        if !self.values.is_empty() {
            fetch(&self.values, index);
        }
    }

    pub(crate) fn filled(self) -> (Vec<u32>, Vec<f64>) {
        let values = self.values.into_iter().map(|bits| f64::from_bits(bits.into_inner())).collect();
        (u32::counted(self.cols), values)
    }
}

fn write_entries<W: Width, E: Entries>(
    entries: &E,
    piece: &E::Piece,
    cursors: &mut [W],
    slots: &Slots,
    mirror: Option<f64>,
) -> Result<u64> {
    if entries.valued() {
        let put = |index: usize, (_, col, value): (u32, u32, f64)| slots.put_valued(index, col, value);
        let mut collected = Collected::new(placing(cursors, slots, |&(row, ..)| row, put));
        let stored = entries.entries(piece, |row, col, value| {
            collected.add((row, col, value));
            if let Some(sign) = mirror
                && row != col
            {
                collected.add((col, row, sign * value));
            }
        });
        collected.run();
        return stored;
    }
    let put = |index: usize, (_, col): (u32, u32)| slots.put(index, col);
    let mut collected = Collected::new(placing(cursors, slots, |&(row, _)| row, put));
    let stored = entries.entries(piece, |row, col, _| {
        collected.add((row, col));
        if mirror.is_some() && row != col {
            collected.add((col, row));
        }
    });
    collected.run();
    stored
}

/// Returns the work on entries: `put` gets the slot of each.
#[inline(always)]
fn placing<T: Copy, W: Width>(
    cursors: &mut [W],
    slots: &Slots,
    row: impl Fn(&T) -> u32,
    put: impl Fn(usize, T),
) -> impl FnMut(&[T]) {
    move |entries| {
        let mut slot_indices = [0; AT_ONCE];
        for entry in entries {
            fetch(cursors, row(entry) as usize);
        }
        for (index, entry) in slot_indices.iter_mut().zip(entries) {
            let next = &mut cursors[row(entry) as usize];
            *index = next.at();
            *next = W::of(*index + 1);
            slots.fetch(*index);
        }
        for (&index, entry) in slot_indices.iter().zip(entries) {
            put(index, *entry);
        }
    }
}

/// Collects items and processes several at once. If the items access distant memory, their cache misses
/// then overlap.
struct Collected<T, F> {
    items: [T; AT_ONCE],
    waiting: usize,
    work: F,
}

const AT_ONCE: usize = 64;

impl<T: Copy + Default, F: FnMut(&[T])> Collected<T, F> {
    fn new(work: F) -> Collected<T, F> {
        Collected { items: [T::default(); AT_ONCE], waiting: 0, work }
    }

    #[inline(always)]
    fn add(&mut self, item: T) {
        self.items[self.waiting] = item;
        self.waiting += 1;
        if self.waiting == AT_ONCE {
            self.run();
        }
    }

    #[inline(always)]
    fn run(&mut self) {
        (self.work)(&self.items[..self.waiting]);
        self.waiting = 0;
    }
}
