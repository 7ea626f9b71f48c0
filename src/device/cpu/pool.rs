//! A fixed pool of threads that runs one job at a time, the same closure on every thread.
//!
//! An iteration on a small system forks three times in 100 us, so forking must cost next to nothing: idle threads spin
//! for a moment before they sleep. The caller is one of the threads.

use crate::error::{Error, Result};
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How long threads wait by spinning.
#[derive(Clone, Copy)]
struct Patience {
    /// Turns of the waiting loop before a thread without work goes to sleep: about 0.2 ms.
    before_sleep: usize,
    /// Turns before the caller lets others have its core: they may be waiting for it.
    before_yield: usize,
}

/// Each thread has a core to itself.
const PATIENT: Patience = Patience { before_sleep: 10_000, before_yield: 2_000 };
/// There are more threads than cores: who spins keeps from working whoever it waits for.
const CROWDED: Patience = Patience { before_sleep: 1, before_yield: 1 };

type Job<'a> = dyn Fn(usize) + Sync + 'a;

/// Threads that wait for jobs.
pub(super) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held while a job runs: jobs from several threads take turns.
    turn: Mutex<()>,
}

struct Shared {
    /// Counts the jobs given out; a change is the signal to start.
    jobs: AtomicUsize,
    /// The job in hand: valid from the change of `jobs` until `pending` is 0.
    job: UnsafeCell<Option<*const Job<'static>>>,
    /// Workers that have not finished the job in hand.
    pending: AtomicUsize,
    asleep: Vec<AtomicBool>,
    panicked: AtomicBool,
    closing: AtomicBool,
    patience: Patience,
}

// SAFETY: the job cell is written only while no worker runs, before `jobs` changes, and read only after.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in the cell is used only while its closure, which is Sync, is borrowed by `run`.
unsafe impl Send for Shared {}

impl Pool {
    /// A pool of `threads` threads, the caller among them.
    pub(super) fn new(threads: usize) -> Result<Pool> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(Shared {
            patience: if threads > cores { CROWDED } else { PATIENT },
            jobs: AtomicUsize::new(0),
            job: UnsafeCell::new(None),
            pending: AtomicUsize::new(0),
            asleep: (1..threads).map(|_| AtomicBool::new(false)).collect(),
            panicked: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        });
        // Dropped on an error, so that the threads that did start end.
        let mut pool = Pool { shared, workers: Vec::new(), turn: Mutex::new(()) };
        for index in 1..threads {
            let shared = Arc::clone(&pool.shared);
            let worker = std::thread::Builder::new()
                .name(format!("solver-{index}"))
                .spawn(move || shared.serve(index))
                .map_err(|e| Error::Threads { threads, reason: e.to_string() })?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Number of threads, the caller among them.
    pub(super) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `job(i)` for every i below the number of threads, each on its own thread; returns when all are done.
    pub(super) fn run(&self, job: &Job<'_>) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
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
        for (asleep, worker) in shared.asleep.iter().zip(&self.workers) {
            if asleep.load(Ordering::SeqCst) {
                worker.thread().unpark();
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
        while self.0.pending.load(Ordering::Acquire) > 0 {
            spins += 1;
            if spins % self.0.patience.before_yield == 0 {
                std::thread::yield_now()
            } else {
                std::hint::spin_loop()
            }
        }
    }
}

impl Shared {
    /// The life of worker `index`.
    fn serve(&self, index: usize) {
        let mut served = 0;
        loop {
            served = self.wait_for_job(index, served);
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
    fn wait_for_job(&self, index: usize, served: usize) -> usize {
        for _ in 0..self.patience.before_sleep {
            let jobs = self.jobs.load(Ordering::Acquire);
            if jobs != served {
                return jobs;
            }
            std::hint::spin_loop();
        }
        let asleep = &self.asleep[index - 1];
        asleep.store(true, Ordering::SeqCst);
        loop {
            let jobs = self.jobs.load(Ordering::SeqCst);
            if jobs != served {
                asleep.store(false, Ordering::Relaxed);
                return jobs;
            }
            std::thread::park();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
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
