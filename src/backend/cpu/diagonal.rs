//! Square blocks along the diagonal, stored without indices: the product of the preconditioner
//! `block-jacobi`.
//!
//! The blocks are symmetric, so the elements of a column are neighbours in memory. For one column of vectors,
//! a block is multiplied column by column, in lanes of neighbouring rows; for several, row by row, in lanes
//! of neighbouring vectors. Each sum adds the products of a row in the order of the columns, in double
//! precision: a column has the same bits alone and in any company. The bodies are compiled twice, for any
//! processor and for AVX2 with fused multiply-add.

use super::chunked::{Chunked, Product, RowRanges, chunk_height};
#[cfg(target_arch = "x86_64")]
use super::columns::BlockRow;
use crate::backend::SharedOperator;
use crate::device::Cpu;
use crate::device::cpu::aligned::Aligned;
use crate::error::Result;
use crate::format::DiagonalBlocks;
use crate::operator::Cost;
use crate::parallel::{split_front, tabulate};
use crate::scalar::Scalar;
use std::ops::Range;
use std::sync::Arc;

/// Lanes of neighbouring rows in blocks that have no code of their own.
const LANES: usize = 4;
/// Numbers that may be read past the last value: a column fills lanes of which fewer than
/// [`LANES`] do not count.
const PAST: usize = LANES;
/// Columns of a block whose products are added to the sums before the next rows.
const AT_ONCE: usize = 4;
/// Lanes for the rows of the largest block.
const MOST: usize = 256 / LANES;
/// Rows of a block that are multiplied at once for several columns of vectors, if the block has
/// more than [`LARGEST_WHOLE`].
#[cfg(target_arch = "x86_64")]
const TALL: usize = 4;
/// The largest blocks whose rows are all multiplied at once.
#[cfg(target_arch = "x86_64")]
const LARGEST_WHOLE: usize = 8;

/// Builds the operator of blocks, each of which must be symmetric.
pub(in crate::backend) fn build<T: Scalar>(
    device: &Cpu,
    blocks: &DiagonalBlocks,
) -> Result<SharedOperator<Cpu, T>> {
    let values = tabulate(blocks.values.len() + PAST, |at| {
        blocks.values.get(at).map_or(T::default(), |&value| T::from_f64(value))
    })?;
    let (rows, block) = (blocks.rows, blocks.block);
    let stored = blocks.values.len();
    let matrix = Diagonal { rows, block, stored, values: Aligned::of(values)?, avx2: device.avx2 };
    Ok(Arc::new(Chunked::new::<T>(device, matrix)))
}

/// The blocks of a matrix.
struct Diagonal<T> {
    rows: usize,
    block: usize,
    /// The number of values, without those that may be read past the last one.
    stored: usize,
    values: Aligned<T>,
    avx2: bool,
}

/// Returns a b + sum.
#[inline(always)]
fn add<const FUSED: bool>(a: f64, b: f64, sum: f64) -> f64 {
    if FUSED { a.mul_add(b, sum) } else { a * b + sum }
}

/// Adds a column of a block, times an element of x, to the sums of its rows.
#[inline(always)]
fn add_column<T: Scalar, const FUSED: bool>(column: &[T], x: f64, sums: &mut [f64]) {
    for (sum, value) in sums.iter_mut().zip(column) {
        *sum = add::<FUSED>(value.to_f64(), x, *sum);
    }
}

impl<T: Scalar> Diagonal<T> {
    /// Returns the values of the block that begins in row `first`, and those that may be read past them.
    fn values(&self, first: usize) -> &[T] {
        let size = self.block.min(self.rows - first);
        &self.values[first * self.block..][..size * size + PAST]
    }

    /// Multiplies whole blocks of B rows for one column, in P lanes; `x` and `y` are the parts
    /// for these blocks.
    #[inline(always)]
    fn small<const B: usize, const P: usize, const FUSED: bool>(
        &self,
        first: usize,
        x: &[T],
        product: &Product<'_, T>,
        y: &mut [T],
    ) {
        let blocks = self.values[first * B..].windows(B * B + PAST).step_by(B * B);
        for ((x, y), values) in x.as_chunks::<B>().0.iter().zip(y.as_chunks_mut::<B>().0).zip(blocks) {
            let mut sums = [0.0; P];
            for (c, x) in x.iter().enumerate() {
                let column = &values[c * B..c * B + P];
                add_column::<T, FUSED>(column, x.to_f64(), &mut sums);
            }
            product.emit_all(y, std::array::from_fn(|row| sums[row]));
        }
    }

    /// Multiplies the block that begins in row `first` for one column; `sums` has lanes for
    /// all rows of a block.
    #[inline(always)]
    fn large<const FUSED: bool>(
        &self,
        first: usize,
        sums: &mut [[f64; LANES]],
        product: &Product<'_, T>,
        y: &mut [T],
    ) {
        let (values, size) = (self.values(first), y.len());
        let x = &product.x[first..first + size];
        let sums = &mut sums[..size.div_ceil(LANES)];
        sums.fill([0.0; LANES]);
        let column = |c: usize| values[c * size..].as_chunks::<LANES>().0.iter();
        let whole = size / AT_ONCE * AT_ONCE;
        for c in (0..whole).step_by(AT_ONCE) {
            let x: [f64; AT_ONCE] = std::array::from_fn(|at| x[c + at].to_f64());
            let columns = column(c).zip(column(c + 1)).zip(column(c + 2)).zip(column(c + 3));
            for (sum, (((c0, c1), c2), c3)) in sums.iter_mut().zip(columns) {
                for (values, x) in [c0, c1, c2, c3].into_iter().zip(x) {
                    add_column::<T, FUSED>(values, x, sum);
                }
            }
        }
        for (c, x) in x.iter().enumerate().skip(whole) {
            for (sum, values) in sums.iter_mut().zip(column(c)) {
                add_column::<T, FUSED>(values, x.to_f64(), sum);
            }
        }
        for (y, sum) in y.iter_mut().zip(sums.as_flattened()) {
            product.emit(y, T::from_f64(*sum));
        }
    }

    /// Multiplies blocks for one column.
    #[inline(always)]
    fn one_column<const FUSED: bool>(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        let whole = rows.len() / self.block * self.block;
        let (first, x) = (rows.start, &product.x[rows.clone()]);
        let (small, rest) = y.split_at_mut(whole);
        match self.block {
            2 => self.small::<2, 4, FUSED>(first, x, product, small),
            3 => self.small::<3, 4, FUSED>(first, x, product, small),
            4 => self.small::<4, 4, FUSED>(first, x, product, small),
            5 => self.small::<5, 8, FUSED>(first, x, product, small),
            6 => self.small::<6, 8, FUSED>(first, x, product, small),
            7 => self.small::<7, 8, FUSED>(first, x, product, small),
            8 => self.small::<8, 8, FUSED>(first, x, product, small),
            block => {
                let mut sums = [[0.0; LANES]; MOST];
                for (at, y) in small.chunks_exact_mut(block).enumerate() {
                    self.large::<FUSED>(first + at * block, &mut sums, product, y);
                }
            }
        }
        if !rest.is_empty() {
            self.large::<FUSED>(first + whole, &mut [[0.0; LANES]; MOST], product, rest);
        }
    }

    /// Multiplies blocks for several columns, on any processor.
    fn columns(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        let (k, mut y) = (product.k, y.chunks_exact_mut(product.k));
        for first in rows.clone().step_by(self.block) {
            let (size, values) = (self.block.min(rows.end - first), self.values(first));
            let x = &product.x[first * k..(first + size) * k];
            for (row, y) in values.chunks_exact(size).zip(y.by_ref().take(size)) {
                for (column, y) in y.iter_mut().enumerate() {
                    let x = x[column..].iter().step_by(k);
                    let term = |sum, (value, x): (&T, &T)| add::<false>(value.to_f64(), x.to_f64(), sum);
                    product.emit(y, T::from_f64(row.iter().zip(x).fold(0.0, term)));
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl<T: Scalar> Diagonal<T> {
    /// Multiplies blocks for one column, as `one_column` does, with fused multiply-add.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn one_column_avx2(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        self.one_column::<true>(rows, product, y);
    }

    /// Multiplies blocks for several columns, with the same sums as `one_column_avx2`.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn columns_avx2(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        let &Product { x, k, alpha, beta } = product;
        let mut rest = y;
        for first in rows.clone().step_by(self.block) {
            let size = self.block.min(rows.end - first);
            let product = Product { x: &x[first * k..(first + size) * k], k, alpha, beta };
            let at_once = if size <= LARGEST_WHOLE { size } else { TALL };
            for values in self.values(first)[..size * size].chunks(at_once * size) {
                let height = values.len() / size;
                let y = split_front(&mut rest, height * k);
                let row = BlockRow {
                    columns: &[0],
                    values,
                    next: &[],
                    across: size,
                    width: size,
                    product: &product,
                };
                // SAFETY: the processor has AVX2 and FMA, there are values for one block, and
                // it begins in column 0.
                unsafe {
                    match height {
                        1 => row.multiply::<1>(y),
                        2 => row.multiply::<2>(y),
                        3 => row.multiply::<3>(y),
                        4 => row.multiply::<4>(y),
                        5 => row.multiply::<5>(y),
                        6 => row.multiply::<6>(y),
                        7 => row.multiply::<7>(y),
                        _ => row.multiply::<8>(y),
                    }
                }
            }
        }
    }
}

impl<T: Scalar> RowRanges<T> for Diagonal<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.rows)
    }

    /// Returns a multiple of the rows of a block.
    fn height(&self) -> usize {
        (chunk_height(self.rows) / self.block).max(1) * self.block
    }

    fn work_before(&self, row: usize) -> usize {
        row
    }

    fn multiply(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        match product.k {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `avx2` states that the processor has both.
            1 if self.avx2 => unsafe { self.one_column_avx2(rows, product, y) },
            1 => self.one_column::<false>(rows, product, y),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            _ if self.avx2 => unsafe { self.columns_avx2(rows, product, y) },
            _ => self.columns(rows, product, y),
        }
    }

    fn cost(&self) -> Cost {
        let bytes = ((self.stored + 2 * self.rows) * size_of::<T>()) as u64;
        Cost { bytes, flops: 2 * self.stored as u64 }
    }

    fn storage(&self) -> u64 {
        size_of_val(&self.values[..]) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes numbers of many magnitudes.
    fn numbers<T: Scalar>(count: usize, seed: usize) -> Vec<T> {
        (0..count).map(|i| T::from_f64(((i + 1) as f64 * (seed as f64 + 0.37)).sin() * 7.3)).collect()
    }

    /// Compares every element of a product with the sum of its row, term by term, bit for bit.
    fn assert_sums_are_in_order<T: Scalar>(rows: usize, block: usize, avx2: bool) {
        let mut values = Vec::new();
        for first in (0..rows).step_by(block) {
            let size = block.min(rows - first);
            let element =
                |i: usize, j: usize| ((first + i.min(j)) as f64 * 1.7).cos() / (1.0 + i.max(j) as f64);
            values.extend((0..size * size).map(|at| T::from_f64(element(at / size, at % size))));
        }
        let stored = values.len();
        values.resize(stored + PAST, T::from_f64(f64::NAN));
        let matrix = Diagonal { rows, block, stored, values: Aligned::of(values).unwrap(), avx2 };
        let (alpha, beta) = (T::from_f64(-0.5), T::from_f64(2.0));
        for k in [1, 2, 5, 12, 17] {
            let (x, before) = (numbers::<T>(rows * k, 1), numbers::<T>(rows * k, 2));
            let mut y = before.clone();
            let product = Product { x: &x, k, alpha, beta };
            matrix.multiply(0..rows, &product, &mut y);
            for (at, (y, before)) in y.iter().zip(&before).enumerate() {
                let (row, column) = (at / k, at % k);
                let first = row / block * block;
                let size = block.min(rows - first);
                let own = &matrix.values(first)[(row - first) * size..][..size];
                let sum = own.iter().enumerate().fold(0.0, |sum, (c, value)| {
                    let (value, x) = (value.to_f64(), x[(first + c) * k + column].to_f64());
                    if avx2 { value.mul_add(x, sum) } else { value * x + sum }
                });
                let expected = alpha * T::from_f64(sum) + beta * *before;
                let same = y.to_f64().to_bits() == expected.to_f64().to_bits();
                assert!(same, "{}, blocks of {block}, row {row}, column {column} of {k}", T::NAME);
            }
        }
    }

    #[test]
    fn every_column_is_summed_in_the_order_of_the_block_alone_and_in_company() {
        let processors = if has_avx2() { vec![false, true] } else { vec![false] };
        for avx2 in processors {
            for block in (2..=20).chain([31, 33, 64, 255, 256]) {
                for rows in [3, block, 4 * block + block / 2] {
                    assert_sums_are_in_order::<f64>(rows, block, avx2);
                    assert_sums_are_in_order::<f32>(rows, block, avx2);
                }
            }
        }
    }

    fn has_avx2() -> bool {
        Cpu::new(Some(1)).unwrap().has_avx2()
    }
}
