//! SELL-C-sigma: slices of C rows, each padded to the longest row of the slice, after rows of similar
//! length have been grouped.
//!
//! Rows are sorted by length, longest first, within windows of sigma rows; rows of equal length keep their
//! order. sigma = 1 sorts no rows, and sigma = rows sorts all of them. `permutation[p]` is the row of the
//! matrix at position `p`: a product computes one sum per position and stores that of position `p` in
//! `y[permutation[p]]`; x is not permuted. Slice `s` holds the C positions from `s * C` on. Entry `j` of lane
//! `l` of the slice is at index `slice_offsets[s] + j * C + l`, and the slice is
//! `(slice_offsets[s + 1] - slice_offsets[s]) / C` entries wide. Lanes of the last slice beyond the last row
//! are padding only. Padding, and its treatment in a product, are as in ELL.
//!
//! Moritz Kreutzer, Georg Hager, Gerhard Wellein, Holger Fehske, Alan R. Bishop: A unified sparse
//! matrix data format for efficient general sparse matrix-vector multiplication on modern processors
//! with wide SIMD units, 2014.

use super::ell::Lane;
use super::pieces::{cut, each_row, narrow, narrow_length, pieces_for};
use super::renumber::check_permutation;
use super::rows::{build_rows, offsets_of};
use super::values::{Stored, for_stored};
use super::{Csr, Offsets, Values};
use crate::error::{Error, FormatFault, Result};
use crate::parallel::{run_all, split_front, zeros};
use std::cmp::Reverse;
use std::ops::Range;

/// A validated matrix in SELL-C-sigma.
#[derive(Clone, Debug, PartialEq)]
pub struct Sell {
    rows: usize,
    cols: usize,
    entries: usize,
    slice_height: usize,
    sort_window: usize,
    permutation: Vec<u32>,
    row_lengths: Vec<u32>,
    slice_offsets: Offsets,
    col_indices: Vec<u32>,
    values: Values,
}

/// The arrays of a [`Sell`] matrix, for [`Sell::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct SellParts {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// C: rows of a slice.
    pub slice_height: usize,
    /// Sigma: rows of a sorting window.
    pub sort_window: usize,
    /// The row of the matrix at each position.
    pub permutation: Vec<u32>,
    /// The number of entries of the row at each position.
    pub row_lengths: Vec<u32>,
    /// The offset at which each slice begins, and the number of slots as the last offset.
    pub slice_offsets: Offsets,
    /// The column index of each slot, which holds an entry or padding.
    pub col_indices: Vec<u32>,
    /// The value of each slot in the same order.
    pub values: Values,
}

impl Sell {
    /// Checks the arrays and takes ownership of them. Rows must be in their window, but need
    /// not be sorted by length.
    pub fn new(parts: SellParts) -> Result<Sell> {
        let SellParts { rows, cols, slice_height, sort_window, permutation, row_lengths, .. } = parts;
        let entries = row_lengths.iter().map(|&length| length as usize).sum();
        let SellParts { slice_offsets, col_indices, values, .. } = parts;
        let matrix = Sell {
            rows,
            cols,
            entries,
            slice_height,
            sort_window,
            permutation,
            row_lengths,
            slice_offsets,
            col_indices,
            values,
        };
        matrix.check().map_err(|fault| Error::InvalidFormat { format: "SELL", fault })?;
        Ok(matrix)
    }

    fn check(&self) -> std::result::Result<(), FormatFault> {
        check_parameters(self.slice_height, self.sort_window)?;
        if self.cols > u32::MAX as usize {
            return Err(FormatFault::TooManyColumns { cols: self.cols });
        }
        let slices = self.rows.div_ceil(self.slice_height);
        for (array, got, expected) in [
            ("permutation", self.permutation.len(), self.rows as u128),
            ("row_lengths", self.row_lengths.len(), self.rows as u128),
            ("slice_offsets", self.slice_offsets.len(), slices as u128 + 1),
        ] {
            if got as u128 != expected {
                return Err(FormatFault::Length { array, got, expected });
            }
        }
        check_permutation(&self.permutation, self.rows, self.sort_window)?;
        let mut expected = 0_u128;
        for slice in 0..=slices {
            let got = self.slice_offsets.get(slice) as u64;
            if u128::from(got) != expected {
                return Err(FormatFault::SliceOffset { slice, got, expected });
            }
            if slice < slices {
                let width = widest(&self.row_lengths, self.slice_height, slice);
                expected += u128::from(width) * self.slice_height as u128;
            }
        }
        for (array, got) in [("col_indices", Some(self.col_indices.len())), ("values", self.values.stored())]
        {
            if let Some(got) = got.filter(|&got| got as u128 != expected) {
                return Err(FormatFault::Length { array, got, expected });
            }
        }
        for_stored!(&self.values, self.col_indices.len(), |values| self.check_entries(values))
    }

    fn check_entries<T: Stored>(&self, values: &[T]) -> std::result::Result<(), FormatFault> {
        let height = self.slice_height;
        let bands = cut(self.slices(), pieces_for(4 * values.len()), |slice| self.slice_offsets.get(slice));
        let checked = run_all(bands, |mut band| {
            band.try_for_each(|slice| {
                let base = self.slice_offsets.get(slice);
                let width = (self.slice_offsets.get(slice + 1) - base) / height;
                (0..height).try_for_each(|lane| {
                    let position = slice * height + lane;
                    let row = self.permutation.get(position).map(|&row| row as usize);
                    let length = self.row_lengths.get(position).copied().unwrap_or(0);
                    let lane = Lane { row, first: base + lane, step: height, width };
                    lane.check(length, &self.col_indices, values, self.cols)
                })
            })
        });
        checked.into_iter().collect()
    }

    /// Converts a matrix to slices of `slice_height` rows (C), sorted in windows of
    /// `sort_window` rows (sigma).
    pub fn from_csr(matrix: &Csr, slice_height: usize, sort_window: usize) -> Result<Sell> {
        check_parameters(slice_height, sort_window)
            .map_err(|fault| Error::InvalidFormat { format: "SELL", fault })?;
        matrix.pattern().refuse_repeats()?;
        let permutation = sort(matrix, sort_window)?;
        let row_lengths = each_row(matrix.rows(), 4 * matrix.rows(), |position| {
            narrow_length(matrix.row_range(permutation[position] as usize).len())
        })?;
        let slices = matrix.rows().div_ceil(slice_height);
        let widths =
            each_row(slices, 4 * matrix.rows(), |slice| Ok(widest(&row_lengths, slice_height, slice)))?;
        let slice_offsets = offsets_of(&widths, slice_height)?;
        let sorted =
            Sorted { matrix, permutation: &permutation, slice_offsets: &slice_offsets, slice_height };
        let (col_indices, values) =
            for_stored!(matrix.values(), matrix.nnz(), |values| sorted.pad(values)?);
        Ok(Sell {
            rows: matrix.rows(),
            cols: matrix.cols(),
            entries: matrix.nnz(),
            slice_height,
            sort_window,
            permutation,
            row_lengths,
            slice_offsets,
            col_indices,
            values,
        })
    }

    /// Converts to compressed rows, bit for bit those that the matrix was built from.
    pub fn to_csr(&self) -> Result<Csr> {
        let (mut position_of, mut lengths) = (zeros::<u32>(self.rows)?, zeros::<u32>(self.rows)?);
        for (position, (&row, &length)) in self.permutation.iter().zip(&self.row_lengths).enumerate() {
            (position_of[row as usize], lengths[row as usize]) = (position as u32, length);
        }
        let height = self.slice_height;
        for_stored!(&self.values, self.col_indices.len(), |values| {
            build_rows((self.rows, self.cols), &lengths, false, |row, columns_out, values_out| {
                let position = position_of[row] as usize;
                let first = self.slice_offsets.get(position / height) + position % height;
                let slots = (first..).step_by(height);
                for ((slot, col), value) in slots.zip(columns_out).zip(values_out) {
                    (*col, *value) = (self.col_indices[slot], values[slot]);
                }
            })
        })
    }

    /// Returns the number of entries, including explicit zeros but not padding.
    pub fn nnz(&self) -> usize {
        self.entries
    }

    /// Returns C, the number of rows of a slice.
    pub fn slice_height(&self) -> usize {
        self.slice_height
    }

    /// Returns sigma, the number of rows of a sorting window.
    pub fn sort_window(&self) -> usize {
        self.sort_window
    }

    /// Returns the number of slices.
    pub fn slices(&self) -> usize {
        self.slice_offsets.len() - 1
    }

    /// Returns the number of slots without an entry.
    pub fn padding(&self) -> usize {
        self.col_indices.len() - self.entries
    }

    /// Returns the row of the matrix at each position.
    pub fn permutation(&self) -> &[u32] {
        &self.permutation
    }

    /// Returns the number of entries of the row at each position.
    pub fn row_lengths(&self) -> &[u32] {
        &self.row_lengths
    }

    /// Returns the offset at which each slice begins, and the number of slots as the last offset.
    pub fn slice_offsets(&self) -> &Offsets {
        &self.slice_offsets
    }

    /// Returns the column index of each slot, slice by slice: the first entries of all lanes, then the
    /// second entries, and so on.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// Returns the value of each slot in the same order.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Returns the bytes of the arrays: permutation, row lengths, slice offsets, column indices and values.
    pub fn storage_bytes(&self) -> u64 {
        let offsets = self.slice_offsets.len() * self.slice_offsets.width();
        (self.rows * 8 + offsets + self.col_indices.len() * (4 + self.values.width())) as u64
    }
}

fn check_parameters(slice_height: usize, sort_window: usize) -> std::result::Result<(), FormatFault> {
    for (name, got) in
        [("the height of a slice (C)", slice_height), ("the sorting window (sigma)", sort_window)]
    {
        if got == 0 {
            return Err(FormatFault::Parameter { name, got, allowed: "at least 1" });
        }
    }
    Ok(())
}

/// Returns the length of the longest row of a slice.
fn widest(row_lengths: &[u32], slice_height: usize, slice: usize) -> u32 {
    let first = slice * slice_height;
    let end = first.saturating_add(slice_height).min(row_lengths.len());
    row_lengths[first..end].iter().max().copied().unwrap_or(0)
}

/// Returns the rows sorted by length within windows, longest first.
fn sort(matrix: &Csr, window: usize) -> Result<Vec<u32>> {
    if let Some(last) = matrix.rows().checked_sub(1) {
        narrow(last, "a row index", "32-bit row indices")?;
    }
    let mut permutation = each_row(matrix.rows(), 4 * matrix.rows(), |row| Ok(row as u32))?;
    if window > 1 {
        let windows = matrix.rows().div_ceil(window);
        let together = windows.div_ceil(pieces_for(4 * matrix.rows())).max(1).saturating_mul(window);
        run_all(permutation.chunks_mut(together).collect(), |rows: &mut [u32]| {
            for window in rows.chunks_mut(window) {
                window.sort_by_key(|&row| Reverse(matrix.row_range(row as usize).len()));
            }
        });
    }
    Ok(permutation)
}

/// The conversion of a matrix whose row order and slice offsets are computed.
struct Sorted<'a> {
    matrix: &'a Csr,
    permutation: &'a [u32],
    slice_offsets: &'a Offsets,
    slice_height: usize,
}

impl Sorted<'_> {
    fn pad<T: Stored>(&self, values: &[T]) -> Result<(Vec<u32>, Values)> {
        let slices = self.slice_offsets.len() - 1;
        let places = self.slice_offsets.get(slices);
        let (mut columns_out, mut values_out) = (zeros::<u32>(places)?, zeros::<T>(places)?);
        let (mut columns_left, mut values_left) = (&mut columns_out[..], &mut values_out[..]);
        let mut bands = Vec::new();
        let pieces = pieces_for(4 * places);
        for band in cut(slices, pieces, |slice| self.slice_offsets.get(slice).saturating_add(slice)) {
            let length = self.slice_offsets.get(band.end) - self.slice_offsets.get(band.start);
            bands.push((band, split_front(&mut columns_left, length), split_front(&mut values_left, length)));
        }
        run_all(bands, |(band, mut columns_out, mut values_out): (Range<usize>, &mut [u32], &mut [T])| {
            for slice in band {
                let length = self.slice_offsets.get(slice + 1) - self.slice_offsets.get(slice);
                let columns_out = split_front(&mut columns_out, length);
                self.pad_slice(slice, values, columns_out, split_front(&mut values_out, length));
            }
        });
        Ok((columns_out, T::wrap(values_out)))
    }

    fn pad_slice<T: Stored>(
        &self,
        slice: usize,
        values: &[T],
        columns_out: &mut [u32],
        values_out: &mut [T],
    ) {
        let first = slice * self.slice_height;
        // Lanes without a row stay zero.
        for (lane, &row) in self.permutation[first..].iter().take(self.slice_height).enumerate() {
            let (columns, range) =
                (self.matrix.row_columns(row as usize), self.matrix.row_range(row as usize));
            let values = &values[range];
            let last = columns.last().copied().unwrap_or(0);
            for (entry, to) in (lane..columns_out.len()).step_by(self.slice_height).enumerate() {
                columns_out[to] = columns.get(entry).copied().unwrap_or(last);
                values_out[to] = values.get(entry).copied().unwrap_or_else(T::zeroed);
            }
        }
    }
}
