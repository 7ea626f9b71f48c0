//! ELLPACK: every row as long as the longest one, stored column by column.
//!
//! Entry `j` of row `i` stands at `j * rows + i` of `col_indices` and `values`, so that threads which own neighbouring
//! rows read neighbouring places. Shorter rows are padded with +0 at a column that exists: the row's last one, or 0.
//! The lengths of rows are kept. A product may run over the padding, which is wrong only where x is not finite there
//! (0 times infinity is NaN), or stop at each row's length, which is always right and the only way with implicit ones:
//! these have no values to be 0. Rows with a column several times are refused.

use super::pieces::{cut, each_row, narrow_length, pieces_for};
use super::rows::build_rows;
use super::values::{Stored, for_stored};
use super::{Csr, Values};
use crate::error::{Error, FormatFault, Result};
use crate::parallel::{run_all, split_front, threads_for, zeros};
use std::ops::Range;

/// A validated matrix in ELLPACK.
#[derive(Clone, Debug, PartialEq)]
pub struct Ell {
    rows: usize,
    cols: usize,
    entries: usize,
    row_lengths: Vec<u32>,
    col_indices: Vec<u32>,
    values: Values,
}

impl Ell {
    /// Places for each entry beyond which [`Ell::from_csr`] refuses: four times the memory of a format without padding
    /// would be reason enough to take another.
    pub const MOST_PLACES: usize = 4;

    /// Checks the arrays and takes them over; the width is the largest of `row_lengths`.
    pub fn new(
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

    /// The same matrix padded; refused where that takes more than [`Ell::MOST_PLACES`] places for each entry.
    pub fn from_csr(matrix: &Csr) -> Result<Ell> {
        Ell::with_limit(matrix, Ell::MOST_PLACES)
    }

    /// Likewise, with at most so many places for each entry.
    pub fn with_limit(matrix: &Csr, most: usize) -> Result<Ell> {
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

    /// Compressed rows again: the very matrix that it was made from.
    pub fn to_csr(&self) -> Result<Csr> {
        for_stored!(&self.values, self.col_indices.len(), |values| {
            build_rows((self.rows, self.cols), &self.row_lengths, false, |row, columns_out, values_out| {
                let places = (row..).step_by(self.rows);
                for ((place, col), value) in places.zip(columns_out).zip(values_out) {
                    (*col, *value) = (self.col_indices[place], values[place]);
                }
            })
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries, explicit zeros included, padding not.
    pub fn nnz(&self) -> usize {
        self.entries
    }

    /// Places of every row: the length of the longest.
    pub fn width(&self) -> usize {
        self.row_lengths.iter().max().map_or(0, |&width| width as usize)
    }

    /// Places that hold no entry.
    pub fn padding(&self) -> usize {
        self.col_indices.len() - self.entries
    }

    /// The number of entries of each row.
    pub fn row_lengths(&self) -> &[u32] {
        &self.row_lengths
    }

    /// The column of each place, first entries of all rows first.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// The value of each place in the same order.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Bytes of the arrays: lengths of rows, column indices and values.
    pub fn storage_bytes(&self) -> u64 {
        (self.row_lengths.len() * 4 + self.col_indices.len() * (4 + self.values.width())) as u64
    }
}

/// Each thread fills some of the columns of the padded arrays, a tile of rows after the other.
fn pad<T: Stored>(matrix: &Csr, values: &[T], width: usize, places: usize) -> Result<(Vec<u32>, Values)> {
    /// Rows of a tile: so few that they stay in cache.
    const TILE: usize = 512;
    let rows = matrix.rows();
    let (mut columns_out, mut values_out) = (zeros::<u32>(places)?, zeros::<T>(places)?);
    let (mut columns_left, mut values_left) = (&mut columns_out[..], &mut values_out[..]);
    let mut parts = Vec::new();
    for band in cut(width, threads_for(4 * places), |place| place) {
        let length = band.len() * rows;
        parts.push((band, split_front(&mut columns_left, length), split_front(&mut values_left, length)));
    }
    run_all(parts, |(band, columns_out, values_out): (Range<usize>, &mut [u32], &mut [T])| {
        for row in (0..rows).step_by(TILE) {
            for row in row..(row + TILE).min(rows) {
                let range = matrix.row_range(row);
                let (columns, values) = (matrix.row_columns(row), &values[range]);
                let last = columns.last().copied().unwrap_or(0);
                for place in band.clone() {
                    let to = (place - band.start) * rows + row;
                    columns_out[to] = columns.get(place).copied().unwrap_or(last);
                    values_out[to] = values.get(place).copied().unwrap_or_else(T::zeroed);
                }
            }
        }
    });
    Ok((columns_out, T::wrap(values_out)))
}

/// The places of one padded row: `first`, `first + step`, ...
pub(super) struct Lane {
    /// The row that it holds; none for a lane that only fills a slice.
    pub row: Option<usize>,
    pub first: usize,
    pub step: usize,
    pub width: usize,
}

impl Lane {
    /// Checks entries, of which there are `length`, and the padding after them.
    pub fn check<T: Stored>(
        &self,
        length: u32,
        columns: &[u32],
        values: &[T],
        cols: usize,
    ) -> std::result::Result<(), FormatFault> {
        let mut before = None;
        for place in 0..self.width {
            let index = self.first + place * self.step;
            let col = columns[index];
            match self.row.filter(|_| place < length as usize) {
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
