//! The protocol by which a caller hands a job to worker threads and waits for its end.
//!
//! A job has one part for the caller and one for each worker. A part belongs to the thread that begins it: the worker,
//! or the caller, which takes the parts that no worker has begun when its own is done. So the caller waits only for
//! parts that have begun, and a worker without a core holds up nobody.
//!
//! The synchronization comes from `sync`, so that `tests/pool_model` runs this file under a model checker.

use super::sync::{
    AtomicBool, AtomicU64, Mutex, Ordering, Thread, UnsafeCell, current, fence, lock, park, spin_loop,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What is done with the number of a part: 0 for the caller's, `i + 1` for that of worker `i`.
pub(super) type Job<'a> = dyn Fn(usize) + Sync + 'a;

/// How long threads wait by spinning.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// Turns of the waiting loop before a thread sleeps.
    pub before_sleep: usize,
    /// Turns before the caller sends a worker that it waits for to another core.
    pub before_move: usize,
}

/// What the protocol needs to know of the worker threads.
pub(super) trait Workers {
    /// Whether this worker gets no part of the job. The answer is the same during a job.
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
    /// The number of jobs given out, or [`CLOSED`].
    jobs: AtomicU64,
    /// The job in hand: valid from the change of `jobs` until the job is over for each seat.
    job: UnsafeCell<Option<*const Job<'static>>>,
    seats: Vec<Seat>,
    /// The caller, once it sleeps.
    caller: Mutex<Option<Thread>>,
    panicked: AtomicBool,
}

/// Ends the workers.
const CLOSED: u64 = u64::MAX;

/// One worker's part of the job in hand, on a cache line of its own.
#[repr(align(64))]
struct Seat {
    /// The number of a job, times 4, plus a phase.
    state: AtomicU64,
    asleep: AtomicBool,
}

/// The part is done, or was taken by the caller.
fn over(job: u64) -> u64 {
    job * 4
}

/// The worker runs its part.
fn begun(job: u64) -> u64 {
    job * 4 + 1
}

/// The worker runs its part, and the caller sleeps until it is done.
fn awaited(job: u64) -> u64 {
    job * 4 + 2
}

/// The worker has not begun its part of a team's job, and the caller sleeps until it is done.
fn expected(job: u64) -> u64 {
    job * 4 + 3
}

// SAFETY: the job cell is written only while no part of a job is open, before `jobs` changes. It is read only by workers
// that have begun their part.
unsafe impl Sync for Handover {}
// SAFETY: the pointer in the cell is used only while its closure, which is Sync, is borrowed by `run`.
unsafe impl Send for Handover {}

impl Handover {
    pub fn new(workers: usize) -> Handover {
        Handover {
            jobs: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            seats: (0..workers).map(|_| Seat::new()).collect(),
            caller: Mutex::new(None),
            panicked: AtomicBool::new(false),
        }
    }

    /// Whether a worker sleeps until the next job.
    pub fn asleep(&self, worker: usize) -> bool {
        self.seats[worker].asleep.load(Ordering::Relaxed)
    }

    /// Runs each part of the job once; returns when all are done. With `team`, each part runs on its own thread, and no
    /// worker rests: parts may wait for each other. One caller at a time.
    pub fn run<W: Workers>(&self, job: &Job<'_>, team: bool, patience: Patience, workers: &mut W) {
        let number = self.jobs.load(Ordering::Relaxed) + 1;
        // SAFETY: the lifetime is only forgotten: `Finish` waits until no worker uses the job, also on unwinding.
        let of_workers = unsafe { std::mem::transmute::<*const Job<'_>, *const Job<'static>>(job) };
        // SAFETY: the job before is over for every seat, and there is one caller, so no other thread uses the cell.
        self.job.with_mut(|cell| unsafe { *cell = Some(of_workers) });
        self.panicked.store(false, Ordering::Relaxed);
        let rests = |workers: &W, worker| !team && workers.rests(worker);
        for (_, seat) in self.seats.iter().enumerate().filter(|(worker, _)| rests(workers, *worker)) {
            seat.state.store(over(number), Ordering::Relaxed);
        }
        let mut finish = Finish { handover: self, number, patience, workers, unwinding: true };
        self.jobs.store(number, Ordering::Release);
        // Pairs with the fence in `wait_for_job`: either the worker sees the job, or the caller sees that it sleeps.
        fence(Ordering::SeqCst);
        for (worker, seat) in self.seats.iter().enumerate() {
            // The flag is cleared, so that one sleep costs one call of the system, however many jobs it lasts.
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
            let taken = seat.withdraw(number);
            finish.workers.meets(worker, taken && !self.asleep(worker));
            if taken {
                job(worker + 1);
            }
        }
        finish.unwinding = false;
        drop(finish);
        if self.panicked.load(Ordering::Relaxed) {
            panic!("a thread of the pool panicked");
        }
    }

    /// The life of a worker. `begins` is called as it begins a part.
    pub fn serve(&self, worker: usize, before_sleep: impl Fn() -> usize, begins: impl Fn()) {
        let seat = &self.seats[worker];
        let mut seen = 0;
        loop {
            seen = self.wait_for_job(seat, seen, before_sleep());
            if seen == CLOSED {
                return;
            }
            if !seat.begin(seen) {
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
            if seat.state.swap(over(seen), Ordering::AcqRel) == awaited(seen)
                && let Some(caller) = &*lock(&self.caller)
            {
                caller.unpark();
            }
        }
    }

    /// Ends the workers once they are unparked. No job runs.
    pub fn close(&self) {
        self.jobs.store(CLOSED, Ordering::Release);
    }

    /// Returns the number of jobs given out once it differs from `seen`.
    fn wait_for_job(&self, seat: &Seat, seen: u64, before_sleep: usize) -> u64 {
        let new = || Some(self.jobs.load(Ordering::Acquire)).filter(|&jobs| jobs != seen);
        for _ in 0..before_sleep {
            if let Some(jobs) = new() {
                return jobs;
            }
            spin_loop();
        }
        loop {
            // In each turn: a caller that cleared the flag for the job before unparks this thread once more. A swap, as
            // loom does not know the order of a plain store and the caller's swap.
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

    /// Begins the worker's part of a job; false where the caller took it.
    fn begin(&self, job: u64) -> bool {
        // Relaxed: `jobs` published the job, and the cell is not written again before the part is over.
        match self.change(over(job - 1), begun(job), Ordering::Relaxed) {
            Ok(_) => true,
            // Acquire: the worker unparks the caller that it finds.
            Err(found) => {
                found == expected(job) && self.change(found, awaited(job), Ordering::Acquire).is_ok()
            }
        }
    }

    /// Takes a part from a worker that has not begun it.
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
    /// Until the caller has run its parts.
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

    /// Workers that never come.
    struct Absent;

    impl Workers for Absent {
        fn rests(&self, worker: usize) -> bool {
            worker == 1
        }

        fn wake(&mut self, _: usize) {
            unreachable!("none has gone to sleep");
        }

        fn meets(&mut self, worker: usize, absent: bool) {
            assert!(absent && worker != 1, "{worker}");
        }

        fn late(&mut self, _: usize) {
            unreachable!("the caller waits for none");
        }

        fn sleep_for(&mut self, _: usize, _: impl FnOnce()) {
            unreachable!("the caller waits for none");
        }
    }

    #[test]
    fn the_caller_runs_all_parts_and_waits_for_nobody_where_no_worker_has_a_core() {
        let handover = Handover::new(3);
        let runs = Mutex::new(Vec::new());
        for _ in 0..2 {
            let patience = Patience { before_sleep: 1, before_move: 1 };
            handover.run(&|part| lock(&runs).push(part), false, patience, &mut Absent);
        }
        assert_eq!(*lock(&runs), [0, 1, 2, 3, 0, 1, 2, 3]);
    }
}
