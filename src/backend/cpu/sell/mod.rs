//! SELL-8 in chunks of sorted rows, packed to move few bytes: eight rows advance together, one
//! entry each per step.
//!
//! Products of short rows are memory-bound, so the bytes of an entry matter, 12 in CSR. Here the columns of
//! eight neighbouring rows are one number if they are consecutive, as in stencils and bands, and 16 bits each
//! if they lie near each other (`pack` describes the layout). Values that single precision represents exactly
//! take 4 bytes, which changes no bit of the result. If columns are consecutive, x is loaded, not gathered.
//!
//! Lanes stop at the length of their row: padding is masked out, never multiplied. So an infinite x
//! affects only the rows that have it as an entry, and implicit ones need no values. Rows of very
//! different lengths within a chunk cost padding, unless a slice moves the ends of the longest rows to a
//! rest that is added separately, row by row. The summation order of a row depends on the matrix alone;
//! sums are in double precision.
//!
//! Moritz Kreutzer, Georg Hager, Gerhard Wellein, Holger Fehske, Alan R. Bishop: A unified sparse
//! matrix data format for efficient general sparse matrix-vector multiplication on modern processors
//! with wide SIMD units, 2014.

mod block;
mod layout;
mod pack;

use super::aligned::AlignedValues;
use super::chunked::{Chunked, Product, RowRanges, chunk_height};
use crate::backend::{Family, SharedOperator};
use crate::device::Cpu;
use crate::error::Result;
use crate::format::Csr;
use crate::operator::Cost;
use crate::params::Params;
use crate::scalar::Scalar;
use pack::{Packed, Slice};
pub(in crate::backend) use pack::{Sample, sampled};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a slice.
const LANES: usize = 8;

/// The family of the backend `sell`.
pub(crate) struct SellFamily;

impl Family<Cpu> for SellFamily {
    fn build<T: Scalar>(
        device: &Cpu,
        matrix: &Arc<Csr>,
        _: &Params,
        _: u64,
    ) -> Result<SharedOperator<Cpu, T>> {
        let packed = Packed::of(matrix)?;
        let avx2 = device.avx2;
        let (shape, nnz) = ((matrix.rows(), matrix.cols()), matrix.nnz());
        Ok(Arc::new(Chunked::new::<T>(device, SellMatrix { packed, shape, nnz, avx2 })))
    }
}

struct SellMatrix {
    packed: Packed,
    shape: (usize, usize),
    nnz: usize,
    avx2: bool,
}

/// Values as kernels read them: from an array, or all ones.
trait SliceValues: Copy + Sync {
    /// Splits the first `count` values off the front and returns them.
    fn take(&mut self, count: usize) -> Self;
    fn value(self, at: usize) -> f64;
    /// Returns four values from `at` on.
    ///
    /// # Safety
    /// There are four values from `at` on, and the processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn four(self, at: usize) -> std::arch::x86_64::__m256d;
}

#[derive(Clone, Copy)]
struct Ones;

impl SliceValues for Ones {
    #[inline(always)]
    fn take(&mut self, _: usize) -> Ones {
        Ones
    }
    fn value(self, _: usize) -> f64 {
        1.0
    }
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn four(self, _: usize) -> std::arch::x86_64::__m256d {
        std::arch::x86_64::_mm256_set1_pd(1.0)
    }
}

impl<V: Scalar> SliceValues for &[V] {
    #[inline(always)]
    fn take(&mut self, count: usize) -> Self {
        let (front, rest) = self.split_at(count);
        *self = rest;
        front
    }
    fn value(self, at: usize) -> f64 {
        self[at].to_f64()
    }
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn four(self, at: usize) -> std::arch::x86_64::__m256d {
        // SAFETY: promised by the caller.
        unsafe { super::lanes::load::<V, 4>(self.as_ptr().add(at)) }
    }
}

/// Adds the rest of a slice, which is at the front of `words`; returns the number of its entries. Each lane
/// has four partial sums, because a single sum would wait for each of its additions. A separate function, so
/// that other slices do not pay for it.
#[cold]
#[inline(never)]
fn add_rest<T: Scalar>(
    sums: &mut [f64; LANES],
    words: &[u32],
    values: impl SliceValues,
    product: &Product<'_, T>,
    column: usize,
) -> usize {
    const SUMS: usize = 4;
    let (counts, columns) = words.split_at(LANES);
    let mut first = 0;
    for (sum, &count) in sums.iter_mut().zip(counts) {
        let mut parts = [0.0; SUMS];
        let mut add = |part: usize, at: usize| {
            parts[part] += values.value(at) * product.x[columns[at] as usize * product.k + column].to_f64();
        };
        let end = first + count as usize;
        let whole = end - count as usize % SUMS;
        for at in (first..whole).step_by(SUMS) {
            (0..SUMS).for_each(|part| add(part, at + part));
        }
        (whole..end).for_each(|at| add(at - whole, at));
        *sum += (parts[0] + parts[2]) + (parts[1] + parts[3]);
        first = end;
    }
    first
}

/// Returns the eight sums of a slice for one column of x, on any processor.
fn plain<T: Scalar>(
    slice: &Slice<'_>,
    values: impl SliceValues,
    x: &[T],
    k: usize,
    column: usize,
) -> [f64; LANES] {
    std::array::from_fn(|lane| {
        let products = (0..slice.length(lane))
            .map(|j| values.value(j * LANES + lane) * x[slice.columns.get(j, lane) * k + column].to_f64());
        products.sum()
    })
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::pack::{Columns, Slice};
    use super::{LANES, Product, SliceValues, Slices};
    use crate::backend::cpu::lanes;
    use crate::scalar::Scalar;
    use std::arch::x86_64::*;

    /// Returns the eight sums of a slice for one vector.
    ///
    /// # Safety
    /// The columns of the slice lie inside x, `values` has eight values for each step of the slice, and the
    /// processor has AVX2 and FMA.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn sums<T: Scalar>(
        slice: &Slice<'_>,
        values: impl SliceValues,
        x: &[T],
    ) -> [f64; LANES] {
        let (mut low, mut high) = (_mm256_setzero_pd(), _mm256_setzero_pd());
        let x = x.as_ptr();
        // SAFETY: in all three loops step j has its eight columns and values. Lanes whose row has ended are
        // masked out, all other lanes have a column inside x. Only the values of padding are loaded.
        unsafe {
            if let Columns::Runs(first) = slice.columns {
                for (j, &column) in first.iter().enumerate() {
                    let x = x.add(column as usize);
                    low = _mm256_fmadd_pd(values.four(j * LANES), lanes::load::<T, 4>(x), low);
                    high = _mm256_fmadd_pd(values.four(j * LANES + 4), lanes::load::<T, 4>(x.add(4)), high);
                }
            } else {
                let lengths = match slice.lengths {
                    Some(lengths) => _mm256_loadu_si256(lengths.as_ptr().cast()),
                    None => _mm256_set1_epi32(slice.width as i32),
                };
                for j in 0..slice.width {
                    let columns = match slice.columns {
                        Columns::Near(base, above) => {
                            let above = _mm_loadu_si128(above.as_ptr().add(j * 4).cast());
                            _mm256_add_epi32(_mm256_set1_epi32(base as i32), _mm256_cvtepu16_epi32(above))
                        }
                        Columns::Runs(columns) | Columns::Far(columns) => {
                            _mm256_loadu_si256(columns.as_ptr().add(j * LANES).cast())
                        }
                    };
                    let mask = _mm256_cmpgt_epi32(lengths, _mm256_set1_epi32(j as i32));
                    let x_low =
                        lanes::gather(x, _mm256_castsi256_si128(columns), _mm256_castsi256_si128(mask));
                    let x_high = lanes::gather(
                        x,
                        _mm256_extracti128_si256::<1>(columns),
                        _mm256_extracti128_si256::<1>(mask),
                    );
                    low = _mm256_fmadd_pd(values.four(j * LANES), x_low, low);
                    high = _mm256_fmadd_pd(values.four(j * LANES + 4), x_high, high);
                }
            }
            let mut sums = [0.0; LANES];
            _mm256_storeu_pd(sums.as_mut_ptr(), low);
            _mm256_storeu_pd(sums.as_mut_ptr().add(4), high);
            sums
        }
    }

    /// Multiplies a chunk by one vector.
    ///
    /// # Safety
    /// As for [`sums`], of every slice.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn chunk<T: Scalar, const RESTS: bool>(
        slices: Slices<'_, impl SliceValues, RESTS>,
        product: &Product<'_, T>,
        y: &mut [T],
    ) {
        // SAFETY: promised by the caller.
        slices.each(product, 0, y, |slice, values| unsafe { sums(slice, values, product.x) });
    }
}

/// The slices of a chunk. `RESTS`, whether any slice may have a rest, is a compile-time constant: a test at
/// run time keeps sums from staying in registers.
#[derive(Clone, Copy)]
struct Slices<'a, V, const RESTS: bool> {
    words: &'a [u32],
    values: V,
    k: usize,
}

impl<V: SliceValues, const RESTS: bool> Slices<'_, V, RESTS> {
    /// Computes every slice's sums with `f` and writes the slice's rows in column `column` of y.
    #[inline(always)]
    fn each<T: Scalar>(
        self,
        product: &Product<'_, T>,
        column: usize,
        y: &mut [T],
        f: impl Fn(&Slice<'_>, V) -> [f64; LANES],
    ) {
        // Local copies, so that they stay in registers: through memory a slice would wait for
        // the one before it.
        let Slices { mut words, mut values, k } = self;
        let rows = y.len() / k;
        for number in 0..rows.div_ceil(LANES) {
            let slice = Slice::take(&mut words);
            let sums = f(&slice, values.take(slice.width * LANES));
            let first = number * LANES;
            match y[first * k..].first_chunk_mut::<LANES>() {
                Some(y) if slice.in_order() && !(RESTS && slice.rest) && k == 1 => product.emit_all(y, sums),
                _ => {
                    let mut sums = sums;
                    if RESTS && slice.rest {
                        let entries = add_rest(&mut sums, words, values, product, column);
                        (words, _) = (&words[LANES + entries..], values.take(entries));
                    }
                    for (lane, sum) in sums.into_iter().enumerate().take(rows - first) {
                        let y = &mut y[slice.row(number, lane) * k + column];
                        product.emit(y, T::from_f64(sum));
                    }
                }
            }
        }
    }
}

impl SellMatrix {
    fn chunk<T: Scalar>(
        &self,
        words: &[u32],
        values: impl SliceValues,
        product: &Product<'_, T>,
        y: &mut [T],
    ) {
        let k = product.k;
        match self.packed.rests {
            true => self.slices(Slices::<_, true> { words, values, k }, product, y),
            false => self.slices(Slices::<_, false> { words, values, k }, product, y),
        }
    }

    fn slices<T: Scalar, const RESTS: bool>(
        &self,
        slices: Slices<'_, impl SliceValues, RESTS>,
        product: &Product<'_, T>,
        y: &mut [T],
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 && product.k == 1 {
            // SAFETY: `avx2` guarantees that the processor and the matrix allow it; columns
            // and values are as packed.
            return unsafe { avx2::chunk(slices, product, y) };
        }
        for column in 0..product.k {
            slices
                .each(product, column, y, |slice, values| plain(slice, values, product.x, product.k, column));
        }
    }
}

impl<T: Scalar> RowRanges<T> for SellMatrix {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn work_before(&self, row: usize) -> usize {
        let chunk = row / chunk_height(self.shape.0);
        let words = self.packed.chunks.get(chunk).map_or(self.packed.words.len(), |start| start.0);
        let values = self.packed.chunks.get(chunk).map_or(self.packed.stored(), |start| start.1);
        words + 2 * values + 2 * row
    }

    fn multiply(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        let (word, value) = self.packed.chunks[rows.start / chunk_height(self.shape.0)];
        let words = &self.packed.words[word..];
        match &self.packed.values {
            AlignedValues::Ones => self.chunk(words, Ones, product, y),
            AlignedValues::F32(values) => self.chunk(words, &values[value..], product, y),
            AlignedValues::F64(values) => self.chunk(words, &values[value..], product, y),
        }
    }

    fn cost(&self) -> Cost {
        let vectors = (self.shape.0 + self.shape.1) * size_of::<T>();
        Cost { bytes: self.packed.bytes() + vectors as u64, flops: 2 * self.nnz as u64 }
    }

    fn storage(&self) -> u64 {
        self.packed.bytes()
    }
}
