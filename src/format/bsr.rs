//! Blocked sparse rows: dense blocks of R x C, aligned to multiples of R and C.
//!
//! Block row `i` holds the blocks `block_offsets[i] .. block_offsets[i + 1]`, with strictly increasing block
//! columns. Element (r, c) of block `b` is `values[(b * R + r) * C + c]`. Elements without an entry are
//! filled with +0. If R does not divide the rows, or C the columns, the last blocks extend beyond the matrix,
//! and the elements outside are +0 too. The size and the number of entries of the matrix are stored.
//!
//! Fill cannot be distinguished from an entry of +0, so the conversion back to CSR drops such entries; all
//! other values, -0 and NaN included, are returned bit for bit. Fill is not an implicit one, so implicit ones
//! are stored, in double precision. Matrices with repeated column indices are refused.

#[cfg(test)]
mod checked;

use super::pieces::{cut, each_row, narrow, narrow_length, pieces_for};
use super::rows::offsets_of;
use super::values::Stored;
use super::{Csr, Offsets, Pattern, Values};
use crate::error::{Error, FormatFault, Result};
use crate::parallel::{run_all, split_front, zeros};
use std::ops::Range;

/// A validated matrix in blocked sparse rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bsr {
    rows: usize,
    cols: usize,
    block: (usize, usize),
    entries: usize,
    /// The pattern of the blocks.
    pattern: Pattern,
    values: Values,
}

/// The arrays of a [`Bsr`] matrix, for [`Bsr::new`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BsrParts {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Rows and columns of a block.
    pub block: (usize, usize),
    /// Number of entries of the matrix, without fill.
    pub entries: usize,
    /// The offset at which each block row begins, and the number of blocks as the last offset.
    pub block_offsets: Offsets,
    /// The block column of each block.
    pub block_columns: Vec<u32>,
    /// The values of the blocks; each block is row-major.
    pub values: Values,
}

impl Bsr {
    /// Converts a matrix to blocks of `block` rows and columns.
    pub(crate) fn from_csr(matrix: &Csr, block: (usize, usize)) -> Result<Bsr> {
        Bsr::convert(matrix, block, false)
    }

    /// Converts a matrix to blocks; with `narrow_values`, values become single precision, in which they must
    /// be exact.
    pub(super) fn convert(matrix: &Csr, block: (usize, usize), narrow_values: bool) -> Result<Bsr> {
        check_block(block).map_err(|fault| Error::InvalidFormat { format: "BSR", fault })?;
        matrix.pattern().refuse_repeats()?;
        narrow(block.1, "the columns of a block", "32-bit column indices")?;
        let blocker = Blocker { matrix, block };
        let block_rows = matrix.rows().div_ceil(block.0);
        let counts = each_row(block_rows, 4 * matrix.nnz(), |block_row| {
            narrow_length(blocker.blocks_of(block_row, &mut Vec::new()).len())
        })?;
        let offsets = offsets_of(&counts, 1)?;
        let (columns, values) = match matrix.values() {
            Values::Ones if narrow_values => blocker.fill(&offsets, |_| 1.0_f32)?,
            Values::Ones => blocker.fill(&offsets, |_| 1.0_f64)?,
            Values::F64(values) if narrow_values => blocker.fill(&offsets, |entry| values[entry] as f32)?,
            Values::F32(values) => blocker.fill(&offsets, |entry| values[entry])?,
            Values::F64(values) => blocker.fill(&offsets, |entry| values[entry])?,
        };
        let block_cols = matrix.cols().div_ceil(block.1);
        let pattern = Pattern::trusted(block_rows, block_cols, offsets, columns, false);
        Ok(Bsr { rows: matrix.rows(), cols: matrix.cols(), block, entries: matrix.nnz(), pattern, values })
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the numbers of rows and columns of a block.
    pub(crate) fn block(&self) -> (usize, usize) {
        self.block
    }

    /// Returns the number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.pattern.col_indices.len()
    }

    /// Returns the number of block rows.
    pub(crate) fn block_rows(&self) -> usize {
        self.pattern.rows
    }

    /// Returns the number of block columns.
    pub(crate) fn block_cols(&self) -> usize {
        self.pattern.cols
    }

    /// Returns the offset at which each block row begins, in blocks, and the number of blocks
    /// as the last offset.
    pub(crate) fn block_offsets(&self) -> &Offsets {
        &self.pattern.row_offsets
    }

    /// Returns the block column of each block.
    pub(crate) fn block_columns(&self) -> &[u32] {
        &self.pattern.col_indices
    }

    /// Returns the values of the blocks, which are never implicit; each block is row-major.
    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    /// Returns the arrays, without a copy.
    pub(crate) fn into_parts(self) -> BsrParts {
        let Bsr { rows, cols, block, entries, pattern, values } = self;
        let (block_offsets, block_columns) = (pattern.row_offsets, pattern.col_indices.into_vec());
        BsrParts { rows, cols, block, entries, block_offsets, block_columns, values }
    }

    /// Returns the bytes of the arrays: offsets, block columns and values.
    pub(crate) fn storage_bytes(&self) -> u64 {
        let values = self.values.stored().unwrap_or(0) * self.values.width();
        self.pattern.storage_bytes() + values as u64
    }
}

fn check_block(block: (usize, usize)) -> std::result::Result<(), FormatFault> {
    for (name, got) in [("the height of a block", block.0), ("the width of a block", block.1)] {
        if got == 0 {
            return Err(FormatFault::Parameter { name, got, allowed: "at least 1" });
        }
    }
    Ok(())
}

/// The conversion of a matrix to blocks.
struct Blocker<'a> {
    matrix: &'a Csr,
    block: (usize, usize),
}

impl Blocker<'_> {
    fn rows_of(&self, block_row: usize) -> Range<usize> {
        let first = block_row * self.block.0;
        first..first.saturating_add(self.block.0).min(self.matrix.rows())
    }

    /// Writes the block columns of a block row to `blocks`, in increasing order.
    fn blocks_of<'b>(&self, block_row: usize, blocks: &'b mut Vec<u32>) -> &'b [u32] {
        let width = self.block.1 as u32;
        // Compared with columns instead of dividing each column: a division takes longer than all
        // other work for an entry.
        let start = |block: u32| u64::from(block) * u64::from(width);
        let mut rows = self.rows_of(block_row).map(|row| self.matrix.row_columns(row));
        let first_row = rows.next().unwrap_or_default();
        blocks.clear();
        blocks.reserve(first_row.len());
        let mut end = 0;
        for &col in first_row {
            if u64::from(col) >= end {
                blocks.push(col / width);
                end = start(col / width) + u64::from(width);
            }
        }
        let of_first_row = blocks.len();
        // In most matrices with several unknowns at a point, the rows of a block have the same columns.
        for columns in rows.filter(|columns| *columns != first_row) {
            // Rows of a block mostly have the same blocks, so that later rows add none.
            let (mut next, mut added_end) = (0, 0);
            for &col in columns {
                let column = u64::from(col);
                while next < of_first_row && start(blocks[next]) + u64::from(width) <= column {
                    next += 1;
                }
                let is_listed = next < of_first_row && start(blocks[next]) <= column;
                if !is_listed && column >= added_end {
                    blocks.push(col / width);
                    added_end = start(col / width) + u64::from(width);
                }
            }
        }
        if blocks.len() > of_first_row {
            blocks.sort();
            blocks.dedup();
        }
        blocks
    }

    fn fill<T: Stored>(
        &self,
        offsets: &Offsets,
        value: impl Fn(usize) -> T + Sync,
    ) -> Result<(Vec<u32>, Values)> {
        let block_rows = offsets.len() - 1;
        let blocks = offsets.get(block_rows);
        let size = self.block.0 as u128 * self.block.1 as u128;
        let elements = size.saturating_mul(blocks as u128);
        let bytes = elements.saturating_mul(size_of::<T>() as u128);
        let elements = usize::try_from(elements).map_err(|_| Error::OutOfMemory { bytes })?;
        let (mut columns, mut values) = (zeros::<u32>(blocks)?, zeros::<T>(elements)?);
        let (mut columns_left, mut values_left) = (&mut columns[..], &mut values[..]);
        let mut bands = Vec::new();
        let pieces = pieces_for(size_of_val(values_left));
        for band in cut(block_rows, pieces, |row| offsets.get(row).saturating_add(row)) {
            let count = offsets.get(band.end) - offsets.get(band.start);
            let columns = split_front(&mut columns_left, count);
            // If there is a block, its size does not overflow, as all blocks together fit.
            let values = split_front(&mut values_left, count * self.block.0.saturating_mul(self.block.1));
            bands.push((band, columns, values));
        }
        run_all(bands, |(band, mut columns, mut values): (Range<usize>, &mut [u32], &mut [T])| {
            let mut scratch = Vec::new();
            for block_row in band {
                let blocks = self.blocks_of(block_row, &mut scratch);
                split_front(&mut columns, blocks.len()).copy_from_slice(blocks);
                let size = self.block.0.saturating_mul(self.block.1);
                self.fill_block_row(block_row, blocks, split_front(&mut values, blocks.len() * size), &value);
            }
        });
        Ok((columns, T::wrap(values)))
    }

    fn fill_block_row<T: Stored>(
        &self,
        block_row: usize,
        blocks: &[u32],
        values: &mut [T],
        value: &impl Fn(usize) -> T,
    ) {
        let (height, width) = self.block;
        let first = |block: usize| blocks[block] as usize * width;
        for (inner, row) in self.rows_of(block_row).enumerate() {
            let entries = self.matrix.row_range(row);
            if entries.len() == blocks.len() * width {
                // Every block has all entries of this row.
                for (block, first) in entries.step_by(width).enumerate() {
                    let to = &mut values[(block * height + inner) * width..][..width];
                    to.iter_mut().zip(first..).for_each(|(to, entry)| *to = value(entry));
                }
                continue;
            }
            let mut block = 0;
            for (entry, &col) in self.matrix.row_range(row).zip(self.matrix.row_columns(row)) {
                let col = col as usize;
                while first(block) + width <= col {
                    block += 1;
                }
                values[(block * height + inner) * width + col - first(block)] = value(entry);
            }
        }
    }
}
