//! Helpers for work that is split into pieces, on the threads of rayon's current pool, and for
//! allocations that may fail.

use crate::error::{Error, Result};
use crate::memory::{reserved, try_reserve, zeroed};
use bytemuck::{Pod, Zeroable};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Barrier, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{JoinHandle, Scope, ScopedJoinHandle};
use std::{io, thread};

/// Inputs of fewer bytes are processed by one thread, which is faster than several.
const SMALL: usize = 100_000;
/// Allocations that add up to less than this many bytes are made without reading the available memory.
const CERTAIN: u64 = 64 << 20;
/// Pieces of work for each thread, so that a delayed piece does not delay the rest.
pub(crate) const PIECES_PER_THREAD: usize = 8;
/// The most threads of rayon's global pool.
const MOST_IN_POOL: usize = 1024;

/// Bytes of a thread's stack.
const STACK: usize = 2 << 20;
/// Bytes that must be free in addition to the stack of a thread that is started: for its initial allocations,
/// and for what the program does next.
const SPARE: usize = 32 << 20;
/// Bytes that must be free for a thread that is started.
pub(crate) const THREAD: usize = STACK + SPARE;

/// Starts a thread and returns once it runs. A new thread that runs out of memory would end the program. To
/// detect that early, this function first allocates as much memory as the thread needs and frees it; it
/// returns an error if that fails.
pub(crate) fn start_thread(name: String, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let (builder, runs) = prepared_thread(name)?;
    let thread_runs = Arc::clone(&runs);
    let begin = move || {
        thread_runs.wait();
        work()
    };
    let thread = builder.spawn(begin)?;
    runs.wait();
    Ok(thread)
}

/// Starts a thread of a scope and returns once it runs, or an error, as [`start_thread`] does. The thread may
/// use rayon while the calling thread waits for it. If the calling thread is the only thread of its pool, the
/// new thread becomes a pool itself: the calling thread would not run what is given to its pool.
pub(crate) fn start_scoped<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: String,
    work: impl FnOnce() -> R + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, R>> {
    let alone = rayon::current_thread_index().is_some() && rayon::current_num_threads() == 1;
    let (builder, runs) = prepared_thread(name)?;
    let thread_runs = Arc::clone(&runs);
    let begin = move || {
        let pool = alone.then(|| ThreadPoolBuilder::new().num_threads(1).use_current_thread().build());
        thread_runs.wait();
        if let Some(Err(e)) = &pool {
            log::debug!("a thread did not become a pool: {e}");
        }
        work()
    };
    let thread = builder.spawn_scoped(scope, begin)?;
    runs.wait();
    Ok(thread)
}

/// Checks that there is memory for a thread, and returns what starts it, and the barrier at
/// which it shows that it runs.
fn prepared_thread(name: String) -> io::Result<(thread::Builder, Arc<Barrier>)> {
    let mut room: Vec<u8> = Vec::new();
    if !try_reserve(&mut room, THREAD) {
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, "out of memory for another thread"));
    }
    drop(std::hint::black_box(room));
    Ok((thread::Builder::new().name(name).stack_size(STACK), Arc::new(Barrier::new(2))))
}

/// Locks a mutex, also after a panic of a thread that held it: for data that is valid at any time, or
/// overwritten before it is read.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of cores that this process may use.
pub(crate) fn available_cores() -> usize {
    static CORES: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));
    *CORES
}

/// Starts rayon's global pool, whose threads read, sort and check: `threads` of them, or one for each core
/// that this process may use. If the system grants fewer threads, the pool has fewer; a pool of one is the
/// calling thread itself. Results do not depend on the number. A pool that is already running is kept.
///
/// Without this, rayon starts the pool on first use, and panics if a thread cannot be started.
pub fn start_pool(threads: Option<usize>) {
    static STARTED: Once = Once::new();
    let threads = threads.unwrap_or_else(available_cores).min(MOST_IN_POOL);
    STARTED.call_once(|| {
        // A pool that fails to start cannot be built again. So the threads are started first, and each waits
        // for its role in the pool.
        let mut waiting = start_waiting(threads);
        let pool = match waiting.len() {
            0 => ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global(),
            started => ThreadPoolBuilder::new()
                .num_threads(started)
                .spawn_handler(|place| {
                    let thread = waiting.pop().ok_or(io::ErrorKind::InvalidInput)?;
                    thread.send(place).map_err(|_| io::ErrorKind::BrokenPipe.into())
                })
                .build_global(),
        };
        if let Err(e) = pool {
            log::debug!("the pool of threads that read and check did not start: {e}");
        }
    });
}

/// Starts up to `threads` threads that wait for their role in the pool, and end if they get none.
fn start_waiting(threads: usize) -> Vec<SyncSender<rayon::ThreadBuilder>> {
    let mut waiting = Vec::with_capacity(threads);
    for index in 0..threads {
        let (sender, receiver) = sync_channel::<rayon::ThreadBuilder>(1);
        let work = move || receiver.recv().into_iter().for_each(rayon::ThreadBuilder::run);
        if let Err(e) = start_thread(format!("solver-data-{index}"), work) {
            log::info!("reading and checking with {index} threads instead of {threads}: {e}");
            break;
        }
        waiting.push(sender);
    }
    waiting
}

/// Returns the number of threads for an input of this size. The pool is not even started for a small input.
pub(crate) fn threads_for(size: usize) -> usize {
    if size < SMALL { 1 } else { rayon::current_num_threads().max(1) }
}

/// A task of [`run_all`], and later its result.
enum Task<T, R> {
    Waiting(T),
    Running,
    Done(R),
}

/// Runs the tasks, on the pool if there are several, and returns their results in order.
pub(crate) fn run_all<T: Send, R: Send>(tasks: Vec<T>, run: impl Fn(T) -> R + Sync) -> Vec<R> {
    if tasks.len() <= 1 {
        return tasks.into_iter().map(run).collect();
    }
    // Only the numbers of the tasks pass through rayon, so that its generic code is compiled once and not for
    // each caller. The loops are plain for the same reason.
    let mut cells = Vec::with_capacity(tasks.len());
    for task in tasks {
        cells.push(Mutex::new(Task::Waiting(task)));
    }
    for_each_number(cells.len(), &|number| {
        let replace = |next| std::mem::replace(&mut *lock(&cells[number]), next);
        if let Task::Waiting(task) = replace(Task::Running) {
            replace(Task::Done(run(task)));
        }
    });
    let mut results = Vec::with_capacity(cells.len());
    for cell in cells {
        match cell.into_inner() {
            Ok(Task::Done(result)) => results.push(result),
            _ => unreachable!("a task that panics ends the call"),
        }
    }
    results
}

/// Elements of an array that a thread computes as one task.
const ELEMENTS: usize = 1 << 15;

/// Returns `f(i)` for each `i` below `n`, in order, computed on the pool.
pub(crate) fn tabulate<T: Zeroable + Send>(n: usize, f: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
    let mut array: Vec<T> = zeros(n)?;
    run_all(array.chunks_mut(ELEMENTS).enumerate().collect(), |(piece, elements): (usize, &mut [T])| {
        elements.iter_mut().enumerate().for_each(|(i, element)| *element = f(piece * ELEMENTS + i));
    });
    Ok(array)
}

/// Returns `f(i)` for each `i` below `n`, in order, for elements of any type. If memory does not suffice, the
/// process ends.
pub(crate) fn collected<R: Send>(n: usize, f: impl Fn(usize) -> R + Send + Sync) -> Vec<R> {
    /// The fewest elements that a thread computes as one task.
    const FEWEST: usize = 4096;
    let mut all = reserved(n);
    (0..n).into_par_iter().with_min_len(FEWEST).map(f).collect_into_vec(&mut all);
    all
}

/// Returns `f(i)` for each `i` of the ranges, in order, with a task for each range. The ranges follow one
/// another from 0 on.
pub(crate) fn collected_in<R: Send>(ranges: Vec<Range<usize>>, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let count = ranges.iter().map(Range::len).sum();
    assert!(ranges.iter().try_fold(0, |end, range| (range.start == end).then_some(range.end)) == Some(count));
    let mut all: Vec<R> = reserved(count);
    let mut rest = &mut all.spare_capacity_mut()[..count];
    let tasks = ranges.into_iter().map(|range| (range.clone(), split_front(&mut rest, range.len())));
    run_all(tasks.collect(), |(range, places): (Range<usize>, &mut [MaybeUninit<R>])| {
        for (place, i) in places.iter_mut().zip(range) {
            place.write(f(i));
        }
    });
    // SAFETY: the ranges cover all elements, and each task has written those of its range.
    unsafe { all.set_len(count) };
    all
}

/// Makes an array as long as `from`, and calls `fill` with pieces of `from` and the same pieces of the new
/// array, on the pool. Returns the array and the results, in order.
pub(crate) fn in_pieces<A: Sync, B: Zeroable + Send, R: Send>(
    from: &[A],
    fill: impl Fn(&[A], &mut [B]) -> R + Sync,
) -> Result<(Vec<B>, Vec<R>)> {
    let mut array: Vec<B> = zeros(from.len())?;
    let pieces = from.chunks(ELEMENTS).zip(array.chunks_mut(ELEMENTS)).collect();
    let results = run_all(pieces, |(from, to): (&[A], &mut [B])| fill(from, to));
    Ok((array, results))
}

/// Returns a copy of an array, made on the pool.
pub(crate) fn copied<T: Copy + Zeroable + Send + Sync>(from: &[T]) -> Result<Vec<T>> {
    Ok(in_pieces(from, |from, to| to.copy_from_slice(from))?.0)
}

/// Copies bytes, on the pool if they are many. Panics if the lengths differ.
pub(crate) fn copy_bytes(from: &[u8], to: &mut [u8]) {
    /// Bytes that a thread copies as one task.
    const PIECE: usize = 1 << 20;
    assert_eq!(from.len(), to.len(), "the lengths of the two slices must be equal");
    if from.len() <= 4 * PIECE {
        return to.copy_from_slice(from);
    }
    let pieces = from.chunks(PIECE).zip(to.chunks_mut(PIECE)).collect();
    run_all(pieces, |(from, to): (&[u8], &mut [u8])| to.copy_from_slice(from));
}

/// Calls `run` once with each number below `count`, on the threads of rayon's current pool.
fn for_each_number(count: usize, run: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().with_max_len(1).for_each(run);
}

/// Splits off the first `n` elements of a slice, or as many as it has.
pub(crate) fn split_front<'a, T>(slice: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let n = n.min(slice.len());
    let (front, rest) = std::mem::take(slice).split_at_mut(n);
    *slice = rest;
    front
}

/// Returns `n` zeros. All threads of the pool touch the pages of a long array, so that fewer threads can then
/// fill it: the system clears a page when it is first touched.
pub(crate) fn touched_zeros<T: Pod>(n: usize) -> Result<Vec<T>> {
    const PAGE: usize = 4096;
    /// Bytes that a thread touches as one task.
    const TASK: usize = 2 << 20;
    let mut array = zeros(n)?;
    let tasks = bytemuck::cast_slice_mut::<T, u8>(&mut array).chunks_mut(TASK).collect();
    run_all(tasks, |bytes: &mut [u8]| bytes.iter_mut().step_by(PAGE).for_each(|byte| *byte = black_box(0)));
    Ok(array)
}

/// Allocates `n` zeros, which the system provides page by page as they are touched. Fails if
/// there is not enough memory.
pub(crate) fn zeros<T: Zeroable>(n: usize) -> Result<Vec<T>> {
    let bytes = affordable::<T>(0, n)?;
    zeroed(n).ok_or(Error::OutOfMemory { bytes })
}

/// Allocates an empty vector with capacity for `n` elements.
pub(crate) fn room<T>(n: usize) -> Result<Vec<T>> {
    let bytes = affordable::<T>(0, n)?;
    let mut room = Vec::new();
    if !try_reserve(&mut room, n) {
        return Err(Error::OutOfMemory { bytes });
    }
    // Without this the compiler may drop an allocation that is never written, and the check for its failure.
    Ok(std::hint::black_box(room))
}

/// Makes room for `more` further elements. Does nothing if the capacity suffices; otherwise reserves `more`
/// elements, or an eighth of the length if that is more. Fails if memory is short. Doubling the capacity
/// would take up to twice the memory of the elements; small steps cost little, because the system moves large
/// arrays without copying them.
pub(crate) fn grow<T>(vector: &mut Vec<T>, more: usize) -> Result<()> {
    if vector.capacity() - vector.len() >= more {
        return Ok(());
    }
    let step = more.max(vector.len() / 8);
    let bytes = affordable::<T>(vector.len(), step)?;
    if try_reserve(vector, step) { Ok(()) } else { Err(Error::OutOfMemory { bytes }) }
}

/// Returns the bytes of `more` elements in addition to those that are held. Fails if fewer are available: the
/// system would grant more, and end the process once they are used. The available memory is read each time
/// that another [`CERTAIN`] bytes are reached, so that many small steps are checked, too.
fn affordable<T>(held: usize, more: usize) -> Result<u128> {
    let bytes = |n: usize| n as u128 * size_of::<T>() as u128;
    let multiples = |bytes: u128| bytes / u128::from(CERTAIN);
    let (before, more) = (bytes(held), bytes(more));
    if multiples(before) < multiples(before + more) && more > u128::from(available()) {
        return Err(Error::OutOfMemory { bytes: more });
    }
    Ok(more)
}

/// Returns the bytes of memory that this process may still take: the memory that the system reports as
/// available, and no more than the limit of its control group; `u64::MAX` if the system reports neither.
pub(crate) fn available() -> u64 {
    let number = |text: String| text.split_ascii_whitespace().find_map(|word| word.parse::<u64>().ok());
    let file = |path: &str| std::fs::read_to_string(path).ok();
    let free = file("/proc/meminfo").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?.to_owned();
        Some(number(line)?.saturating_mul(1024))
    });
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limit = limits.iter().find_map(|path| number(file(path)?));
    free.unwrap_or(u64::MAX).min(limit.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_copied_whole_and_only_between_equal_lengths() {
        for n in [1000, (5 << 20) + 7] {
            let from: Vec<u8> = (0..n).map(|i| (i % 251) as u8).collect();
            let copied = |length: usize| {
                let mut to = vec![0; length];
                copy_bytes(&from, &mut to);
                to
            };
            assert!(copied(n) == from, "{n} bytes");
            for other in [n - 1, n + 1] {
                assert!(std::panic::catch_unwind(|| copied(other)).is_err(), "{n} bytes to {other}");
            }
        }
    }

    #[test]
    fn a_thread_that_the_only_thread_of_a_pool_starts_is_a_pool_itself() {
        let start = || {
            thread::scope(|scope| {
                let work = || (rayon::current_thread_index(), rayon::join(|| thread::current().id(), || 1).0);
                let thread = start_scoped(scope, "test".to_owned(), work).unwrap();
                let id = thread.thread().id();
                let (index, ran) = thread.join().unwrap();
                (index, ran == id)
            })
        };
        // This thread has no pool, so the new one has none.
        assert_eq!(start(), (None, false));
        let pool = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
        assert_eq!(start(), (Some(0), true));
        drop(pool);
        // A pool of several threads serves the threads that one of them starts.
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        assert_eq!(pool.install(start), (None, false));
    }

    #[test]
    fn collected_elements_are_in_order() {
        for n in [0, 1, 100_000] {
            assert!(collected(n, |i| 3 * i).into_iter().eq((0..n).map(|i| 3 * i)));
        }
        for ranges in [vec![], vec![0..2, 2..2, 2..7, 7..100_000]] {
            let n = ranges.last().map_or(0, |range: &Range<usize>| range.end);
            assert!(collected_in(ranges, |i| vec![i]).into_iter().eq((0..n).map(|i| vec![i])));
        }
    }
}
