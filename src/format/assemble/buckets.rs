//! Sorting by row in two steps, for matrices whose cursors do not fit a cache.
//!
//! If entries arrive in any order, each goes to another place of a large array, and every store waits for memory. Here the rows
//! are cut into buckets. The first step appends each entry to its bucket, so that it writes to few places. The second step sorts
//! each bucket, which fits a cache. Between the steps, the place of a column holds the row, counted from the first of its bucket,
//! in the bits above the column. So a bucket needs no memory but its part of the result and a copy while it is sorted. If a bucket
//! has more than two fifths of the entries, that copy would be large, and the entries are sorted by cursors.
//!
//! Threads append pieces of the entries to parts of each bucket, in the order of the pieces. So entries keep their order within a
//! row, and the result is the same for any number of threads.

use super::{Entries, Rows};
use crate::error::{CsrFault, Result};
use crate::format::finish::Width;
use crate::parallel::{copied, run_all, split_front, threads_for, zeros};
use bytemuck::Zeroable;
use std::ops::Range;
use std::slice::IterMut;

/// Bytes of cursors from which on they do not fit a cache.
const CACHED: usize = 1 << 20;
/// The entries of a row, on average, from which on the buckets save more than they cost.
const LEAST: usize = 2;

/// The number of buckets that is aimed at, as a power of two, and the most buckets.
const AIM: u32 = 9;
const MOST: usize = 1 << 12;
/// The largest share of the entries that a bucket may have, as it is copied while it is sorted.
const LARGEST: f64 = 0.4;

/// How rows are cut into buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buckets {
    count: usize,
    /// The number of rows of a bucket, as a power of two.
    row_bits: u32,
    column_bits: u32,
}

/// Returns the number of bits of the numbers below `n`.
fn bits_below(n: usize) -> u32 {
    usize::BITS - n.saturating_sub(1).leading_zeros()
}

impl Buckets {
    /// Cuts the rows of a matrix of this shape into buckets; none if the sort by cursors takes less time, if row and column do not fit
    /// 32 bits, or if there would be more than [`MOST`] buckets: a square matrix has at most 2^22 rows. A cursor takes `cursor` bytes.
    pub fn of((rows, cols): (usize, usize), entries: usize, cursor: usize) -> Option<Buckets> {
        if rows.saturating_mul(cursor) <= CACHED || entries / LEAST < rows {
            return None;
        }
        Buckets::cut((rows, cols))
    }

    fn cut((rows, cols): (usize, usize)) -> Option<Buckets> {
        let column_bits = bits_below(cols);
        let row_bits = u32::BITS.checked_sub(column_bits)?.min(bits_below(rows).saturating_sub(AIM));
        let count = rows.div_ceil(1 << row_bits);
        (count <= MOST).then_some(Buckets { count, row_bits, column_bits })
    }

    fn of_row(self, row: u32) -> usize {
        (u64::from(row) >> self.row_bits) as usize
    }

    /// Joins a row, counted from the first of its bucket, and a column.
    fn join(self, row: u32, col: u32) -> u32 {
        let row = u64::from(row) & ((1 << self.row_bits) - 1);
        (row << self.column_bits) as u32 | col
    }

    /// Splits what [`join`](Self::join) has joined.
    fn split(self, joined: u32) -> (usize, u32) {
        let joined = u64::from(joined);
        ((joined >> self.column_bits) as usize, (joined & ((1 << self.column_bits) - 1)) as u32)
    }

    /// Sorts the entries by row; none if a bucket would be too large. With `mirror`, every entry off the diagonal is also stored at its
    /// mirrored position, multiplied by that sign.
    pub fn sort<W: Width, E: Entries>(self, entries: &E, mirror: Option<f64>) -> Result<Option<Rows<W>>> {
        let pieces = entries.cut(threads_for(8 * entries.most()))?;
        let tasks = pieces.iter().collect();
        let counted = run_all(tasks, |piece: &E::Piece| self.count(entries, piece, mirror.is_some()));
        let (counts, stored): (Vec<_>, Vec<_>) =
            counted.into_iter().collect::<Result<Vec<_>>>()?.into_iter().unzip();
        entries.check(stored.iter().sum())?;
        let lengths: Vec<usize> = (0..self.count).map(|b| counts.iter().map(|c| c[b]).sum()).collect();
        let total: usize = lengths.iter().sum();
        if lengths.iter().any(|length| *length as f64 > LARGEST * total as f64) {
            return Ok(None);
        }
        let mut columns: Vec<u32> = zeros(total)?;
        let mut values: Vec<f64> = zeros(if entries.valued() { total } else { 0 })?;
        let places = self.places(&counts, &mut columns, &mut values);
        let tasks = pieces.iter().zip(places).collect();
        let placed = run_all(tasks, |(piece, places)| self.append(entries, piece, places, mirror));
        let (stored, complete): (Vec<_>, Vec<_>) =
            placed.into_iter().collect::<Result<Vec<_>>>()?.into_iter().unzip();
        entries.check(stored.iter().sum())?;
        if complete.contains(&false) {
            return Err(CsrFault::Changed.into());
        }
        let offsets = self.sort_all(entries.shape().0, &lengths, &mut columns, &mut values)?;
        Ok(Some(Rows { offsets, columns, values }))
    }

    /// Counts the entries of a piece in each bucket. Returns the number of stored entries, too.
    fn count<E: Entries>(self, entries: &E, piece: &E::Piece, mirrored: bool) -> Result<(Vec<usize>, u64)> {
        let mut counts = vec![0; self.count];
        let stored = if mirrored {
            entries.places(piece, |row, col| {
                counts[self.of_row(row)] += 1;
                if row != col {
                    counts[self.of_row(col)] += 1;
                }
            })
        } else {
            entries.rows(piece, |row| counts[self.of_row(row)] += 1)
        };
        Ok((counts, stored?))
    }

    /// Cuts the arrays into the part of each bucket, and these into the places of each piece. Returns the places by piece.
    fn places<'a>(
        self,
        counts: &[Vec<usize>],
        columns: &'a mut [u32],
        values: &'a mut [f64],
    ) -> Vec<Places<'a>> {
        let mut places: Vec<Places<'a>> = counts.iter().map(|_| Places::default()).collect();
        let (mut columns, mut values) = (columns, values);
        for bucket in 0..self.count {
            for (places, counts) in places.iter_mut().zip(counts) {
                places.columns.push(split_front(&mut columns, counts[bucket]).iter_mut());
                places.values.push(split_front(&mut values, counts[bucket]).iter_mut());
            }
        }
        places
    }

    /// Appends the entries of a piece to their buckets. Returns the number of stored entries, and whether they fill exactly the places
    /// that were counted for them.
    fn append<E: Entries>(
        self,
        entries: &E,
        piece: &E::Piece,
        mut places: Places<'_>,
        mirror: Option<f64>,
    ) -> Result<(u64, bool)> {
        let (valued, mut complete) = (entries.valued(), true);
        let mut put = |row: u32, col: u32, value: f64| {
            let bucket = self.of_row(row);
            match places.columns[bucket].next() {
                Some(place) => *place = self.join(row, col),
                None => complete = false,
            }
            if valued && let Some(place) = places.values[bucket].next() {
                *place = value;
            }
        };
        let stored = entries.entries(piece, |row, col, value| {
            put(row, col, value);
            if let Some(sign) = mirror
                && row != col
            {
                put(col, row, sign * value);
            }
        })?;
        complete &= places.columns.iter().all(|rest| rest.len() == 0);
        Ok((stored, complete))
    }

    /// Sorts all buckets, of the given lengths. Returns the offsets of the rows.
    fn sort_all<W: Width>(
        self,
        rows: usize,
        lengths: &[usize],
        columns: &mut [u32],
        values: &mut [f64],
    ) -> Result<Vec<W>> {
        let mut offsets: Vec<W> = zeros(rows + 1)?;
        // The small buckets of all threads together have at most a quarter of the entries.
        let share = lengths.iter().sum::<usize>() / (4 * threads_for(size_of_val(columns)));
        let (mut ends, mut columns, mut values) = (&mut offsets[1..], columns, values);
        let (mut small, mut large, mut base) = (Vec::new(), Vec::new(), 0);
        for &length in lengths {
            let bucket = Bucket {
                base,
                ends: split_front(&mut ends, 1 << self.row_bits),
                columns: split_front(&mut columns, length),
                values: split_front(&mut values, length),
            };
            if length > share {
                large.push(bucket)
            } else {
                small.push(bucket)
            }
            base += length;
        }
        // All threads share a bucket that would keep one of them longer than the others.
        large.into_iter().try_for_each(|bucket| self.sort_bucket(bucket, threads_for(usize::MAX)))?;
        let sorted = run_all(small, |bucket| self.sort_bucket(bucket, 1));
        sorted.into_iter().collect::<Result<()>>()?;
        Ok(offsets)
    }

    /// Sorts a bucket on this many threads, each of which places the entries of a part of the rows.
    fn sort_bucket<W: Width>(self, bucket: Bucket<'_, W>, threads: usize) -> Result<()> {
        let Bucket { base, ends, mut columns, mut values } = bucket;
        let (joined, given) = (copy(columns, threads)?, copy(values, threads)?);
        let rows = ends.len();
        let pieces = joined.chunks(joined.len().div_ceil(threads).max(1)).collect();
        let counted = run_all(pieces, |joined: &[u32]| {
            let mut counts: Vec<usize> = zeros(rows)?;
            joined.iter().for_each(|&joined| counts[self.split(joined).0] += 1);
            Ok(counts)
        });
        let counted = counted.into_iter().collect::<Result<Vec<_>>>()?;
        // The first entry of each row, and the number of entries.
        let mut starts: Vec<usize> = zeros(rows + 1)?;
        for (row, end) in ends.iter_mut().enumerate() {
            starts[row + 1] = starts[row] + counted.iter().map(|counts| counts[row]).sum::<usize>();
            *end = W::of(base + starts[row + 1]);
        }
        let share = |part: usize| (joined.len() as u128 * part as u128 / threads as u128) as usize;
        let cut = |part: usize| match part == threads {
            true => rows,
            false => starts[..rows].partition_point(|&start| start < share(part)),
        };
        let parts = (0..threads).map(|part| {
            let rows = cut(part)..cut(part + 1);
            let length = starts[rows.end] - starts[rows.start];
            (rows, split_front(&mut columns, length), split_front(&mut values, length))
        });
        let parts = parts.collect();
        let placed = run_all(parts, |(rows, columns, values): (Range<usize>, &mut [u32], &mut [f64])| {
            let first = starts[rows.start];
            let mut next: Vec<usize> = zeros(rows.len())?;
            next.iter_mut().zip(&starts[rows.clone()]).for_each(|(next, start)| *next = start - first);
            for (at, &joined) in joined.iter().enumerate() {
                let (row, col) = self.split(joined);
                if !rows.contains(&row) {
                    continue;
                }
                let place = &mut next[row - rows.start];
                columns[*place] = col;
                if let Some(value) = given.get(at) {
                    values[*place] = *value;
                }
                *place += 1;
            }
            Ok(())
        });
        placed.into_iter().collect()
    }
}

/// Returns a copy of a part of a bucket, made on this many threads.
fn copy<T: Copy + Zeroable + Send + Sync>(from: &[T], threads: usize) -> Result<Vec<T>> {
    if threads > 1 {
        return copied(from);
    }
    let mut copy = zeros(from.len())?;
    copy.copy_from_slice(from);
    Ok(copy)
}

/// The places in all buckets that a piece of the entries fills.
#[derive(Default)]
struct Places<'a> {
    columns: Vec<IterMut<'a, u32>>,
    values: Vec<IterMut<'a, f64>>,
}

/// The part of the result that belongs to a bucket.
struct Bucket<'a, W> {
    /// The number of entries of the buckets before it.
    base: usize,
    /// The end of each row.
    ends: &'a mut [W],
    columns: &'a mut [u32],
    /// Empty if entries have no values.
    values: &'a mut [f64],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Coo;
    use crate::format::assemble::by_cursors;

    /// Entries of an R-MAT-like law in any order: few rows have most of them, and places repeat.
    fn entries(n: usize, count: usize, valued: bool) -> Coo {
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let (mut rows, mut cols, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for at in 0..count {
            let most = random(n) + 1;
            rows.push(random(most) as u32);
            cols.push(random(n) as u32);
            if valued {
                values.push(at as f64);
            }
        }
        Coo::new(n, n, rows, cols, values).unwrap()
    }

    #[test]
    fn buckets_and_cursors_give_the_same_rows() {
        for (n, count) in [(1, 5), (2, 0), (700, 1), (700, 20_000), (5_000, 300_000)] {
            for valued in [false, true] {
                for mirror in [None, Some(-1.0)] {
                    let entries = entries(n, count, valued);
                    let expected = by_cursors::<u32, _>(&entries, mirror).unwrap();
                    for row_bits in [0, 3, 9, 10] {
                        let cut = Buckets::cut((n, n)).unwrap();
                        let buckets = Buckets { count: n.div_ceil(1 << row_bits), row_bits, ..cut };
                        let Some(found) = buckets.sort::<u32, _>(&entries, mirror).unwrap() else {
                            let one_bucket = count == 1 || n <= 5 << row_bits;
                            assert!(count > 0 && one_bucket, "no bucket has most of the entries");
                            continue;
                        };
                        assert_eq!(found.offsets, expected.offsets, "{n} {count} {row_bits}");
                        assert_eq!(found.columns, expected.columns, "{n} {count} {row_bits}");
                        assert_eq!(found.values, expected.values, "{n} {count} {row_bits}");
                    }
                }
            }
        }
    }

    /// Entries of which some have another row in the second reading.
    struct Changing {
        entries: Coo,
        before: u32,
        after: u32,
    }

    impl Entries for Changing {
        type Piece = <Coo as Entries>::Piece;

        fn shape(&self) -> (usize, usize) {
            self.entries.shape()
        }
        fn valued(&self) -> bool {
            self.entries.valued()
        }
        fn most(&self) -> usize {
            self.entries.most()
        }
        fn cut(&self, pieces: usize) -> Result<Vec<Self::Piece>> {
            self.entries.cut(pieces)
        }
        fn rows(&self, piece: &Self::Piece, visit: impl FnMut(u32)) -> Result<u64> {
            self.entries.rows(piece, visit)
        }
        fn places(&self, piece: &Self::Piece, visit: impl FnMut(u32, u32)) -> Result<u64> {
            self.entries.places(piece, visit)
        }
        fn entries(&self, piece: &Self::Piece, mut visit: impl FnMut(u32, u32, f64)) -> Result<u64> {
            let now = |row: u32| if row == self.before { self.after } else { row };
            self.entries.entries(piece, |row, col, value| visit(now(row), col, value))
        }
        fn check(&self, stored: u64) -> Result<()> {
            self.entries.check(stored)
        }
    }

    #[test]
    fn entries_that_change_between_the_readings_are_refused() {
        let buckets =
            Buckets { row_bits: 3, count: 700_usize.div_ceil(8), ..Buckets::cut((700, 700)).unwrap() };
        let changing = |before, after| Changing { entries: entries(700, 20_000, true), before, after };
        for (before, after) in [(100, 650), (650, 100), (100, 109)] {
            let error = buckets.sort::<u32, _>(&changing(before, after), None).err().unwrap();
            assert!(error.to_string().contains("changed while they were read"), "{error}");
        }
        let same = buckets.sort::<u32, _>(&changing(100, 100), None).unwrap().unwrap();
        assert_eq!(same.columns.len(), 20_000);
    }

    #[test]
    fn entries_of_which_most_are_in_few_rows_are_sorted_by_cursors() {
        let entries = Coo::new(1 << 12, 4, vec![7; 100], vec![1; 100], Vec::new()).unwrap();
        let buckets = Buckets::cut((1 << 12, 4)).unwrap();
        assert!(buckets.sort::<u32, _>(&entries, None).unwrap().is_none());
    }

    #[test]
    fn rows_and_columns_of_a_bucket_share_32_bits() {
        for (rows, cols) in [(1, 1), (1 << 20, 1 << 20), (1 << 22, 1 << 22), (3_000_000, 5), (5, 1 << 32)] {
            let buckets = Buckets::cut((rows, cols)).unwrap();
            assert!(buckets.row_bits + buckets.column_bits <= 32 && buckets.count <= MOST, "{buckets:?}");
            let (row, col) = (rows as u32 - 1, (cols - 1) as u32);
            let in_bucket = (rows - 1) % (1 << buckets.row_bits);
            assert_eq!(buckets.split(buckets.join(row, col)), (in_bucket, col));
            assert_eq!(buckets.of_row(row), buckets.count - 1);
        }
        // A bucket may have 2^8 rows, and there would be 2^16 buckets.
        assert!(Buckets::cut((1 << 24, 1 << 24)).is_none());
        assert!(Buckets::of((1 << 17, 1 << 17), 1 << 24, 4).is_none(), "the cursors fit a cache");
        assert!(Buckets::of((1 << 20, 1 << 20), 1 << 20, 4).is_none(), "the rows are short");
        assert!(Buckets::of((1 << 20, 1 << 20), 1 << 24, 4).is_some());
    }
}
