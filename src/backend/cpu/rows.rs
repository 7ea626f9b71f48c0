//! Rows shared among the threads: each owns contiguous chunks of rows with about the same number of entries.
//!
//! A row is summed by one thread. Short rows take scalar code that fetches ahead: on rows of 5 entries it is a fifth
//! faster than AVX2 gathers, and fetching ahead alone is worth a seventh, because the processor's own prefetchers come
//! too late. Long rows take AVX2 gathers of four, which fetching ahead slows down by a quarter; AVX-512 gathers were
//! slower than scalar code. (All measured on Zen 4.) `apply_dot` takes the dot
//! product chunk by chunk while y is in the first-level cache, in the same order as a sweep: same bits, one pass.

use super::check_shapes;
use crate::backend::{Family, Operator, Params};
use crate::device::cpu::sweep::dot_tile;
use crate::device::cpu::{CHUNK, CpuSlots, CpuVector};
use crate::device::sweep::dot_sweep;
use crate::device::{Cpu, Device, Op};
use crate::error::Result;
use crate::format::{Csr, Offset, Offsets, Values};
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::scalar::Scalar;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// The family of one.
pub struct Rows;

impl Family<Cpu> for Rows {
    fn build<T: Scalar>(device: &Cpu, matrix: &Arc<Csr>, _: &Params) -> Result<Operator<Cpu, T>> {
        let cuts = balanced_cuts(matrix, device.threads());
        // The gathers take signed 32-bit indices.
        let avx2 = device.avx2 && matrix.cols() <= i32::MAX as usize;
        Ok(Rc::new(RowsOperator { matrix: Arc::clone(matrix), cuts, avx2 }))
    }
}

struct RowsOperator {
    matrix: Arc<Csr>,
    /// The chunk at which each part begins, and the number of chunks at the end.
    cuts: Vec<usize>,
    avx2: bool,
}

/// Cuts the chunks into `parts` ranges with about the same number of entries (a row counts as one entry more, for
/// its y).
fn balanced_cuts(matrix: &Csr, parts: usize) -> Vec<usize> {
    let chunks = Cpu::chunks(matrix.rows());
    let work_before = |chunk: usize| {
        let row = (chunk * CHUNK).min(matrix.rows());
        matrix.row_offsets().get(row) + row
    };
    let total = work_before(chunks);
    let mut cuts: Vec<usize> = (0..=parts)
        .map(|part| {
            let share = (total as u128 * part as u128 / parts as u128) as usize;
            // The first chunk boundary at or past the share.
            let (mut low, mut high) = (0, chunks);
            while low < high {
                let middle = (low + high) / 2;
                if work_before(middle) < share { low = middle + 1 } else { high = middle }
            }
            low
        })
        .collect();
    cuts[parts] = chunks;
    cuts
}

/// How many entries ahead of a short row the arrays are fetched.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 256;

/// Mean row length up to which rows are short.
const SHORT_ROW: usize = 16;

/// Values as a kernel reads them: from an array, or all ones.
trait RowValues<T>: Copy + Sync {
    fn value(self, j: usize) -> T;
    /// Four values from `j` on, in double precision.
    ///
    /// # Safety
    /// There are four, and the processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn four(self, j: usize) -> std::arch::x86_64::__m256d;
    /// Where value `j` would stand, inside or not: for prefetching.
    fn address(self, j: usize) -> *const u8;
}

#[derive(Clone, Copy)]
struct Ones;

impl<T: Scalar> RowValues<T> for Ones {
    #[inline(always)]
    fn value(self, _: usize) -> T {
        T::from_f64(1.0)
    }
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn four(self, _: usize) -> std::arch::x86_64::__m256d {
        std::arch::x86_64::_mm256_set1_pd(1.0)
    }
    #[inline(always)]
    fn address(self, _: usize) -> *const u8 {
        std::ptr::null()
    }
}

impl<T: Scalar> RowValues<T> for &[f64] {
    #[inline(always)]
    fn value(self, j: usize) -> T {
        debug_assert!(j < self.len());
        // SAFETY: offsets end at the number of values, checked when the matrix was made.
        T::from_f64(unsafe { *self.get_unchecked(j) })
    }
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn four(self, j: usize) -> std::arch::x86_64::__m256d {
        // SAFETY: four values from j on, by the caller's promise.
        unsafe { std::arch::x86_64::_mm256_loadu_pd(self.as_ptr().add(j)) }
    }
    #[inline(always)]
    fn address(self, j: usize) -> *const u8 {
        self.as_ptr().wrapping_add(j).cast()
    }
}

impl<T: Scalar> RowValues<T> for &[f32] {
    #[inline(always)]
    fn value(self, j: usize) -> T {
        debug_assert!(j < self.len());
        // SAFETY: as for f64.
        T::from_f32(unsafe { *self.get_unchecked(j) })
    }
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn four(self, j: usize) -> std::arch::x86_64::__m256d {
        use std::arch::x86_64::{_mm_loadu_ps, _mm256_cvtps_pd};
        // SAFETY: four values from j on, by the caller's promise.
        unsafe { _mm256_cvtps_pd(_mm_loadu_ps(self.as_ptr().add(j))) }
    }
    #[inline(always)]
    fn address(self, j: usize) -> *const u8 {
        self.as_ptr().wrapping_add(j).cast()
    }
}

/// The arrays of one application.
struct Task<'a, T, O, V> {
    offsets: &'a [O],
    columns: &'a [u32],
    values: V,
    x: &'a [T],
    k: usize,
    alpha: T,
    beta: T,
}

impl<T: Scalar, O: Offset, V: RowValues<T>> Task<'_, T, O, V> {
    #[inline(always)]
    fn emit(&self, y: &mut T, sum: T) {
        *y = if self.beta == T::default() { self.alpha * sum } else { self.alpha * sum + self.beta * *y };
    }

    #[inline(always)]
    fn range(&self, row: usize) -> Range<usize> {
        self.offsets[row].at()..self.offsets[row + 1].at()
    }

    /// One column on any processor.
    fn rows(&self, rows: Range<usize>, y: &mut [T]) {
        for (row, y) in rows.zip(y) {
            let mut sum = T::default();
            for j in self.range(row) {
                // SAFETY: columns lie below the number of columns, which is the length of x.
                sum += self.values.value(j) * unsafe { *self.x.get_unchecked(self.columns[j] as usize) };
            }
            self.emit(y, sum);
        }
    }

    /// Several columns.
    fn rows_columns(&self, rows: Range<usize>, y: &mut [T]) {
        let k = self.k;
        for (row, y) in rows.zip(y.chunks_exact_mut(k)) {
            for (column, y) in y.iter_mut().enumerate() {
                let mut sum = T::default();
                for j in self.range(row) {
                    sum += self.values.value(j) * self.x[self.columns[j] as usize * k + column];
                }
                self.emit(y, sum);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl<T: Scalar, O: Offset, V: RowValues<T>> Task<'_, T, O, V> {
    /// One column, short rows: scalar, fetching ahead, summed in double precision.
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
                // SAFETY: j lies below the last offset, which is the number of columns stored; columns lie below the
                // number of columns, which is the length of x.
                let x = unsafe { *self.x.get_unchecked(*self.columns.get_unchecked(j) as usize) };
                sum = self.values.value(j).to_f64().mul_add(x.to_f64(), sum);
            }
            self.emit(y, T::from_f64(sum));
        }
    }

    /// One column of double-precision vectors, long rows: AVX2 gathers.
    ///
    /// # Safety
    /// T is f64, the processor has AVX2 and FMA, and there are at most 2^31 - 1 columns.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn rows_long(&self, rows: Range<usize>, y: &mut [T]) {
        use std::arch::x86_64::*;
        let x = self.x.as_ptr().cast::<f64>();
        for (row, y) in rows.zip(y) {
            let Range { start: mut j, end } = self.range(row);
            let (mut even, mut odd) = (_mm256_setzero_pd(), _mm256_setzero_pd());
            // SAFETY: j + 7 (j + 3) lies below `end`, which is within the arrays; columns lie below the length of x.
            unsafe {
                let products = |j: usize, sum: __m256d| {
                    let columns = _mm_loadu_si128(self.columns.as_ptr().add(j).cast());
                    _mm256_fmadd_pd(self.values.four(j), _mm256_i32gather_pd::<8>(x, columns), sum)
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
            let four = _mm256_add_pd(even, odd);
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            let mut sum = T::from_f64(_mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two))));
            while j < end {
                // SAFETY: as above.
                sum += self.values.value(j) * unsafe { *self.x.get_unchecked(self.columns[j] as usize) };
                j += 1;
            }
            self.emit(y, sum);
        }
    }
}

/// y as an address that every thread may use for its own rows.
struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: threads write disjoint rows.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// # Safety
    /// The range lies inside, and while the slice is used nobody else touches it and the array lives.
    unsafe fn slice<'a>(self, range: Range<usize>) -> &'a mut [T] {
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

impl RowsOperator {
    /// Runs all chunks, and `after(chunk, rows, y of these rows)` when a chunk is done.
    fn run<T: Scalar, O: Offset, V: RowValues<T>>(
        &self,
        device: &Cpu,
        task: &Task<'_, T, O, V>,
        y: &mut [T],
        after: impl Fn(usize, Range<usize>, &[T]) + Sync,
    ) {
        let (chunks, n, k) = (Cpu::chunks(self.matrix.rows()), self.matrix.rows(), task.k);
        let y = Shared(y.as_mut_ptr());
        let short = self.matrix.nnz() <= SHORT_ROW * n;
        let is_f64 = std::any::TypeId::of::<T>() == std::any::TypeId::of::<f64>();
        device.for_each_chunk(chunks, Some(&self.cuts), |chunk| {
            let rows = Cpu::chunk_rows(chunk, n);
            // SAFETY: chunks are disjoint, and each is worked on once.
            let y = unsafe { y.slice(rows.start * k..rows.end * k) };
            match k {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `avx2` says that processor and matrix allow it.
                1 if self.avx2 && short => unsafe { task.rows_short(rows.clone(), y) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: likewise, and T is f64.
                1 if self.avx2 && is_f64 => unsafe { task.rows_long(rows.clone(), y) },
                1 => task.rows(rows.clone(), y),
                _ => task.rows_columns(rows.clone(), y),
            }
            after(chunk, rows, y);
        });
    }

    fn dispatch<T: Scalar>(
        &self,
        device: &Cpu,
        alpha: f64,
        x: &CpuVector<T>,
        beta: f64,
        y: &mut CpuVector<T>,
        after: impl Fn(usize, Range<usize>, &[T]) + Sync,
    ) -> Result<()> {
        let k = check_shapes(&self.matrix, x, y)?;
        let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
        macro_rules! go {
            ($offsets:expr, $values:expr) => {{
                let (offsets, columns) = ($offsets.as_slice(), self.matrix.col_indices());
                let task = Task { offsets, columns, values: $values, x: x.data(), k, alpha, beta };
                self.run(device, &task, y.data_mut(), after)
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
        Ok(())
    }
}

impl<T: Scalar> LinearOperator<Cpu, T> for RowsOperator {
    fn shape(&self) -> (usize, usize) {
        (self.matrix.rows(), self.matrix.cols())
    }

    fn apply(
        &self,
        device: &Cpu,
        alpha: f64,
        x: &CpuVector<T>,
        beta: f64,
        y: &mut CpuVector<T>,
    ) -> Result<()> {
        self.dispatch(device, alpha, x, beta, y, |_, _, _| ())
    }

    fn apply_dot(
        &self,
        device: &Cpu,
        x: &CpuVector<T>,
        y: &mut CpuVector<T>,
        slots: &mut CpuSlots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        // Where the slots do not fit the vectors, the sweep says so.
        if x.k() > 1 || slots.state.k != 1 || self.matrix.rows() != self.matrix.cols() {
            self.dispatch(device, 1.0, x, 0.0, y, |_, _, _| ())?;
            return device.sweep(&mut [], &[x, y], slots, &dot_sweep(dot, then));
        }
        let chunks = Cpu::chunks(self.matrix.rows());
        let partials = Shared(slots.partials(chunks, 1).as_mut_ptr());
        self.dispatch(device, 1.0, x, 0.0, y, |chunk, rows, y| {
            // SAFETY: each chunk has its own place.
            unsafe { partials.slice(chunk..chunk + 1)[0] = dot_tile(&x.data()[rows], y) };
        })?;
        slots.finish(chunks, &[dot[0].out], then);
        Ok(())
    }

    fn cost(&self) -> Cost {
        Cost::of_csr(&self.matrix, size_of::<T>())
    }

    fn storage(&self) -> u64 {
        self.matrix.storage_bytes()
    }
}
