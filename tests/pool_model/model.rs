//! Runs the hand-over of jobs between the threads of a pool in every order that loom's memory model allows.
//!
//! The files are those of the library, compiled with loom's primitives. Each model is one small program of a
//! caller and one or two workers. A data race, a lost wake-up, a part that runs twice or never, or a thread
//! that never ends is a failure.

#[path = "../../src/device/cpu/handover.rs"]
#[allow(dead_code)]
mod handover;
#[path = "../../src/device/cpu/shares.rs"]
#[allow(dead_code)]
mod shares;
mod sync;

use handover::{Handover, Job, Patience, Workers};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread::JoinHandle;
use shares::Shares;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;
use sync::Thread;

/// The caller checks once before it sleeps.
const PATIENCE: Patience = Patience { before_sleep: 1, before_move: 2 };

struct Pool {
    handover: Arc<Handover>,
    workers: Vec<(Thread, JoinHandle<()>)>,
}

/// The workers of a job, with the one that rests, if any.
struct Crew<'a>(&'a [(Thread, JoinHandle<()>)], Option<usize>);

impl Workers for Crew<'_> {
    fn rests(&self, worker: usize) -> bool {
        self.1 == Some(worker)
    }

    fn wake(&mut self, worker: usize) {
        self.0[worker].0.unpark();
    }

    fn meets(&mut self, _: usize, _: bool) {}

    fn late(&mut self, _: usize) {}

    fn sleep_for(&mut self, _: usize, sleep: impl FnOnce()) {
        sleep();
    }
}

impl Pool {
    /// Starts a pool. `spins` is the number of times that a worker checks for a job before it sleeps.
    fn new(workers: usize, spins: usize) -> Pool {
        let handover = Arc::new(Handover::new(workers));
        let serve = |worker| {
            let handover = Arc::clone(&handover);
            sync::spawn(move || handover.serve(worker, || spins, || ()))
        };
        let workers = (0..workers).map(serve).collect();
        Pool { handover, workers }
    }

    fn run(&self, job: &Job<'_>, team: bool, rests: Option<usize>) {
        self.handover.run(job, team, PATIENCE, &mut Crew(&self.workers, rests));
    }

    fn close(self) {
        self.handover.close();
        for (thread, worker) in self.workers {
            thread.unpark();
            worker.join().expect("a worker does not panic");
        }
    }
}

/// One cell for each part of a job. Loom reports two uses of a cell if neither happens before the other.
struct Cells(Vec<UnsafeCell<usize>>);

impl Cells {
    fn new(count: usize) -> Cells {
        Cells((0..count).map(|_| UnsafeCell::new(0)).collect())
    }

    fn count(&self, cell: usize) {
        // SAFETY: loom checks that no other thread uses the cell.
        self.0[cell].with_mut(|count| unsafe { *count += 1 });
    }

    fn assert_all(&self, expected: usize) {
        for cell in &self.0 {
            // SAFETY: as above.
            assert_eq!(cell.with(|count| unsafe { *count }), expected, "calls of a part");
        }
    }
}

// SAFETY: loom checks each use.
unsafe impl Sync for Cells {}

/// Checks that each part of each job runs once, and that the pool ends.
fn jobs(workers: usize, spins: usize, jobs: usize, team: bool) {
    let pool = Pool::new(workers, spins);
    for _ in 0..jobs {
        let cells = Cells::new(workers + 1);
        pool.run(&|part| cells.count(part), team, None);
        cells.assert_all(1);
    }
    pool.close();
}

/// Checks that the effects of a job are visible in the next one, whichever thread runs a part.
fn effects(spins: usize) {
    let (pool, cells) = (Pool::new(1, spins), Cells::new(2));
    for job in 1..=2 {
        pool.run(&|part| cells.count(part), false, None);
        cells.assert_all(job);
    }
    pool.close();
}

/// Checks two jobs, during the first of which a worker rests.
fn rest(spins: usize) {
    let (pool, cells) = (Pool::new(1, spins), Cells::new(2));
    pool.run(&|part| cells.count(part), false, Some(0));
    cells.assert_all(1);
    pool.run(&|part| cells.count(part), false, None);
    cells.assert_all(2);
    pool.close();
}

/// Checks that after a panic in a part the caller panics once all other parts are over, and
/// that the next job runs.
fn panics(faulty: usize) {
    let (pool, cells) = (Pool::new(1, 0), Cells::new(2));
    let job = |part| {
        cells.count(part);
        if part == faulty {
            // Unlike `panic!`, this writes no message.
            resume_unwind(Box::new("part"));
        }
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| pool.run(&job, true, None)));
    assert!(outcome.is_err(), "a panic in part {faulty}");
    let cells = Cells::new(2);
    pool.run(&|part| cells.count(part), false, None);
    cells.assert_all(1);
    pool.close();
}

/// Checks two threads that take chunks from each other, job after job.
fn shared_chunks(chunks: usize, spins: usize, jobs: usize) {
    let (pool, shares, cells) = (Pool::new(1, spins), Shares::new(2), Cells::new(chunks));
    for job in 1..=jobs {
        shares.deal(|thread| chunks * thread / 2..chunks * (thread + 1) / 2);
        let work = |stretch: std::ops::Range<usize>| stretch.for_each(|chunk| cells.count(chunk));
        pool.run(&|thread| shares.work(thread, &work), false, None);
        cells.assert_all(job);
    }
    pool.close();
}

/// Explores all orders of a model with at most `switches` switches between threads that are not forced.
fn check(name: &str, switches: usize, model: impl Fn() + Send + Sync + 'static) {
    let (start, runs) = (Instant::now(), std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0)));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.max_branches = 2_000;
    let count = std::sync::Arc::clone(&runs);
    builder.check(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    let runs = runs.load(std::sync::atomic::Ordering::Relaxed);
    println!("{name}: {runs} orders in {:.1} s", start.elapsed().as_secs_f64());
}

fn main() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The pool reports a panic to its caller by this one.
        if panic.payload().downcast_ref::<&str>() != Some(&"a thread of the pool panicked") {
            report(panic);
        }
    }));
    check("one worker, one job", 4, || jobs(1, 0, 1, false));
    check("one worker, three jobs", 2, || jobs(1, 0, 3, false));
    check("one worker that checks before it sleeps", 3, || jobs(1, 1, 2, false));
    check("two workers", 2, || jobs(2, 0, 1, false));
    check("a team of two, two jobs", 2, || jobs(1, 0, 2, true));
    check("a team of three", 1, || jobs(2, 0, 2, true));
    check("effects of a job in the next one", 3, || effects(0));
    check("effects of a job, with a worker that checks", 3, || effects(1));
    check("a worker that rests", 3, || rest(0));
    check("a panic of the caller", 3, || panics(0));
    check("a panic of the worker", 3, || panics(1));
    check("chunks of two threads, two jobs", 1, || shared_chunks(4, 0, 2));
    check("chunks of two threads", 2, || shared_chunks(4, 0, 1));
}
