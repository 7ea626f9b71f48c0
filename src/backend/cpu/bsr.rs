//! Blocks of R x C; each size from 2 x 2 to 8 x 8 has its own compiled product.
//!
//! A block costs one column index where CSR has R C of them, and its part of x is loaded once for R rows.
//! Each row of a block row has one accumulator of four lanes in double precision, so that sums of different
//! rows do not wait for each other; if C is above four, a row takes a second load. A row of three values is
//! loaded with the value that follows it in the block; the sum leaves that value out. No load reaches past
//! the end of a block. If C does not divide the columns, the last block column reaches past the end of x and
//! is read from a small copy.
//!
//! Values that single precision represents exactly are stored in single precision. Products and sums are in
//! double precision all the same, so no bit changes. Fill is multiplied like any other zero: if x is not
//! finite there, the row becomes NaN.
//!
//! The size is the parameter `block`; `auto` takes the size that moves the fewest bytes in a
//! sample of the rows.

use super::aligned::AlignedValues;
use super::chunked::{Chunked, Product, RowRanges, chunk_height};
#[cfg(target_arch = "x86_64")]
use super::columns::BlockRow;
#[cfg(target_arch = "x86_64")]
use super::lanes;
use crate::backend::blocks::named_or_found;
use crate::backend::{Family, SharedOperator};
use crate::device::Cpu;
use crate::error::Result;
use crate::format::blocked::blocked;
use crate::format::bsr::BsrParts;
use crate::format::narrow::value_bytes;
use crate::format::{Csr, Values};
use crate::operator::Cost;
use crate::params::Params;
use crate::scalar::Scalar;
use std::ops::Range;
use std::sync::Arc;

/// The family of the backend `bsr`.
pub(crate) struct BsrFamily;

/// The values of the parameter `block`.
pub(crate) const SIZES: &[&str] = &[
    "auto", "2x2", "2x3", "2x4", "2x5", "2x6", "2x7", "2x8", "3x2", "3x3", "3x4", "3x5", "3x6", "3x7", "3x8",
    "4x2", "4x3", "4x4", "4x5", "4x6", "4x7", "4x8", "5x2", "5x3", "5x4", "5x5", "5x6", "5x7", "5x8", "6x2",
    "6x3", "6x4", "6x5", "6x6", "6x7", "6x8", "7x2", "7x3", "7x4", "7x5", "7x6", "7x7", "7x8", "8x2", "8x3",
    "8x4", "8x5", "8x6", "8x7", "8x8",
];

impl Family<Cpu> for BsrFamily {
    const ADDS_REPEATS: bool = false;

    fn build<T: Scalar>(
        device: &Cpu,
        matrix: &Arc<Csr>,
        params: &Params,
        _: u64,
    ) -> Result<SharedOperator<Cpu, T>> {
        let block = named_or_found(matrix, params, value_bytes(matrix));
        let bsr = blocked(matrix, block)?;
        let bytes = bsr.storage_bytes();
        let mut parts = bsr.into_parts();
        let values = AlignedValues::of(std::mem::replace(&mut parts.values, Values::Ones))?;
        Ok(Arc::new(Chunked::new::<T>(device, BsrMatrix { parts, values, bytes, avx2: device.avx2 })))
    }
}

struct BsrMatrix {
    /// All arrays except the values.
    parts: BsrParts,
    values: AlignedValues,
    bytes: u64,
    avx2: bool,
}

/// The arrays of one application.
struct Task<'a, T, V> {
    parts: &'a BsrParts,
    values: &'a [V],
    product: &'a Product<'a, T>,
}

/// Prefetch distance in values: farther than hardware prefetchers reach.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 256;

/// Rows of the highest block.
const HIGHEST: usize = 8;

/// Size of the copy of the end of x: the width of the widest block.
const END: usize = 8;

impl<T: Scalar, V: Scalar> Task<'_, T, V> {
    fn blocks(&self, block_row: usize) -> Range<usize> {
        let offsets = &self.parts.block_offsets;
        offsets.get(block_row)..offsets.get(block_row + 1)
    }

    /// Multiplies a block row for any number of columns, on any processor. The size of a block is not a
    /// constant here: a copy for each of the 49 sizes would enlarge the program by a hundredth.
    fn plain(&self, block_row: usize, y: &mut [T]) {
        let Product { x, k, .. } = *self.product;
        let (height, width) = self.parts.block;
        for column in 0..k {
            let mut sums = [0.0; HIGHEST];
            for block in self.blocks(block_row) {
                let first = self.parts.block_columns[block] as usize * width;
                let inside = width.min(self.parts.cols - first);
                let row_values = self.values[block * height * width..][..height * width].chunks_exact(width);
                for (sum, row_values) in sums[..height].iter_mut().zip(row_values) {
                    for (c, value) in row_values[..inside].iter().enumerate() {
                        *sum += value.to_f64() * x[(first + c) * k + column].to_f64();
                    }
                }
            }
            for (y, sum) in y.iter_mut().skip(column).step_by(k).zip(sums) {
                self.product.emit(y, T::from_f64(sum));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl<T: Scalar, V: Scalar> Task<'_, T, V> {
    /// Multiplies block rows for one column; `y` is the part for these block rows.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA, and blocks are R x C.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn vectors<const R: usize, const C: usize>(&self, block_rows: Range<usize>, y: &mut [T]) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch, _mm256_fmadd_pd, _mm256_setzero_pd};
        let x = self.product.x;
        // Block columns from here on reach past the end of x.
        let whole = x.len() / C;
        let mut end = [T::default(); END];
        end[..x.len() - whole * C].copy_from_slice(&x[whole * C..]);
        let columns = &self.parts.block_columns;
        for (block_row, y) in block_rows.zip(y.chunks_mut(R)) {
            let mut sums = [_mm256_setzero_pd(); R];
            for block in self.blocks(block_row) {
                // SAFETY: the blocks of a block row lie below the number of blocks, so their columns and
                // R x C values are stored. A load reaches past the end of a row of a block only if another
                // row of the block follows. A block column below `whole` has C numbers of x; any other block
                // column is `whole` itself.
                unsafe {
                    let column = *columns.get_unchecked(block) as usize;
                    let x = if column < whole { x.as_ptr().add(column * C) } else { end.as_ptr() };
                    let values = self.values.as_ptr().add(block * R * C);
                    _mm_prefetch::<_MM_HINT_T0>(values.wrapping_add(AHEAD).cast());
                    let (low, high) = lanes::row::<T, C>(x);
                    for (r, sum) in sums.iter_mut().enumerate() {
                        // For width 3 the sum leaves out the fourth lane; for width 7 the eighth
                        // lane would be in the sum.
                        let (value_low, value_high) = match C {
                            3 if r + 1 < R => lanes::row_over::<V, C>(values.add(r * C)),
                            _ => lanes::row::<V, C>(values.add(r * C)),
                        };
                        *sum = _mm256_fmadd_pd(value_low, low, *sum);
                        if C > 4 {
                            *sum = _mm256_fmadd_pd(value_high, high, *sum);
                        }
                    }
                }
            }
            for (y, sum) in y.iter_mut().zip(sums) {
                self.product.emit(y, T::from_f64(lanes::sum_of::<C>(sum)));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl<T: Scalar, V: Scalar> Task<'_, T, V> {
    /// Multiplies block rows for several columns; `y` is the part for these block rows.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA, and blocks are R high.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn columns<const R: usize>(&self, block_rows: Range<usize>, y: &mut [T]) {
        let Task { parts, values, product } = *self;
        let (across, last) = (parts.block.1, block_rows.end.saturating_sub(1));
        for (block_row, y) in block_rows.zip(y.chunks_mut(R * product.k)) {
            let blocks = self.blocks(block_row);
            let next = if block_row < last { self.blocks(block_row + 1) } else { 0..0 };
            let row = BlockRow {
                columns: &parts.block_columns[blocks.clone()],
                values: &values[blocks.start * R * across..blocks.end * R * across],
                next: &parts.block_columns[next],
                across,
                width: parts.cols,
                product,
            };
            // SAFETY: promised by the caller; block columns begin inside the matrix.
            unsafe { row.multiply::<R>(y) };
        }
    }
}

/// Calls the function compiled for the block's size, which is one of [`SIZES`].
macro_rules! of_size {
    ($block:expr, $self:ident.$name:ident($($argument:expr),*)) => {
        of_size!(@heights $block, $self.$name($($argument),*), 2 3 4 5 6 7 8)
    };
    (@heights $block:expr, $call:ident.$name:ident $arguments:tt, $($height:literal)*) => {
        match $block.0 {
            $($height => of_size!(@widths $block, $call.$name $arguments, $height),)*
            _ => unreachable!("blocks are at most 8 high"),
        }
    };
    (@widths $block:expr, $self:ident.$name:ident($($argument:expr),*), $height:literal) => {
        match $block.1 {
            2 => $self.$name::<$height, 2>($($argument),*),
            3 => $self.$name::<$height, 3>($($argument),*),
            4 => $self.$name::<$height, 4>($($argument),*),
            5 => $self.$name::<$height, 5>($($argument),*),
            6 => $self.$name::<$height, 6>($($argument),*),
            7 => $self.$name::<$height, 7>($($argument),*),
            8 => $self.$name::<$height, 8>($($argument),*),
            _ => unreachable!("blocks are at most 8 wide"),
        }
    };
}

impl BsrMatrix {
    fn task<T: Scalar, V: Scalar>(
        &self,
        rows: Range<usize>,
        values: &[V],
        product: &Product<'_, T>,
        y: &mut [T],
    ) {
        let task = Task { parts: &self.parts, values, product };
        let block = self.parts.block;
        let block_rows = rows.start / block.0..rows.end.div_ceil(block.0);
        #[cfg(target_arch = "x86_64")]
        if self.avx2 && product.k == 1 {
            // SAFETY: the processor has AVX2 and FMA, and the size is that of the matrix's blocks.
            return unsafe { of_size!(block, task.vectors(block_rows, y)) };
        }
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: as above.
            return unsafe {
                match block.0 {
                    2 => task.columns::<2>(block_rows, y),
                    3 => task.columns::<3>(block_rows, y),
                    4 => task.columns::<4>(block_rows, y),
                    5 => task.columns::<5>(block_rows, y),
                    6 => task.columns::<6>(block_rows, y),
                    7 => task.columns::<7>(block_rows, y),
                    _ => task.columns::<8>(block_rows, y),
                }
            };
        }
        for (block_row, y) in block_rows.zip(y.chunks_mut(block.0 * product.k)) {
            task.plain(block_row, y);
        }
    }
}

impl<T: Scalar> RowRanges<T> for BsrMatrix {
    fn shape(&self) -> (usize, usize) {
        (self.parts.rows, self.parts.cols)
    }

    fn height(&self) -> usize {
        let height = self.parts.block.0;
        chunk_height(self.parts.rows) / height * height
    }

    fn work_before(&self, row: usize) -> usize {
        let block_row = row.div_ceil(self.parts.block.0);
        self.parts.block_offsets.get(block_row) + block_row
    }

    fn multiply(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        match &self.values {
            AlignedValues::F32(values) => self.task(rows, values, product, y),
            AlignedValues::F64(values) => self.task(rows, values, product, y),
            AlignedValues::Ones => unreachable!("blocks store their values"),
        }
    }

    fn cost(&self) -> Cost {
        let vectors = (self.parts.rows + self.parts.cols) * size_of::<T>();
        let (height, width) = self.parts.block;
        let flops = 2 * (self.parts.block_columns.len() * height * width) as u64;
        Cost { bytes: self.bytes + vectors as u64, flops }
    }

    fn storage(&self) -> u64 {
        self.bytes
    }
}
