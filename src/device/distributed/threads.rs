//! Ranks that are threads of this process.

use super::communicator::{Communicator, Connection, Incoming, Outgoing, Ranks};
use crate::error::{Error, Result};
use crate::parallel::{copy_bytes, lock, start_scoped};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;

/// What the threads share.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The bytes of each rank that has arrived at the collection under way.
    parts: Vec<Vec<u8>>,
    arrived: usize,
    /// The number of complete collections, and the bytes of the last one.
    collections: u64,
    all: Vec<u8>,
    /// Messages from a rank to a rank that it has not received yet.
    messages: HashMap<(usize, usize), VecDeque<Vec<u8>>>,
    /// The first rank that has failed.
    failed: Option<usize>,
    /// The connections that are told about it.
    connections: Vec<Weak<dyn Connection>>,
}

/// The panic that ends a rank that waits for one that has failed.
struct Ended(usize);

impl Shared {
    /// Waits until `ready` returns a value. Ends this rank if another one fails meanwhile.
    fn wait<R>(&self, mut ready: impl FnMut(&mut State) -> Option<R>) -> R {
        let mut state = lock(&self.state);
        loop {
            if let Some(value) = ready(&mut state) {
                return value;
            }
            if let Some(rank) = state.failed {
                drop(state);
                resume_unwind(Box::new(Ended(rank)));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the ranks that wait for this one.
    fn fail(&self, rank: usize) {
        // The connections are told before a rank wakes that drops them.
        let connections = std::mem::take(&mut lock(&self.state).connections);
        tell(connections, rank);
        let mut state = lock(&self.state);
        state.failed.get_or_insert(rank);
        let late = std::mem::take(&mut state.connections);
        drop(state);
        tell(late, rank);
        self.changed.notify_all();
    }
}

/// Tells the connections that still exist that a rank has failed.
fn tell(connections: Vec<Weak<dyn Connection>>, rank: usize) {
    connections.iter().filter_map(Weak::upgrade).for_each(|connection| connection.rank_failed(rank));
}

/// A rank, as its thread sees the others.
struct Thread {
    rank: usize,
    size: usize,
    shared: Arc<Shared>,
}

impl Communicator for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&self, mine: &[u8], all: &mut [u8]) {
        let mut state = lock(&self.shared.state);
        state.parts[self.rank].clear();
        state.parts[self.rank].extend_from_slice(mine);
        state.arrived += 1;
        let before = state.collections;
        if state.arrived == self.size {
            let State { parts, all, .. } = &mut *state;
            all.clear();
            parts.iter().for_each(|part| all.extend_from_slice(part));
            state.arrived = 0;
            state.collections += 1;
            self.shared.changed.notify_all();
        }
        drop(state);
        // The next collection needs this rank, so the bytes stay until they are copied.
        self.shared.wait(|state| (state.collections != before).then(|| all.copy_from_slice(&state.all)));
    }

    fn exchange(&self, sent: &[Outgoing<'_>], received: &mut [Incoming<'_>], meanwhile: &mut dyn FnMut()) {
        // Copied without the lock, because other ranks copy at the same time.
        let copies = sent.iter().map(|(to, message)| {
            let mut copy = vec![0; message.len()];
            copy_bytes(message, &mut copy);
            (*to, copy)
        });
        let copies: Vec<(usize, Vec<u8>)> = copies.collect();
        let mut state = lock(&self.shared.state);
        for (to, copy) in copies {
            state.messages.entry((self.rank, to)).or_default().push_back(copy);
        }
        drop(state);
        self.shared.changed.notify_all();
        meanwhile();
        for (from, buffer) in received {
            let message = self
                .shared
                .wait(|state| state.messages.get_mut(&(*from, self.rank)).and_then(VecDeque::pop_front));
            copy_bytes(&message, buffer);
        }
    }

    fn on_failure(&self, connection: Weak<dyn Connection>) {
        let mut state = lock(&self.shared.state);
        match state.failed {
            None => {
                // Connections end before the ranks do, as those of a class of a chain.
                state.connections.retain(|other| other.strong_count() > 0);
                state.connections.push(connection);
            }
            Some(rank) => {
                drop(state);
                tell(vec![connection], rank);
            }
        }
    }
}

thread_local! {
    /// Whether this thread is a rank other than the first.
    static FOLLOWS: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is a rank of [`Threads`] other than the first.
pub(crate) fn is_following_thread() -> bool {
    FOLLOWS.get()
}

/// Ranks that are threads of this process. They run work any number of times, until one of them fails.
pub struct Threads {
    shared: Arc<Shared>,
    ranks: Vec<Ranks>,
}

impl Threads {
    /// Makes ranks. Their threads run during [`run`](Threads::run) only.
    pub(crate) fn new(size: usize) -> Threads {
        let state = State { parts: vec![Vec::new(); size], ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let rank = |rank| Ranks::new(Thread { rank, size, shared: Arc::clone(&shared) });
        Threads { ranks: (0..size).map(rank).collect(), shared }
    }

    /// Runs work on each rank, which gets its part of `parts`: `first` on the calling thread, which is the
    /// first rank, and `others` on a thread for each other rank. Returns the results in the order of ranks.
    /// If a rank fails or panics, those that wait for it end with [`Error::OtherRank`].
    pub(crate) fn run<P: Send, R: Send>(
        &self,
        parts: Vec<P>,
        first: impl FnOnce(&Ranks, P) -> Result<R>,
        others: impl Fn(&Ranks, P) -> Result<R> + Sync,
    ) -> Vec<Result<R>> {
        let mut parts = self.ranks.iter().zip(parts);
        let Some((leader, part)) = parts.next() else { return Vec::new() };
        let outcomes: Vec<_> = thread::scope(|scope| {
            let others = &others;
            let threads = self.ranks.len();
            let follow = |(ranks, part)| {
                let work = move || {
                    FOLLOWS.set(true);
                    self.guarded(ranks, || others(ranks, part))
                };
                start_scoped(scope, format!("solver-rank-{}", ranks.rank()), work).map_err(|error| {
                    // The other ranks end when they wait for this one.
                    self.shared.fail(ranks.rank());
                    Error::Threads { threads, reason: error.to_string() }
                })
            };
            let followers: Vec<_> = parts.map(follow).collect();
            let first = self.guarded(leader, || first(leader, part));
            let followers = followers.into_iter().map(|started| match started {
                Ok(thread) => thread.join().unwrap_or_else(Err),
                Err(error) => Ok(Err(error)),
            });
            std::iter::once(first).chain(followers).collect()
        });
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }

    /// Runs the work of a rank. If it fails or panics, the ranks that wait for it end.
    fn guarded<R>(&self, ranks: &Ranks, work: impl FnOnce() -> Result<R>) -> thread::Result<Result<R>> {
        let outcome = catch_unwind(AssertUnwindSafe(work));
        if !matches!(outcome, Ok(Ok(_))) {
            self.shared.fail(ranks.rank());
        }
        outcome.or_else(|panic| match panic.downcast::<Ended>() {
            Ok(ended) => Ok(Err(Error::OtherRank { rank: ended.0 })),
            Err(panic) => Err(panic),
        })
    }
}

/// Runs `work` on each of several ranks, and returns the results in the order of ranks. The ranks are threads
/// of this process; the first one is the calling thread. If one of them fails or panics, those that wait for
/// it end with [`Error::OtherRank`].
pub fn in_threads<R: Send>(size: usize, work: impl Fn(&Ranks) -> Result<R> + Sync) -> Vec<Result<R>> {
    Threads::new(size).run(vec![(); size], |ranks, ()| work(ranks), |ranks, ()| work(ranks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn ranks_collect_bytes_and_exchange_messages() {
        let all = in_threads(3, |ranks| {
            let rank = ranks.rank() as u64;
            let lists: Vec<Vec<u64>> = (0..3).map(|to| vec![10 * rank + to; to as usize]).collect();
            let own = vec![rank; 2 * ranks.rank()];
            assert_eq!(ranks.lists_of_all(&own)?, [1, 1, 2, 2, 2, 2]);
            Ok((ranks.all_of(rank * rank), ranks.swap(&lists)?, ranks.fold(rank as f64, f64::max)))
        });
        for (rank, found) in all.into_iter().enumerate() {
            let (squares, swapped, largest) = found.unwrap();
            assert_eq!(squares, [0, 1, 4]);
            let expected: Vec<Vec<u64>> = (0..3).map(|from| vec![10 * from + rank as u64; rank]).collect();
            assert_eq!((swapped, largest), (expected, 2.0));
        }
    }

    #[test]
    fn messages_of_many_bytes_arrive_whole() {
        let list = |from: usize, to: usize| -> Vec<u32> {
            (0..(1 << 20) + 1000 * from + to).map(|at| (4 * at + 2 * from + to) as u32).collect()
        };
        let swap = |ranks: &Ranks| ranks.swap(&[list(ranks.rank(), 0), list(ranks.rank(), 1)]);
        for (rank, found) in in_threads(2, swap).into_iter().enumerate() {
            assert!(found.unwrap() == [list(0, rank), list(1, rank)]);
        }
    }

    /// Adds the numbers of the ranks that fail.
    #[derive(Default)]
    struct Failures(AtomicUsize);

    impl Connection for Failures {
        fn rank_failed(&self, rank: usize) {
            self.0.fetch_add(rank, Ordering::SeqCst);
        }
    }

    #[test]
    fn connections_that_have_ended_are_forgotten() {
        let threads = Threads::new(2);
        let connect = |ranks: &Ranks, ()| {
            let connection: Arc<dyn Connection> = Arc::new(Failures::default());
            ranks.on_failure(Arc::downgrade(&connection));
            Ok(ranks.total(1))
        };
        for _ in 0..10 {
            threads.run(vec![(); 2], connect, connect);
            assert!(lock(&threads.shared.state).connections.len() <= 2);
        }
    }

    #[test]
    fn ranks_that_wait_for_a_rank_that_fails_or_panics_end_and_each_connection_is_told_once() {
        let runs = AtomicUsize::new(0);
        let all = in_threads(3, |ranks| {
            if ranks.rank() == 1 {
                return Err(Error::setting("matrix", "m", "it is bad"));
            }
            ranks.sum(&mut [1.0]);
            Ok(())
        });
        assert!(matches!(all[0], Err(Error::OtherRank { rank: 1 })), "{all:?}");
        assert!(all[1].as_ref().unwrap_err().to_string().contains("it is bad"));
        assert!(matches!(all[2], Err(Error::OtherRank { rank: 1 })), "{all:?}");
        let counted: [Arc<Failures>; 2] = Default::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            in_threads(2, |ranks| {
                let connection: Arc<dyn Connection> = counted[ranks.rank()].clone();
                ranks.on_failure(Arc::downgrade(&connection));
                runs.fetch_add(1, Ordering::SeqCst);
                ranks.sum(&mut [1.0]);
                assert!(ranks.is_first(), "the second rank panics");
                ranks.sum(&mut [1.0]);
                Ok(())
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(runs.into_inner(), 2);
        assert!(counted.iter().all(|failures| failures.0.load(Ordering::SeqCst) == 1));
    }

    #[test]
    fn ranks_run_several_times_with_parts_of_their_own() {
        let threads = Threads::new(3);
        let mut totals = vec![0.0; 3];
        for round in 1..=2_u32 {
            let parts: Vec<&mut f64> = totals.iter_mut().collect();
            let mut seen = 0;
            let add = |ranks: &Ranks, total: &mut f64| {
                *total += ranks.fold(f64::from(round) * ranks.rank() as f64, f64::max);
                assert_eq!(is_following_thread(), !ranks.is_first());
                Ok(ranks.rank())
            };
            let first = |ranks: &Ranks, total: &mut f64| {
                seen += 1;
                add(ranks, total)
            };
            let found: Result<Vec<usize>> = threads.run(parts, first, add).into_iter().collect();
            assert_eq!((found.unwrap(), seen), (vec![0, 1, 2], 1));
        }
        assert_eq!(totals, [6.0; 3]);
        assert!(Threads::new(0).run(Vec::new(), |_, ()| Ok(()), |_, ()| Ok(())).is_empty());
    }
}
