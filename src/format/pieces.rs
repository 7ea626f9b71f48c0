//! Partition of work on the arrays of a matrix among threads, and conversions to 32 bits.

use crate::error::{Error, Result};
use crate::parallel::{PIECES_PER_THREAD, run_all, threads_for, zeros};
use bytemuck::Zeroable;
use std::ops::Range;

/// Returns the number of pieces for work on `bytes` bytes.
pub(super) fn pieces_for(bytes: usize) -> usize {
    match threads_for(bytes) {
        1 => 1,
        threads => threads * PIECES_PER_THREAD,
    }
}

/// Cuts `0..count` into at most `pieces` ranges of about equal weight. `before(i)` is the weight of
/// `0..i`, and never decreases.
pub(super) fn cut(count: usize, pieces: usize, before: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let total = before(count) as u128;
    let mut ranges = Vec::new();
    let mut start = 0;
    for piece in 1..=pieces {
        let target = (total * piece as u128 / pieces as u128) as usize;
        let end = if piece == pieces { count } else { first_at_least(start..count, target, &before) };
        if end > start {
            ranges.push(start..end);
            start = end;
        }
    }
    ranges
}

fn first_at_least(mut range: Range<usize>, target: usize, before: impl Fn(usize) -> usize) -> usize {
    while !range.is_empty() {
        let middle = range.start + range.len() / 2;
        if before(middle) < target { range.start = middle + 1 } else { range.end = middle }
    }
    range.start
}

/// Converts the length of a row to 32 bits, if it fits.
pub(super) fn narrow_length(length: usize) -> Result<u32> {
    narrow(length, "the length of a row", "32-bit lengths of rows")
}

/// Converts a number to 32 bits, if it fits.
pub(super) fn narrow(number: usize, what: &'static str, container: &'static str) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::TooLarge {
        what,
        value: number as u128,
        limit: u128::from(u32::MAX),
        container,
    })
}

/// Returns `f(row)` for every row, in order, or the first error. `bytes` is the number of
/// bytes that all calls read.
pub(super) fn each_row<T: Copy + Zeroable + Send>(
    rows: usize,
    bytes: usize,
    f: impl Fn(usize) -> Result<T> + Send + Sync,
) -> Result<Vec<T>> {
    let mut results: Vec<T> = zeros(rows)?;
    let length = rows.div_ceil(pieces_for(bytes)).max(1);
    let pieces: Vec<_> = results.chunks_mut(length).enumerate().collect();
    let done = run_all(pieces, |(piece, results)| {
        results.iter_mut().enumerate().try_for_each(|(i, result)| {
            *result = f(piece * length + i)?;
            Ok(())
        })
    });
    done.into_iter().collect::<Result<()>>()?;
    Ok(results)
}

/// Returns `f` of every element, in order, or the first error.
pub(super) fn each<A: Copy + Sync, B: Copy + Zeroable + Send>(
    from: &[A],
    f: impl Fn(A) -> Result<B> + Send + Sync,
) -> Result<Vec<B>> {
    each_row(from.len(), size_of_val(from), |i| f(from[i]))
}
