//! The part of a vector that this process has: all of it, or the rows of a rank. Sums over all ranks, and
//! the entries of other ranks.

use super::rounding::{sum_and_lost, sum_in_chunks, sums_in_chunks};
use crate::device::distributed::Halo;
use crate::operator::ChunkSums;
use std::borrow::Cow;
use std::ops::Range;

/// The rows of this process: all rows, or those of a rank. The functions of a part are collective.
#[derive(Clone, Copy, Default)]
pub(crate) struct Part<'a>(Option<&'a Halo>);

impl std::fmt::Debug for Part<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            None => f.write_str("all rows"),
            Some(halo) => write!(f, "rows {:?} of {}", halo.rows(), halo.total_rows()),
        }
    }
}

impl<'a> Part<'a> {
    /// Wraps the exchange of the rows of a rank.
    pub(crate) fn of_rank(halo: &'a Halo) -> Part<'a> {
        Part(Some(halo))
    }

    /// Returns the number of rows of all ranks; this process has `own`.
    pub(crate) fn total(self, own: usize) -> usize {
        self.0.map_or(own, Halo::total_rows)
    }

    /// Returns the rows of this process, of which there are `own`.
    pub(crate) fn rows(self, own: usize) -> Range<usize> {
        self.0.map_or(0..own, Halo::rows)
    }

    /// Returns whether a condition holds on any rank.
    pub(crate) fn any(self, here: bool) -> bool {
        self.0.map_or(here, |halo| halo.ranks().any(here))
    }

    /// Computes the sum of the terms of all ranks, with a rounding error independent of their number.
    pub(crate) fn sum(self, terms: impl Iterator<Item = f64>) -> f64 {
        self.join(sum_and_lost(terms))
    }

    /// Computes the sum of the terms of all ranks, of which this process has `count`, on all threads.
    pub(crate) fn sum_of(self, count: usize, term: impl Fn(usize) -> f64 + Sync) -> f64 {
        self.join(sum_in_chunks(count, term))
    }

    /// Computes several sums over all ranks in one pass.
    pub(crate) fn sums_of<const N: usize>(
        self,
        count: usize,
        terms: impl Fn(usize) -> [f64; N] + Sync,
    ) -> [f64; N] {
        sums_in_chunks(count, terms).map(|sum| self.join(sum))
    }

    /// Adds the sums of the chunks of this process, which a device has computed, as
    /// [`sum_of`](Part::sum_of) does.
    pub(crate) fn sum_of_chunks(self, chunks: ChunkSums) -> f64 {
        self.join(sum_and_lost(chunks.into_iter().flatten()))
    }

    /// Adds the sum of this process and its rounding errors to those of the other ranks, in
    /// the order of ranks.
    fn join(self, [sum, lost]: [f64; 2]) -> f64 {
        let Some(halo) = self.0 else { return sum + lost };
        let [sums, lost] = [sum, lost].map(|mine| halo.ranks().all_of(mine.to_bits()));
        let terms = sums.into_iter().zip(lost).flat_map(|(sum, lost)| [sum, lost]);
        let [sum, lost] = sum_and_lost(terms.map(f64::from_bits));
        sum + lost
    }

    /// Returns x with the entries of other ranks that this rank needs, in the order of its columns.
    pub(crate) fn complete(self, x: &[f64]) -> Cow<'_, [f64]> {
        let Some(halo) = self.0 else { return Cow::Borrowed(x) };
        let mut complete = Vec::new();
        halo.complete(x, &mut complete);
        Cow::Owned(complete)
    }
}
