//! The numbers of a rank's rows in the matrix as it was given.
//!
//! The rows of a distributed matrix are numbered in the order of ranks. If the ranks have ranges of the rows
//! as they were given, these are the numbers in the matrix as given, too. If the rows were cut in another
//! way, each rank has a list.

use super::communicator::Ranks;
use crate::error::Result;
use crate::parallel::zeros;
use bytemuck::Pod;
use std::borrow::Cow;
use std::sync::Arc;

/// The numbers of a rank's rows in the matrix as it was given, in increasing order. All ranks have
/// the same kind of numbers.
#[derive(Clone, Debug)]
pub enum RowNumbers {
    /// A range that begins with this row.
    From(usize),
    /// A list.
    Listed(Arc<[u32]>),
}

impl RowNumbers {
    /// Returns the number of a row, which is counted from the first row of this rank.
    pub fn of(&self, row: usize) -> usize {
        match self {
            RowNumbers::From(first) => first + row,
            RowNumbers::Listed(numbers) => numbers[row] as usize,
        }
    }

    /// Returns the numbers of the rows of this rank, of which there are `rows`.
    pub(crate) fn all(&self, rows: usize) -> impl ExactSizeIterator<Item = usize> {
        (0..rows).map(|row| self.of(row))
    }

    /// Returns the list, if the rows are no range.
    pub(crate) fn listed(&self) -> Option<&[u32]> {
        match self {
            RowNumbers::From(_) => None,
            RowNumbers::Listed(numbers) => Some(numbers),
        }
    }

    /// Returns the rows of this rank, of which there are `rows`, of an array of `k` columns that has all
    /// rows as they were given.
    pub(crate) fn pick<'a, T: Copy>(&self, all: &'a [T], rows: usize, k: usize) -> Cow<'a, [T]> {
        match self {
            RowNumbers::From(first) => Cow::Borrowed(&all[first * k..(first + rows) * k]),
            RowNumbers::Listed(numbers) => Cow::Owned(picked(all, numbers, k)),
        }
    }

    /// Writes the rows of this rank to their places in an array of `k` columns that has all
    /// rows as they were given.
    pub(crate) fn put<T: Copy>(&self, mine: &[T], all: &mut [T], k: usize) {
        match self {
            RowNumbers::From(first) => all[first * k..first * k + mine.len()].copy_from_slice(mine),
            RowNumbers::Listed(numbers) => put_all(mine, numbers, all, k),
        }
    }

    /// Returns the rows of all ranks on the first rank, as they were given, and nothing on the other ranks.
    pub(crate) fn collect<T: Pod>(&self, ranks: &Ranks, mine: &[T]) -> Result<Option<Vec<T>>> {
        let RowNumbers::Listed(numbers) = self else { return ranks.collect(mine) };
        let numbers = ranks.collect(numbers)?;
        let rows = ranks.collect(mine)?;
        let all = numbers.zip(rows).map(|(numbers, rows)| {
            let mut all = zeros(rows.len())?;
            put_all(&rows, &numbers, &mut all, rows.len() / numbers.len().max(1));
            Ok(all)
        });
        ranks.agreed(all.transpose())
    }

    /// Passes the rows of all ranks, as they were given, to `take` on the first rank, in portions of about 8
    /// MiB. The first rank has at most a portion of the rows of other ranks. All ranks call this together.
    pub(crate) fn collect_in_portions<T: Pod>(
        &self,
        ranks: &Ranks,
        mine: &[T],
        mut take: impl FnMut(&[T]),
    ) -> Result<()> {
        let RowNumbers::Listed(listed) = self else {
            return ranks.collect_in_portions(mine, PORTION / size_of::<T>(), take);
        };
        // A rank without rows does not know the number of columns.
        let k = ranks.fold((mine.len() / listed.len().max(1)) as f64, f64::max) as usize;
        let total = ranks.total(listed.len() as u64) as usize;
        let rows = (PORTION / (k.max(1) * size_of::<T>())).max(1);
        let place = |number: usize| listed.partition_point(|listed| (*listed as usize) < number);
        for first in (0..total).step_by(rows) {
            let within = place(first)..place(first + rows);
            let numbers = ranks.collect(&listed[within.clone()])?;
            let given = ranks.collect(&mine[within.start * k..within.end * k])?;
            let portion = numbers.zip(given).map(|(mut numbers, given)| {
                numbers.iter_mut().for_each(|number| *number -= first as u32);
                let mut portion = zeros(given.len())?;
                put_all(&given, &numbers, &mut portion, k);
                Ok(portion)
            });
            if let Some(portion) = ranks.agreed(portion.transpose())? {
                take(&portion);
            }
        }
        Ok(())
    }

    /// Copies the rows of this rank from a part of an array of `k` columns that has all rows as they were
    /// given. The part begins at the number `at` of the array and may begin and end within a row.
    pub(crate) fn keep<T: Copy>(&self, at: usize, part: &[T], mine: &mut [T], k: usize) {
        match self {
            RowNumbers::From(first) => {
                let (start, end) = (first * k, first * k + mine.len());
                let (from, to) = (start.max(at), end.min(at + part.len()));
                if from < to {
                    mine[from - start..to - start].copy_from_slice(&part[from - at..to - at]);
                }
            }
            RowNumbers::Listed(numbers) => {
                let mut row = numbers.partition_point(|number| ((*number as usize) + 1) * k <= at);
                while let Some(start) = numbers.get(row).map(|number| *number as usize * k)
                    && start < at + part.len()
                {
                    let (from, to) = (start.max(at), (start + k).min(at + part.len()));
                    let place = row * k + from - start;
                    mine[place..place + to - from].copy_from_slice(&part[from - at..to - at]);
                    row += 1;
                }
            }
        }
    }

    /// Sends each rank its rows of an array of `k` columns that the first rank has, as they were given.
    /// This rank gets `rows` rows.
    pub(crate) fn scatter<T: Pod>(
        &self,
        ranks: &Ranks,
        all: Option<&[T]>,
        (rows, k): (usize, usize),
    ) -> Result<Vec<T>> {
        let RowNumbers::Listed(numbers) = self else { return ranks.scatter(all, rows * k) };
        let numbers = ranks.collect(numbers)?;
        let in_order = all.zip(numbers).map(|(all, numbers)| picked(all, &numbers, k));
        ranks.scatter(in_order.as_deref(), rows * k)
    }
}

/// Bytes of the rows of other ranks that the first rank has at once.
const PORTION: usize = 8 << 20;

/// Returns these rows of an array of `k` columns.
fn picked<T: Copy>(all: &[T], numbers: &[u32], k: usize) -> Vec<T> {
    let mut picked = Vec::with_capacity(numbers.len() * k);
    numbers.iter().for_each(|row| picked.extend_from_slice(&all[*row as usize * k..][..k]));
    picked
}

/// Writes rows to their places in an array of `k` columns.
fn put_all<T: Copy>(rows: &[T], numbers: &[u32], all: &mut [T], k: usize) {
    for (row, number) in rows.chunks_exact(k.max(1)).zip(numbers) {
        all[*number as usize * k..][..k].copy_from_slice(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::distributed::in_threads;

    #[test]
    fn rows_of_all_ranks_are_collected_and_scattered_in_the_order_of_the_matrix_as_given() {
        let lists: [&[u32]; 4] = [&[1, 4, 5], &[], &[0, 6], &[2, 3]];
        let all: Vec<f64> = (0..14).map(f64::from).collect();
        let found = in_threads(4, |ranks| {
            let list = lists[ranks.rank()];
            let numbers = RowNumbers::Listed(list.into());
            let mine = numbers.scatter(ranks, ranks.is_first().then_some(&all[..]), (list.len(), 2))?;
            assert_eq!(mine, *numbers.pick(&all, list.len(), 2));
            assert_eq!(
                numbers.all(list.len()).collect::<Vec<_>>(),
                list.iter().map(|n| *n as usize).collect::<Vec<_>>()
            );
            let mut placed = vec![-1.0; 14];
            numbers.put(&mine, &mut placed, 2);
            assert!(placed.iter().zip(&all).all(|(placed, all)| *placed == -1.0 || placed == all));
            let mut kept = vec![-1.0; mine.len()];
            (0..14).step_by(3).for_each(|at| numbers.keep(at, &all[at..14.min(at + 3)], &mut kept, 2));
            assert_eq!(kept, mine);
            let mut portions = Vec::new();
            numbers.collect_in_portions(ranks, &mine, |portion| portions.extend_from_slice(portion))?;
            assert_eq!(portions, if ranks.is_first() { &all[..] } else { &[] });
            numbers.collect(ranks, &mine)
        });
        let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
        assert_eq!(found, [Some(all), None, None, None]);
    }

    #[test]
    fn long_vectors_come_in_portions_of_bounded_size_and_in_order() {
        // Three ranks with 0, 2 and 1 million numbers, of 24 MB; the rows of two ranks
        // alternate if they are listed.
        let rows = [0, 2_000_000, 1_000_000];
        let found = in_threads(3, |ranks| {
            let (rank, mut lengths) = (ranks.rank(), Vec::new());
            let odd = |row: usize| row % 3 == 2;
            let listed =
                (0..3_000_000).filter(|row| rank > 0 && odd(*row) == (rank == 2)).map(|row| row as u32);
            let first = rows[..rank].iter().sum();
            for numbers in [RowNumbers::Listed(listed.collect()), RowNumbers::From(first)] {
                let mine: Vec<f64> = numbers.all(rows[rank]).map(|row| row as f64).collect();
                let mut next = 0.0;
                numbers.collect_in_portions(ranks, &mine, |portion| {
                    lengths.push(portion.len());
                    portion.iter().for_each(|number| {
                        assert_eq!(*number, next);
                        next += 1.0;
                    });
                })?;
                assert_eq!(next, if ranks.is_first() { 3e6 } else { 0.0 });
            }
            Ok(lengths)
        });
        let lengths = found.into_iter().next().unwrap().unwrap();
        assert!(
            lengths.len() > 5 && lengths.iter().all(|length| length * size_of::<f64>() <= PORTION),
            "{lengths:?}"
        );
    }

    #[test]
    fn a_range_keeps_the_numbers_of_its_rows_from_any_part() {
        let all: Vec<usize> = (0..30).collect();
        for length in 1..=30 {
            let mut mine = vec![0; 12];
            all.chunks(length)
                .enumerate()
                .for_each(|(i, part)| RowNumbers::From(4).keep(i * length, part, &mut mine, 3));
            assert_eq!(mine, all[12..24], "{length}");
        }
    }
}
