//! Entries sorted by row in two steps: first into buckets of neighbouring rows, then within each bucket.
//!
//! A sort in one step stores each entry at a distant place, and waits for memory each time. Here the first step moves entries to the ends
//! of about a thousand buckets, which fit a cache. The second step sorts one bucket at a time, within a cache. The buckets are parts of
//! the result, so that the only additional memory is a copy of one bucket for each thread.
//!
//! Entries are read in pieces, by increasing column. Between the steps an entry is one word: its row within the bucket and its column
//! within the piece. Each piece has a place in each bucket, after those of the pieces before it. So no thread waits for another, and
//! entries of a row keep their order.

use super::Offset;
use super::assemble::Slots;
use crate::error::Result;
use crate::parallel::{run_all, split_front, zeros};
use std::ops::Range;

/// The logarithm of the number of buckets, and the least logarithm of the number of their rows.
const BUCKETS: u32 = 10;
/// Words of a cache line.
const LINE: usize = 16;

/// Entries that can be read twice.
pub(super) trait Read: Sync {
    /// Calls `visit(row)` for each entry in these columns.
    fn rows(&self, columns: Range<usize>, visit: impl FnMut(u32));
    /// Calls `visit(row, column, value)` for the same entries in the same order, by increasing column.
    fn entries(&self, columns: Range<usize>, visit: impl FnMut(u32, u32, f64));
}

/// Buckets of rows.
#[derive(Clone, Copy)]
pub(super) struct Buckets {
    rows: usize,
    /// The logarithm of the number of rows of a bucket.
    bits: u32,
}

impl Buckets {
    pub fn of(rows: usize) -> Buckets {
        let all = usize::BITS - rows.saturating_sub(1).leading_zeros();
        Buckets { rows, bits: all.saturating_sub(BUCKETS).max(BUCKETS) }
    }

    /// Returns the most columns of a piece, which leave room for a row in a word.
    pub fn most_columns(self) -> usize {
        1 << self.column_bits()
    }

    fn column_bits(self) -> u32 {
        u32::BITS - self.bits
    }

    fn count(self) -> usize {
        self.rows.div_ceil(1 << self.bits)
    }

    #[inline(always)]
    fn at(self, row: u32) -> usize {
        (row >> self.bits) as usize
    }

    #[inline(always)]
    fn word(self, row: u32, column: u32) -> u32 {
        (row << self.column_bits()) | column
    }

    /// Returns the row within its bucket and the column within its piece.
    #[inline(always)]
    fn split(self, word: u32) -> (usize, u32) {
        ((word >> self.column_bits()) as usize, word & (u32::MAX >> self.bits))
    }

    /// Sorts entries by row. The pieces are ranges of columns, in order. Returns the offsets, the columns, and the values if there are any.
    pub fn sort<O: Offset>(
        self,
        entries: &impl Read,
        pieces: &[Range<usize>],
        valued: bool,
    ) -> Result<(Vec<O>, Vec<u32>, Vec<f64>)> {
        let counted = run_all(pieces.to_vec(), |piece| {
            let mut counts: Vec<usize> = zeros(self.count())?;
            entries.rows(piece, |row| counts[self.at(row)] += 1);
            Ok(counts)
        });
        let mut starts = counted.into_iter().collect::<Result<Vec<Vec<usize>>>>()?;
        let mut total = 0;
        for bucket in 0..self.count() {
            for starts in &mut starts {
                total += std::mem::replace(&mut starts[bucket], total);
            }
        }
        let slots = Slots::new(total, valued)?;
        let tasks: Vec<_> = pieces.iter().zip(&mut starts).collect();
        run_all(tasks, |(piece, ends)| {
            let begin = piece.start as u32;
            entries.entries(piece.clone(), |row, column, value| {
                let end = &mut ends[self.at(row)];
                let (slot, word) = (*end, self.word(row, column - begin));
                *end = slot + 1;
                slots.fetch(slot + LINE);
                if valued { slots.put_valued(slot, word, value) } else { slots.put(slot, word) }
            });
        });
        let ends = starts;
        let (mut columns, mut values) = slots.filled();
        let mut offsets: Vec<O> = zeros(self.rows + 1)?;
        let mut tasks = Vec::with_capacity(self.count());
        {
            let mut left = (&mut offsets[1..], &mut columns[..], &mut values[..]);
            let mut begin = 0;
            for bucket in 0..self.count() {
                let end = ends.last().map_or(0, |ends| ends[bucket]);
                let row_ends = split_front(&mut left.0, 1 << self.bits);
                let words = split_front(&mut left.1, end - begin);
                tasks.push(Bucket {
                    bucket,
                    begin,
                    row_ends,
                    words,
                    values: split_front(&mut left.2, end - begin),
                });
                begin = end;
            }
        }
        run_all(tasks, |task| self.sort_bucket(task, pieces, &ends)).into_iter().collect::<Result<()>>()?;
        Ok((offsets, columns, values))
    }

    /// Sorts the entries of a bucket by row, and replaces their words by columns. The entries of piece p end before `ends[p]`.
    fn sort_bucket<O: Offset>(
        self,
        task: Bucket<O>,
        pieces: &[Range<usize>],
        ends: &[Vec<usize>],
    ) -> Result<()> {
        let (mut words, mut values) = (zeros::<u32>(task.words.len())?, zeros::<f64>(task.values.len())?);
        words.copy_from_slice(task.words);
        values.copy_from_slice(task.values);
        let mut slots: Vec<usize> = zeros(task.row_ends.len())?;
        words.iter().for_each(|&word| slots[self.split(word).0] += 1);
        let mut total = 0;
        for (slot, end) in slots.iter_mut().zip(task.row_ends) {
            total += std::mem::replace(slot, total);
            *end = O::from_index(task.begin + total);
        }
        let mut entry = 0;
        for (piece, ends) in pieces.iter().zip(ends) {
            let end = ends[task.bucket] - task.begin;
            for entry in entry..end {
                let (row, column) = self.split(words[entry]);
                let slot = slots[row];
                slots[row] = slot + 1;
                task.words[slot] = piece.start as u32 + column;
                if !values.is_empty() {
                    task.values[slot] = values[entry];
                }
            }
            entry = end;
        }
        Ok(())
    }
}

/// The entries of a bucket.
struct Bucket<'a, O> {
    bucket: usize,
    /// The first entry.
    begin: usize,
    /// Where the entries of each row end.
    row_ends: &'a mut [O],
    words: &'a mut [u32],
    values: &'a mut [f64],
}
