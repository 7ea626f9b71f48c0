//! Ranks: processes or threads that solve one system together, and the sums and messages that they exchange.
//!
//! A [`Communicator`] moves bytes; [`Ranks`] builds everything else on it. Every function of [`Ranks`] is
//! collective: all ranks call the same functions in the same order.

use crate::error::{Error, Result};
use crate::parallel::{copy_bytes, lock, split_front, zeros};
use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use std::sync::{Arc, Mutex, Weak};

/// A message to a rank.
pub(crate) type Outgoing<'a> = (usize, &'a [u8]);
/// A buffer for the message of a rank.
pub(crate) type Incoming<'a> = (usize, &'a mut [u8]);

/// A connection of devices, which ends the waiting on them when a rank fails.
pub(crate) trait Connection: Send + Sync {
    /// Called on the thread of the rank that fails, with its number.
    fn rank_failed(&self, rank: usize);
}

/// Moves bytes between ranks. A rank that fails must end the other ranks, so no function returns an error.
pub(crate) trait Communicator: Send + Sync {
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn size(&self) -> usize;

    /// Collects the bytes of every rank in the order of ranks. Each rank passes the same number of bytes.
    fn all_gather(&self, mine: &[u8], all: &mut [u8]);

    /// Sends messages and receives messages of lengths that both sides know. Runs `meanwhile` after
    /// all of them are started.
    fn exchange(&self, sent: &[Outgoing<'_>], received: &mut [Incoming<'_>], meanwhile: &mut dyn FnMut());

    /// Tells the connection, if it still exists, when a rank fails, so that no other rank waits for that rank
    /// on a device. Communicators that end the processes of all ranks need not.
    fn on_failure(&self, _connection: Weak<dyn Connection>) {}
}

/// All ranks, as this rank sees them. Clones are the same ranks.
#[derive(Clone)]
pub struct Ranks(Arc<Inner>);

struct Inner {
    communicator: Box<dyn Communicator>,
    /// The numbers of all ranks, in [`Ranks::sum`].
    numbers: Mutex<Vec<f64>>,
}

/// Returns the range of a part among parts of these lengths.
fn part(lengths: &[usize], index: usize) -> std::ops::Range<usize> {
    let start = lengths[..index].iter().sum();
    start..start + lengths[index]
}

impl Ranks {
    /// Wraps a communicator.
    pub(crate) fn new(communicator: impl Communicator + 'static) -> Ranks {
        Ranks(Arc::new(Inner { communicator: Box::new(communicator), numbers: Mutex::default() }))
    }

    /// Returns the number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.0.communicator.rank()
    }

    /// Returns the number of ranks.
    pub(crate) fn size(&self) -> usize {
        self.0.communicator.size()
    }

    /// Returns whether this is the first rank.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Tells the connection when a rank fails; see [`Communicator::on_failure`].
    pub(crate) fn on_failure(&self, connection: Weak<dyn Connection>) {
        self.0.communicator.on_failure(connection);
    }

    /// Calls `work` with the numbers of all ranks, in the order of ranks.
    fn with_all<R>(&self, mine: &[f64], work: impl FnOnce(&[f64]) -> R) -> R {
        let mut all = lock(&self.0.numbers);
        all.resize(mine.len() * self.size(), 0.0);
        self.0.communicator.all_gather(cast_slice(mine), cast_slice_mut(&mut all));
        work(&all)
    }

    /// Replaces each value by its sum over all ranks. Every rank adds in the order of ranks,
    /// so all have the same bits.
    pub fn sum(&self, values: &mut [f64]) {
        let mut summed = [0.0; SUMMED];
        for values in values.chunks_mut(SUMMED) {
            let summed = &mut summed[..values.len()];
            summed.fill(0.0);
            self.with_all(values, |all| {
                for of_rank in all.chunks_exact(summed.len()) {
                    summed.iter_mut().zip(of_rank).for_each(|(sum, value)| *sum += value);
                }
            });
            values.copy_from_slice(summed);
        }
    }

    /// Replaces each value by the values of all ranks, combined in the order of ranks.
    pub(crate) fn fold_all(&self, values: &mut [f64], with: fn(f64, f64) -> f64) {
        for values in values.chunks_mut(SUMMED) {
            let mut combined = [0.0; SUMMED];
            self.with_all(values, |all| {
                for (index, combined) in combined.iter_mut().take(values.len()).enumerate() {
                    *combined =
                        all.iter().skip(index).step_by(values.len()).copied().reduce(with).unwrap_or(0.0);
                }
            });
            values.copy_from_slice(&combined[..values.len()]);
        }
    }

    /// Combines a number of every rank, in the order of ranks.
    pub(crate) fn fold(&self, mine: f64, with: fn(f64, f64) -> f64) -> f64 {
        self.with_all(&[mine], |all| all[1..].iter().copied().fold(all[0], with))
    }

    /// Returns whether a condition holds on any rank.
    pub(crate) fn any(&self, here: bool) -> bool {
        self.fold(f64::from(u8::from(here)), f64::max) > 0.0
    }

    /// Returns the numbers of the first rank whose first number is not zero; zeros if there is none.
    pub(crate) fn first_of<const N: usize>(&self, mine: [f64; N]) -> [f64; N] {
        self.with_all(&mine, |all| {
            let (of_ranks, _) = all.as_chunks();
            of_ranks.iter().find(|numbers| numbers[0] != 0.0).copied().unwrap_or([0.0; N])
        })
    }

    /// Returns the whole numbers of all ranks.
    pub(crate) fn all_of(&self, mine: u64) -> Vec<u64> {
        let mut all = vec![0; self.size()];
        self.0.communicator.all_gather(cast_slice(&[mine]), cast_slice_mut(&mut all));
        all
    }

    /// Returns the sum of a whole number over all ranks.
    pub(crate) fn total(&self, mine: u64) -> u64 {
        self.all_of(mine).iter().sum()
    }

    /// Returns the result if it is good on every rank. Otherwise every rank returns an error: its own, or one
    /// that names the rank that failed.
    pub(crate) fn agreed<T>(&self, result: Result<T>) -> Result<T> {
        let failed = self.all_of(u64::from(result.is_err()));
        let value = result?;
        match failed.iter().position(|failed| *failed > 0) {
            Some(rank) => Err(Error::OtherRank { rank }),
            None => Ok(value),
        }
    }

    /// Sends and receives numbers; see [`Communicator::exchange`].
    pub(crate) fn exchange<T: Pod>(
        &self,
        sent: &[(usize, &[T])],
        received: Vec<(usize, &mut [T])>,
        meanwhile: &mut dyn FnMut(),
    ) {
        let sent: Vec<_> = sent.iter().map(|(rank, numbers)| (*rank, cast_slice(numbers))).collect();
        let mut received: Vec<_> =
            received.into_iter().map(|(rank, numbers)| (rank, cast_slice_mut(numbers))).collect();
        self.0.communicator.exchange(&sent, &mut received, meanwhile);
    }

    /// Sends a list to each rank, and returns the list that each rank has sent to this one.
    pub(crate) fn swap<T: Pod>(&self, sent: &[Vec<T>]) -> Result<Vec<Vec<T>>> {
        let lengths: Vec<u64> = sent.iter().map(|list| list.len() as u64).collect();
        let mut all = vec![0_u64; self.size() * self.size()];
        self.0.communicator.all_gather(cast_slice(&lengths), cast_slice_mut(&mut all));
        let to_here = all.iter().skip(self.rank()).step_by(self.size());
        let received = to_here.map(|length| zeros(*length as usize)).collect::<Result<Vec<Vec<T>>>>();
        // A rank without memory must not leave the others waiting for its messages.
        let mut received = self.agreed(received)?;
        copy_bytes(cast_slice(&sent[self.rank()]), cast_slice_mut(&mut received[self.rank()]));
        let others = |rank: &usize| *rank != self.rank();
        let sent: Vec<_> = (0..self.size()).filter(others).map(|rank| (rank, &sent[rank][..])).collect();
        let to = received.iter_mut().map(|list| &mut list[..]).enumerate();
        self.exchange(&sent, to.filter(|(rank, _)| others(rank)).collect(), &mut || ());
        Ok(received)
    }

    /// Returns the lists of all ranks, one after the other, on every rank.
    pub(crate) fn lists_of_all<T: Pod>(&self, mine: &[T]) -> Result<Vec<T>> {
        let lengths: Vec<usize> = self.all_of(mine.len() as u64).iter().map(|l| *l as usize).collect();
        let mut all: Vec<T> = self.agreed(zeros(lengths.iter().sum()))?;
        let (mut rest, mut sent, mut received) = (&mut all[..], Vec::new(), Vec::new());
        for (rank, length) in lengths.into_iter().enumerate() {
            let part = split_front(&mut rest, length);
            if rank == self.rank() {
                copy_bytes(cast_slice(mine), cast_slice_mut(part));
            } else {
                sent.push((rank, mine));
                received.push((rank, part));
            }
        }
        self.exchange(&sent, received, &mut || ());
        Ok(all)
    }

    /// Returns the list of the first rank on every rank.
    pub(crate) fn list_of_first<T: Pod>(&self, list: Vec<T>) -> Result<Vec<T>> {
        let mut sent = vec![Vec::new(); self.size()];
        if self.is_first() {
            sent = vec![list; self.size()];
        }
        Ok(self.swap(&sent)?.swap_remove(0))
    }

    /// Fails with this error on each rank whose numbers are not those of the first rank. All
    /// ranks call this together.
    pub(crate) fn agree_on(&self, mine: [u64; 2], differ: impl FnOnce() -> Error) -> Result<()> {
        let first = self.list_of_first(mine.to_vec())?;
        self.agreed(if first == mine { Ok(()) } else { Err(differ()) })
    }

    /// Returns the text of the first rank on every rank.
    pub(crate) fn text_from_first(&self, text: &str) -> Result<String> {
        let bytes = self.list_of_first(text.as_bytes().to_vec())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the lists of all ranks, one after the other, on the first rank, and nothing on the others.
    pub(crate) fn collect<T: Pod + Zeroable>(&self, mine: &[T]) -> Result<Option<Vec<T>>> {
        let lengths: Vec<usize> = self.all_of(mine.len() as u64).iter().map(|l| *l as usize).collect();
        if !self.is_first() {
            self.agreed(Ok(()))?;
            self.exchange(&[(0, mine)], Vec::new(), &mut || ());
            return Ok(None);
        }
        let mut all: Vec<T> = self.agreed(zeros(lengths.iter().sum()))?;
        all[..mine.len()].copy_from_slice(mine);
        let mut rest = &mut all[mine.len()..];
        let from = (1..self.size()).map(|rank| (rank, split_front(&mut rest, lengths[rank])));
        self.exchange(&[], from.collect(), &mut || ());
        Ok(Some(all))
    }

    /// Passes the lists of all ranks, one after the other, to `take` on the first rank, in portions of at
    /// most `most` elements. The first rank has no more than a portion of the other lists.
    pub(crate) fn collect_in_portions<T: Pod + Zeroable>(
        &self,
        mine: &[T],
        most: usize,
        mut take: impl FnMut(&[T]),
    ) -> Result<()> {
        let lengths = self.all_of(mine.len() as u64);
        let longest = lengths[1..].iter().max().map_or(0, |length| (*length as usize).min(most));
        let mut buffer: Vec<T> = self.agreed(zeros(if self.is_first() { longest } else { 0 }))?;
        if !self.is_first() {
            mine.chunks(most).for_each(|portion| self.exchange(&[(0, portion)], Vec::new(), &mut || ()));
            return Ok(());
        }
        mine.chunks(most).for_each(&mut take);
        for (rank, length) in lengths.into_iter().enumerate().skip(1) {
            let mut left = length as usize;
            while left > 0 {
                let portion = &mut buffer[..left.min(most)];
                self.exchange(&[], vec![(rank, &mut *portion)], &mut || ());
                take(portion);
                left -= portion.len();
            }
        }
        Ok(())
    }

    /// Sends each rank its part of a list of the first rank, in the order of ranks. This rank
    /// gets `length` elements.
    pub(crate) fn scatter<T: Pod + Zeroable>(&self, all: Option<&[T]>, length: usize) -> Result<Vec<T>> {
        let lengths: Vec<usize> = self.all_of(length as u64).iter().map(|l| *l as usize).collect();
        let lengths = &lengths[..];
        let mut mine: Vec<T> = self.agreed(zeros(length))?;
        match all {
            Some(all) => {
                mine.copy_from_slice(&all[part(lengths, 0)]);
                let to: Vec<_> = (1..self.size()).map(|rank| (rank, &all[part(lengths, rank)])).collect();
                self.exchange(&to, Vec::new(), &mut || ());
            }
            None => self.exchange(&[], vec![(0, &mut mine[..])], &mut || ()),
        }
        Ok(mine)
    }
}

/// Numbers that [`Ranks::sum`] adds at once.
const SUMMED: usize = 64;
