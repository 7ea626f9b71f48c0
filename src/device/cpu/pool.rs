//! A fixed pool of threads that runs one job at a time, the same closure on every thread.
//!
//! An iteration on a small system forks three times in 100 us, so forking must be cheap: idle threads spin
//! for a moment before they sleep. The caller is one of the threads. `handover.rs` has the protocol.
//!
//! # Cores
//! No thread is bound to a core. But the system does not account for threads that wait for each other. If the
//! other cores look busy for a moment, it wakes a worker on the caller's core. The two then take turns there,
//! and a small job takes several times as long until the system balances its load. So a worker is woken on
//! another core than the caller's, and a worker that the caller waits for in vain is moved away from cores on
//! which other threads of the pool last ran.
//!
//! # Other programs
//! If other programs use the cores, a worker often has no core when a job begins. Then the caller runs
//! the worker's part. A worker that stays without a core, or loses it in the middle of its part, rests
//! for a while (`rest.rs`).

use super::cores;
use super::handover::{Handover, Job, Patience, Workers};
use super::rest::{Moment, Rest};
use super::shares::{Shares, Stretch};
use crate::error::{Error, Result};
use crate::parallel::{available_cores, lock, start_thread};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// If there is a core for each thread: 10,000 turns take 0.1 to 0.2 ms.
const PATIENT: Patience = Patience { before_sleep: 10_000, before_move: 2_000 };
/// If there are more threads than cores: a thread that spins keeps the thread that it waits for from working.
const CROWDED: Patience = Patience { before_sleep: 1, before_move: 1 };

/// Returns how long a thread spins now.
fn patience() -> Patience {
    if crowded() { CROWDED } else { PATIENT }
}

/// The number of threads in all pools of this process that have more than one thread. Idle pools count too,
/// because no pool can see whether another one is at work.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Returns whether the pools of this process have more threads than there are cores.
pub(crate) fn crowded() -> bool {
    THREADS.load(Ordering::Relaxed) > available_cores()
}

/// Returns the number of threads that a pool adds to [`THREADS`]: a single thread never waits,
/// so it does not count.
fn spinning(threads: usize) -> usize {
    if threads > 1 { threads } else { 0 }
}

/// Threads that wait for jobs.
pub(super) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// The rests of each worker. Locked while a job runs: jobs from several threads take turns.
    turn: Mutex<Vec<Rest>>,
    shares: Shares,
}

struct Shared {
    handover: Handover,
    locations: Vec<Location>,
}

/// The location of a worker, on a separate cache line.
#[repr(align(64))]
struct Location {
    /// The core on which the worker began its last part, or [`NOWHERE`].
    core: AtomicUsize,
    thread: OnceLock<cores::Thread>,
}

/// The location before the worker's core is known.
const NOWHERE: usize = usize::MAX;

fn current_core() -> usize {
    cores::current().unwrap_or(NOWHERE)
}

impl Pool {
    /// Starts a pool of `threads` threads, including the caller.
    pub(super) fn new(threads: usize) -> Result<Pool> {
        let workers = threads - 1;
        let shared = Arc::new(Shared {
            handover: Handover::new(workers),
            locations: (0..workers).map(|_| Location::new()).collect(),
        });
        THREADS.fetch_add(spinning(threads), Ordering::Relaxed);
        // Dropped on an error, so that the threads that have started end.
        let mut pool = Pool {
            shared,
            workers: Vec::new(),
            turn: Mutex::new(vec![Rest::default(); workers]),
            shares: Shares::new(threads),
        };
        for worker in 0..workers {
            let shared = Arc::clone(&pool.shared);
            let started = start_thread(format!("solver-{}", worker + 1), move || shared.serve(worker));
            pool.workers.push(started.map_err(|e| Error::Threads { threads, reason: e.to_string() })?);
        }
        Ok(pool)
    }

    /// Returns the number of threads, including the caller.
    pub(super) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Returns the number of threads of the pool that can run at the same time.
    pub(super) fn at_once(&self) -> usize {
        self.threads().min(available_cores())
    }

    /// Runs `job(i)` for every i below the number of threads, each on a separate thread;
    /// returns when all are done.
    pub(super) fn team(&self, job: &Job<'_>) {
        let rests = &mut *lock(&self.turn);
        self.run(job, true, rests);
    }

    /// Runs `work` on ranges of chunks that together cover all `chunks` once. With `steal`, or if a worker
    /// rests, a thread that is done with its range takes chunks from other ranges.
    pub(super) fn share(
        &self,
        chunks: usize,
        steal: bool,
        range: impl Fn(usize) -> Range<usize> + Sync,
        work: &Stretch<'_>,
    ) {
        let rests = &mut *lock(&self.turn);
        let mut now = None;
        let resting =
            rests.iter_mut().filter_map(|r| r.rests(|| *now.get_or_insert_with(Instant::now)).then_some(()));
        let resting = resting.count();
        if resting == self.workers.len() {
            work(0..chunks);
        } else if (steal || resting > 0) && u32::try_from(chunks).is_ok() {
            self.shares.deal(range);
            self.run(&|thread| self.shares.work(thread, work), false, rests);
        } else {
            self.run(&|part| work(range(part)), false, rests);
        }
    }

    fn run(&self, job: &Job<'_>, team: bool, rests: &mut [Rest]) {
        self.shared.handover.run(job, team, patience(), &mut Crew { pool: self, rests });
    }
}

/// The workers during a job.
struct Crew<'a> {
    pool: &'a Pool,
    rests: &'a mut [Rest],
}

impl Workers for Crew<'_> {
    fn rests(&self, worker: usize) -> bool {
        self.rests[worker].resting()
    }

    fn wake(&mut self, worker: usize) {
        self.pool.shared.keep_apart(worker, || self.pool.workers[worker].thread().unpark());
    }

    fn meets(&mut self, worker: usize, absent: bool) {
        if absent {
            self.rests[worker].absent(self.pool.shared.moment(worker));
        } else {
            self.rests[worker].present();
        }
    }

    fn late(&mut self, _: usize) {
        self.pool.shared.separate();
        thread::yield_now();
    }

    fn sleep_for(&mut self, worker: usize, sleep: impl FnOnce()) {
        let before = self.pool.shared.moment(worker);
        sleep();
        if let (Some(before), Some(after)) = (before, self.pool.shared.moment(worker)) {
            self.rests[worker].waited(before, after);
        }
    }
}

impl Location {
    fn new() -> Location {
        Location { core: AtomicUsize::new(NOWHERE), thread: OnceLock::new() }
    }
}

impl Shared {
    /// Runs a worker until the pool closes.
    fn serve(&self, worker: usize) {
        let location = &self.locations[worker];
        let _ = location.thread.set(cores::this_thread());
        let begins = || location.core.store(current_core(), Ordering::Relaxed);
        self.handover.serve(worker, || patience().before_sleep, begins);
    }

    /// Returns the current time and the worker's time on a core, if the system reports it.
    fn moment(&self, worker: usize) -> Option<Moment> {
        let on_core = cores::time_on_core(*self.locations[worker].thread.get()?)?;
        Some(Moment { at: Instant::now(), on_core })
    }

    /// Runs `meanwhile` with a worker kept off the cores of the caller and of the other
    /// workers that are awake.
    fn keep_apart(&self, worker: usize, meanwhile: impl FnOnce()) {
        let Some(&thread) = self.locations[worker].thread.get().filter(|_| !crowded()) else {
            return meanwhile();
        };
        let caller = current_core();
        let occupied = |core| {
            let awake = |other: &usize| *other != worker && !self.handover.asleep(*other);
            let mut awake_workers = (0..self.locations.len()).filter(awake);
            core == caller
                || awake_workers.any(|other| self.locations[other].core.load(Ordering::Relaxed) == core)
        };
        cores::keep_off(thread, occupied, meanwhile);
    }

    /// Moves a worker away if its last known core is that of the caller or of a worker with a lower number.
    fn separate(&self) {
        if crowded() {
            return;
        }
        let caller = current_core();
        for (worker, location) in self.locations.iter().enumerate() {
            let core = location.core.load(Ordering::Relaxed);
            let before = &self.locations[..worker];
            let shared = core == caller || before.iter().any(|p| p.core.load(Ordering::Relaxed) == core);
            if core != NOWHERE && shared {
                // Once: the worker stores its core again when it begins its next part.
                location.core.store(NOWHERE, Ordering::Relaxed);
                self.keep_apart(worker, || ());
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        THREADS.fetch_sub(spinning(self.shares.threads()), Ordering::Relaxed);
        self.shared.handover.close();
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    /// Jobs of a test.
    const JOBS: usize = if cfg!(miri) { 10 } else { 200 };

    #[test]
    fn every_thread_runs_the_job_once_awake_or_asleep() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads).unwrap();
            let counts: Vec<_> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            for round in 0..JOBS {
                if round % (JOBS / 4) == JOBS / 4 - 1 {
                    std::thread::sleep(Duration::from_millis(20));
                }
                pool.team(&|i| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
            }
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == JOBS), "{counts:?}");
        }
    }

    #[test]
    fn no_more_threads_run_at_once_than_there_are_cores() {
        let cores = thread::available_parallelism().unwrap().get();
        for threads in [1, cores, cores + 1, 4 * cores] {
            let pool = Pool::new(threads).unwrap();
            assert_eq!((pool.threads(), pool.at_once()), (threads, threads.min(cores)));
        }
    }

    #[test]
    fn a_panic_on_any_thread_reaches_the_caller_and_the_pool_keeps_working() {
        let pool = Pool::new(3).unwrap();
        for faulty in 0..3 {
            let outcome = catch_unwind(AssertUnwindSafe(|| pool.team(&|i| assert_ne!(i, faulty))));
            assert!(outcome.is_err(), "a panic on thread {faulty}");
        }
        let runs = AtomicUsize::new(0);
        pool.team(&|_| {
            runs.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(runs.into_inner(), 3);
    }

    #[test]
    fn a_resting_worker_runs_no_chunk_but_takes_part_in_a_team() {
        let pool = Pool::new(3).unwrap();
        for resting in [vec![0], vec![1], vec![0, 1]] {
            let now = Instant::now();
            resting.iter().for_each(|&worker| lock(&pool.turn)[worker].rest(Duration::from_secs(1), now));
            for (chunks, steal) in [(2, false), (1000, true)] {
                let counts: Vec<_> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
                let range = |part: usize| chunks * part / 3..chunks * (part + 1) / 3;
                pool.share(chunks, steal, range, &|stretch| {
                    let thread = thread::current().name().unwrap_or_default().to_owned();
                    assert!(
                        resting.iter().all(|worker| thread != format!("solver-{}", worker + 1)),
                        "{thread}"
                    );
                    stretch.for_each(|chunk| {
                        counts[chunk].fetch_add(1, Ordering::Relaxed);
                    });
                });
                assert!(
                    counts.iter().all(|count| count.load(Ordering::Relaxed) == 1),
                    "{resting:?} {chunks}"
                );
            }
            let team = AtomicUsize::new(0);
            pool.team(&|_| {
                team.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(team.into_inner(), 3);
            lock(&pool.turn).fill(Rest::default());
        }
    }

    #[test]
    fn jobs_of_several_callers_take_turns() {
        let pool = Pool::new(2).unwrap();
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..JOBS / 2 {
                        pool.team(&|_| {
                            assert!(inside.fetch_add(1, Ordering::SeqCst) < 2);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
    }
}
