//! The columns of other ranks that occur in the rows of a rank.

use crate::error::Result;
use crate::parallel::{run_all, threads_for, zeros};
use std::ops::Range;

/// A set of columns, as bits from the lowest to the highest. A column's number in the set is found without a
/// search: in a graph, most entries are in columns of the set.
pub(super) struct Ghosts {
    lowest: u32,
    words: Vec<u64>,
    /// The number of columns in the words before each word.
    before: Vec<u32>,
    count: usize,
}

impl Ghosts {
    /// Collects the columns outside `own`, on all threads. Each thread has a set of its own, and the sets
    /// take at most as much memory as the columns.
    pub(crate) fn of(columns: &[u32], own: &Range<u32>) -> Result<Ghosts> {
        fn others(piece: &[u32], own: &Range<u32>) -> impl Iterator<Item = u32> {
            piece.iter().copied().filter(|column| !own.contains(column))
        }
        let threads = threads_for(size_of_val(columns));
        let pieces = |count: usize| columns.chunks(columns.len().div_ceil(count).max(1)).collect();
        let ends = run_all(pieces(threads), |piece| {
            others(piece, own).fold((u32::MAX, 0), |(low, high), column| (low.min(column), high.max(column)))
        });
        let widest = |(low, high): (u32, u32), (lower, higher)| (low.min(lower), high.max(higher));
        let (lowest, highest) = ends.into_iter().fold((u32::MAX, 0), widest);
        let width = highest.checked_sub(lowest).map_or(0, |distance| distance as usize + 1);
        let sets = (32 * columns.len() / width.max(1)).clamp(1, threads);
        let sets: Vec<Result<Vec<u64>>> = run_all(pieces(sets), |piece| {
            let mut words: Vec<u64> = zeros(width.div_ceil(64))?;
            others(piece, own).for_each(|column| {
                let at = (column - lowest) as usize;
                words[at / 64] |= 1 << (at % 64);
            });
            Ok(words)
        });
        let mut words: Vec<u64> = zeros(width.div_ceil(64))?;
        for set in sets {
            words.iter_mut().zip(set?).for_each(|(all, word)| *all |= word);
        }
        let (mut before, mut count) = (zeros(words.len())?, 0);
        for (word, before) in words.iter().zip(&mut before) {
            *before = count;
            count += word.count_ones();
        }
        Ok(Ghosts { lowest, words, before, count: count as usize })
    }

    /// Returns the number of a column of the set, counted from the lowest.
    pub(crate) fn number(&self, column: u32) -> u32 {
        let at = (column - self.lowest) as usize;
        let lower = self.words[at / 64] & ((1 << (at % 64)) - 1);
        self.before[at / 64] + lower.count_ones()
    }

    /// Returns the columns in increasing order.
    pub(crate) fn list(&self) -> Result<Vec<u32>> {
        let mut list = zeros(self.count)?;
        let mut places = list.iter_mut();
        for (&word, first) in self.words.iter().zip((u64::from(self.lowest)..).step_by(64)) {
            let mut left = word;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                places.next().into_iter().for_each(|place| *place = (first + u64::from(bit)) as u32);
            }
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_other_ranks_are_numbered_in_increasing_order() {
        for (own, step, length) in
            [(0..0, 7, 200), (100..300, 7, 200), (0..1000, 3, 5), (500..501, 64, 63), (5..9, 7919, 200_000)]
        {
            let columns: Vec<u32> =
                (0..length).rev().map(|i| i * step % if length > 1000 { 65_537 } else { 911 }).collect();
            let mut expected: Vec<u32> = columns.iter().copied().filter(|c| !own.contains(c)).collect();
            expected.sort_unstable();
            expected.dedup();
            let ghosts = Ghosts::of(&columns, &own).unwrap();
            assert_eq!(ghosts.list().unwrap(), expected);
            for (number, column) in expected.iter().enumerate() {
                assert_eq!(ghosts.number(*column) as usize, number);
            }
        }
        let ends = Ghosts::of(&[u32::MAX, 0, 5], &(3..9)).unwrap();
        assert_eq!((ends.list().unwrap(), ends.number(u32::MAX)), (vec![0, u32::MAX], 1));
    }
}
