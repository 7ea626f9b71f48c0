//! Common frame of all strategies that own whole rows: checks, threads, y = alpha A x + beta y
//! and the fused dot product.
//!
//! A strategy supplies the product of a range of rows. Each chunk of rows, of fixed height, is processed by
//! one thread. Each chunk stores its partial sum of `<x, y>` separately while its part of y is in the
//! first-level cache: the bits are the same for any number of threads, and one pass suffices.

use crate::device::cpu::sweep::{self, dot_columns, dot_tile};
use crate::device::cpu::{CHUNK, Cpu, CpuSlots, CpuVector};
use crate::device::{Device, Op, Sweep};
use crate::error::{Error, Result};
use crate::operator::{Cost, DotInto, LinearOperator, dot_after_product};
use crate::scalar::Scalar;
use std::ops::Range;

/// The least number of chunks for a matrix of few rows, so that threads can share them evenly.
const CHUNKS: usize = 32;
/// Smallest chunk height: two cache lines of y, and a multiple of the rows of SIMD vectors and blocks.
const LOWEST: usize = 16;

/// Returns the rows of a chunk in a matrix with this many rows. The height depends on the matrix alone,
/// because the summation order of a dot product depends on the height.
pub(in crate::backend) fn chunk_height(rows: usize) -> usize {
    (rows / CHUNKS).next_power_of_two().clamp(LOWEST, CHUNK)
}

/// A matrix that multiplies ranges of its rows.
pub(super) trait RowRanges<T: Scalar>: Send + Sync {
    /// Rows and columns.
    fn shape(&self) -> (usize, usize);
    /// Returns the rows of a chunk; ranges begin at multiples of it.
    fn height(&self) -> usize {
        chunk_height(self.shape().0)
    }
    /// Returns the cost of the rows before `row`, in any unit: threads get equal shares.
    fn work_before(&self, row: usize) -> usize;
    /// Computes y = alpha A x + beta y on these rows; `y` is the part of the vector for these rows.
    fn multiply(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]);
    /// Returns the cost of one application.
    fn cost(&self) -> Cost;
    /// Returns the bytes of the matrix's arrays.
    fn storage(&self) -> u64;
}

/// The scalars and the input vector of a product.
pub(super) struct Product<'a, T> {
    /// One row of `k` numbers for each column of the matrix.
    pub x: &'a [T],
    pub k: usize,
    pub alpha: T,
    pub beta: T,
}

impl<T: Scalar> Product<'_, T> {
    /// Writes y for a row from the row's sum.
    #[inline(always)]
    pub(crate) fn emit(&self, y: &mut T, sum: T) {
        *y = if self.beta == T::default() { self.alpha * sum } else { self.alpha * sum + self.beta * *y };
    }

    /// Writes y for neighbouring rows: beta is tested once for all of them, so that the loop
    /// can be vectorised.
    #[inline(always)]
    pub(crate) fn emit_all<const N: usize>(&self, y: &mut [T; N], sums: [f64; N]) {
        let sums = sums.map(|sum| self.alpha * T::from_f64(sum));
        *y = match self.beta == T::default() {
            true => sums,
            false => std::array::from_fn(|row| sums[row] + self.beta * y[row]),
        };
    }
}

/// Checks that x and y fit the matrix and each other; returns the number of columns of x.
pub(super) fn check_shapes<T: Scalar>(
    (rows, cols): (usize, usize),
    x: &CpuVector<T>,
    y: &CpuVector<T>,
) -> Result<usize> {
    let fits = |what, expected, got| match expected == got {
        true => Ok(()),
        false => Err(Error::Dimension { what, expected, got }),
    };
    fits("rows of x", cols, x.n())?;
    fits("rows of y", rows, y.n())?;
    fits("columns of y", x.k(), y.k())?;
    Ok(x.k())
}

/// A pointer to an array that threads write in disjoint parts.
pub(super) struct Shared<T>(pub *mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: threads use disjoint parts.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// # Safety
    /// The range lies inside the array; while the slice is used, no other code accesses that
    /// range and the array lives.
    pub(crate) unsafe fn slice<'a>(self, range: Range<usize>) -> &'a mut [T] {
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

/// Cuts `chunks` chunks into `parts` ranges of about the same work: returns the start of each range,
/// then the number of chunks.
pub(super) fn balanced_cuts(chunks: usize, parts: usize, work_before: impl Fn(usize) -> usize) -> Vec<usize> {
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

/// The operator of a strategy that owns whole rows.
pub(super) struct Chunked<M> {
    matrix: M,
    cuts: Vec<usize>,
}

impl<M> Chunked<M> {
    pub(crate) fn new<T: Scalar>(device: &Cpu, matrix: M) -> Chunked<M>
    where
        M: RowRanges<T>,
    {
        let (rows, height) = (matrix.shape().0, matrix.height());
        let before = |chunk: usize| matrix.work_before(chunk.saturating_mul(height).min(rows));
        let cuts = balanced_cuts(rows.div_ceil(height), device.threads(), before);
        Chunked { matrix, cuts }
    }

    /// Returns whether a sweep can follow the product chunk by chunk.
    fn sweeps_at_once<T: Scalar>(&self) -> bool
    where
        M: RowRanges<T>,
    {
        let (rows, cols) = self.matrix.shape();
        rows == cols && self.matrix.height() == CHUNK
    }

    /// Runs all chunks, and calls `before(rows, y of these rows)` before each chunk, and `after(chunk, rows,
    /// y of these rows)` after it.
    fn run<T: Scalar>(
        &self,
        device: &Cpu,
        (alpha, beta): (f64, f64),
        x: &CpuVector<T>,
        y: &mut CpuVector<T>,
        (before, after): (impl Fn(Range<usize>, &mut [T]) + Sync, impl Fn(usize, Range<usize>, &[T]) + Sync),
    ) -> Result<()>
    where
        M: RowRanges<T>,
    {
        let k = check_shapes(self.matrix.shape(), x, y)?;
        let (rows, height) = (self.matrix.shape().0, self.matrix.height());
        let product = Product { x: x.data(), k, alpha: T::from_f64(alpha), beta: T::from_f64(beta) };
        let y = Shared(y.data_mut().as_mut_ptr());
        device.for_each_chunk(rows.div_ceil(height), Some(&self.cuts), |chunk| {
            let rows = chunk * height..((chunk + 1) * height).min(rows);
            // SAFETY: chunks are disjoint, and each is processed once.
            let y = unsafe { y.slice(rows.start * k..rows.end * k) };
            before(rows.clone(), y);
            self.matrix.multiply(rows.clone(), &product, y);
            after(chunk, rows, y);
        });
        Ok(())
    }
}

impl<T: Scalar, M: RowRanges<T>> LinearOperator<Cpu, T> for Chunked<M> {
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn apply(
        &self,
        device: &Cpu,
        alpha: f64,
        x: &CpuVector<T>,
        beta: f64,
        y: &mut CpuVector<T>,
    ) -> Result<()> {
        self.run(device, (alpha, beta), x, y, (|_, _| (), |_, _, _| ()))
    }

    fn apply_onto(
        &self,
        device: &Cpu,
        alpha: f64,
        x: &CpuVector<T>,
        (beta, z): (f64, &CpuVector<T>),
        y: &mut CpuVector<T>,
        _: &mut CpuSlots,
    ) -> Result<()> {
        let k = check_shapes(self.matrix.shape(), x, z)?;
        let before =
            |rows: Range<usize>, y: &mut [T]| y.copy_from_slice(&z.data()[rows.start * k..rows.end * k]);
        self.run(device, (alpha, beta), x, y, (before, |_, _, _| ()))
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
        let (rows, cols) = self.matrix.shape();
        // If the slots do not fit the vectors, the sweep reports the error.
        let k = x.k();
        if slots.state.k != k || rows != cols {
            return dot_after_product(self, device, (x, y), slots, dot, then);
        }
        let chunks = rows.div_ceil(self.matrix.height());
        let partials = Shared(slots.partials(chunks, k).as_mut_ptr());
        let after = |chunk: usize, rows: Range<usize>, y: &[T]| {
            // SAFETY: each chunk has its own partial sums.
            let partials = unsafe { partials.slice(chunk * k..(chunk + 1) * k) };
            let x = &x.data()[rows.start * k..rows.end * k];
            match partials {
                [partial] => *partial = dot_tile(x, y),
                all => dot_columns(device.avx2, x, y, all),
            }
        };
        self.run(device, (1.0, 0.0), x, y, (|_, _| (), after))?;
        slots.finish(chunks, &[dot[0].out], then);
        Ok(())
    }

    fn apply_sweep(
        &self,
        device: &Cpu,
        [y, x]: [&mut CpuVector<T>; 2],
        reads: &[&CpuVector<T>],
        slots: &mut CpuSlots,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        if !self.sweeps_at_once() || x.k() > 1 {
            self.apply(device, 1.0, x, 0.0, y)?;
            return device.sweep(&mut [y, x], reads, slots, sweep);
        }
        check_shapes(self.matrix.shape(), x, y)?;
        let product = Product { x: x.data(), k: 1, alpha: T::from_f64(1.0), beta: T::default() };
        // A chunk of y is consumed while it is in the cache. The memory of y receives the new x, starting
        // from a copy of the old x, which other chunks still read.
        let multiply = |rows: Range<usize>, y: &mut [T], new: &mut [T]| {
            new.copy_from_slice(&product.x[rows.clone()]);
            self.matrix.multiply(rows, &product, y);
        };
        if sweep::run_after(device, &self.cuts, multiply, y, reads, slots, sweep)? {
            std::mem::swap(x, y);
        }
        Ok(())
    }

    fn bytes_with(&self, sweep: &Sweep<'_>) -> u64 {
        let (rows, _) = self.matrix.shape();
        let bytes = self.matrix.cost().bytes + sweep.bytes(rows, 1, size_of::<T>());
        // Saved traffic: y is written by the product, and read and written by the sweep; x is read by both.
        if self.sweeps_at_once() { bytes - 4 * (rows * size_of::<T>()) as u64 } else { bytes }
    }

    fn cost(&self) -> Cost {
        self.matrix.cost()
    }

    fn storage(&self) -> u64 {
        self.matrix.storage()
    }
}
