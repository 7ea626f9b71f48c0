//! CSR along its merge path: each piece of work has the same number of rows and entries together, even if
//! one row holds all entries.
//!
//! Row ends and entries are merged into one list, in which an entry precedes the end of its row. The list is
//! cut into segments of 4096 items. A row that ends in the segment where it began is finished there. For any
//! other row each segment stores a partial sum, and one thread adds the partial sums in order after all
//! segments are done. Segments depend on the matrix alone, so any number of threads gives the same bits.
//! Vectors of several columns use the `rows` backend.
//!
//! Duane Merrill, Michael Garland: Merge-based parallel sparse matrix-vector multiplication, 2016. In the
//! paper each thread has one segment, and the bits depend on the number of threads.

use super::chunked::{Product, Shared, check_shapes};
use super::row_values::{Ones, RowValues};
use super::rows::Rows;
use crate::backend::{Family, SharedOperator};
use crate::device::Op;
use crate::device::cpu::sweep::dot_tile;
use crate::device::cpu::{Cpu, CpuSlots, CpuVector};
use crate::error::Result;
use crate::format::{Csr, Offset, Offsets, Values};
use crate::operator::{Cost, DotInto, LinearOperator, dot_after_product};
use crate::parallel::lock;
use crate::params::Params;
use crate::scalar::Scalar;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Row ends and entries in a segment.
const ITEMS: usize = 4096;

/// The family of the backend `merge`.
pub(crate) struct Merge;

impl Family<Cpu> for Merge {
    fn build<T: Scalar>(
        device: &Cpu,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cpu, T>> {
        let items = matrix.rows() + matrix.nnz();
        let segments = items.div_ceil(ITEMS);
        let cuts = (0..=segments).map(|s| Cut::at(matrix, (s * ITEMS).min(items))).collect();
        let avx2 = device.avx2;
        let parts = Mutex::new(vec![Parts::default(); segments]);
        let columns = Rows::build::<T>(device, matrix, params, reserve)?;
        Ok(Arc::new(MergeOperator { matrix: Arc::clone(matrix), cuts, parts, columns, avx2 }))
    }
}

/// The number of row ends and of entries before a position of the merged list.
#[derive(Clone, Copy)]
struct Cut {
    row: usize,
    entry: usize,
}

impl Cut {
    fn at(matrix: &Csr, position: usize) -> Cut {
        // The first row whose end lies at or after the position.
        let (mut low, mut high) = (position.saturating_sub(matrix.nnz()), position.min(matrix.rows()));
        while low < high {
            let middle = (low + high) / 2;
            if matrix.row_offsets().get(middle + 1) + middle < position {
                low = middle + 1
            } else {
                high = middle
            }
        }
        Cut { row: low, entry: position - low }
    }
}

/// A segment's partial sums of rows that it shares with other segments: of the row that began before the
/// segment and ends in it, and of the row that continues after it. A row that does both is `open`.
#[derive(Clone, Copy, Default)]
struct Parts {
    ended: f64,
    open: f64,
}

struct MergeOperator<T: Scalar> {
    matrix: Arc<Csr>,
    cuts: Vec<Cut>,
    parts: Mutex<Vec<Parts>>,
    /// The operator for vectors of several columns, on the same matrix.
    columns: SharedOperator<Cpu, T>,
    avx2: bool,
}

/// The arrays of one application.
struct Task<'a, T, O, V> {
    offsets: &'a [O],
    columns: &'a [u32],
    values: V,
    product: &'a Product<'a, T>,
    avx2: bool,
}

impl<T: Scalar, O: Offset, V: RowValues<T>> Task<'_, T, O, V> {
    /// Returns the sum of some entries of a row.
    #[inline(always)]
    fn sum(&self, entries: Range<usize>) -> f64 {
        entries.fold(0.0, |sum, j| {
            // SAFETY: columns lie below the number of columns, which is the length of x.
            let x = unsafe { *self.product.x.get_unchecked(self.columns[j] as usize) };
            sum + self.values.value(j).to_f64() * x.to_f64()
        })
    }

    /// Computes the rows that end between the cuts, and returns the partial sums of the others; `y` begins at
    /// the first of these rows.
    #[inline(always)]
    fn segment(&self, from: Cut, to: Cut, y: &mut [T], sum: impl Fn(Range<usize>) -> f64) -> Parts {
        let (mut parts, mut entry) = (Parts::default(), from.entry);
        for (y, row) in y.iter_mut().zip(from.row..to.row) {
            let end = self.offsets[row + 1].at();
            let total = sum(entry..end);
            match row == from.row && from.entry > self.offsets[row].at() {
                true => parts.ended = total,
                false => self.product.emit(y, T::from_f64(total)),
            }
            entry = end;
        }
        parts.open = sum(entry..to.entry);
        parts
    }

    fn run(&self, from: Cut, to: Cut, y: &mut [T]) -> Parts {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: `avx2` guarantees that the processor and the matrix allow it.
            return unsafe { self.segment_avx2(from, to, y) };
        }
        self.segment(from, to, y, |entries| self.sum(entries))
    }

    /// # Safety
    /// The processor has AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn segment_avx2(&self, from: Cut, to: Cut, y: &mut [T]) -> Parts {
        use super::lanes;
        use std::arch::x86_64::*;
        self.segment(from, to, y, |entries| {
            if entries.len() < 8 {
                return self.sum(entries);
            }
            let Range { start: mut j, end } = entries;
            let (mut even, mut odd) = (_mm256_setzero_pd(), _mm256_setzero_pd());
            // SAFETY: j + 7 lies below `end`, which is within the arrays; columns lie below the length of x.
            unsafe {
                let all = _mm_set1_epi32(-1);
                let products = |j: usize, sum: __m256d| {
                    let columns = _mm_loadu_si128(self.columns.as_ptr().add(j).cast());
                    _mm256_fmadd_pd(
                        self.values.four(j),
                        lanes::gather(self.product.x.as_ptr(), columns, all),
                        sum,
                    )
                };
                while j + 8 <= end {
                    even = products(j, even);
                    odd = products(j + 4, odd);
                    j += 8;
                }
            }
            lanes::sum(_mm256_add_pd(even, odd)) + self.sum(j..end)
        })
    }
}

impl<T: Scalar> MergeOperator<T> {
    /// Returns whether a row continues from one segment to the next at this cut.
    fn is_inside(&self, cut: Cut) -> bool {
        cut.row < self.matrix.rows() && cut.entry > self.matrix.row_offsets().get(cut.row)
    }

    /// Runs all segments, each followed by `after(segment, rows that it finished, their y)`, and then
    /// finishes the rows shared by segments, each followed by
    /// `fixed(segment where the row ends, row, its y)`.
    fn multiply<O: Offset, V: RowValues<T>>(
        &self,
        device: &Cpu,
        task: &Task<'_, T, O, V>,
        y: &mut [T],
        after: impl Fn(usize, Range<usize>, &[T]) + Sync,
        mut fixed: impl FnMut(usize, usize, T),
    ) {
        let (segments, rows) = (self.cuts.len() - 1, self.matrix.rows());
        let mut parts = lock(&self.parts);
        let (shared_parts, shared_y) = (Shared(parts.as_mut_ptr()), Shared(y.as_mut_ptr()));
        let (cuts, offsets) = (&self.cuts, task.offsets);
        device.for_each_chunk(segments, None, |segment| {
            let (from, to) = (cuts[segment], cuts[segment + 1]);
            // SAFETY: each row ends in one segment, and each segment has its own element of `parts`.
            let (y, part) =
                unsafe { (shared_y.slice(from.row..to.row), shared_parts.slice(segment..segment + 1)) };
            part[0] = task.run(from, to, y);
            let first = from.row + usize::from(from.row < to.row && from.entry > offsets[from.row].at());
            after(segment, first..to.row, &y[first - from.row..]);
        });
        let mut carried = 0.0;
        for (segment, part) in parts.iter().enumerate() {
            let (from, to) = (cuts[segment], cuts[segment + 1]);
            if from.row < to.row && self.is_inside(from) {
                task.product.emit(&mut y[from.row], T::from_f64(carried + part.ended));
                fixed(segment, from.row, y[from.row]);
            }
            carried =
                if from.row < to.row || !self.is_inside(from) { part.open } else { carried + part.open };
        }
        debug_assert!(segments == 0 || self.cuts[segments].row == rows);
    }

    fn dispatch(
        &self,
        device: &Cpu,
        (alpha, beta): (f64, f64),
        x: &CpuVector<T>,
        y: &mut CpuVector<T>,
        after: impl Fn(usize, Range<usize>, &[T]) + Sync,
        fixed: impl FnMut(usize, usize, T),
    ) -> Result<()> {
        let k = check_shapes((self.matrix.rows(), self.matrix.cols()), x, y)?;
        let product = Product { x: x.data(), k, alpha: T::from_f64(alpha), beta: T::from_f64(beta) };
        let columns = self.matrix.col_indices();
        macro_rules! go {
            ($offsets:expr, $values:expr) => {{
                let offsets = $offsets.as_slice();
                let task = Task { offsets, columns, values: $values, product: &product, avx2: self.avx2 };
                self.multiply(device, &task, y.data_mut(), after, fixed)
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

impl<T: Scalar> LinearOperator<Cpu, T> for MergeOperator<T> {
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
        if x.k() > 1 {
            return self.columns.apply(device, alpha, x, beta, y);
        }
        self.dispatch(device, (alpha, beta), x, y, |_, _, _| (), |_, _, _| ())
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
        // If the slots do not fit the vectors, the sweep reports the error.
        if x.k() > 1 || slots.state.k != 1 || self.matrix.rows() != self.matrix.cols() {
            return dot_after_product(self, device, (x, y), slots, dot, then);
        }
        let segments = self.cuts.len() - 1;
        let partials = Shared(slots.partials(segments, 1).as_mut_ptr());
        let after = |segment, rows: Range<usize>, y: &[T]| {
            // SAFETY: each segment has its own partial sum.
            unsafe { partials.slice(segment..segment + 1)[0] = dot_tile(&x.data()[rows], y) };
        };
        let fixed = |segment, row: usize, y: T| {
            // SAFETY: all segments are done, and this is the only thread.
            unsafe { partials.slice(segment..segment + 1)[0] += x.data()[row].to_f64() * y.to_f64() };
        };
        self.dispatch(device, (1.0, 0.0), x, y, after, fixed)?;
        slots.finish(segments, &[dot[0].out], then);
        Ok(())
    }

    fn cost(&self) -> Cost {
        Cost::of_csr(&self.matrix, size_of::<T>())
    }

    fn storage(&self) -> u64 {
        let parts = self.cuts.len() * (size_of::<Cut>() + size_of::<Parts>());
        self.matrix.storage_bytes() + parts as u64
    }
}
