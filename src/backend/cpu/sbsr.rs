//! Blocks of R x R of a symmetric matrix; of two mirrored blocks only one is stored.
//!
//! A block row multiplies the blocks that it stores, those on and above the diagonal. For a block below the
//! diagonal it reads the transpose of the mirror image, which is stored in an earlier row: `y_i += B x_j` for
//! each stored B = A_ij, and `y_i += B' x_j` for each B = A_ji. So each row owns its sum, nothing is
//! scattered and no thread waits for another: the bits are the same for any number of threads. A value is
//! read twice, but from memory only once if its two rows lie near each other: on a mesh of 32 x 32 x 32 nodes
//! the values between the two rows are 1 MB, and stay in the second-level cache.
//!
//! A block that differs from the transpose of its mirror image in any bit is stored itself, as are all blocks
//! of a matrix that is not square. So every matrix is supported, but only symmetric ones move fewer bytes.
//!
//! Values that single precision represents exactly are stored in single precision. Fill is multiplied like
//! any other zero: if x is not finite there, the row becomes NaN.

use super::aligned::AlignedValues;
use super::chunked::{Chunked, Product, RowRanges, chunk_height};
#[cfg(target_arch = "x86_64")]
use super::lanes;
use crate::backend::{Family, SharedOperator};
use crate::device::Cpu;
use crate::device::cpu::aligned::Aligned;
use crate::error::Result;
use crate::format::narrow::narrowest;
use crate::format::stats::{Block, Blocks};
use crate::format::{Bsr, Csr, Offsets, Values};
use crate::operator::Cost;
use crate::parallel::{PIECES_PER_THREAD, run_all, split_front, threads_for, zeros};
use crate::params::Params;
use crate::scalar::Scalar;
use bytemuck::Zeroable;
use std::ops::Range;
use std::sync::Arc;

/// The family of the backend `sbsr`.
pub(crate) struct SbsrFamily;

/// The block size for a matrix without entries.
const ANY_SIZE: usize = 2;

/// Returns the square block that moves the fewest bytes.
fn best_square(blocks: &Blocks) -> Option<&Block> {
    let entries = blocks.best.is_some();
    blocks.all.iter().filter(|b| entries && b.size[0] == b.size[1]).min_by_key(|b| (b.bytes, b.size[0]))
}

impl Family<Cpu> for SbsrFamily {
    const ADDS_REPEATS: bool = false;

    fn build<T: Scalar>(
        device: &Cpu,
        matrix: &Arc<Csr>,
        params: &Params,
        _: u64,
    ) -> Result<SharedOperator<Cpu, T>> {
        let found = || best_square(&Blocks::sampled(matrix)).map_or(ANY_SIZE, |block| block.size[0]);
        let size = params.word("block").and_then(|typed| typed.parse().ok()).unwrap_or_else(found);
        let bsr = Bsr::from_csr(&narrowest(matrix), (size, size))?;
        let mirrors = mirrors(&bsr)?;
        let blocks = match bsr.values() {
            Values::F32(values) => arrange(&bsr, &mirrors, values, AlignedValues::F32)?,
            Values::F64(values) => arrange(&bsr, &mirrors, values, AlignedValues::F64)?,
            Values::Ones => unreachable!("blocks store their values"),
        };
        Ok(Arc::new(Chunked::new::<T>(device, SbsrMatrix { blocks, avx2: device.avx2 })))
    }
}

/// Marks a block that is stored itself.
const STORED: u32 = u32::MAX;

/// Returns for each block the index of its mirror image, or [`STORED`].
fn mirrors(bsr: &Bsr) -> Result<Vec<u32>> {
    let (rows, offsets) = (bsr.block_rows(), bsr.block_offsets());
    let mut mirrors = zeros::<u32>(bsr.blocks())?;
    let pieces = threads_for(mirrors.len()) * PIECES_PER_THREAD;
    let (mut rest, mut tasks) = (&mut mirrors[..], Vec::new());
    for piece in 0..pieces {
        let rows = rows * piece / pieces..rows * (piece + 1) / pieces;
        tasks.push((rows.clone(), split_front(&mut rest, offsets.get(rows.end) - offsets.get(rows.start))));
    }
    run_all(tasks, |(rows, mirrors)| {
        let first = offsets.get(rows.start);
        for row in rows {
            for block in offsets.get(row)..offsets.get(row + 1) {
                mirrors[block - first] = mirror(bsr, row, block).unwrap_or(STORED);
            }
        }
    });
    Ok(mirrors)
}

/// Returns the block above the diagonal whose transpose equals this block of block row `row`.
fn mirror(bsr: &Bsr, row: usize, block: usize) -> Option<u32> {
    let (columns, offsets) = (bsr.block_columns(), bsr.block_offsets());
    let column = columns[block] as usize;
    if column >= row || bsr.rows() != bsr.cols() {
        return None;
    }
    let across = offsets.get(column)..offsets.get(column + 1);
    let mirror = across.start + columns[across].binary_search(&(row as u32)).ok()?;
    let size = bsr.block().0;
    let same = match bsr.values() {
        Values::F32(values) => is_transpose(values, size, block, mirror, |v| u64::from(v.to_bits())),
        Values::F64(values) => is_transpose(values, size, block, mirror, f64::to_bits),
        Values::Ones => false,
    };
    u32::try_from(mirror).ok().filter(|&mirror| same && mirror != STORED)
}

fn is_transpose<V: Copy>(values: &[V], size: usize, a: usize, b: usize, bits: impl Fn(V) -> u64) -> bool {
    let block_values = size * size;
    let (a, b) = (&values[a * block_values..][..block_values], &values[b * block_values..][..block_values]);
    (0..size).all(|r| (0..size).all(|c| bits(a[r * size + c]) == bits(b[c * size + r])))
}

/// A matrix in mirrored blocks.
struct Mirrored {
    rows: usize,
    cols: usize,
    size: usize,
    /// The start of each block row in `columns`; one more than there are block rows.
    offsets: Offsets,
    /// The start of each block row among the stored blocks; one more than there are block rows.
    stored: Offsets,
    /// The block column of each block; in each block row the blocks that are stored elsewhere come first.
    columns: Vec<u32>,
    /// The index of the mirror image of each block that is stored elsewhere, in the same order.
    images: Vec<u32>,
    /// The stored blocks, each row-major, and [`OVER`] zeros.
    values: AlignedValues,
}

/// Rows and columns of the largest block.
const LARGEST: usize = 8;

/// Values that a load may read past the end of the last block.
const OVER: usize = 1;

fn arrange<V: Copy + Zeroable>(
    bsr: &Bsr,
    mirrors: &[u32],
    values: &[V],
    wrap: impl Fn(Aligned<V>) -> AlignedValues,
) -> Result<Mirrored> {
    let (rows, offsets, block_values) = (bsr.block_rows(), bsr.block_offsets(), bsr.block().0.pow(2));
    // The index of each block among the stored blocks.
    let (mut kept, mut stored_index) = (0_usize, zeros::<u32>(mirrors.len())?);
    for (index, &mirror) in stored_index.iter_mut().zip(mirrors) {
        // An index beyond 32 bits is never used: such blocks have no mirror images.
        *index = kept as u32;
        kept += usize::from(mirror == STORED);
    }
    let mut columns = zeros::<u32>(mirrors.len())?;
    let mut images = zeros::<u32>(mirrors.len() - kept)?;
    let mut arranged = zeros::<V>(kept * block_values + OVER)?;
    let (mut image, mut next_stored, mut stored) = (0, 0, Vec::with_capacity(rows + 1));
    for row in 0..rows {
        stored.push(next_stored as u64);
        let range = offsets.get(row)..offsets.get(row + 1);
        let mut at = range.start;
        for block in range.clone().filter(|&block| mirrors[block] != STORED) {
            (columns[at], images[image]) =
                (bsr.block_columns()[block], stored_index[mirrors[block] as usize]);
            (at, image) = (at + 1, image + 1);
        }
        for block in range.filter(|&block| mirrors[block] == STORED) {
            columns[at] = bsr.block_columns()[block];
            arranged[next_stored * block_values..][..block_values]
                .copy_from_slice(&values[block * block_values..][..block_values]);
            (at, next_stored) = (at + 1, next_stored + 1);
        }
    }
    stored.push(next_stored as u64);
    Ok(Mirrored {
        rows: bsr.rows(),
        cols: bsr.cols(),
        size: bsr.block().0,
        offsets: offsets.clone(),
        stored: Offsets::narrowest(stored),
        columns,
        images,
        values: wrap(Aligned::of(arranged)?),
    })
}

/// A block row: the start of its blocks in the three arrays, and the numbers of blocks of both kinds.
struct BlockRow {
    column: usize,
    image: usize,
    stored: usize,
    elsewhere: usize,
    here: usize,
}

impl Mirrored {
    #[inline(always)]
    fn row(&self, row: usize) -> BlockRow {
        let (column, end) = (self.offsets.get(row), self.offsets.get(row + 1));
        let (stored, stored_end) = (self.stored.get(row), self.stored.get(row + 1));
        let here = stored_end - stored;
        BlockRow { column, image: column - stored, stored, elsewhere: end - column - here, here }
    }

    fn bytes(&self) -> u64 {
        let indices = (self.columns.len() + self.images.len()) * size_of::<u32>();
        let offsets = self.offsets.len() * self.offsets.width() + self.stored.len() * self.stored.width();
        (indices + offsets + self.values.bytes()) as u64
    }
}

struct SbsrMatrix {
    blocks: Mirrored,
    avx2: bool,
}

/// The arrays of one application.
struct Task<'a, T, V> {
    blocks: &'a Mirrored,
    values: &'a [V],
    product: &'a Product<'a, T>,
}

impl<T: Scalar, V: Scalar> Task<'_, T, V> {
    /// Multiplies a block row for any number of columns and any block size, on any processor.
    fn plain(&self, block_row: usize, y: &mut [T]) {
        let (Product { x, k, .. }, m) = (self.product, self.blocks);
        let (k, row, size) = (*k, m.row(block_row), m.size);
        let at = |block: usize, r: usize, c: usize| self.values[(block * size + r) * size + c].to_f64();
        for column in 0..k {
            let mut sums = [0.0; LARGEST];
            for i in 0..row.elsewhere {
                let (first, block) =
                    (m.columns[row.column + i] as usize * size, m.images[row.image + i] as usize);
                for (r, sum) in sums[..size].iter_mut().enumerate() {
                    (0..size).for_each(|c| *sum += at(block, c, r) * x[(first + c) * k + column].to_f64());
                }
            }
            for i in 0..row.here {
                let first = m.columns[row.column + row.elsewhere + i] as usize * size;
                for (r, sum) in sums[..size].iter_mut().enumerate() {
                    let width = size.min(m.cols - first);
                    (0..width).for_each(|c| {
                        *sum += at(row.stored + i, r, c) * x[(first + c) * k + column].to_f64()
                    });
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
    /// The processor has AVX2 and FMA, and blocks are R x R.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn vectors<const R: usize>(&self, block_rows: Range<usize>, y: &mut [T]) {
        use std::arch::x86_64::*;
        let (x, m) = (self.product.x, self.blocks);
        // Block columns from here on reach past the end of x.
        let whole = x.len() / R;
        let mut end = [T::default(); 8];
        end[..x.len() - whole * R].copy_from_slice(&x[whole * R..]);
        for (block_row, y) in block_rows.zip(y.chunks_mut(R)) {
            let row = m.row(block_row);
            let none = _mm256_setzero_pd();
            // Sums of the columns of mirror images, for four successive rows of the image
            // each; lanes are rows of y.
            let mut across = [(none, none); 4];
            // SAFETY: block indices lie below the number of blocks, and `OVER` values follow the last block.
            // Mirror images belong left of the diagonal of a square matrix, so their R numbers of x exist.
            unsafe {
                for i in 0..row.elsewhere {
                    let x = x.as_ptr().add(*m.columns.get_unchecked(row.column + i) as usize * R);
                    let block = *m.images.get_unchecked(row.image + i) as usize;
                    let values = self.values.as_ptr().add(block * R * R);
                    for r in 0..R {
                        let x = _mm256_set1_pd((*x.add(r)).to_f64());
                        let (low, high) = lanes::row_over::<V, R>(values.add(r * R));
                        let sum = &mut across[r % 4];
                        sum.0 = _mm256_fmadd_pd(low, x, sum.0);
                        if R > 4 {
                            sum.1 = _mm256_fmadd_pd(high, x, sum.1);
                        }
                    }
                }
            }
            let mut sums = [none; R];
            // SAFETY: as above, and as in `bsr` for x.
            unsafe {
                for i in 0..row.here {
                    let column = *m.columns.get_unchecked(row.column + row.elsewhere + i) as usize;
                    let x = if column < whole { x.as_ptr().add(column * R) } else { end.as_ptr() };
                    let (low, high) = lanes::row::<T, R>(x);
                    let values = self.values.as_ptr().add((row.stored + i) * R * R);
                    for (r, sum) in sums.iter_mut().enumerate() {
                        // For width 3 the sum leaves out the fourth lane; for width 7 the eighth
                        // lane would be in the sum.
                        let (value_low, value_high) = match R {
                            3 => lanes::row_over::<V, R>(values.add(r * R)),
                            _ => lanes::row::<V, R>(values.add(r * R)),
                        };
                        *sum = _mm256_fmadd_pd(value_low, low, *sum);
                        if R > 4 {
                            *sum = _mm256_fmadd_pd(value_high, high, *sum);
                        }
                    }
                }
            }
            let add = |a: (__m256d, __m256d), b: (__m256d, __m256d)| {
                (_mm256_add_pd(a.0, b.0), _mm256_add_pd(a.1, b.1))
            };
            let across = add(add(across[0], across[2]), add(across[1], across[3]));
            let mut lanes_of = [0.0; 8];
            // SAFETY: `lanes_of` has room for two times four numbers.
            unsafe {
                _mm256_storeu_pd(lanes_of.as_mut_ptr(), across.0);
                _mm256_storeu_pd(lanes_of.as_mut_ptr().add(4), across.1);
            }
            for ((y, sum), across) in y.iter_mut().zip(sums).zip(lanes_of) {
                self.product.emit(y, T::from_f64(across + lanes::sum_of::<R>(sum)));
            }
        }
    }
}

/// Calls the function compiled for the block's size, 2 to 8.
macro_rules! of_size {
    ($size:expr, $self:ident.$name:ident($($argument:expr),*)) => {
        match $size {
            2 => $self.$name::<2>($($argument),*),
            3 => $self.$name::<3>($($argument),*),
            4 => $self.$name::<4>($($argument),*),
            5 => $self.$name::<5>($($argument),*),
            6 => $self.$name::<6>($($argument),*),
            7 => $self.$name::<7>($($argument),*),
            8 => $self.$name::<8>($($argument),*),
            _ => unreachable!("blocks are 2 to 8 wide"),
        }
    };
}

impl SbsrMatrix {
    fn task<T: Scalar, V: Scalar>(
        &self,
        rows: Range<usize>,
        values: &[V],
        product: &Product<'_, T>,
        y: &mut [T],
    ) {
        let task = Task { blocks: &self.blocks, values, product };
        let size = self.blocks.size;
        let block_rows = rows.start / size..rows.end.div_ceil(size);
        #[cfg(target_arch = "x86_64")]
        if self.avx2 && product.k == 1 {
            // SAFETY: the processor has AVX2 and FMA, and the size is that of the matrix's blocks.
            return unsafe { of_size!(size, task.vectors(block_rows, y)) };
        }
        for (block_row, y) in block_rows.zip(y.chunks_mut(size * product.k)) {
            task.plain(block_row, y);
        }
    }
}

impl<T: Scalar> RowRanges<T> for SbsrMatrix {
    fn shape(&self) -> (usize, usize) {
        (self.blocks.rows, self.blocks.cols)
    }

    fn height(&self) -> usize {
        let size = self.blocks.size;
        chunk_height(self.blocks.rows) / size * size
    }

    fn work_before(&self, row: usize) -> usize {
        let block_row = row.div_ceil(self.blocks.size);
        self.blocks.offsets.get(block_row) + block_row
    }

    fn multiply(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        match &self.blocks.values {
            AlignedValues::F32(values) => self.task(rows, values, product, y),
            AlignedValues::F64(values) => self.task(rows, values, product, y),
            AlignedValues::Ones => unreachable!("blocks store their values"),
        }
    }

    fn cost(&self) -> Cost {
        let vectors = (self.blocks.rows + self.blocks.cols) * size_of::<T>();
        let flops = 2 * (self.blocks.columns.len() * self.blocks.size.pow(2)) as u64;
        Cost { bytes: self.blocks.bytes() + vectors as u64, flops }
    }

    fn storage(&self) -> u64 {
        self.blocks.bytes()
    }
}
