//! Rows shared among the threads: each thread owns contiguous chunks of rows with about the
//! same number of entries.
//!
//! A row is summed by one thread. Short rows use scalar code with prefetching: on rows of 5 entries scalar
//! code is a fifth faster than four entries at a time, and prefetching alone saves a seventh, because the
//! hardware prefetchers are too late. Long rows take four entries at a time, which prefetching slows down by
//! a quarter; AVX-512 gathers were slower than scalar code. (All measured on Zen 4.) `apply_dot` computes the
//! dot product chunk by chunk while y is in the first-level cache: one pass.

use super::chunked::{Chunked, Product, RowRanges};
#[cfg(target_arch = "x86_64")]
use super::columns::Entries;
use super::row_values::{Ones, RowValues};
use crate::backend::{Family, SharedOperator};
use crate::device::Cpu;
use crate::error::Result;
use crate::format::{Csr, Offset, Offsets, Values};
use crate::operator::Cost;
use crate::params::Params;
use crate::scalar::Scalar;
use std::ops::Range;
use std::sync::Arc;

/// The family of the backend `rows`.
pub(crate) struct Rows;

impl Family<Cpu> for Rows {
    fn build<T: Scalar>(
        device: &Cpu,
        matrix: &Arc<Csr>,
        _: &Params,
        _: u64,
    ) -> Result<SharedOperator<Cpu, T>> {
        let avx2 = device.avx2;
        let short = matrix.nnz() <= SHORT_ROW * matrix.rows();
        Ok(Arc::new(Chunked::new::<T>(device, RowsMatrix { matrix: Arc::clone(matrix), avx2, short })))
    }
}

struct RowsMatrix {
    matrix: Arc<Csr>,
    avx2: bool,
    short: bool,
}

/// How many entries ahead short rows prefetch the arrays.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 256;

/// Mean row length up to which rows are short.
pub(in crate::backend) const SHORT_ROW: usize = 16;

/// The arrays of one application.
struct Task<'a, T, O, V> {
    offsets: &'a [O],
    columns: &'a [u32],
    values: V,
    product: &'a Product<'a, T>,
}

impl<T: Scalar, O: Offset, V: RowValues<T>> Task<'_, T, O, V> {
    #[inline(always)]
    fn range(&self, row: usize) -> Range<usize> {
        self.offsets[row].at()..self.offsets[row + 1].at()
    }

    /// Multiplies rows for one column, on any processor.
    fn rows(&self, rows: Range<usize>, y: &mut [T]) {
        for (row, y) in rows.zip(y) {
            let mut sum = T::default();
            for j in self.range(row) {
                // SAFETY: columns lie below the number of columns, which is the length of x.
                sum +=
                    self.values.value(j) * unsafe { *self.product.x.get_unchecked(self.columns[j] as usize) };
            }
            self.product.emit(y, sum);
        }
    }

    /// Multiplies rows for several columns, on any processor: a few columns at a time, each
    /// summed as `rows` sums it.
    #[inline(always)]
    fn columns(&self, rows: Range<usize>, y: &mut [T]) {
        const WIDTH: usize = 16;
        let Product { x, k, .. } = *self.product;
        for (row, y) in rows.zip(y.chunks_exact_mut(k)) {
            for (group, y) in y.chunks_mut(WIDTH).enumerate() {
                let mut sums = [T::default(); WIDTH];
                for j in self.range(row) {
                    let value = self.values.value(j);
                    let x = &x[self.columns[j] as usize * k + group * WIDTH..][..y.len()];
                    match x.first_chunk::<WIDTH>() {
                        Some(x) => sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += value * *x),
                        None => sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += value * *x),
                    }
                }
                y.iter_mut().zip(sums).for_each(|(y, sum)| self.product.emit(y, sum));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl<T: Scalar, O: Offset, V: RowValues<T>> Task<'_, T, O, V> {
    /// Multiplies short rows for one column: scalar code with prefetching, summed in double precision.
    ///
    /// # Safety
    /// The processor has FMA.
    #[target_feature(enable = "fma")]
    unsafe fn rows_short(&self, rows: Range<usize>, y: &mut [T]) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for (row, y) in rows.zip(y) {
            let range = self.range(row);
            _mm_prefetch::<_MM_HINT_T0>(self.values.address(range.start + AHEAD).cast());
            _mm_prefetch::<_MM_HINT_T0>(self.columns.as_ptr().wrapping_add(range.start + AHEAD).cast());
            let mut sum = 0.0f64;
            for j in range {
                // SAFETY: j lies below the last offset, which is the number of columns stored; columns lie
                // below the number of columns, which is the length of x.
                let x = unsafe { *self.product.x.get_unchecked(*self.columns.get_unchecked(j) as usize) };
                sum = self.values.value(j).to_f64().mul_add(x.to_f64(), sum);
            }
            self.product.emit(y, T::from_f64(sum));
        }
    }

    /// Multiplies rows for several columns as `columns` does, with wider registers.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn columns_avx2(&self, rows: Range<usize>, y: &mut [T]) {
        self.columns(rows, y);
    }

    /// Multiplies short rows for several columns, with the same sums as `rows_short`.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn columns_short(&self, rows: Range<usize>, y: &mut [T]) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let entries = Entries { columns: self.columns, values: self.values, product: self.product };
        let range = |row| {
            let range = self.range(row);
            _mm_prefetch::<_MM_HINT_T0>(self.values.address(range.start + AHEAD).cast());
            _mm_prefetch::<_MM_HINT_T0>(self.columns.as_ptr().wrapping_add(range.start + AHEAD).cast());
            range
        };
        // SAFETY: rows lie inside the matrix; the processor has AVX2 and FMA.
        unsafe { entries.rows_in_order(rows, range, y) };
    }

    /// Multiplies long rows for several columns of double-precision vectors, with the same
    /// sums as `rows_long`.
    ///
    /// # Safety
    /// T is f64, and the processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn columns_long(&self, rows: Range<usize>, y: &mut [T]) {
        let entries = Entries { columns: self.columns, values: self.values, product: self.product };
        for (row, y) in rows.zip(y.chunks_exact_mut(self.product.k)) {
            // SAFETY: rows lie inside the matrix; the rest is promised by the caller.
            unsafe { entries.row_in_eights(self.range(row), y) };
        }
    }

    /// Multiplies long rows for one column of double-precision vectors: four entries at a time.
    ///
    /// # Safety
    /// T is f64, and the processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn rows_long(&self, rows: Range<usize>, y: &mut [T]) {
        use std::arch::x86_64::*;
        let x = self.product.x.as_ptr().cast::<f64>();
        for (row, y) in rows.zip(y) {
            let Range { start: mut j, end } = self.range(row);
            let (mut even, mut odd) = (_mm256_setzero_pd(), _mm256_setzero_pd());
            // SAFETY: j + 7 (j + 3) lies below `end`, which is within the arrays; columns lie
            // below the length of x.
            unsafe {
                let all = _mm_set1_epi32(-1);
                let products = |j: usize, sum: __m256d| {
                    let columns = _mm_loadu_si128(self.columns.as_ptr().add(j).cast());
                    _mm256_fmadd_pd(self.values.four(j), super::lanes::gather(x, columns, all), sum)
                };
                while j + 8 <= end {
                    even = products(j, even);
                    odd = products(j + 4, odd);
                    j += 8;
                }
                if j + 4 <= end {
                    even = products(j, even);
                    j += 4;
                }
            }
            let mut sum = T::from_f64(super::lanes::sum(_mm256_add_pd(even, odd)));
            while j < end {
                // SAFETY: as above.
                sum +=
                    self.values.value(j) * unsafe { *self.product.x.get_unchecked(self.columns[j] as usize) };
                j += 1;
            }
            self.product.emit(y, sum);
        }
    }
}

impl RowsMatrix {
    fn task<T: Scalar, O: Offset, V: RowValues<T>>(
        &self,
        task: &Task<'_, T, O, V>,
        rows: Range<usize>,
        y: &mut [T],
    ) {
        #[cfg(target_arch = "x86_64")]
        let is_f64 = std::any::TypeId::of::<T>() == std::any::TypeId::of::<f64>();
        match task.product.k {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `avx2` guarantees that the processor and the matrix allow it.
            1 if self.avx2 && self.short => unsafe { task.rows_short(rows, y) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above, and T is f64.
            1 if self.avx2 && is_f64 => unsafe { task.rows_long(rows, y) },
            1 => task.rows(rows, y),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            _ if self.avx2 && self.short => unsafe { task.columns_short(rows, y) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            _ if self.avx2 && is_f64 => unsafe { task.columns_long(rows, y) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            _ if self.avx2 => unsafe { task.columns_avx2(rows, y) },
            _ => task.columns(rows, y),
        }
    }
}

impl<T: Scalar> RowRanges<T> for RowsMatrix {
    fn shape(&self) -> (usize, usize) {
        (self.matrix.rows(), self.matrix.cols())
    }

    fn work_before(&self, row: usize) -> usize {
        // A row counts as one more entry, for its y.
        self.matrix.row_offsets().get(row) + row
    }

    fn multiply(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        macro_rules! go {
            ($offsets:expr, $values:expr) => {{
                let (offsets, columns) = ($offsets.as_slice(), self.matrix.col_indices());
                self.task(&Task { offsets, columns, values: $values, product }, rows, y)
            }};
        }
        match (self.matrix.row_offsets(), self.matrix.values()) {
            (Offsets::U32(o), Values::Ones) => go!(o, Ones),
            (Offsets::U32(o), Values::F32(v)) => go!(o, v.as_slice()),
            (Offsets::U32(o), Values::F64(v)) => go!(o, v.as_slice()),
            (Offsets::U64(o), Values::Ones) => go!(o, Ones),
            (Offsets::U64(o), Values::F32(v)) => go!(o, v.as_slice()),
            (Offsets::U64(o), Values::F64(v)) => go!(o, v.as_slice()),
        }
    }

    fn cost(&self) -> Cost {
        Cost::of_csr(&self.matrix, size_of::<T>())
    }

    fn storage(&self) -> u64 {
        self.matrix.storage_bytes()
    }
}
