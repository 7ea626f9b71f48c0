//! The transpose: a counting sort of the entries by column.
//!
//! Threads own contiguous bands of columns with about equally many entries each, and so disjoint parts of
//! every array of the result. Each thread visits all rows in order, and finds its part of a row by bisection;
//! as rows are visited in order, the column indices of the result are sorted. Memory is allocated only for
//! the result and for a sample of the column indices: the offsets of the result serve as counters. The work
//! of the bisection does not shrink with the number of threads.

use super::values::{Stored, for_stored};
use super::{Csr, Offset, Offsets, Pattern};
use crate::error::{CsrFault, Error, Result};
use crate::parallel::{run_all, split_front, threads_for, zeros};
use std::ops::Range;
use std::sync::Arc;

/// Size of the sample of column indices by which columns are cut into bands.
const SAMPLES: usize = 4096;

impl Csr {
    /// Returns the transpose.
    pub fn transposed(&self) -> Result<Csr> {
        transpose(self)
    }

    /// Returns the number of entries of each column.
    pub(crate) fn column_lengths(&self) -> Result<Vec<u32>> {
        column_lengths(self)
    }
}

fn transpose(matrix: &Csr) -> Result<Csr> {
    if matrix.rows() > u32::MAX as usize {
        return Err(Error::InvalidCsr(CsrFault::TooManyColumns { cols: matrix.rows() }));
    }
    for_stored!(matrix.values(), matrix.nnz(), |values| {
        if matrix.nnz() as u64 > Offsets::MOST_NARROW {
            sort::<u64, _>(matrix, values)
        } else {
            sort::<u32, _>(matrix, values)
        }
    })
}

/// Counts the entries of each column: pieces of the entries have counters of their own, which take at most as
/// much memory as the column indices.
fn column_lengths(matrix: &Csr) -> Result<Vec<u32>> {
    /// Columns whose counters a thread adds as one task.
    const COLUMNS: usize = 1 << 15;
    let (entries, cols) = (matrix.nnz(), matrix.cols());
    let pieces = threads_for(entries * 4).min(entries / cols.max(1)).max(1);
    let pieces = matrix.col_indices().chunks(entries.div_ceil(pieces).max(1)).collect();
    let counted = run_all(pieces, |columns: &[u32]| {
        let mut counts: Vec<u32> = zeros(cols)?;
        columns.iter().for_each(|&column| counts[column as usize] += 1);
        Ok(counts)
    });
    let mut counted = counted.into_iter().collect::<Result<Vec<_>>>()?.into_iter();
    let Some(mut lengths) = counted.next() else { return zeros(cols) };
    let others: Vec<Vec<u32>> = counted.collect();
    run_all(lengths.chunks_mut(COLUMNS).enumerate().collect(), |(piece, lengths): (usize, &mut [u32])| {
        for counts in &others {
            let counts = &counts[piece * COLUMNS..][..lengths.len()];
            lengths.iter_mut().zip(counts).for_each(|(length, count)| *length += count);
        }
    });
    Ok(lengths)
}

fn sort<O: Offset, T: Stored>(matrix: &Csr, values: &[T]) -> Result<Csr> {
    let (entries, cols) = (matrix.nnz(), matrix.cols());
    let threads = threads_for(entries * (4 + size_of::<T>()));
    let bands = bands(matrix.col_indices(), cols as u32, threads);
    // While entries are counted and moved, element `j + 1` belongs to column `j`: first it is the
    // number of entries, then the index of the column's next entry, and so in the end the offset
    // at which the column ends.
    let mut offsets: Vec<O> = zeros(cols + 1)?;
    let counters = split(&mut offsets[1..], &bands, |band| band.len());
    let tasks = bands.iter().cloned().zip(counters).collect();
    run_all(tasks, |(band, counts): (Range<u32>, &mut [O])| count(matrix, band, counts));
    let mut total = 0;
    for offset in &mut offsets[1..] {
        let count = offset.at();
        *offset = O::from_index(total);
        total += count;
    }
    let first = |band: &Range<u32>| offsets.get(band.start as usize + 1).map_or(total, |offset| offset.at());
    let starts: Vec<usize> = bands.iter().map(first).chain([total]).collect();
    let lengths = |i: usize| starts[i + 1] - starts[i];
    let (mut rows, mut sorted) = (zeros::<u32>(entries)?, zeros::<T>(entries)?);
    let tasks: Vec<_> = {
        let ends = split(&mut offsets[1..], &bands, |band| band.len());
        let (mut rows, mut sorted) = (&mut rows[..], &mut sorted[..]);
        let parts = ends.into_iter().enumerate().map(|(i, ends)| Band {
            columns: bands[i].clone(),
            base: starts[i],
            ends,
            rows: split_front(&mut rows, lengths(i)),
            values: split_front(&mut sorted, lengths(i)),
        });
        parts.collect()
    };
    run_all(tasks, |band| fill_band(matrix, values, band));
    let repeats = matrix.pattern().has_repeats();
    let pattern = Pattern::trusted(cols, matrix.rows(), O::wrap(offsets), rows, repeats);
    Csr::with_pattern(Arc::new(pattern), T::wrap(sorted))
}

/// Cuts the columns into bands with about equally many entries, estimated from a sample.
fn bands(columns: &[u32], cols: u32, threads: usize) -> Vec<Range<u32>> {
    let mut sample: Vec<u32> = columns.iter().step_by((columns.len() / SAMPLES).max(1)).copied().collect();
    sample.sort_unstable();
    let mut bands = Vec::new();
    let mut start = 0;
    for part in 1..=threads {
        let end = if part == threads { cols } else { sample[sample.len() * part / threads] };
        if end > start {
            bands.push(start..end);
            start = end;
        }
    }
    bands
}

/// Cuts an array into one part for each band.
fn split<'a, T>(
    mut array: &'a mut [T],
    bands: &[Range<u32>],
    length: impl Fn(&Range<u32>) -> usize,
) -> Vec<&'a mut [T]> {
    bands.iter().map(|band| split_front(&mut array, length(band))).collect()
}

/// Returns the entries of a row from the first one within a band to the end of the row.
fn part_of_row(matrix: &Csr, row: usize, band: &Range<u32>) -> Range<usize> {
    let range = matrix.row_range(row);
    if band.start == 0 {
        return range;
    }
    let before = matrix.col_indices()[range.clone()].partition_point(|&col| col < band.start);
    range.start + before..range.end
}

fn count<O: Offset>(matrix: &Csr, band: Range<u32>, counts: &mut [O]) {
    for row in 0..matrix.rows() {
        let columns = &matrix.col_indices()[part_of_row(matrix, row, &band)];
        for col in columns.iter().take_while(|&&col| col < band.end) {
            let count = &mut counts[(col - band.start) as usize];
            *count = O::from_index(count.at() + 1);
        }
    }
}

/// The part of the result that one thread owns.
struct Band<'a, O, T> {
    columns: Range<u32>,
    /// The first entry.
    base: usize,
    ends: &'a mut [O],
    rows: &'a mut [u32],
    values: &'a mut [T],
}

fn fill_band<O: Offset, T: Stored>(matrix: &Csr, values: &[T], band: Band<O, T>) {
    for row in 0..matrix.rows() {
        let range = part_of_row(matrix, row, &band.columns);
        let entries = matrix.col_indices()[range.clone()].iter().zip(&values[range]);
        for (&col, &value) in entries.take_while(|&(&col, _)| col < band.columns.end) {
            let next = &mut band.ends[(col - band.columns.start) as usize];
            let slot = next.at() - band.base;
            *next = O::from_index(next.at() + 1);
            (band.rows[slot], band.values[slot]) = (row as u32, value);
        }
    }
}
