//! Assembles a matrix from functions for its rows: all columns first, then all values. All threads write
//! directly into the final arrays. The content of a row depends only on the row's number, so the result is
//! independent of the number of threads.

use crate::error::Result;
use crate::format::{Csr, Offsets, Values};
use crate::parallel::{run_all, split_front, zeros};
use std::ops::Range;

/// Approximate number of entries per task, and the most rows per task.
const TASK_ENTRIES: usize = 1 << 16;
const TASK_ROWS: usize = 4096;

/// Dimensions of the matrix to assemble.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Number of entries: an upper bound or an estimate.
    pub(super) entries: u128,
}

impl Shape {
    /// Returns the shape of a square matrix with `row` entries a row, at most or on average.
    pub(super) fn square(n: usize, row: usize) -> Shape {
        Shape { rows: n, cols: n, entries: n as u128 * row as u128 }
    }

    /// Returns the shape of some rows of a square matrix.
    pub(super) fn rows_of_square(rows: &Range<usize>, n: usize, row: usize) -> Shape {
        Shape { rows: rows.len(), cols: n, entries: rows.len() as u128 * row as u128 }
    }

    /// Returns the bytes of the matrix, values included.
    pub(super) fn bytes(&self) -> u128 {
        let entry = (size_of::<u32>() + size_of::<f64>()) as u128;
        let offsets = (self.rows as u128 + 1) * size_of::<u64>() as u128;
        self.entries.saturating_mul(entry).saturating_add(offsets)
    }

    /// Returns the range of rows of each task.
    fn tasks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let mean = (self.entries / self.rows.max(1) as u128).max(1);
        let step = (TASK_ENTRIES as u128 / mean).clamp(1, TASK_ROWS as u128) as usize;
        let rows = self.rows;
        (0..rows).step_by(step).map(move |start| start..(start + step).min(rows))
    }
}

/// Assembles a pattern; every entry is 1. `length(i)` is the number of entries of row `i`, and
/// `row(i, columns)` writes their columns in ascending order.
pub(super) fn pattern(
    shape: Shape,
    length: impl Fn(usize) -> usize + Send + Sync,
    row: impl Fn(usize, &mut [u32]) + Send + Sync,
) -> Result<Csr> {
    pattern_from(0, shape, length, row)
}

/// Assembles the pattern of rows `first` and following of a matrix; the shape has the number of these rows.
pub(super) fn pattern_from(
    first: usize,
    shape: Shape,
    length: impl Fn(usize) -> usize + Send + Sync,
    row: impl Fn(usize, &mut [u32]) + Send + Sync,
) -> Result<Csr> {
    let mut offsets: Vec<u64> = zeros(shape.rows + 1)?;
    let mut rest = &mut offsets[1..];
    let tasks: Vec<_> = shape.tasks().map(|rows| (split_front(&mut rest, rows.len()), rows)).collect();
    run_all(tasks, |(lengths, rows)| {
        lengths.iter_mut().zip(rows).for_each(|(slot, i)| *slot = length(first + i) as u64);
    });
    for i in 0..shape.rows {
        offsets[i + 1] += offsets[i];
    }
    let mut columns: Vec<u32> = zeros(offsets[shape.rows] as usize)?;
    let mut rest = columns.as_mut_slice();
    let entries = |rows: &Range<usize>| (offsets[rows.end] - offsets[rows.start]) as usize;
    let tasks: Vec<_> = shape.tasks().map(|rows| (split_front(&mut rest, entries(&rows)), rows)).collect();
    run_all(tasks, |(mut columns, rows)| {
        for i in rows {
            row(first + i, split_front(&mut columns, (offsets[i + 1] - offsets[i]) as usize));
        }
    });
    Csr::new(shape.rows, shape.cols, Offsets::narrowest(offsets), columns, Values::Ones)
}

/// Adds values to a pattern: `row(i, columns, values)` writes the values of row `i`, which are
/// zeros before the call.
pub(super) fn valued(pattern: &Csr, row: impl Fn(usize, &[u32], &mut [f64]) + Send + Sync) -> Result<Csr> {
    valued_from(0, pattern, row)
}

/// Adds values to a pattern whose first row is row `first` of a matrix.
pub(super) fn valued_from(
    first: usize,
    pattern: &Csr,
    row: impl Fn(usize, &[u32], &mut [f64]) + Send + Sync,
) -> Result<Csr> {
    let mut values: Vec<f64> = zeros(pattern.nnz())?;
    let mut rest = values.as_mut_slice();
    let shape = Shape { rows: pattern.rows(), cols: pattern.cols(), entries: pattern.nnz() as u128 };
    let entries =
        |rows: &Range<usize>| pattern.row_range(rows.end - 1).end - pattern.row_range(rows.start).start;
    let tasks: Vec<_> = shape.tasks().map(|rows| (split_front(&mut rest, entries(&rows)), rows)).collect();
    run_all(tasks, |(mut values, rows)| {
        for i in rows {
            let range = pattern.row_range(i);
            let columns = &pattern.col_indices()[range];
            row(first + i, columns, split_front(&mut values, columns.len()));
        }
    });
    Csr::with_pattern(pattern.pattern().clone(), Values::F64(values))
}
