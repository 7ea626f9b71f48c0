//! The protocol by which a caller hands a job to worker threads and waits for its end.
//!
//! A job has one part for the caller and one for each worker. A part belongs to the thread that begins
//! it: its worker, or the caller. When the caller's own part is done, the caller takes all parts that
//! no worker has begun. So the caller waits only for parts that have begun, and a worker without a
//! core delays no other thread.
//!
//! The synchronization comes from `sync`, so that `tests/pool_model` can run this file under a model checker.

use super::sync::{
    AtomicBool, AtomicU64, Mutex, Ordering, Thread, UnsafeCell, current, fence, lock, park, spin_loop,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A job, called with the number of a part: 0 for the caller's part, `i + 1` for that of worker `i`.
pub(super) type Job<'a> = dyn Fn(usize) + Sync + 'a;

/// How long threads wait by spinning.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// Turns of the waiting loop before a thread sleeps.
    pub before_sleep: usize,
    /// Turns before the caller moves a worker that it waits for to another core.
    pub before_move: usize,
}

/// The worker threads, as the protocol uses them.
pub(super) trait Workers {
    /// Returns whether the worker gets no part of the job. The result does not change during a job.
    fn rests(&self, worker: usize) -> bool;
    /// Unparks a worker.
    fn wake(&mut self, worker: usize);
    /// Called at the end of the caller's part. `absent`: the worker is awake and has not begun its part.
    fn meets(&mut self, worker: usize, absent: bool);
    /// Called when the caller has waited for a worker for a while.
    fn late(&mut self, worker: usize);
    /// Calls `sleep`, which returns when the worker's part is over.
    fn sleep_for(&mut self, worker: usize, sleep: impl FnOnce());
}

/// The state that the caller and the workers share.
pub(super) struct Handover {
    /// The number of jobs started, or [`CLOSED`].
    jobs: AtomicU64,
    /// The current job: valid from the change of `jobs` until the job is over for each seat.
    job: UnsafeCell<Option<*const Job<'static>>>,
    seats: Vec<Seat>,
    /// The caller, once it sleeps.
    caller: Mutex<Option<Thread>>,
    panicked: AtomicBool,
}

/// The value of `jobs` that ends the workers.
const CLOSED: u64 = u64::MAX;

/// The state of one worker's part of the current job, on a separate cache line.
#[repr(align(64))]
struct Seat {
    /// The number of a job, times 4, plus a phase.
    state: AtomicU64,
    asleep: AtomicBool,
}

/// State: the part is done, or the caller has withdrawn it.
fn over(job: u64) -> u64 {
    job * 4
}

/// State: the worker runs its part.
fn begun(job: u64) -> u64 {
    job * 4 + 1
}

/// State: the worker runs its part, and the caller sleeps until the part is done.
fn awaited(job: u64) -> u64 {
    job * 4 + 2
}

/// State: the worker has not begun its part of a team's job, and the caller sleeps until the part is done.
fn expected(job: u64) -> u64 {
    job * 4 + 3
}

// SAFETY: the job cell is written only while no part of a job is open, before `jobs` changes. It is read only
// by workers that have begun their part.
unsafe impl Sync for Handover {}
// SAFETY: the pointer in the cell is used only while its closure, which is Sync, is borrowed by `run`.
unsafe impl Send for Handover {}

impl Handover {
    pub(crate) fn new(workers: usize) -> Handover {
        Handover {
            jobs: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            seats: (0..workers).map(|_| Seat::new()).collect(),
            caller: Mutex::new(None),
            panicked: AtomicBool::new(false),
        }
    }

    /// Returns whether a worker sleeps until the next job.
    pub(crate) fn asleep(&self, worker: usize) -> bool {
        self.seats[worker].asleep.load(Ordering::Relaxed)
    }

    /// Runs each part of the job once and returns when all parts are done. With `team`, each part
    /// runs on a separate thread and no worker rests, so parts may wait for each other. Only one
    /// caller may run a job at a time.
    pub(crate) fn run<W: Workers>(&self, job: &Job<'_>, team: bool, patience: Patience, workers: &mut W) {
        let number = self.jobs.load(Ordering::Relaxed) + 1;
        // SAFETY: only the lifetime is erased: `Finish` waits until no worker uses the job,
        // also on unwinding.
        let job_pointer = unsafe { std::mem::transmute::<*const Job<'_>, *const Job<'static>>(job) };
        // SAFETY: the previous job is over for every seat, and there is one caller, so no
        // other thread uses the cell.
        self.job.with_mut(|cell| unsafe { *cell = Some(job_pointer) });
        self.panicked.store(false, Ordering::Relaxed);
        let rests = |workers: &W, worker| !team && workers.rests(worker);
        for (_, seat) in self.seats.iter().enumerate().filter(|(worker, _)| rests(workers, *worker)) {
            seat.state.store(over(number), Ordering::Relaxed);
        }
        let mut finish = Finish { handover: self, number, patience, workers, unwinding: true };
        self.jobs.store(number, Ordering::Release);
        // Pairs with the fence in `wait_for_job`: either the worker sees the job, or the caller
        // sees that the worker sleeps.
        fence(Ordering::SeqCst);
        for (worker, seat) in self.seats.iter().enumerate() {
            // The flag is cleared, so that one sleep costs one system call even if it lasts several jobs.
            let asleep = seat.asleep.load(Ordering::Relaxed) && !rests(finish.workers, worker);
            if asleep && seat.asleep.swap(false, Ordering::Relaxed) {
                finish.workers.wake(worker);
            }
        }
        job(0);
        for (worker, seat) in self.seats.iter().enumerate().filter(|_| !team) {
            if rests(finish.workers, worker) {
                job(worker + 1);
                continue;
            }
            let withdrawn = seat.withdraw(number);
            finish.workers.meets(worker, withdrawn && !self.asleep(worker));
            if withdrawn {
                job(worker + 1);
            }
        }
        finish.unwinding = false;
        drop(finish);
        if self.panicked.load(Ordering::Relaxed) {
            panic!("a thread of the pool panicked");
        }
    }

    /// Runs a worker until the pool closes. Calls `begins` when the worker begins a part.
    pub(crate) fn serve(&self, worker: usize, before_sleep: impl Fn() -> usize, begins: impl Fn()) {
        let seat = &self.seats[worker];
        let mut job_number = 0;
        loop {
            job_number = self.wait_for_job(seat, job_number, before_sleep());
            if job_number == CLOSED {
                return;
            }
            if !seat.begin(job_number) {
                continue;
            }
            begins();
            // SAFETY: the part has begun, so `run` keeps the job alive until the part is over.
            let job = self.job.with(|cell| unsafe { (*cell).map(|job| &*job) });
            if let Some(job) = job
                && catch_unwind(AssertUnwindSafe(|| job(worker + 1))).is_err()
            {
                self.panicked.store(true, Ordering::Relaxed);
            }
            if seat.state.swap(over(job_number), Ordering::AcqRel) == awaited(job_number)
                && let Some(caller) = &*lock(&self.caller)
            {
                caller.unpark();
            }
        }
    }

    /// Ends the workers once they are unparked. No job may be running.
    pub(crate) fn close(&self) {
        self.jobs.store(CLOSED, Ordering::Release);
    }

    /// Waits until the number of jobs started differs from `job_number`, and returns it.
    fn wait_for_job(&self, seat: &Seat, job_number: u64, before_sleep: usize) -> u64 {
        let new = || Some(self.jobs.load(Ordering::Acquire)).filter(|&jobs| jobs != job_number);
        for _ in 0..before_sleep {
            if let Some(jobs) = new() {
                return jobs;
            }
            spin_loop();
        }
        loop {
            // Set in each turn: a caller that cleared the flag for the previous job unparks this thread once
            // more. A swap, because loom does not order a plain store and the caller's swap.
            seat.asleep.swap(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if let Some(jobs) = new() {
                seat.asleep.store(false, Ordering::Relaxed);
                return jobs;
            }
            park();
        }
    }

    /// Parks the caller until the part of a worker is over.
    fn sleep_until_over(&self, seat: &Seat, number: u64) {
        *lock(&self.caller) = Some(current());
        loop {
            let state = seat.state.load(Ordering::Acquire);
            let sleeping = match state {
                _ if state == over(number) => return,
                _ if state == begun(number) => awaited(number),
                _ if state == over(number - 1) => expected(number),
                _ => {
                    park();
                    continue;
                }
            };
            // Release: a worker that sees this state sees the caller.
            let _ = seat.change(state, sleeping, Ordering::Release);
        }
    }
}

impl Seat {
    fn new() -> Seat {
        Seat { state: AtomicU64::new(over(0)), asleep: AtomicBool::new(false) }
    }

    /// Begins the worker's part of a job; returns false if the caller has withdrawn it.
    fn begin(&self, job: u64) -> bool {
        // Relaxed: `jobs` published the job, and the cell is not written again before the part is over.
        match self.change(over(job - 1), begun(job), Ordering::Relaxed) {
            Ok(_) => true,
            // Acquire: the worker reads the caller's handle in order to unpark it.
            Err(found) => {
                found == expected(job) && self.change(found, awaited(job), Ordering::Acquire).is_ok()
            }
        }
    }

    /// Takes a part from a worker that has not begun it; returns whether this succeeded.
    fn withdraw(&self, job: u64) -> bool {
        let before = over(job - 1);
        self.state.load(Ordering::Relaxed) == before
            && self.change(before, over(job), Ordering::Relaxed).is_ok()
    }

    fn change(&self, from: u64, to: u64, order: Ordering) -> std::result::Result<u64, u64> {
        self.state.compare_exchange(from, to, order, Ordering::Relaxed)
    }
}

/// Waits for the workers when it goes out of scope.
struct Finish<'a, W: Workers> {
    handover: &'a Handover,
    number: u64,
    patience: Patience,
    workers: &'a mut W,
    /// True until the caller has run its parts.
    unwinding: bool,
}

impl<W: Workers> Drop for Finish<'_, W> {
    fn drop(&mut self) {
        let seats = &self.handover.seats;
        if self.unwinding {
            // Parts that have not begun never run.
            for seat in seats {
                seat.withdraw(self.number);
            }
        }
        for (worker, seat) in seats.iter().enumerate() {
            self.wait_for(worker, seat);
        }
    }
}

impl<W: Workers> Finish<'_, W> {
    fn wait_for(&mut self, worker: usize, seat: &Seat) {
        for turn in 1..=self.patience.before_sleep {
            if seat.state.load(Ordering::Acquire) == over(self.number) {
                return;
            }
            if turn == self.patience.before_move {
                self.workers.late(worker);
            }
            spin_loop();
        }
        let (handover, number) = (self.handover, self.number);
        self.workers.sleep_for(worker, || handover.sleep_until_over(seat, number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Workers that never begin a part.
    struct Absent;

    impl Workers for Absent {
        fn rests(&self, worker: usize) -> bool {
            worker == 1
        }

        fn wake(&mut self, _: usize) {
            unreachable!("no worker sleeps");
        }

        fn meets(&mut self, worker: usize, absent: bool) {
            assert!(absent && worker != 1, "{worker}");
        }

        fn late(&mut self, _: usize) {
            unreachable!("the caller waits for no worker");
        }

        fn sleep_for(&mut self, _: usize, _: impl FnOnce()) {
            unreachable!("the caller waits for no worker");
        }
    }

    #[test]
    fn the_caller_runs_all_parts_without_waiting_if_no_worker_has_a_core() {
        let handover = Handover::new(3);
        let runs = Mutex::new(Vec::new());
        for _ in 0..2 {
            let patience = Patience { before_sleep: 1, before_move: 1 };
            handover.run(&|part| lock(&runs).push(part), false, patience, &mut Absent);
        }
        assert_eq!(*lock(&runs), [0, 1, 2, 3, 0, 1, 2, 3]);
    }
}
