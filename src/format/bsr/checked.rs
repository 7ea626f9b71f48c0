//! Matrices from arrays of any origin, which are checked, and the way back to compressed rows. Only tests
//! need them: they check with them what a conversion makes.

use super::{Bsr, BsrParts, check_block};
use crate::error::{Error, FormatFault, Result};
use crate::format::Csr;
use crate::format::pattern::{self, Pattern};
use crate::format::pieces::{cut, each_row, narrow_length, pieces_for};
use crate::format::rows::build_rows;
use crate::format::values::{Stored, for_stored};
use crate::parallel::run_all;

impl Bsr {
    /// Checks the arrays and takes ownership of them.
    pub(crate) fn new(parts: BsrParts) -> Result<Bsr> {
        checked(parts).map_err(|fault| Error::InvalidFormat { format: "BSR", fault })
    }

    /// Converts to compressed rows, with every value that is not +0.
    pub(crate) fn to_csr(&self) -> Result<Csr> {
        for_stored!(&self.values, 0, |values| {
            let kept = |row| self.elements(row).filter(|&(_, index)| !values[index].is_fill());
            let bytes = size_of_val(values);
            let lengths = each_row(self.rows, bytes, |row| narrow_length(kept(row).count()))?;
            build_rows((self.rows, self.cols), &lengths, false, |row, columns_out, values_out| {
                for ((col, index), (col_out, value_out)) in
                    kept(row).zip(columns_out.iter_mut().zip(values_out))
                {
                    (*col_out, *value_out) = (col, values[index]);
                }
            })
        })
    }

    /// Returns the column and the value index of every block element of a row that lies inside the matrix.
    fn elements(&self, row: usize) -> impl Iterator<Item = (u32, usize)> + '_ {
        let (height, width) = self.block;
        let (block_row, inner) = (row / height, row % height);
        let blocks = self.pattern.row_offsets.get(block_row)..self.pattern.row_offsets.get(block_row + 1);
        blocks.flat_map(move |block| {
            let first = self.pattern.col_indices[block] as usize * width;
            let value = (block * height + inner) * width;
            (0..width.min(self.cols - first)).map(move |c| ((first + c) as u32, value + c))
        })
    }

    /// Returns the number of entries, including explicit zeros but not fill.
    pub(crate) fn nnz(&self) -> usize {
        self.entries
    }

    /// Returns the number of block elements without an entry.
    pub(crate) fn padding(&self) -> usize {
        self.blocks() * self.block.0 * self.block.1 - self.entries
    }

    fn check_values<T: Stored>(&self, values: &[T]) -> std::result::Result<(), FormatFault> {
        let bands = cut(self.block_rows(), pieces_for(size_of_val(values)), |row| {
            self.pattern.row_offsets.get(row).saturating_add(row)
        });
        let mut nonzero = 0;
        for count in run_all(bands, |mut band| {
            band.try_fold(0, |sum, block_row| Ok(sum + self.check_block_row(block_row, values)?))
        }) {
            nonzero += count?;
        }
        if self.entries < nonzero || self.entries > values.len() {
            return Err(FormatFault::Entries { entries: self.entries, nonzero, stored: values.len() });
        }
        Ok(())
    }

    /// Counts the values other than +0. Fails if one of them lies outside the matrix.
    fn check_block_row<T: Stored>(
        &self,
        block_row: usize,
        values: &[T],
    ) -> std::result::Result<usize, FormatFault> {
        let (height, width) = self.block;
        let rows_inside = self.rows - block_row * height;
        let mut nonzero = 0;
        for block in self.pattern.row_offsets.get(block_row)..self.pattern.row_offsets.get(block_row + 1) {
            let cols_inside = self.cols - self.pattern.col_indices[block] as usize * width;
            let size = height * width;
            for (element, value) in values[block * size..][..size].iter().enumerate() {
                if value.is_fill() {
                    continue;
                }
                if element / width >= rows_inside || element % width >= cols_inside {
                    let index = block * size + element;
                    return Err(FormatFault::PaddingValue { index, value: value.text() });
                }
                nonzero += 1;
            }
        }
        Ok(nonzero)
    }
}

fn checked(parts: BsrParts) -> std::result::Result<Bsr, FormatFault> {
    let BsrParts { rows, cols, block, entries, block_offsets, block_columns, values } = parts;
    check_block(block)?;
    if cols > u32::MAX as usize {
        return Err(FormatFault::TooManyColumns { cols });
    }
    let (block_rows, block_cols) = (rows.div_ceil(block.0), cols.div_ceil(block.1));
    pattern::check(block_rows, block_cols, &block_offsets, &block_columns, false)
        .map_err(FormatFault::Blocks)?;
    let pattern = Pattern::trusted(block_rows, block_cols, block_offsets, block_columns, false);
    let got = values.stored().ok_or(FormatFault::ImplicitOnes)?;
    let expected = (pattern.col_indices.len() as u128 * block.0 as u128).saturating_mul(block.1 as u128);
    if got as u128 != expected {
        return Err(FormatFault::Length { array: "values", got, expected });
    }
    let matrix = Bsr { rows, cols, block, entries, pattern, values };
    for_stored!(&matrix.values, 0, |values| matrix.check_values(values))?;
    Ok(matrix)
}
