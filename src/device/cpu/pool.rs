//! A fixed pool of threads that runs one job at a time, the same closure on every thread.
//!
//! An iteration on a small system forks three times in 100 us, so forking must cost next to nothing: idle threads spin
//! for a moment before they sleep. The caller is one of the threads.
//!
//! No thread is bound to a core. But the system does not know that these threads wait for each other: a worker that it
//! wakes on the caller's core, as the others looked busy for a moment, takes turns with the caller there, and a small
//! job takes several times as long until the system evens out its load. So a worker is woken away from the caller, and
//! one that the caller waits for in vain is sent away from cores where others of the pool were seen.

use super::cores;
use super::shares::{Shares, Stretch};
use crate::error::{Error, Result};
use crate::parallel::{available_cores, lock, start_thread};
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};

/// How long threads wait by spinning.
#[derive(Clone, Copy)]
struct Patience {
    /// Turns of the waiting loop before a thread without work goes to sleep: 0.1 to 0.2 ms.
    before_sleep: usize,
    /// Turns before the caller lets others have its core: they may be waiting for it.
    before_yield: usize,
    /// Whether threads are kept apart.
    apart: bool,
}

/// Each thread has a core to itself.
const PATIENT: Patience = Patience { before_sleep: 10_000, before_yield: 2_000, apart: true };
/// There are more threads than cores: a thread that spins keeps the thread that it waits for from working.
const CROWDED: Patience = Patience { before_sleep: 1, before_yield: 1, apart: false };

/// How long to wait by spinning now.
fn patience() -> Patience {
    if crowded() { CROWDED } else { PATIENT }
}

/// Threads of all pools of this process that have more than one thread. Idle pools count too: none knows whether another is at work.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Whether the pools of this process have more threads than there are cores.
pub(crate) fn crowded() -> bool {
    THREADS.load(Ordering::Relaxed) > available_cores()
}

/// What a pool adds to [`THREADS`]: a single thread never waits.
fn spinning(threads: usize) -> usize {
    if threads > 1 { threads } else { 0 }
}

type Job<'a> = dyn Fn(usize) + Sync + 'a;

/// Threads that wait for jobs.
pub(super) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held while a job runs: jobs from several threads take turns.
    turn: Mutex<()>,
    shares: Shares,
}

struct Shared {
    /// Counts the jobs given out; a change is the signal to start.
    jobs: AtomicUsize,
    /// The job in hand: valid from the change of `jobs` until `pending` is 0.
    job: UnsafeCell<Option<*const Job<'static>>>,
    /// Workers that have not finished the job in hand.
    pending: AtomicUsize,
    seats: Vec<Seat>,
    panicked: AtomicBool,
    closing: AtomicBool,
}

/// What the caller knows of a worker, on a cache line of its own.
#[repr(align(64))]
struct Seat {
    asleep: AtomicBool,
    /// The core where it began its last job, or [`NOWHERE`].
    core: AtomicUsize,
    thread: OnceLock<cores::Thread>,
}

/// No core's number.
const NOWHERE: usize = usize::MAX;

fn current_core() -> usize {
    cores::current().unwrap_or(NOWHERE)
}

// SAFETY: the job cell is written only while no worker runs, before `jobs` changes, and read only after.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in the cell is used only while its closure, which is Sync, is borrowed by `run`.
unsafe impl Send for Shared {}

impl Pool {
    /// A pool of `threads` threads, the caller among them.
    pub(super) fn new(threads: usize) -> Result<Pool> {
        let shared = Arc::new(Shared {
            jobs: AtomicUsize::new(0),
            job: UnsafeCell::new(None),
            pending: AtomicUsize::new(0),
            seats: (1..threads).map(|_| Seat::new()).collect(),
            panicked: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        });
        THREADS.fetch_add(spinning(threads), Ordering::Relaxed);
        // Dropped on an error, so that the threads that did start end.
        let mut pool =
            Pool { shared, workers: Vec::new(), turn: Mutex::new(()), shares: Shares::new(threads) };
        for index in 1..threads {
            let shared = Arc::clone(&pool.shared);
            let worker = start_thread(format!("solver-{index}"), move || shared.serve(index));
            pool.workers.push(worker.map_err(|e| Error::Threads { threads, reason: e.to_string() })?);
        }
        Ok(pool)
    }

    /// Number of threads, the caller among them.
    pub(super) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Threads of the pool that can run at the same time.
    pub(super) fn at_once(&self) -> usize {
        self.threads().min(available_cores())
    }

    /// Runs `job(i)` for every i below the number of threads, each on its own thread; returns when all are done.
    pub(super) fn run(&self, job: &Job<'_>) {
        let _turn = lock(&self.turn);
        self.run_in_turn(job);
    }

    /// Runs `work(chunk)` once for each chunk of the threads' ranges; threads that are done with theirs help others.
    pub(super) fn share(&self, range: impl Fn(usize) -> Range<usize>, work: &Stretch<'_>) {
        let _turn = lock(&self.turn);
        self.shares.deal(range);
        self.run_in_turn(&|thread| self.shares.work(thread, work));
    }

    fn run_in_turn(&self, job: &Job<'_>) {
        let shared = &*self.shared;
        // SAFETY: the lifetime is only forgotten: `Finish` waits until no worker uses the job, also on unwinding.
        let job_of_workers = unsafe { std::mem::transmute::<*const Job<'_>, *const Job<'static>>(job) };
        // SAFETY: `pending` is 0 and the turn is ours, so nobody reads the cell.
        unsafe { *shared.job.get() = Some(job_of_workers) };
        shared.panicked.store(false, Ordering::Relaxed);
        shared.pending.store(self.workers.len(), Ordering::Relaxed);
        // Sequentially consistent against `asleep`: either the worker sees the job, or we see that it sleeps.
        shared.jobs.fetch_add(1, Ordering::SeqCst);
        let finish = Finish(shared);
        for (seat, worker) in shared.seats.iter().zip(&self.workers) {
            if seat.asleep.load(Ordering::SeqCst) {
                shared.keep_apart(seat, || worker.thread().unpark());
            }
        }
        job(0);
        drop(finish);
        if shared.panicked.load(Ordering::Relaxed) {
            panic!("a thread of the pool panicked");
        }
    }
}

/// Waits for the workers when it goes out of scope.
struct Finish<'a>(&'a Shared);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        let mut spins = 0;
        let patience = patience();
        while self.0.pending.load(Ordering::Acquire) > 0 {
            spins += 1;
            if spins % patience.before_yield == 0 {
                self.0.separate();
                thread::yield_now()
            } else {
                std::hint::spin_loop()
            }
        }
    }
}

impl Seat {
    fn new() -> Seat {
        Seat { asleep: AtomicBool::new(false), core: AtomicUsize::new(NOWHERE), thread: OnceLock::new() }
    }
}

impl Shared {
    /// Does something to a worker while it is kept off the cores of the caller and of the other workers that are awake.
    fn keep_apart(&self, seat: &Seat, meanwhile: impl FnOnce()) {
        let Some(&thread) = seat.thread.get().filter(|_| patience().apart) else { return meanwhile() };
        let caller = current_core();
        let awake = |other: &&Seat| !std::ptr::eq(*other, seat) && !other.asleep.load(Ordering::Relaxed);
        let taken = |core| {
            let mut others = self.seats.iter().filter(awake);
            core == caller || others.any(|other| other.core.load(Ordering::Relaxed) == core)
        };
        cores::off(thread, taken, meanwhile);
    }

    /// Sends workers away that were last seen on the core of the caller or of a worker before them.
    fn separate(&self) {
        if !patience().apart {
            return;
        }
        let caller = current_core();
        for (at, seat) in self.seats.iter().enumerate() {
            let core = seat.core.load(Ordering::Relaxed);
            let shared =
                core == caller || self.seats[..at].iter().any(|s| s.core.load(Ordering::Relaxed) == core);
            if core != NOWHERE && shared {
                // Once: until it has told where it is now.
                seat.core.store(NOWHERE, Ordering::Relaxed);
                self.keep_apart(seat, || ());
            }
        }
    }

    /// The life of worker `index`.
    fn serve(&self, index: usize) {
        let seat = &self.seats[index - 1];
        let _ = seat.thread.set(cores::this_thread());
        let mut served = 0;
        loop {
            served = self.wait_for_job(seat, served);
            seat.core.store(current_core(), Ordering::Relaxed);
            if self.closing.load(Ordering::Relaxed) {
                return;
            }
            // SAFETY: a new job was given out, and `run` keeps it alive until `pending` is 0.
            let job = unsafe { (*self.job.get()).map(|job| &*job) };
            if let Some(job) = job
                && catch_unwind(AssertUnwindSafe(|| job(index))).is_err()
            {
                self.panicked.store(true, Ordering::Relaxed);
            }
            self.pending.fetch_sub(1, Ordering::Release);
        }
    }

    /// Returns the number of jobs given out once it differs from `served`.
    fn wait_for_job(&self, seat: &Seat, served: usize) -> usize {
        for _ in 0..patience().before_sleep {
            let jobs = self.jobs.load(Ordering::Acquire);
            if jobs != served {
                return jobs;
            }
            std::hint::spin_loop();
        }
        let asleep = &seat.asleep;
        asleep.store(true, Ordering::SeqCst);
        loop {
            let jobs = self.jobs.load(Ordering::SeqCst);
            if jobs != served {
                asleep.store(false, Ordering::Relaxed);
                return jobs;
            }
            thread::park();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        THREADS.fetch_sub(spinning(self.shares.threads()), Ordering::Relaxed);
        self.shared.closing.store(true, Ordering::Relaxed);
        self.shared.jobs.fetch_add(1, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_thread_runs_the_job_once_awake_or_asleep() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads).unwrap();
            let counts: Vec<_> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            for round in 0..200 {
                if round % 50 == 49 {
                    std::thread::sleep(Duration::from_millis(20));
                }
                pool.run(&|i| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
            }
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 200), "{counts:?}");
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
    fn a_panic_on_any_thread_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(3).unwrap();
        for faulty in 0..3 {
            let outcome = catch_unwind(AssertUnwindSafe(|| pool.run(&|i| assert_ne!(i, faulty))));
            assert!(outcome.is_err(), "a panic on thread {faulty}");
        }
        let runs = AtomicUsize::new(0);
        pool.run(&|_| {
            runs.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(runs.into_inner(), 3);
    }

    #[test]
    fn jobs_of_several_callers_take_turns() {
        let pool = Pool::new(2).unwrap();
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        pool.run(&|_| {
                            assert!(inside.fetch_add(1, Ordering::SeqCst) < 2);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
    }
}
