//! Strands of tasks that any thread can run.
//!
//! A strand is not bound to a thread: a thread locks it, runs its tasks until one has to wait, and may then
//! run other strands. A thread that waits holds its strand for a brief moment only. So a thread without a
//! core delays the others only if it loses the core in the middle of a task, or in that moment; and a single
//! thread can run all strands, in an order in which it never waits.
//!
//! A thread that has waited for longer leaves, and the others stop after their current tasks. Then the caller
//! hands out the rest again, to the workers that have a core, or runs it alone. So no thread waits for
//! another by spinning for long.

use super::kernel::{self, Cursor};
use super::pace::{Pace, Way};
use super::pack::Packed;
use crate::device::cpu::{Cpu, crowded};
use crate::parallel::lock;
use crate::scalar::Scalar;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, TryLockError};
use std::time::Instant;

/// Polls for which a thread that waits holds its strand: 2 to 4 us, longer than most waits.
const BRIEF: u32 = 200;
/// Polls between two attempts to run any strand.
const POLLS: u32 = 16;
/// Attempts for each strand before a thread leaves, if there is a core for each thread: about 30
/// us, many times as long as a task usually takes. A strand may wait for one task of every other
/// strand before it can begin.
const PATIENT: u32 = 100;
/// Tasks between two looks at the clock, if there is a deadline.
const CLOCKED: usize = 16;
/// If there are more threads than cores: a thread that spins keeps the thread that it waits for from working.
const CROWDED: u32 = 2;

/// The vectors of an application, shared by all threads.
#[derive(Clone, Copy)]
pub(super) struct Vectors<T> {
    pub x: *const T,
    pub z: *mut T,
}

// SAFETY: each unknown is written by one thread at a time, and read by another only after that thread has
// seen that its task is done.
unsafe impl<T: Sync> Sync for Vectors<T> {}

/// The strands of both solves.
pub(super) struct Strands<T> {
    block: usize,
    avx2: bool,
    strands: Vec<Strand<T>>,
    /// The part of each thread in the numbers of the strands: one strand each, as far as there are strands.
    cuts: Vec<usize>,
    /// Whether a thread has left an application, so that the others stop after their current tasks.
    left: AtomicBool,
}

struct Strand<T> {
    packed: Packed<T>,
    done: Progress,
    /// Locked by the thread that runs the strand.
    place: Place,
}

/// The number of tasks that have been done, on separate cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Progress(AtomicU32);

/// The place of the next task, on separate cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Place(Mutex<Next>);

/// Where the data of the next task begins.
#[derive(Clone, Copy, Default)]
struct Next {
    task: usize,
    segment: usize,
    wait: usize,
    column: usize,
    value: usize,
}

/// The outcome of an attempt to run a strand.
#[derive(Clone, Copy, PartialEq)]
enum Attempt {
    /// All tasks of the strand are done.
    Complete,
    /// The strand has tasks, of which at least one was run.
    Ran,
    /// The strand has tasks, but its next task has to wait, or another thread runs the strand.
    Waits,
}

impl<T: Scalar> Strands<T> {
    pub(crate) fn new(device: &Cpu, block: usize, packed: Vec<Packed<T>>) -> Strands<T> {
        let cuts = (0..=device.threads()).map(|thread| thread.min(packed.len())).collect();
        let strand = |packed| Strand { packed, done: Progress::default(), place: Place::default() };
        Strands {
            block,
            avx2: device.avx2,
            strands: packed.into_iter().map(strand).collect(),
            cuts,
            left: AtomicBool::new(false),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.strands.iter().map(|strand| strand.packed.bytes()).sum()
    }

    /// Runs all strands from their beginning, in the way of `pace`. One application runs at a time.
    pub(crate) fn run(&self, device: &Cpu, vectors: &Vectors<T>, pace: &mut Pace) {
        self.begin();
        if self.strands.len() == 1 {
            self.attempt(0, 1, vectors, None);
            return;
        }
        let start = Instant::now();
        let (mut alone, mut cut) = (true, false);
        if let Way::Alone(deadline) = pace.way() {
            self.run_alone(vectors, deadline);
            cut = !self.complete();
        }
        if !self.complete() {
            alone = self.run_on_all(device, vectors) && !cut;
        }
        if device.threads() > 1 {
            pace.record(start.elapsed(), alone, cut);
        }
    }

    /// Runs what is left of the strands on the threads that have a core; returns whether that is one thread.
    fn run_on_all(&self, device: &Cpu, vectors: &Vectors<T>) -> bool {
        let all = self.strands.len();
        let alone = AtomicBool::new(false);
        while !self.complete() {
            if self.left.load(Ordering::Relaxed) {
                self.left.store(false, Ordering::Relaxed);
            }
            device.for_each_stretch(all, Some(&self.cuts), &|strands| {
                if strands.len() == all {
                    alone.store(true, Ordering::Relaxed);
                    self.run_alone(vectors, None);
                } else {
                    strands.for_each(|strand| self.run_together(strand, vectors));
                }
            });
        }
        alone.into_inner()
    }

    /// Sets all strands to their beginning.
    fn begin(&self) {
        self.left.store(false, Ordering::Relaxed);
        for strand in &self.strands {
            strand.done.0.store(0, Ordering::Relaxed);
            *lock(&strand.place.0) = Next::default();
        }
    }

    fn complete(&self) -> bool {
        self.strands.iter().all(Strand::complete)
    }

    /// Runs all strands on this thread, while no other thread runs any; returns early after the deadline.
    fn run_alone(&self, vectors: &Vectors<T>, deadline: Option<Instant>) {
        while !self.complete() && deadline.is_none_or(|end| Instant::now() < end) {
            (0..self.strands.len()).for_each(|strand| {
                self.attempt(strand, 1, vectors, deadline);
            });
        }
    }

    /// Runs strands, beginning with `first`, until all are complete or a thread has left.
    fn run_together(&self, first: usize, vectors: &Vectors<T>) {
        let all = self.strands.len();
        let patience = if crowded() { CROWDED } else { PATIENT * all as u32 };
        let mut attempts = 0;
        loop {
            let (mut complete, mut ran) = (0, false);
            for strand in (first..first + all).map(|strand| strand % all) {
                let polls = if attempts == 0 { BRIEF } else { 1 };
                match self.attempt(strand, polls, vectors, None) {
                    Attempt::Complete => complete += 1,
                    Attempt::Ran => ran = true,
                    Attempt::Waits => (),
                }
            }
            if complete == all || self.left.load(Ordering::Relaxed) {
                return;
            }
            attempts = if ran { 0 } else { attempts + 1 };
            if attempts > patience {
                return self.left.store(true, Ordering::Relaxed);
            }
            (0..POLLS).for_each(|_| spin_loop());
        }
    }

    /// Runs the tasks of a strand until one has to wait for more than `polls` polls, until a thread has left,
    /// or until soon after the deadline.
    fn attempt(&self, number: usize, polls: u32, vectors: &Vectors<T>, deadline: Option<Instant>) -> Attempt {
        let strand = &self.strands[number];
        if strand.complete() {
            return Attempt::Complete;
        }
        let mut place = match strand.place.0.try_lock() {
            Ok(place) => place,
            Err(TryLockError::Poisoned(place)) => place.into_inner(),
            Err(TryLockError::WouldBlock) => return Attempt::Waits,
        };
        let (packed, mut next) = (&strand.packed, *place);
        let (tasks, first) = (packed.tasks.len(), next.task);
        let mut at = Cursor::new(packed, (next.column, next.value), vectors.x, vectors.z);
        for task in &packed.tasks[first..] {
            let waits = next.wait..task.waits_end as usize;
            if !packed.waits[waits].iter().all(|wait| self.waits(wait.thread, wait.tasks, polls)) {
                break;
            }
            let segments = next.segment..task.segments_end as usize;
            // SAFETY: the strand was packed with blocks of this size for vectors of this length. This
            // thread holds the strand, the unknowns that its next task depends on are solved, and every
            // unknown belongs to one strand.
            unsafe {
                kernel::run(packed, &mut at, (self.block, self.avx2), next.task < tasks / 2, segments);
            }
            next.task += 1;
            (next.segment, next.wait) = (task.segments_end as usize, task.waits_end as usize);
            strand.done.0.store(next.task as u32, Ordering::Release);
            let late = || deadline.is_some_and(|end| next.task % CLOCKED == 0 && Instant::now() >= end);
            if self.left.load(Ordering::Relaxed) || late() {
                break;
            }
        }
        (next.column, next.value) = at.place(packed);
        *place = next;
        match next.task {
            task if task == tasks => Attempt::Complete,
            task if task > first => Attempt::Ran,
            _ => Attempt::Waits,
        }
    }

    /// Polls until this many tasks of a strand are done; returns whether they are. Gives up early if the
    /// strand has begun and no thread holds it: this thread can then run it.
    fn waits(&self, number: u32, tasks: u32, polls: u32) -> bool {
        let strand = &self.strands[number as usize];
        for poll in 1..=polls {
            let done = strand.done.0.load(Ordering::Acquire);
            if done >= tasks {
                return true;
            }
            if poll.is_multiple_of(POLLS) && done > 0 && strand.place.0.try_lock().is_ok() {
                return false;
            }
            spin_loop();
        }
        false
    }
}

impl<T> Strand<T> {
    fn complete(&self) -> bool {
        self.done.0.load(Ordering::Acquire) as usize == self.packed.tasks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::triangular::{pack::Triangle, schedule::Direction, schedule::Schedule};
    use crate::format::Bsr;
    use std::sync::mpsc::channel;
    use std::thread;

    /// Two triangles cut for a number of threads, with a right-hand side.
    struct Case {
        strands: Strands<f64>,
        x: Vec<f64>,
    }

    impl Case {
        /// Uses the lower triangle of a matrix as the factor.
        fn new(matrix: &str, threads: usize) -> Case {
            let factor = crate::source::load(matrix).unwrap().matrix.lower_triangle().unwrap();
            let blocks = Bsr::from_csr(&factor, (1, 1)).unwrap();
            let triangle = Triangle::new(&blocks).unwrap();
            let schedule = Schedule::new(&triangle.dependencies(Direction::Forward), threads, 12).unwrap();
            assert_eq!(schedule.strands.len(), threads, "{matrix}: {}", schedule.name);
            let packed = (0..threads).map(|thread| triangle.pack(&schedule, thread).unwrap()).collect();
            let x = (0..factor.rows()).map(|row| (row as f64 * 0.7).sin()).collect();
            Case { strands: Strands::new(&Cpu::new(Some(1)).unwrap(), 1, packed), x }
        }

        /// Returns the bits of the result of `run`, which runs all strands.
        fn solved(&self, run: impl FnOnce(&Strands<f64>, &Vectors<f64>)) -> Vec<u64> {
            let mut z = vec![f64::NAN; self.x.len()];
            self.strands.begin();
            run(&self.strands, &Vectors { x: self.x.as_ptr(), z: z.as_mut_ptr() });
            assert!(self.strands.complete());
            z.iter().map(|z| z.to_bits()).collect()
        }
    }

    /// Systems whose strands depend on each other one way, both ways, and in levels.
    const MATRICES: [&str; 3] = ["poisson2d:70x50", "poisson3d:14x15x16", "hex27:26x26x26"];

    #[test]
    fn any_number_of_threads_runs_any_number_of_strands_with_the_same_bits() {
        for matrix in MATRICES {
            let serial = Case::new(matrix, 1);
            let expected = serial.solved(|strands, vectors| strands.run_alone(vectors, None));
            for cut in [2, 3, 4, 7] {
                let case = Case::new(matrix, cut);
                for threads in [1, 2, 3] {
                    let device = Cpu::new(Some(threads)).unwrap();
                    for _ in 0..3 {
                        let found = case.solved(|strands, vectors| {
                            strands.run_on_all(&device, vectors);
                        });
                        assert!(found == expected, "{matrix}: {cut} strands on {threads} threads");
                    }
                }
            }
        }
    }

    #[test]
    fn one_thread_may_continue_alone_after_any_task() {
        for matrix in MATRICES {
            let case = Case::new(matrix, 3);
            let expected = case.solved(|strands, vectors| strands.run_alone(vectors, None));
            let tasks: usize = case.strands.strands.iter().map(|strand| strand.packed.tasks.len()).sum();
            for before in (0..tasks).step_by(tasks.div_ceil(60)) {
                let found = case.solved(|strands, vectors| {
                    // An attempt ends after one task if a thread has left.
                    strands.left.store(true, Ordering::Relaxed);
                    let mut strand = before % 3;
                    for _ in 0..before {
                        while strands.attempt(strand, 1, vectors, None) != Attempt::Ran && !strands.complete()
                        {
                            strand = (strand + 1) % 3;
                        }
                    }
                    strands.left.store(false, Ordering::Relaxed);
                    strands.run_alone(vectors, None);
                });
                assert!(found == expected, "{matrix}: alone after {before} tasks");
            }
        }
    }

    #[test]
    fn a_thread_runs_the_strands_of_threads_that_never_begin() {
        for matrix in MATRICES {
            let case = Case::new(matrix, 4);
            let expected = case.solved(|strands, vectors| strands.run_alone(vectors, None));
            for first in 0..4 {
                let found = case.solved(|strands, vectors| {
                    strands.left.store(false, Ordering::Relaxed);
                    strands.run_together(first, vectors);
                });
                assert!(found == expected, "{matrix}: only the thread of strand {first} begins");
            }
        }
    }

    #[test]
    fn threads_leave_while_another_holds_a_strand_without_a_core_and_the_solve_continues_later() {
        for matrix in MATRICES {
            let case = Case::new(matrix, 3);
            let expected = case.solved(|strands, vectors| strands.run_alone(vectors, None));
            let found = case.solved(|strands, vectors| {
                strands.left.store(false, Ordering::Relaxed);
                let (holds, held) = channel();
                let (release, released) = channel::<()>();
                thread::scope(|scope| {
                    scope.spawn(move || {
                        let _place = lock(&strands.strands[1].place.0);
                        holds.send(()).unwrap();
                        released.recv().unwrap();
                    });
                    held.recv().unwrap();
                    // Both return although the other thread never lets go meanwhile.
                    scope.spawn(|| strands.run_together(2, vectors));
                    strands.run_together(0, vectors);
                    assert!(!strands.complete() && strands.left.load(Ordering::Relaxed));
                    release.send(()).unwrap();
                });
                strands.run_alone(vectors, None);
            });
            assert!(found == expected, "{matrix}");
        }
    }
}
