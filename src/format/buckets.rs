//! Entries sorted by row in two steps: first into buckets of neighbouring rows, then within each bucket.
//!
//! A sort in one step stores each entry at a distant place in memory. Here the first step moves entries to
//! the ends of at most 1024 buckets; these ends fit a cache. The second step sorts one bucket at a time,
//! within a cache unless the bucket has very many entries. The buckets are parts of the result. Additional
//! memory is a copy of one bucket for each thread, and a count for each piece and bucket.
//!
//! Entries are read in pieces, by increasing column. Between the steps an entry is one word: its row within
//! the bucket and its column within the piece. Each piece has a place in each bucket, after those of the
//! pieces before it. So no thread waits for another, and entries of a row keep their order.

use super::Offset;
use super::assemble::Slots;
use crate::error::Result;
use crate::parallel::{room, run_all, split_front, zeros};
use std::ops::Range;

/// The logarithm of the most buckets.
const MOST_BUCKETS: u32 = 10;
/// The least logarithm of the number of rows of a bucket.
const FEWEST_ROWS: u32 = 10;
/// Words of a cache line.
const LINE: usize = 16;

/// Entries that can be read twice.
pub(super) trait ByColumn: Sync {
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
    pub(crate) fn of(rows: usize) -> Buckets {
        let all = usize::BITS - rows.saturating_sub(1).leading_zeros();
        Buckets { rows, bits: all.saturating_sub(MOST_BUCKETS).max(FEWEST_ROWS) }
    }

    /// Returns the most columns of a piece, which leave room for a row in a word.
    pub(crate) fn most_columns(self) -> usize {
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

    /// Sorts entries by row. The pieces are ranges of columns, in order. Returns the offsets, the columns,
    /// and the values if there are any.
    pub(crate) fn sort<O: Offset>(
        self,
        entries: &impl ByColumn,
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

    /// Sorts the entries of a bucket by row, and replaces their words by columns. The entries of
    /// piece p end before `ends[p]`.
    fn sort_bucket<O: Offset>(
        self,
        task: Bucket<O>,
        pieces: &[Range<usize>],
        ends: &[Vec<usize>],
    ) -> Result<()> {
        let (words, values) = (copy(task.words)?, copy(task.values)?);
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

fn copy<T: Copy>(from: &[T]) -> Result<Vec<T>> {
    let mut copy = room(from.len())?;
    copy.extend_from_slice(from);
    Ok(copy)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::generate::random::Random;

    /// Entries by column.
    struct Listed(Vec<(u32, u32, f64)>);

    impl ByColumn for Listed {
        fn rows(&self, columns: Range<usize>, mut visit: impl FnMut(u32)) {
            self.entries(columns, |row, _, _| visit(row));
        }

        fn entries(&self, columns: Range<usize>, mut visit: impl FnMut(u32, u32, f64)) {
            let inside = self.0.iter().filter(|entry| columns.contains(&(entry.1 as usize)));
            inside.for_each(|&(row, column, value)| visit(row, column, value));
        }
    }

    #[test]
    fn entries_are_sorted_by_row_for_any_buckets_and_pieces() {
        for (rows, columns, count) in [(0, 0, 0), (1, 1, 3), (8, 5, 40), (9, 70, 0), (1000, 300, 5000)] {
            let random = |entry: usize, below: usize| {
                (Random::at(5, entry as u64).bits() % below.max(1) as u64) as u32
            };
            // A third of the entries are in the last row.
            let row =
                |entry: usize| if entry.is_multiple_of(3) { rows as u32 - 1 } else { random(entry, rows) };
            let mut entries: Vec<(u32, u32, f64)> =
                (0..count).map(|entry| (row(entry), random(entry + count, columns), entry as f64)).collect();
            entries.sort_by_key(|entry| entry.1);
            let mut expected = entries.clone();
            expected.sort_by_key(|entry| entry.0);
            let ends = |row: usize| expected.iter().filter(|entry| (entry.0 as usize) < row).count() as u64;
            for bits in [1, 3, 10, 20] {
                for step in [1, 7, columns + 1] {
                    let pieces: Vec<Range<usize>> =
                        (0..columns).step_by(step).map(|first| first..columns.min(first + step)).collect();
                    let sorted =
                        Buckets { rows, bits }.sort::<u64>(&Listed(entries.clone()), &pieces, true).unwrap();
                    assert_eq!(sorted.0, (0..=rows).map(ends).collect::<Vec<u64>>());
                    assert_eq!(sorted.1, expected.iter().map(|entry| entry.1).collect::<Vec<u32>>());
                    assert_eq!(sorted.2, expected.iter().map(|entry| entry.2).collect::<Vec<f64>>());
                }
            }
        }
    }

    #[test]
    fn a_word_has_room_for_every_row_of_a_bucket_and_every_column_of_a_piece() {
        for rows in [0, 1, 1024, 1025, 1 << 20, (1 << 20) + 1, 1 << 31, 1 << 32] {
            let buckets = Buckets::of(rows);
            let last = rows.saturating_sub(1) as u32;
            let column = (buckets.most_columns() - 1) as u32;
            assert!(
                buckets.count() <= 1 << MOST_BUCKETS && (buckets.at(last) < buckets.count() || rows == 0)
            );
            let (row, column_again) = buckets.split(buckets.word(last, column));
            assert_eq!((buckets.at(last) << buckets.bits) + row, last as usize);
            assert_eq!(column_again, column);
        }
    }
}
