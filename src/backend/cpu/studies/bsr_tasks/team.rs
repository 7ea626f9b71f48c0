//! State that the threads of one product share: the vector that they add to, work counters, a task queue.

use crate::device::cpu::crowded;
use crate::parallel::lock;
use crate::scalar::Scalar;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The vector y, which several threads add to.
pub(super) struct Target<'a, T> {
    start: *mut T,
    len: usize,
    lives: PhantomData<&'a mut [T]>,
}

// SAFETY: threads scale disjoint parts, and add to an element either exclusively or atomically.
unsafe impl<T: Send> Sync for Target<'_, T> {}

impl<'a, T: Scalar> Target<'a, T> {
    pub(crate) fn new(y: &'a mut [T]) -> Target<'a, T> {
        Target { start: y.as_mut_ptr(), len: y.len(), lives: PhantomData }
    }

    /// Multiplies one thread's share of y by beta; if beta is 0, the old y is not read.
    pub(crate) fn scale(&self, beta: f64, part: usize, parts: usize) {
        let range = self.len * part / parts..self.len * (part + 1) / parts;
        // SAFETY: the shares of threads are disjoint, and no thread adds to y before all have
        // scaled their share.
        let mine = unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) };
        if beta == 0.0 {
            mine.fill(T::default());
        } else if beta != 1.0 {
            let beta = T::from_f64(beta);
            mine.iter_mut().for_each(|y| *y = beta * *y);
        }
    }

    /// Adds to a row that no other thread adds to.
    pub(crate) fn add(&self, row: usize, value: f64) {
        assert!(row < self.len);
        // SAFETY: the row lies inside y, and only this thread has it.
        unsafe {
            let y = self.start.add(row);
            *y = T::from_f64((*y).to_f64() + value);
        }
    }

    /// Adds to a row that other threads may add to at the same time with this function.
    pub(crate) fn add_atomically(&self, row: usize, value: f64) {
        assert!(row < self.len);
        let sum = |old: f64| T::from_f64(old + value).to_f64();
        const {
            assert!(
                align_of::<AtomicU64>() == align_of::<f64>() && align_of::<AtomicU32>() == align_of::<f32>()
            )
        }
        // SAFETY: the row lies inside y, is aligned like the atomics of the same size, and is accessed only
        // atomically until all threads are done.
        unsafe {
            let y = self.start.add(row);
            if size_of::<T>() == 8 {
                let y = AtomicU64::from_ptr(y.cast());
                let next = |old| Some(sum(f64::from_bits(old)).to_bits());
                let _ = y.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
            } else {
                let y = AtomicU32::from_ptr(y.cast());
                let next = |old| Some((sum(f64::from(f32::from_bits(old))) as f32).to_bits());
                let _ = y.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
            }
        }
    }
}

/// A barrier whose threads spin for a while, as long as a wait takes when each thread has its own core.
pub(super) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    rounds: AtomicUsize,
}

/// Polls before a thread yields its core, if there are cores for all threads.
const POLLS: usize = 2000;

impl Barrier {
    pub(crate) fn new(threads: usize) -> Barrier {
        Barrier { threads, arrived: AtomicUsize::new(0), rounds: AtomicUsize::new(0) }
    }

    /// Returns when all threads have arrived.
    pub(crate) fn wait(&self) {
        let round = self.rounds.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.rounds.fetch_add(1, Ordering::Release);
            return;
        }
        let (mut polls, max_polls) = (0, if crowded() { 1 } else { POLLS });
        while self.rounds.load(Ordering::Acquire) == round {
            polls += 1;
            if polls < max_polls { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

/// Hands out pieces of a range that shrink with the remaining range: the remainder divided by the
/// threads, and at least `least`.
pub(super) fn guided(next: &AtomicUsize, end: usize, threads: usize, least: usize) -> Option<Range<usize>> {
    let piece = |at: usize| (end.saturating_sub(at)).div_ceil(threads).max(least);
    let take = |at: usize| (at < end).then(|| (at + piece(at)).min(end));
    let at = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
    Some(at..take(at)?)
}

/// The queue holds at most this many tasks times the number of threads. A thread that makes
/// one more runs it at once.
const WAITING: usize = 64;

/// Tasks that some threads make and any thread runs.
pub(super) struct Queue<J> {
    tasks: Mutex<VecDeque<J>>,
    most: usize,
    /// Threads that still make tasks.
    making: AtomicUsize,
}

impl<J> Queue<J> {
    pub(crate) fn new(threads: usize, makers: usize) -> Queue<J> {
        Queue { tasks: Mutex::default(), most: WAITING * threads, making: AtomicUsize::new(makers) }
    }

    /// Adds a task to the queue, or returns it if too many tasks wait.
    pub(crate) fn push(&self, task: J) -> Option<J> {
        let mut tasks = lock(&self.tasks);
        if tasks.len() >= self.most {
            return Some(task);
        }
        tasks.push_back(task);
        None
    }

    /// Marks that this thread makes no more tasks.
    pub(crate) fn stop_making(&self) {
        self.making.fetch_sub(1, Ordering::Release);
    }

    /// Calls `run_task` with each task from the front of the queue. Yields while the queue is
    /// empty, and returns when it is empty and every maker has called `stop_making`. Any number of
    /// threads may call it at once.
    pub(crate) fn run(&self, mut run_task: impl FnMut(J)) {
        loop {
            let over = self.making.load(Ordering::Acquire) == 0;
            let task = lock(&self.tasks).pop_front();
            match task {
                Some(task) => run_task(task),
                None if over => return,
                None => std::thread::yield_now(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_range_once_and_shrink() {
        let next = AtomicUsize::new(10);
        let pieces: Vec<_> = std::iter::from_fn(|| guided(&next, 110, 4, 3)).collect();
        assert_eq!(pieces[0], 10..35);
        assert!(pieces.windows(2).all(|w| w[0].end == w[1].start && w[0].len() >= w[1].len()));
        assert_eq!(pieces.last().unwrap().end, 110);
        assert!(guided(&AtomicUsize::new(5), 5, 4, 1).is_none());
    }
}
