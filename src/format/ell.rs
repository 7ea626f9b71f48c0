//! ELLPACK: every row padded to the length of the longest row, stored column by column.
//!
//! Entry `j` of row `i` is at index `j * rows + i` of `col_indices` and `values`, so that threads of adjacent
//! rows read adjacent memory. Shorter rows are padded with the value +0 and a valid column index: the row's
//! last one, or 0. The row lengths are stored. A product may include the padding, which is wrong only if x is
//! not finite at the padding's column (0 times infinity is NaN). Or a product stops at each row's length,
//! which is always right, and required if all values are implicitly 1, because padding then has no stored
//! value 0. Matrices with repeated column indices are refused.

#[cfg(test)]
mod checked;

use super::pieces::{cut, each_row, narrow_length, pieces_for};
use super::values::{Stored, for_stored};
use super::{Csr, Values};
use crate::error::{Error, FormatFault, Result};
use crate::parallel::{run_all, split_front, threads_for, zeros};
use std::ops::Range;

/// A validated matrix in ELLPACK.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ell {
    rows: usize,
    cols: usize,
    entries: usize,
    row_lengths: Vec<u32>,
    col_indices: Vec<u32>,
    values: Values,
}

impl Ell {
    /// Checks the arrays and takes ownership of them. The width is the largest of `row_lengths`.
    pub(crate) fn new(
        rows: usize,
        cols: usize,
        row_lengths: Vec<u32>,
        col_indices: Vec<u32>,
        values: Values,
    ) -> Result<Ell> {
        let entries = row_lengths.iter().map(|&length| length as usize).sum();
        let matrix = Ell { rows, cols, entries, row_lengths, col_indices, values };
        matrix.check().map_err(|fault| Error::InvalidFormat { format: "ELL", fault })?;
        Ok(matrix)
    }

    fn check(&self) -> std::result::Result<(), FormatFault> {
        if self.cols > u32::MAX as usize {
            return Err(FormatFault::TooManyColumns { cols: self.cols });
        }
        let places = self.rows as u128 * self.width() as u128;
        for (array, got, expected) in [
            ("row_lengths", Some(self.row_lengths.len()), self.rows as u128),
            ("col_indices", Some(self.col_indices.len()), places),
            ("values", self.values.stored(), places),
        ] {
            if let Some(got) = got.filter(|&got| got as u128 != expected) {
                return Err(FormatFault::Length { array, got, expected });
            }
        }
        for_stored!(&self.values, self.col_indices.len(), |values| {
            let bands = cut(self.rows, pieces_for(4 * values.len()), |row| row);
            let checked = run_all(bands, |mut band| {
                band.try_for_each(|row| {
                    let lane = Lane { row: Some(row), first: row, step: self.rows, width: self.width() };
                    lane.check(self.row_lengths[row], &self.col_indices, values, self.cols)
                })
            });
            checked.into_iter().collect()
        })
    }

    /// Converts a matrix. Fails if the padded matrix has more than `most` slots per entry.
    pub(crate) fn with_limit(matrix: &Csr, most: usize) -> Result<Ell> {
        matrix.pattern().refuse_repeats()?;
        let (rows, entries) = (matrix.rows(), matrix.nnz());
        let row_lengths = each_row(rows, 4 * rows, |row| narrow_length(matrix.row_range(row).len()))?;
        let width = row_lengths.iter().max().map_or(0, |&width| width as usize);
        let places = rows as u128 * width as u128;
        if places > entries as u128 * most as u128 {
            return Err(Error::Padding { rows, width, places, entries, most });
        }
        let places = usize::try_from(places).map_err(|_| Error::OutOfMemory { bytes: places * 4 })?;
        let (col_indices, values) =
            for_stored!(matrix.values(), entries, |values| pad(matrix, values, width, places)?);
        Ok(Ell { rows, cols: matrix.cols(), entries, row_lengths, col_indices, values })
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the number of slots of every row: the length of the longest row.
    pub(crate) fn width(&self) -> usize {
        self.row_lengths.iter().max().map_or(0, |&width| width as usize)
    }

    /// Returns the number of entries of each row.
    pub(crate) fn row_lengths(&self) -> &[u32] {
        &self.row_lengths
    }

    /// Returns the column index of each slot: the first entries of all rows, then the second
    /// entries, and so on.
    pub(crate) fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// Returns the value of each slot in the same order.
    pub(crate) fn values(&self) -> &Values {
        &self.values
    }
}

/// Fills the padded arrays. Each thread fills some of the columns, one tile of rows after the other.
fn pad<T: Stored>(matrix: &Csr, values: &[T], width: usize, places: usize) -> Result<(Vec<u32>, Values)> {
    /// Rows of a tile: few enough to stay in cache.
    const TILE: usize = 512;
    let rows = matrix.rows();
    let (mut columns_out, mut values_out) = (zeros::<u32>(places)?, zeros::<T>(places)?);
    let (mut columns_left, mut values_left) = (&mut columns_out[..], &mut values_out[..]);
    let mut parts = Vec::new();
    for band in cut(width, threads_for(4 * places), |column| column) {
        let length = band.len() * rows;
        parts.push((band, split_front(&mut columns_left, length), split_front(&mut values_left, length)));
    }
    run_all(parts, |(band, columns_out, values_out): (Range<usize>, &mut [u32], &mut [T])| {
        for row in (0..rows).step_by(TILE) {
            for row in row..(row + TILE).min(rows) {
                let range = matrix.row_range(row);
                let (columns, values) = (matrix.row_columns(row), &values[range]);
                let last = columns.last().copied().unwrap_or(0);
                for entry in band.clone() {
                    let to = (entry - band.start) * rows + row;
                    columns_out[to] = columns.get(entry).copied().unwrap_or(last);
                    values_out[to] = values.get(entry).copied().unwrap_or_else(T::zeroed);
                }
            }
        }
    });
    Ok((columns_out, T::wrap(values_out)))
}

/// The slots of one padded row: `first`, `first + step`, ...
pub(super) struct Lane {
    /// The row in this lane; none for a lane that only pads a slice.
    pub row: Option<usize>,
    pub first: usize,
    pub step: usize,
    pub width: usize,
}

impl Lane {
    /// Checks the `length` entries of the lane and the padding after them.
    pub(crate) fn check<T: Stored>(
        &self,
        length: u32,
        columns: &[u32],
        values: &[T],
        cols: usize,
    ) -> std::result::Result<(), FormatFault> {
        let mut before = None;
        for entry in 0..self.width {
            let index = self.first + entry * self.step;
            let col = columns[index];
            match self.row.filter(|_| entry < length as usize) {
                Some(row) => {
                    if let Some(before) = before.filter(|&before| before >= col) {
                        return Err(FormatFault::ColumnOrder { row, col: before, next: col });
                    }
                    if col as usize >= cols {
                        return Err(FormatFault::ColumnRange { row, col, cols });
                    }
                    before = Some(col);
                }
                None if col as usize >= cols => return Err(FormatFault::PaddingColumn { index, col, cols }),
                None if !values[index].is_fill() => {
                    return Err(FormatFault::PaddingValue { index, value: values[index].text() });
                }
                None => {}
            }
        }
        Ok(())
    }
}
