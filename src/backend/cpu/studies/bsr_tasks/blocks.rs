//! The arrays of a matrix in blocks, and the product of some blocks of a block row.

use super::Product;
use crate::backend::blocks::MOST;
use crate::format::Values;
use crate::format::bsr::BsrParts;
use crate::scalar::Scalar;
use std::ops::Range;

/// The sums of a block row; blocks of fewer rows use the first elements.
pub(super) type Sums = [f64; MOST];

/// A matrix in blocks.
pub(crate) struct Arrays {
    pub(super) parts: BsrParts,
    /// Whether common sizes of blocks have a compiled product.
    compiled: bool,
}

impl Arrays {
    pub(super) fn new(parts: BsrParts, compiled: bool) -> Arrays {
        assert!(parts.block.0 <= MOST, "blocks of {} rows", parts.block.0);
        Arrays { parts, compiled }
    }

    pub(super) fn block_rows(&self) -> usize {
        self.parts.rows.div_ceil(self.parts.block.0)
    }

    pub(super) fn blocks(&self) -> usize {
        self.parts.block_columns.len()
    }

    /// Returns the index of the first block of a block row.
    pub(super) fn begin(&self, block_row: usize) -> usize {
        self.parts.block_offsets.get(block_row)
    }

    /// Returns the blocks of a block row.
    pub(super) fn row(&self, block_row: usize) -> Range<usize> {
        self.begin(block_row)..self.begin(block_row + 1)
    }

    /// Adds the products of these blocks, which belong to one block row.
    pub(super) fn add<T: Scalar>(&self, blocks: Range<usize>, x: &[T], sums: &mut Sums) {
        match &self.parts.values {
            Values::F64(values) => self.add_of(values, blocks, x, sums),
            Values::F32(values) => self.add_of(values, blocks, x, sums),
            Values::Ones => unreachable!("blocks store their values"),
        }
    }

    fn add_of<T: Scalar, V: Scalar>(&self, values: &[V], blocks: Range<usize>, x: &[T], sums: &mut Sums) {
        match self.parts.block {
            _ if !self.compiled => blocks.for_each(|block| self.add_any(values, block, x, sums)),
            (2, 2) => self.add_sized::<T, V, 2, 2>(values, blocks, x, sums),
            (3, 3) => self.add_sized::<T, V, 3, 3>(values, blocks, x, sums),
            (4, 4) => self.add_sized::<T, V, 4, 4>(values, blocks, x, sums),
            (5, 5) => self.add_sized::<T, V, 5, 5>(values, blocks, x, sums),
            (6, 6) => self.add_sized::<T, V, 6, 6>(values, blocks, x, sums),
            (8, 8) => self.add_sized::<T, V, 8, 8>(values, blocks, x, sums),
            _ => blocks.for_each(|block| self.add_any(values, block, x, sums)),
        }
    }

    fn add_sized<T: Scalar, V: Scalar, const R: usize, const C: usize>(
        &self,
        values: &[V],
        blocks: Range<usize>,
        x: &[T],
        sums: &mut Sums,
    ) {
        // Columns increase, so that only the last block can reach past the last column.
        let reaches_over =
            |block: usize| (self.parts.block_columns[block] as usize + 1) * C > self.parts.cols;
        let over = blocks.clone().last().filter(|&block| reaches_over(block));
        // A local copy, small enough to stay in registers.
        let mut own: [f64; R] = std::array::from_fn(|row| sums[row]);
        for block in blocks.start..over.unwrap_or(blocks.end) {
            let x = &x[self.parts.block_columns[block] as usize * C..][..C];
            let row_values = values[block * R * C..][..R * C].chunks_exact(C);
            for (sum, row_values) in own.iter_mut().zip(row_values) {
                for (value, x) in row_values.iter().zip(x) {
                    *sum += value.to_f64() * x.to_f64();
                }
            }
        }
        sums[..R].copy_from_slice(&own);
        if let Some(block) = over {
            self.add_any(values, block, x, sums);
        }
    }

    fn add_any<T: Scalar, V: Scalar>(&self, values: &[V], block: usize, x: &[T], sums: &mut Sums) {
        let (height, width) = self.parts.block;
        let first = self.parts.block_columns[block] as usize * width;
        let inside = width.min(self.parts.cols - first);
        let row_values = values[block * height * width..][..height * width].chunks_exact(width);
        for (sum, row_values) in sums.iter_mut().zip(row_values) {
            for (value, x) in row_values[..inside].iter().zip(&x[first..]) {
                *sum += value.to_f64() * x.to_f64();
            }
        }
    }

    /// Adds the products value by value: block, row and column of each value are found by division, as a
    /// single loop over all values needs on a GPU.
    pub(super) fn add_flat<T: Scalar>(&self, blocks: Range<usize>, x: &[T], sums: &mut Sums) {
        match &self.parts.values {
            Values::F64(values) => self.flat(values, blocks, x, sums),
            Values::F32(values) => self.flat(values, blocks, x, sums),
            Values::Ones => unreachable!("blocks store their values"),
        }
    }

    fn flat<T: Scalar, V: Scalar>(&self, values: &[V], blocks: Range<usize>, x: &[T], sums: &mut Sums) {
        let (height, width) = self.parts.block;
        let size = height * width;
        for (at, value) in values.iter().enumerate().take(blocks.end * size).skip(blocks.start * size) {
            let (block, inside) = (at / size, at % size);
            let (row, column) = (inside / width, inside % width);
            let column = self.parts.block_columns[block] as usize * width + column;
            if let Some(x) = x.get(column) {
                sums[row] += value.to_f64() * x.to_f64();
            }
        }
    }

    /// Scales the sums of a block row and adds them to y: atomically if `shared`.
    pub(super) fn finish<T: Scalar>(
        &self,
        block_row: usize,
        sums: &Sums,
        product: &Product<'_, T>,
        shared: bool,
    ) {
        let height = self.parts.block.0;
        let rows = block_row * height..((block_row + 1) * height).min(self.parts.rows);
        for (row, sum) in rows.zip(sums) {
            let value = product.alpha * sum;
            if shared { product.y.add_atomically(row, value) } else { product.y.add(row, value) }
        }
    }
}
