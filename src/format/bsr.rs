//! Blocked sparse rows: dense blocks of R x C that stand at multiples of their size.
//!
//! Block row `i` holds the blocks `block_offsets[i] .. block_offsets[i + 1]`, their block columns strictly increasing;
//! element (r, c) of block `b` is `values[(b * R + r) * C + c]`. Where R does not divide the rows, or C the columns,
//! the last blocks reach over the edge, and what lies outside is +0, like the places inside that the matrix has no
//! entry for. The true size and number of entries are kept.
//!
//! Nothing tells fill from an entry that is +0, so that a matrix comes back without those; -0, NaN and all others come
//! back bit for bit. Fill cannot be an implicit one: ones are stored, in double precision. Rows with a column several
//! times are refused.

use super::pieces::{cut, each_row, narrow, narrow_length, pieces_for};
use super::rows::{build_rows, offsets_of};
use super::values::{Stored, for_stored};
use super::{Csr, Offsets, Pattern, Values};
use crate::error::{Error, FormatFault, Result};
use crate::parallel::{run_all, split_front, zeros};
use std::ops::Range;

/// A validated matrix in blocked sparse rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Bsr {
    rows: usize,
    cols: usize,
    block: (usize, usize),
    entries: usize,
    /// In blocks.
    pattern: Pattern,
    values: Values,
}

/// The arrays of a [`Bsr`] matrix, for [`Bsr::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct BsrParts {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Rows and columns of a block.
    pub block: (usize, usize),
    /// Number of entries of the matrix, fill not counted.
    pub entries: usize,
    /// Where each block row begins; one more than there are block rows.
    pub block_offsets: Offsets,
    /// The block column of each block.
    pub block_columns: Vec<u32>,
    /// The values of the blocks, each row by row.
    pub values: Values,
}

impl Bsr {
    /// Checks the arrays and takes them over.
    pub fn new(parts: BsrParts) -> Result<Bsr> {
        checked(parts).map_err(|fault| Error::InvalidFormat { format: "BSR", fault })
    }

    /// The same matrix in blocks of that many rows and columns.
    pub fn from_csr(matrix: &Csr, block: (usize, usize)) -> Result<Bsr> {
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
            Values::Ones => blocker.fill(&offsets, |_| 1.0_f64)?,
            Values::F32(values) => blocker.fill(&offsets, |entry| values[entry])?,
            Values::F64(values) => blocker.fill(&offsets, |entry| values[entry])?,
        };
        let block_cols = matrix.cols().div_ceil(block.1);
        let pattern = Pattern::made(block_rows, block_cols, offsets, columns, false);
        Ok(Bsr { rows: matrix.rows(), cols: matrix.cols(), block, entries: matrix.nnz(), pattern, values })
    }

    /// Compressed rows again, of every value that is not +0.
    pub fn to_csr(&self) -> Result<Csr> {
        for_stored!(&self.values, 0, |values| {
            let kept = |row| self.places(row).filter(|&(_, place)| !values[place].is_fill());
            let bytes = size_of_val(values);
            let lengths = each_row(self.rows, bytes, |row| narrow_length(kept(row).count()))?;
            build_rows((self.rows, self.cols), &lengths, false, |row, columns_out, values_out| {
                for ((col, place), (col_out, value_out)) in
                    kept(row).zip(columns_out.iter_mut().zip(values_out))
                {
                    (*col_out, *value_out) = (col, values[place]);
                }
            })
        })
    }

    /// The column and the index of the value of every place of a row that lies inside the matrix.
    fn places(&self, row: usize) -> impl Iterator<Item = (u32, usize)> + '_ {
        let (height, width) = self.block;
        let (block_row, inner) = (row / height, row % height);
        let blocks = self.pattern.row_offsets.get(block_row)..self.pattern.row_offsets.get(block_row + 1);
        blocks.flat_map(move |block| {
            let first = self.pattern.col_indices[block] as usize * width;
            let value = (block * height + inner) * width;
            (0..width.min(self.cols - first)).map(move |c| ((first + c) as u32, value + c))
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

    /// Rows and columns of a block.
    pub fn block(&self) -> (usize, usize) {
        self.block
    }

    /// Number of entries, explicit zeros included, fill not.
    pub fn nnz(&self) -> usize {
        self.entries
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.pattern.col_indices.len()
    }

    /// Places that hold no entry.
    pub fn padding(&self) -> usize {
        self.blocks() * self.block.0 * self.block.1 - self.entries
    }

    /// Number of block rows.
    pub fn block_rows(&self) -> usize {
        self.pattern.rows
    }

    /// Number of block columns.
    pub fn block_cols(&self) -> usize {
        self.pattern.cols
    }

    /// Where each block row begins, in blocks; one more than there are block rows.
    pub fn block_offsets(&self) -> &Offsets {
        &self.pattern.row_offsets
    }

    /// The block column of each block.
    pub fn block_columns(&self) -> &[u32] {
        &self.pattern.col_indices
    }

    /// The values of the blocks, each row by row; never implicit.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The arrays, without a copy.
    pub fn into_parts(self) -> BsrParts {
        let Bsr { rows, cols, block, entries, pattern, values } = self;
        let (block_offsets, block_columns) = (pattern.row_offsets, pattern.col_indices);
        BsrParts { rows, cols, block, entries, block_offsets, block_columns, values }
    }

    /// Bytes of the arrays: offsets, block columns and values.
    pub fn storage_bytes(&self) -> u64 {
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

fn checked(parts: BsrParts) -> std::result::Result<Bsr, FormatFault> {
    let BsrParts { rows, cols, block, entries, block_offsets, block_columns, values } = parts;
    check_block(block)?;
    if cols > u32::MAX as usize {
        return Err(FormatFault::TooManyColumns { cols });
    }
    let (block_rows, block_cols) = (rows.div_ceil(block.0), cols.div_ceil(block.1));
    super::pattern::check(block_rows, block_cols, &block_offsets, &block_columns, false)
        .map_err(FormatFault::Blocks)?;
    let pattern = Pattern::made(block_rows, block_cols, block_offsets, block_columns, false);
    let got = values.stored().ok_or(FormatFault::ImplicitOnes)?;
    let expected = (pattern.col_indices.len() as u128 * block.0 as u128).saturating_mul(block.1 as u128);
    if got as u128 != expected {
        return Err(FormatFault::Length { array: "values", got, expected });
    }
    let matrix = Bsr { rows, cols, block, entries, pattern, values };
    for_stored!(&matrix.values, 0, |values| matrix.check_values(values))?;
    Ok(matrix)
}

impl Bsr {
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

    /// Counts the values other than +0, of which none may lie outside the matrix.
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
            for (place, value) in values[block * size..][..size].iter().enumerate() {
                if value.is_fill() {
                    continue;
                }
                if place / width >= rows_inside || place % width >= cols_inside {
                    let index = block * size + place;
                    return Err(FormatFault::PaddingValue { index, value: value.text() });
                }
                nonzero += 1;
            }
        }
        Ok(nonzero)
    }
}

/// A matrix on its way into blocks.
struct Blocker<'a> {
    matrix: &'a Csr,
    block: (usize, usize),
}

impl Blocker<'_> {
    fn rows_of(&self, block_row: usize) -> Range<usize> {
        let first = block_row * self.block.0;
        first..first.saturating_add(self.block.0).min(self.matrix.rows())
    }

    /// The block columns of a block row, in order, into `blocks`.
    fn blocks_of<'b>(&self, block_row: usize, blocks: &'b mut Vec<u32>) -> &'b [u32] {
        let width = self.block.1 as u32;
        let mut rows = self.rows_of(block_row).map(|row| self.matrix.row_columns(row));
        blocks.clear();
        blocks.extend(rows.next().unwrap_or_default().iter().map(|&col| col / width));
        blocks.dedup();
        let alone = blocks.len();
        for columns in rows {
            // Rows of a block mostly have the same blocks, and nothing to add then.
            let (mut known, mut added) = (0, None);
            for &col in columns {
                let block = col / width;
                while known < alone && blocks[known] < block {
                    known += 1;
                }
                let is_known = known < alone && blocks[known] == block;
                if !is_known && added != Some(block) {
                    blocks.push(block);
                    added = Some(block);
                }
            }
        }
        if blocks.len() > alone {
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
        let places = size.saturating_mul(blocks as u128);
        let bytes = places.saturating_mul(size_of::<T>() as u128);
        let places = usize::try_from(places).map_err(|_| Error::OutOfMemory { bytes })?;
        let (mut columns, mut values) = (zeros::<u32>(blocks)?, zeros::<T>(places)?);
        let (mut columns_left, mut values_left) = (&mut columns[..], &mut values[..]);
        let mut bands = Vec::new();
        let pieces = pieces_for(size_of_val(values_left));
        for band in cut(block_rows, pieces, |row| offsets.get(row).saturating_add(row)) {
            let count = offsets.get(band.end) - offsets.get(band.start);
            let columns = split_front(&mut columns_left, count);
            // Where there is a block its size fits, as all of them do.
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
        for (inner, row) in self.rows_of(block_row).enumerate() {
            let mut block = 0;
            for (entry, &col) in self.matrix.row_range(row).zip(self.matrix.row_columns(row)) {
                let (at, column) = (col / width as u32, col as usize % width);
                while blocks[block] < at {
                    block += 1;
                }
                values[(block * height + inner) * width + column] = value(entry);
            }
        }
    }
}
