//! Rows shared among threads: how they are cut, counted and filled.

use super::values::Stored;
use super::{Csr, Offset, Offsets, Pattern};
use crate::error::{CsrFault, Error, Result};
use crate::parallel::{CHUNKS_PER_THREAD, run_all, split_front, threads_for, zeros};
use bytemuck::Zeroable;
use std::ops::Range;
use std::sync::Arc;

/// Pieces to cut work on so many bytes into.
pub(super) fn pieces_for(bytes: usize) -> usize {
    match threads_for(bytes) {
        1 => 1,
        threads => threads * CHUNKS_PER_THREAD,
    }
}

/// Cuts `count` things into at most so many ranges, about equal in weight. `before(i)` is the weight of those before
/// number `i`; it never decreases.
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

/// A length of a row as the formats store it.
pub(super) fn narrow_length(length: usize) -> Result<u32> {
    narrow(length, "the length of a row", "32-bit lengths of rows")
}

/// A number as 32 bits, if it fits.
pub(super) fn narrow(number: usize, what: &'static str, place: &'static str) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::TooLarge {
        what,
        value: number as u128,
        limit: u128::from(u32::MAX),
        place,
    })
}

/// `f(row)` for every row, in order, or the first error; `bytes` is how much there is to look at.
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

/// `f` of every element, in order, or the first error.
pub(super) fn each<A: Copy + Sync, B: Copy + Zeroable + Send>(
    from: &[A],
    f: impl Fn(A) -> Result<B> + Send + Sync,
) -> Result<Vec<B>> {
    each_row(from.len(), size_of_val(from), |i| f(from[i]))
}

/// Where each of several things begins, and the last one ends, from their lengths times `unit`.
pub(super) fn offsets_of(lengths: &[u32], unit: usize) -> Result<Offsets> {
    let total: u128 = lengths.iter().map(|&length| u128::from(length)).sum::<u128>() * unit as u128;
    if total > u128::from(Offsets::MOST_NARROW) {
        // Offsets that no memory could hold the entries of would be no use to anyone.
        usize::try_from(total).map_err(|_| Error::OutOfMemory { bytes: total })?;
        add_up::<u64>(lengths, unit)
    } else {
        add_up::<u32>(lengths, unit)
    }
}

fn add_up<O: Offset>(lengths: &[u32], unit: usize) -> Result<Offsets> {
    let mut offsets: Vec<O> = zeros(lengths.len() + 1)?;
    let mut sum = 0;
    for (offset, &length) in offsets[1..].iter_mut().zip(lengths) {
        sum += length as usize * unit;
        *offset = O::from_index(sum);
    }
    Ok(O::wrap(offsets))
}

/// A band of rows and its parts of the arrays of entries.
struct Band<'a, T> {
    rows: Range<usize>,
    columns: &'a mut [u32],
    values: &'a mut [T],
}

/// Compressed rows of known lengths. `fill(row, columns, values)` writes the entries of a row, validly.
pub(super) fn build_rows<T: Stored>(
    (rows, cols): (usize, usize),
    lengths: &[u32],
    repeats: bool,
    fill: impl Fn(usize, &mut [u32], &mut [T]) + Send + Sync,
) -> Result<Csr> {
    if cols > u32::MAX as usize {
        return Err(Error::InvalidCsr(CsrFault::TooManyColumns { cols }));
    }
    let offsets = offsets_of(lengths, 1)?;
    let entries = offsets.get(rows);
    let (mut columns, mut values) = (zeros::<u32>(entries)?, zeros::<T>(entries)?);
    let pieces = pieces_for(entries * (4 + size_of::<T>()));
    let (mut columns_left, mut values_left) = (&mut columns[..], &mut values[..]);
    let mut bands = Vec::new();
    for rows in cut(rows, pieces, |row| offsets.get(row).saturating_add(row)) {
        let length = offsets.get(rows.end) - offsets.get(rows.start);
        bands.push(Band {
            rows,
            columns: split_front(&mut columns_left, length),
            values: split_front(&mut values_left, length),
        });
    }
    run_all(bands, |band| {
        let (mut columns, mut values) = (band.columns, band.values);
        for row in band.rows {
            let length = lengths[row] as usize;
            fill(row, split_front(&mut columns, length), split_front(&mut values, length));
        }
    });
    Csr::with_pattern(Arc::new(Pattern::made(rows, cols, offsets, columns, repeats)), T::wrap(values))
}
