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

#[cfg(test)]
pub(super) mod checked;

use super::pieces::{cut, each_row, narrow, narrow_length, pieces_for};
use super::rows::offsets_of;
use super::values::{Stored, for_stored};
use super::{Csr, Offsets, Values};
use crate::error::{Error, FormatFault, Result};
use crate::parallel::{run_all, split_front, zeros};
use std::cmp::Reverse;
use std::ops::Range;

/// A validated matrix in SELL-C-sigma.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sell {
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

impl Sell {
    /// Converts a matrix to slices of `slice_height` rows (C), sorted in windows of
    /// `sort_window` rows (sigma).
    pub(crate) fn from_csr(matrix: &Csr, slice_height: usize, sort_window: usize) -> Result<Sell> {
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

    /// Returns the offset at which each slice begins, and the number of slots as the last offset.
    pub(crate) fn slice_offsets(&self) -> &Offsets {
        &self.slice_offsets
    }

    /// Returns the column index of each slot, slice by slice: the first entries of all lanes, then the
    /// second entries, and so on.
    pub(crate) fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// Returns the value of each slot in the same order.
    pub(crate) fn values(&self) -> &Values {
        &self.values
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
