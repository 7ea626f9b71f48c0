//! Small tools for work that is cut into pieces: over the threads of rayon's current pool, in arrays that may not fit.

use crate::device::cpu::memory::zeroed;
use crate::error::{Error, Result};
use rayon::prelude::*;

/// Bytes of input below which one thread is done sooner than several are set to work.
const SMALL: usize = 100_000;
/// Pieces of work for each thread, so that one that is held up does not hold up the rest.
pub(crate) const CHUNKS_PER_THREAD: usize = 8;

/// Threads to use on an input of this size. The pool is not even started for a small one.
pub(crate) fn threads_for(size: usize) -> usize {
    if size < SMALL { 1 } else { rayon::current_num_threads().max(1) }
}

/// Runs the tasks, on the pool where there are several, and returns their results in order.
pub(crate) fn run_all<T: Send, R: Send>(tasks: Vec<T>, run: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
    if tasks.len() > 1 {
        tasks.into_par_iter().with_max_len(1).map(run).collect()
    } else {
        tasks.into_iter().map(run).collect()
    }
}

/// Takes the first `n` elements off a slice, or as many as it has.
pub(crate) fn split_front<'a, T>(slice: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let n = n.min(slice.len());
    let (front, rest) = std::mem::take(slice).split_at_mut(n);
    *slice = rest;
    front
}

/// `n` zeros that the system provides page by page as they are touched, or an error where it has not that much.
pub(crate) fn zeros<T: Copy + Default>(n: usize) -> Result<Vec<T>> {
    room::<T>(n).map(drop)?;
    Ok(zeroed(n))
}

/// An empty vector with room for `n` elements.
pub(crate) fn room<T>(n: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    room.try_reserve_exact(n)
        .map_err(|_| Error::OutOfMemory { bytes: n as u128 * size_of::<T>() as u128 })?;
    // Without this the compiler may drop an allocation that is never written, and its failure with it.
    Ok(std::hint::black_box(room))
}
