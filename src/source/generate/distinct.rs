//! A matrix from randomly drawn positions; a position drawn several times becomes one entry.
//!
//! Every draw is a function of its number alone, and the positions of a row are sorted at the end, so the
//! matrix does not depend on the order of drawing. All draws are made twice: first to count the positions,
//! then to write them. This is cheaper than storing them. The positions are scattered into buckets of
//! consecutive rows, and a bucket is sorted within the cache.

use crate::error::Result;
use crate::format::{Csr, Offsets, Values};
use crate::parallel::{PIECES_PER_THREAD, run_all, split_front, tabulate, threads_for, zeros};
use rayon::prelude::*;
use std::ops::Range;

/// A row and a column.
pub(super) type Position = (u32, u32);
/// The result of one draw: an edge and possibly the reverse edge.
pub(super) type Positions = [Option<Position>; 2];
/// Returns the value at a position, the same for every draw of it.
pub(super) type Value<'a> = &'a (dyn Fn(Position) -> f64 + Sync);

/// A square matrix made of draws, which several processes can share. A position drawn several
/// times becomes one entry.
pub(crate) struct Draws {
    rows: usize,
    count: u64,
    draw: Box<dyn Fn(u64) -> Option<Position> + Send + Sync>,
    value: Option<Box<dyn Fn(Position) -> f64 + Send + Sync>>,
}

impl Draws {
    /// Describes a matrix of `rows` rows. `draw` returns the position of a draw by its number, or none.
    pub(super) fn new(
        rows: usize,
        count: u64,
        draw: impl Fn(u64) -> Option<Position> + Send + Sync + 'static,
    ) -> Draws {
        Draws { rows, count, draw: Box::new(draw), value: None }
    }

    /// Sets the values of the entries, which are 1 otherwise.
    pub(super) fn with_values(self, value: impl Fn(Position) -> f64 + Send + Sync + 'static) -> Draws {
        Draws { value: Some(Box::new(value)), ..self }
    }

    /// Makes the whole matrix.
    pub(super) fn make(&self) -> Result<Csr> {
        distinct(
            self.rows,
            self.count,
            |k| [(self.draw)(k), None],
            self.value.as_deref().map(|v| v as Value<'_>),
        )
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of draws.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the distinct positions of some draws, sorted: the row in the upper half of each key, and
    /// the column in the lower.
    pub(crate) fn keys(&self, draws: Range<u64>) -> Result<Vec<u64>> {
        // Rows fit 32 bits, and are fewer than all numbers of 32 bits.
        const NONE: u64 = u64::MAX;
        let first = draws.start;
        let key = |at: usize| {
            (self.draw)(first + at as u64).map_or(NONE, |(row, col)| u64::from(row) << 32 | u64::from(col))
        };
        let mut keys = tabulate((draws.end - first) as usize, key)?;
        let kept = sort_and_merge(&mut keys).len();
        keys.truncate(kept);
        if keys.last() == Some(&NONE) {
            keys.pop();
        }
        Ok(keys)
    }

    /// Makes some rows from their keys, in any order; their columns are those of the whole matrix.
    pub(crate) fn make_rows(&self, rows: Range<usize>, mut keys: Vec<u64>) -> Result<Csr> {
        let keys = sort_and_merge(&mut keys);
        let offset =
            |row: usize| keys.partition_point(|key| ((key >> 32) as usize) < rows.start + row) as u64;
        let offsets = Offsets::narrowest(tabulate(rows.len() + 1, offset)?);
        let cols = tabulate(keys.len(), |at| keys[at] as u32)?;
        let values = match &self.value {
            Some(value) => {
                Values::F64(tabulate(keys.len(), |at| value(((keys[at] >> 32) as u32, keys[at] as u32)))?)
            }
            None => Values::Ones,
        };
        Csr::new(rows.len(), self.rows, offsets, cols, values)
    }
}

/// Average number of draws per bucket, whose positions take half a MiB, or 1 MiB with reverse edges.
const BUCKET: u64 = 1 << 16;
const MOST_BUCKETS: u64 = 1024;
/// Buckets with more positions than this are sorted by several threads.
const LARGE: usize = 1 << 20;

/// Assigns rows to buckets: rows that agree above the lowest `shift` bits share a bucket.
#[derive(Clone, Copy)]
struct Buckets {
    count: usize,
    shift: u32,
}

impl Buckets {
    fn new(rows: usize, draws: u64) -> Buckets {
        let wanted = (draws / BUCKET).clamp(1, MOST_BUCKETS).next_power_of_two();
        let bits = |n: u64| u64::BITS - n.leading_zeros();
        let shift = bits(rows as u64).saturating_sub(wanted.trailing_zeros());
        Buckets { count: rows.div_ceil(1 << shift).max(1), shift }
    }

    fn index(self, row: u32) -> usize {
        (u64::from(row) >> self.shift) as usize
    }
}

/// Returns an upper bound on the bytes of all drawn positions.
pub(super) fn bytes(draws: u64) -> u128 {
    u128::from(draws) * size_of::<[u64; 2]>() as u128
}

/// Returns the square matrix of `n` rows with the positions of the draws `0..draws`. Without `value`, all
/// entries are 1. `n` fits 32 bits.
pub(super) fn distinct(
    n: usize,
    draws: u64,
    draw: impl Fn(u64) -> Positions + Sync,
    value: Option<Value<'_>>,
) -> Result<Csr> {
    let buckets = Buckets::new(n, draws);
    let threads = threads_for(usize::try_from(draws).unwrap_or(usize::MAX).saturating_mul(8));
    let length = draws.div_ceil((threads * PIECES_PER_THREAD) as u64).max(1);
    let pieces: Vec<Range<u64>> =
        (0..draws.div_ceil(length)).map(|i| i * length..((i + 1) * length).min(draws)).collect();
    let counts = run_all(pieces.clone(), |piece| count(piece, buckets, &draw));
    let sizes: Vec<usize> = (0..buckets.count).map(|b| counts.iter().map(|count| count[b]).sum()).collect();
    let mut keys = zeros::<u64>(sizes.iter().sum())?;
    scatter(&mut keys, pieces, &counts, buckets, &draw);
    let mut rest = &mut keys[..];
    let filled = sizes.iter().map(|&size| split_front(&mut rest, size)).collect();
    let sorted = run_all(filled, sort_and_merge);
    compress(n, &sorted, buckets, value)
}

/// Counts the positions of a piece of draws by bucket.
fn count(piece: Range<u64>, buckets: Buckets, draw: &impl Fn(u64) -> Positions) -> Vec<usize> {
    let mut counts = vec![0; buckets.count];
    for (row, _) in piece.flat_map(draw).flatten() {
        counts[buckets.index(row)] += 1;
    }
    counts
}

/// Writes every position into its bucket, as a key of row and column. Each piece has a
/// separate part of each bucket.
fn scatter(
    keys: &mut [u64],
    pieces: Vec<Range<u64>>,
    counts: &[Vec<usize>],
    buckets: Buckets,
    draw: &(impl Fn(u64) -> Positions + Sync),
) {
    let mut parts: Vec<Vec<_>> = pieces.iter().map(|_| Vec::with_capacity(buckets.count)).collect();
    let mut rest = keys;
    for bucket in 0..buckets.count {
        for (parts, counts) in parts.iter_mut().zip(counts) {
            parts.push(split_front(&mut rest, counts[bucket]).iter_mut());
        }
    }
    run_all(pieces.into_iter().zip(parts).collect(), |(piece, mut parts)| {
        for (row, col) in piece.flat_map(draw).flatten() {
            if let Some(key) = parts[buckets.index(row)].next() {
                *key = u64::from(row) << 32 | u64::from(col);
            }
        }
    });
}

/// Sorts a bucket and returns its distinct keys.
fn sort_and_merge(keys: &mut [u64]) -> &[u64] {
    if keys.len() > LARGE {
        keys.par_sort_unstable()
    } else {
        keys.sort_unstable()
    }
    let mut kept = 0;
    for i in 0..keys.len() {
        if i == 0 || keys[i] != keys[kept - 1] {
            keys[kept] = keys[i];
            kept += 1;
        }
    }
    &keys[..kept]
}

/// Builds compressed rows from sorted keys.
fn compress(n: usize, sorted: &[&[u64]], buckets: Buckets, value: Option<Value<'_>>) -> Result<Csr> {
    let entries = sorted.iter().map(|keys| keys.len()).sum();
    let mut offsets = zeros::<u64>(n + 1)?;
    let mut cols = zeros::<u32>(entries)?;
    let mut values = if value.is_some() { zeros::<f64>(entries)? } else { Vec::new() };
    let (mut c, mut v) = (&mut cols[..], &mut values[..]);
    let mut base = 0;
    let mut tasks = Vec::with_capacity(buckets.count);
    for (bucket, (keys, ends)) in sorted.iter().zip(offsets[1..].chunks_mut(1 << buckets.shift)).enumerate() {
        tasks.push((
            bucket,
            *keys,
            base,
            ends,
            split_front(&mut c, keys.len()),
            split_front(&mut v, keys.len()),
        ));
        base += keys.len() as u64;
    }
    run_all(tasks, |(bucket, keys, base, ends, cols, values)| {
        let mut at = 0;
        for (row, end) in ((bucket as u64) << buckets.shift..).zip(ends) {
            while at < keys.len() && keys[at] >> 32 == row {
                cols[at] = keys[at] as u32;
                if let Some(value) = value {
                    values[at] = value((row as u32, cols[at]));
                }
                at += 1;
            }
            *end = base + at as u64;
        }
    });
    let values = if value.is_some() { Values::F64(values) } else { Values::Ones };
    Csr::new(n, n, Offsets::narrowest(offsets), cols, values)
}
