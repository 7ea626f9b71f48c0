//! Rows of a matrix that are distributed over ranks in contiguous ranges, and their moves to other ranges.

use super::swap_rows;
use crate::device::Ranks;
use crate::error::Result;
use crate::format::{Csr, partition};
use bytemuck::Pod;
use std::ops::Range;

/// The rows of a rank, with the columns of the whole matrix.
pub(crate) struct RowParts {
    /// The first row of this rank.
    first: usize,
    /// The first row of each rank, and the number of rows.
    pub starts: Vec<usize>,
    /// The rows of this rank.
    pub rows: Csr,
    /// Whether the matrix is known to be symmetric.
    pub symmetric: bool,
}

impl RowParts {
    /// Wraps the rows `starts[rank]..starts[rank + 1]` of this rank.
    pub(crate) fn new(ranks: &Ranks, starts: Vec<usize>, rows: Csr) -> RowParts {
        RowParts { first: starts[ranks.rank()], starts, rows, symmetric: false }
    }

    /// Returns the first `most` rows of the matrix on the first rank, and nothing on the others.
    pub(crate) fn head(&self, ranks: &Ranks, most: usize) -> Result<Option<Csr>> {
        let mut wanted = vec![0..0; ranks.size()];
        wanted[0] = 0..most.min(self.starts[ranks.size()]);
        let mut parts = self.swap(ranks, &wanted)?;
        let own = parts.remove(0);
        let kept = 0..own.rows();
        let joined = ranks.is_first().then(|| own.between(&[], kept, &parts));
        ranks.agreed(joined.transpose())
    }

    /// Cuts the rows by their entries, as [`partition::by_entries`] does, and moves those that
    /// get another rank.
    pub(crate) fn cut(self, ranks: &Ranks, together: usize) -> Result<RowParts> {
        let lengths = (0..self.rows.rows()).map(|row| self.rows.row_range(row).len() as u64);
        let starts = cut_lengths(ranks, self.starts[ranks.size()], lengths, together);
        if starts == self.starts {
            return Ok(self);
        }
        let here = ranks.rank();
        let mut wanted: Vec<Range<usize>> = starts.windows(2).map(|ends| ends[0]..ends[1]).collect();
        let kept = self.own(&wanted[here]);
        // The rows that stay are not sent.
        wanted[here] = 0..0;
        let parts = self.swap(ranks, &wanted)?;
        let rows = ranks.agreed(self.rows.between(&parts[..here], kept, &parts[here + 1..]))?;
        Ok(RowParts { first: starts[here], starts, rows, symmetric: self.symmetric })
    }

    /// Returns which rows of this rank are in a range of all rows.
    fn own(&self, rows: &Range<usize>) -> Range<usize> {
        let (first, count) = (self.first, self.rows.rows());
        let place = |row: usize| row.clamp(first, first + count) - first;
        place(rows.start)..place(rows.end)
    }

    /// Sends each rank the rows that it wants and this rank has.
    fn swap(&self, ranks: &Ranks, wanted: &[Range<usize>]) -> Result<Vec<Csr>> {
        let to: Vec<Range<usize>> = wanted.iter().map(|rows| self.own(rows)).collect();
        let parts = swap_rows(ranks, &self.rows, &to);
        ranks.agreed(parts)
    }
}

/// Returns the rank that has a row.
pub(crate) fn owner(starts: &[usize], row: u32) -> usize {
    starts.partition_point(|start| *start <= row as usize) - 1
}

/// Cuts rows of these lengths, as [`partition::by_entries`] does. Each rank passes the lengths of its rows.
pub(crate) fn cut_lengths(
    ranks: &Ranks,
    rows: usize,
    lengths: impl Iterator<Item = u64> + Clone,
    together: usize,
) -> Vec<usize> {
    let works = lengths.map(|length| length + partition::ROW as u64);
    let of_ranks = ranks.all_of(works.clone().sum());
    let total: u64 = of_ranks.iter().sum();
    let parts = ranks.size();
    let target = |part: usize| (u128::from(total) * part as u128 / parts as u128) as u64;
    let targets: Vec<u64> = (0..parts).map(target).collect();
    let mut before: u64 = of_ranks[..ranks.rank()].iter().sum();
    // The rows of this rank that have less than the work of 0, 1, 2, ... parts before them. Later
    // rows have more before them.
    let mut below: Vec<f64> = Vec::with_capacity(parts);
    let mut count = 0.0;
    for work in works {
        while below.len() < parts && targets[below.len()] <= before {
            below.push(count);
        }
        before += work;
        count += 1.0;
    }
    below.resize(parts, count);
    // Whole numbers below 2^53 are exact.
    ranks.sum(&mut below);
    partition::starts(rows, parts, together, |part| below[part] as usize)
}

/// Moves a list that has an element for each row: this rank passes those of its rows
/// `from[rank]..from[rank + 1]`, and gets those of the rows `to[rank]..to[rank + 1]`.
pub(crate) fn moved<T: Pod>(ranks: &Ranks, list: Vec<T>, from: &[usize], to: &[usize]) -> Result<Vec<T>> {
    let (first, count) = (from[ranks.rank()], list.len());
    let place = |row: usize| row.clamp(first, first + count) - first;
    let sent: Vec<Vec<T>> = to.windows(2).map(|ends| list[place(ends[0])..place(ends[1])].to_vec()).collect();
    drop(list);
    Ok(ranks.swap(&sent)?.concat())
}
