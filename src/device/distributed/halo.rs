//! The entries of vectors that a rank needs from other ranks.
//!
//! Each rank has a contiguous range of rows, counted in the order of ranks. The entries of x in columns that
//! belong to other ranks are its *ghosts*, in the order of columns, so that the ghosts of one rank are
//! neighbours. A complete vector has the ghosts below the rank's rows, the rank's own entries, and the ghosts
//! above: the order of columns in the whole matrix.

use super::communicator::Ranks;
use crate::error::Result;
use crate::scalar::Scalar;
use std::ops::Range;

/// A rank that this rank exchanges entries with.
#[derive(Debug)]
struct Neighbour {
    rank: usize,
    /// Its part of the rows that are sent.
    sent: Range<usize>,
    /// Its part of the ghosts.
    received: Range<usize>,
}

/// The exchange of entries between ranks.
pub(crate) struct Halo {
    ranks: Ranks,
    rows: Range<usize>,
    total: usize,
    /// Ghosts before the rows of this rank.
    below: usize,
    /// The columns of the ghosts in the whole matrix.
    ghosts: Vec<u32>,
    neighbours: Vec<Neighbour>,
    /// Rows of this rank, for each neighbour, counted from the first.
    sent: Vec<u32>,
}

impl Halo {
    /// Plans the exchange. Rank i has the rows `starts[i]..starts[i + 1]`; `ghosts` are the columns of other
    /// ranks that this one needs, in increasing order.
    pub(crate) fn new(ranks: &Ranks, starts: &[usize], ghosts: &[u32]) -> Result<Halo> {
        let rank = ranks.rank();
        let rows = starts[rank]..starts[rank + 1];
        let of_rank = |other: usize| {
            let [from, to] = [starts[other], starts[other + 1]];
            ghosts.partition_point(|g| (*g as usize) < from)..ghosts.partition_point(|g| (*g as usize) < to)
        };
        let wanted: Vec<Vec<u32>> = (0..ranks.size()).map(|other| ghosts[of_rank(other)].to_vec()).collect();
        let asked = ranks.swap(&wanted)?;
        let (mut neighbours, mut sent) = (Vec::new(), Vec::new());
        for (other, asked) in asked.iter().enumerate() {
            let (begin, received) = (sent.len(), of_rank(other));
            sent.extend(asked.iter().map(|row| row - rows.start as u32));
            if !(asked.is_empty() && received.is_empty()) {
                neighbours.push(Neighbour { rank: other, sent: begin..sent.len(), received });
            }
        }
        let below = ghosts.partition_point(|ghost| (*ghost as usize) < rows.start);
        let total = starts[ranks.size()];
        Ok(Halo { ranks: ranks.clone(), rows, total, below, ghosts: ghosts.to_vec(), neighbours, sent })
    }

    /// Returns the ranks.
    pub(crate) fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Returns the rows of this rank, counted in the whole matrix.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Returns the number of rows of all ranks.
    pub(crate) fn total_rows(&self) -> usize {
        self.total
    }

    /// Returns the number of ghosts before the rows of this rank.
    pub(crate) fn below(&self) -> usize {
        self.below
    }

    /// Returns the number of ghosts.
    pub(crate) fn ghosts(&self) -> usize {
        self.ghosts.len()
    }

    /// Returns the number of entries of a complete vector.
    pub(crate) fn complete_rows(&self) -> usize {
        self.rows.len() + self.ghosts.len()
    }

    /// Returns the place in a complete vector of the first of the ghosts that one rank sends.
    pub(crate) fn place_of(&self, received: &Range<usize>) -> usize {
        if received.start < self.below { received.start } else { received.start + self.rows.len() }
    }

    /// Returns the column of the whole matrix of an entry of a complete vector.
    pub(crate) fn column(&self, complete: u32) -> u32 {
        let at = complete as usize;
        match at.checked_sub(self.below) {
            None => self.ghosts[at],
            Some(own) if own < self.rows.len() => (self.rows.start + own) as u32,
            Some(above) => self.ghosts[self.below + above - self.rows.len()],
        }
    }

    /// Returns the rows that are sent to neighbours, counted from the first row of this rank.
    pub(crate) fn sent_rows(&self) -> &[u32] {
        &self.sent
    }

    /// Returns the number of ranks that this rank exchanges entries with.
    pub(crate) fn neighbours(&self) -> usize {
        self.neighbours.len()
    }

    /// Returns the ranks that this rank exchanges entries with, each with the parts that are sent and
    /// received, of which one may be empty.
    pub(crate) fn all_parts(&self) -> impl Iterator<Item = (usize, &Range<usize>, &Range<usize>)> {
        self.neighbours.iter().map(|n| (n.rank, &n.sent, &n.received))
    }

    /// Returns the ranks that this rank sends entries to, each with its part of
    /// [`sent_rows`](Halo::sent_rows).
    pub(crate) fn sent_parts(&self) -> impl Iterator<Item = (usize, &Range<usize>)> {
        self.neighbours.iter().filter(|n| !n.sent.is_empty()).map(|n| (n.rank, &n.sent))
    }

    /// Returns the ranks that send entries to this rank, in order, each with its part of the ghosts.
    pub(crate) fn received_parts(&self) -> impl Iterator<Item = (usize, &Range<usize>)> {
        self.neighbours.iter().filter(|n| !n.received.is_empty()).map(|n| (n.rank, &n.received))
    }

    /// Sends the entries of [`sent_rows`](Halo::sent_rows), `k` for each, and receives the ghosts.
    pub(crate) fn exchange<T: Scalar>(
        &self,
        k: usize,
        sent: &[T],
        mut ghosts: &mut [T],
        meanwhile: &mut dyn FnMut(),
    ) {
        let part = |range: &Range<usize>| range.start * k..range.end * k;
        let to = self.sent_parts().map(|(rank, sent_to)| (rank, &sent[part(sent_to)]));
        // Neighbours are in the order of ranks, and so are the ghosts.
        let from = self.received_parts();
        let from = from.map(|(rank, part)| (rank, crate::parallel::split_front(&mut ghosts, part.len() * k)));
        self.ranks.exchange(&to.collect::<Vec<_>>(), from.collect(), meanwhile);
    }

    /// Sends the entries of [`sent_rows`](Halo::sent_rows), `k` for each, and receives the ghosts in their
    /// places in a complete vector. Meanwhile, `fill` gets the place of the rank's own entries.
    pub(crate) fn exchange_around<T: Scalar>(
        &self,
        k: usize,
        sent: &[T],
        complete: &mut [T],
        fill: impl FnOnce(&mut [T]),
    ) {
        let (mut below, rest) = complete.split_at_mut(self.below * k);
        let (own, mut above) = rest.split_at_mut(self.rows.len() * k);
        let all = || self.neighbours.iter();
        let part = |range: &Range<usize>| range.start * k..range.end * k;
        let to = all().filter(|n| !n.sent.is_empty()).map(|n| (n.rank, &sent[part(&n.sent)]));
        let from = all().filter(|n| !n.received.is_empty()).map(|n| {
            let ghosts = if n.rank < self.ranks.rank() { &mut below } else { &mut above };
            (n.rank, crate::parallel::split_front(ghosts, n.received.len() * k))
        });
        let mut fill = Some(fill);
        self.ranks.exchange(&to.collect::<Vec<_>>(), from.collect(), &mut || {
            if let Some(fill) = fill.take() {
                fill(own);
            }
        });
    }

    /// Writes the complete vector of x to `to`.
    pub(crate) fn complete(&self, x: &[f64], to: &mut Vec<f64>) {
        let sent: Vec<f64> = self.sent.iter().map(|row| x[*row as usize]).collect();
        let mut ghosts = vec![0.0; self.ghosts.len()];
        self.exchange(1, &sent, &mut ghosts, &mut || ());
        to.clear();
        to.extend_from_slice(&ghosts[..self.below]);
        to.extend_from_slice(x);
        to.extend_from_slice(&ghosts[self.below..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::distributed::in_threads;

    #[test]
    fn the_entries_of_each_rank_have_their_place_in_a_complete_vector() {
        let (starts, wanted) = ([0, 4, 4, 9, 12], [vec![4, 8, 11], vec![], vec![1, 2, 9], vec![0, 3, 5]]);
        let all = in_threads(4, |ranks| {
            let halo = Halo::new(ranks, &starts, &wanted[ranks.rank()])?;
            let mut seen = Vec::new();
            for (rank, part) in halo.received_parts() {
                for (number, place) in (halo.place_of(part)..).take(part.len()).enumerate() {
                    let column = halo.column(place as u32);
                    assert_eq!(column, wanted[ranks.rank()][part.start + number]);
                    assert!((starts[rank]..starts[rank + 1]).contains(&(column as usize)));
                    seen.push(place);
                }
            }
            let own = halo.below()..halo.below() + halo.rows().len();
            seen.extend(own);
            seen.sort_unstable();
            assert_eq!(seen, (0..halo.complete_rows()).collect::<Vec<_>>());
            Ok(seen.len())
        });
        let lengths: Vec<usize> = all.into_iter().map(Result::unwrap).collect();
        assert_eq!(lengths, [7, 0, 8, 6]);
    }
}
