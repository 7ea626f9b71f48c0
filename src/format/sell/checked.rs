//! Matrices from arrays of any origin, which are checked, the way back to compressed rows, and the arrays
//! that no product reads. Only tests need them: they check with them what a conversion makes.

use super::{Sell, check_parameters, widest};
use crate::error::{Error, FormatFault, Result};
use crate::format::ell::Lane;
use crate::format::pieces::{cut, pieces_for};
use crate::format::renumber::check_permutation;
use crate::format::rows::build_rows;
use crate::format::values::{Stored, for_stored};
use crate::format::{Csr, Offsets, Values};
use crate::parallel::{run_all, zeros};

/// The arrays of a [`Sell`] matrix, for [`Sell::new`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SellParts {
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
    pub(crate) fn new(parts: SellParts) -> Result<Sell> {
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

    /// Converts to compressed rows, bit for bit those that the matrix was built from.
    pub(crate) fn to_csr(&self) -> Result<Csr> {
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
    pub(crate) fn nnz(&self) -> usize {
        self.entries
    }

    /// Returns C, the number of rows of a slice.
    pub(crate) fn slice_height(&self) -> usize {
        self.slice_height
    }

    /// Returns sigma, the number of rows of a sorting window.
    pub(crate) fn sort_window(&self) -> usize {
        self.sort_window
    }

    /// Returns the number of slices.
    pub(crate) fn slices(&self) -> usize {
        self.slice_offsets.len() - 1
    }

    /// Returns the number of slots without an entry.
    pub(crate) fn padding(&self) -> usize {
        self.col_indices.len() - self.entries
    }

    /// Returns the row of the matrix at each position.
    pub(crate) fn permutation(&self) -> &[u32] {
        &self.permutation
    }

    /// Returns the number of entries of the row at each position.
    pub(crate) fn row_lengths(&self) -> &[u32] {
        &self.row_lengths
    }

    /// Returns the bytes of the arrays: permutation, row lengths, slice offsets, column indices and values.
    pub(crate) fn storage_bytes(&self) -> u64 {
        let offsets = self.slice_offsets.len() * self.slice_offsets.width();
        (self.rows * 8 + offsets + self.col_indices.len() * (4 + self.values.width())) as u64
    }
}
