//! Products with several columns, vectorised over the columns: four columns fill a register, and a value of
//! the matrix is broadcast to all of them.
//!
//! The vectors are row-major, so the columns of a row are contiguous, and each element of x that is loaded
//! is used for as many rows as share the load: one for CSR, R for blocks of R x C. Sums are in double
//! precision. Columns that do not fill a register are summed one by one in the same order, so a column has
//! the same bits in any company.

use super::chunked::Product;
use super::lanes::{broadcast, load};
use super::row_values::RowValues;
use crate::memory::fetch_from;
use crate::scalar::Scalar;
use std::arch::x86_64::*;
use std::ops::Range;

/// Columns of a register.
const LANES: usize = 4;

/// The entries of one row and the input of a product.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a, T, V> {
    pub columns: &'a [u32],
    pub values: V,
    pub product: &'a Product<'a, T>,
}

/// Writes neighbouring columns of y for a row from their sums.
#[inline(always)]
fn emit<T: Scalar, const N: usize>(product: &Product<'_, T>, y: &mut [T], sums: [f64; N]) {
    let Some(y) = y.first_chunk_mut::<N>() else { return };
    product.emit_all(y, sums);
}

/// Stores registers as an array.
#[inline]
#[target_feature(enable = "avx2")]
fn stored<const V: usize, const N: usize>(sums: [__m256d; V]) -> [f64; N] {
    const { assert!(N == V * LANES) };
    // SAFETY: V registers of four lanes have the size of N numbers.
    unsafe { std::mem::transmute_copy(&sums) }
}

impl<T: Scalar, V: RowValues<T>> Entries<'_, T, V> {
    /// Returns the address of the columns of x for entry j from `column` on.
    ///
    /// # Safety
    /// The entry exists and the column lies inside a row of x.
    #[inline(always)]
    unsafe fn x(&self, j: usize, column: usize) -> *const T {
        // SAFETY: column indices lie below the rows of x.
        unsafe {
            let row = *self.columns.get_unchecked(j) as usize;
            self.product.x.as_ptr().add(row * self.product.k + column)
        }
    }

    /// Returns a value in double precision in all lanes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn broadcast(&self, j: usize) -> __m256d {
        _mm256_set1_pd(self.values.value(j).to_f64())
    }

    /// Multiplies rows for all columns, each summed entry by entry; `range` returns the entries of a row. If
    /// all columns are one group, the group is chosen once for all rows, which matters for short rows.
    /// Otherwise each row goes through all groups: parts of the rows of x, read in turn, would not be
    /// prefetched (64 columns of a grid took twice as long).
    ///
    /// # Safety
    /// The ranges lie inside the entries, and the processor has AVX2 and FMA.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(crate) unsafe fn rows_in_order(
        &self,
        rows: Range<usize>,
        range: impl Fn(usize) -> Range<usize>,
        y: &mut [T],
    ) {
        let k = self.product.k;
        let at_once = if [4, 8, 16, 32].contains(&k) { rows.len().max(1) } else { 1 };
        for (start, y) in rows.clone().step_by(at_once).zip(y.chunks_mut(at_once * k)) {
            let rows = start..(start + at_once).min(rows.end);
            let mut column = 0;
            // SAFETY: as promised by the caller; each call stays inside the k columns.
            unsafe {
                while column + 32 <= k {
                    self.group::<8, 32>(rows.clone(), &range, column, y);
                    column += 32;
                }
                if column + 16 <= k {
                    self.group::<4, 16>(rows.clone(), &range, column, y);
                    column += 16;
                }
                if column + 8 <= k {
                    self.group::<2, 8>(rows.clone(), &range, column, y);
                    column += 8;
                }
                if column + 4 <= k {
                    self.group::<1, 4>(rows.clone(), &range, column, y);
                    column += 4;
                }
                for column in column..k {
                    for (row, y) in rows.clone().zip(y.chunks_exact_mut(k)) {
                        let add = |sum, j| {
                            let x = (*self.x(j, column)).to_f64();
                            self.values.value(j).to_f64().mul_add(x, sum)
                        };
                        self.product.emit(&mut y[column], T::from_f64(range(row).fold(0.0, add)));
                    }
                }
            }
        }
    }

    /// Multiplies rows for N = 4 R columns from `column` on.
    ///
    /// # Safety
    /// As for `rows_in_order`, and the columns exist.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn group<const R: usize, const N: usize>(
        &self,
        rows: Range<usize>,
        range: &impl Fn(usize) -> Range<usize>,
        column: usize,
        y: &mut [T],
    ) {
        for (row, y) in rows.zip(y.chunks_exact_mut(self.product.k)) {
            // SAFETY: promised by the caller.
            unsafe { self.in_order::<R, N>(range(row), column, &mut y[column..]) };
        }
    }

    /// Multiplies a row for N = 4 R columns from `column` on.
    ///
    /// # Safety
    /// As for `rows_in_order`, and the columns exist.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn in_order<const R: usize, const N: usize>(
        &self,
        range: Range<usize>,
        column: usize,
        y: &mut [T],
    ) {
        let mut sums = [_mm256_setzero_pd(); R];
        for j in range {
            let value = self.broadcast(j);
            // SAFETY: promised by the caller.
            unsafe {
                let x = self.x(j, column);
                for (register, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm256_fmadd_pd(value, load::<T, LANES>(x.add(register * LANES)), *sum);
                }
            }
        }
        emit::<T, N>(self.product, y, stored(sums));
    }

    /// Multiplies a row for all columns with the sums of a product with one column that takes eight entries
    /// at a time: in eight partial sums, then the entries that are left.
    ///
    /// # Safety
    /// T is f64, the range lies inside the entries, and the processor has AVX2 and FMA.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(crate) unsafe fn row_in_eights(&self, range: Range<usize>, y: &mut [T]) {
        let k = self.product.k;
        let mut column = 0;
        // SAFETY: as promised by the caller; each call stays inside the k columns.
        unsafe {
            while column + 8 <= k {
                self.in_eights::<2, 8>(range.clone(), column, &mut y[column..]);
                column += 8;
            }
            if column + 4 <= k {
                self.in_eights::<1, 4>(range.clone(), column, &mut y[column..]);
                column += 4;
            }
            for (column, y) in (column..k).zip(&mut y[column..]) {
                self.product.emit(y, self.one_in_eights(range.clone(), column));
            }
        }
    }

    /// Multiplies a row for N = 4 R columns from `column` on: first the groups of four entries of even index,
    /// then those of odd index, so that their partial sums fit the registers.
    ///
    /// # Safety
    /// As for `row_in_eights`, and the columns exist.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn in_eights<const R: usize, const N: usize>(
        &self,
        range: Range<usize>,
        column: usize,
        y: &mut [T],
    ) {
        let Range { start, end } = range;
        let rest = start + (end - start) / 4 * 4;
        let mut halves = [[[_mm256_setzero_pd(); R]; 4]; 2];
        for (half, lanes) in halves.iter_mut().enumerate() {
            let mut sums = [[_mm256_setzero_pd(); R]; 4];
            let mut four = start + 4 * half;
            while four < rest {
                for (lane, sums) in sums.iter_mut().enumerate() {
                    let value = self.broadcast(four + lane);
                    // SAFETY: promised by the caller.
                    unsafe {
                        let x = self.x(four + lane, column);
                        for (register, sum) in sums.iter_mut().enumerate() {
                            *sum = _mm256_fmadd_pd(value, load::<T, LANES>(x.add(register * LANES)), *sum);
                        }
                    }
                }
                four += 8;
            }
            *lanes = sums;
        }
        let mut sums = [_mm256_setzero_pd(); R];
        for (register, sum) in sums.iter_mut().enumerate() {
            let lane = |lane: usize| _mm256_add_pd(halves[0][lane][register], halves[1][lane][register]);
            *sum = _mm256_add_pd(_mm256_add_pd(lane(0), lane(2)), _mm256_add_pd(lane(1), lane(3)));
        }
        for j in rest..end {
            let value = self.broadcast(j);
            // SAFETY: promised by the caller.
            unsafe {
                let x = self.x(j, column);
                for (register, sum) in sums.iter_mut().enumerate() {
                    let product = _mm256_mul_pd(value, load::<T, LANES>(x.add(register * LANES)));
                    *sum = _mm256_add_pd(*sum, product);
                }
            }
        }
        emit::<T, N>(self.product, y, stored(sums));
    }

    /// Returns the sum of a row for one of the columns that do not fill a register.
    ///
    /// # Safety
    /// As for `row_in_eights`, and the column exists.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn one_in_eights(&self, Range { start, end }: Range<usize>, column: usize) -> T {
        let fours = (end - start) / 4;
        // One set of lanes for groups of even index, one for odd; the last group of an odd
        // count has an even index.
        let mut lanes = [[0.0; 4]; 2];
        // SAFETY: promised by the caller.
        let x = |j: usize| unsafe { (*self.x(j, column)).to_f64() };
        for four in 0..fours {
            let sums = &mut lanes[four % 2];
            for (lane, sum) in sums.iter_mut().enumerate() {
                let j = start + 4 * four + lane;
                *sum = self.values.value(j).to_f64().mul_add(x(j), *sum);
            }
        }
        let [a, b, c, d] = std::array::from_fn(|lane| lanes[0][lane] + lanes[1][lane]);
        let sum = (a + c) + (b + d);
        T::from_f64((start + 4 * fours..end).fold(sum, |sum, j| sum + self.values.value(j).to_f64() * x(j)))
    }
}

/// The blocks of one block row and the input of a product.
#[derive(Clone, Copy)]
pub(super) struct BlockRow<'a, T, V> {
    /// The block columns and the values of the blocks of the row, and the block columns of the next row.
    pub columns: &'a [u32],
    pub values: &'a [V],
    pub next: &'a [u32],
    /// The columns of a block, and of the matrix. The columns of a block are no constant, unlike its rows: a
    /// copy for each size would enlarge the program by a fifth.
    pub across: usize,
    pub width: usize,
    pub product: &'a Product<'a, T>,
}

impl<T: Scalar, V: Scalar> BlockRow<'_, T, V> {
    /// Multiplies a block row of blocks R high for all columns, each summed block by block and column by
    /// column of a block. `y` has the rows of the matrix that lie in the block row.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA, the values are those of as many blocks as there are columns, and each
    /// block begins inside the matrix.
    #[target_feature(enable = "avx2,fma")]
    pub(crate) unsafe fn multiply<const R: usize>(&self, y: &mut [T]) {
        let k = self.product.k;
        self.fetch_next();
        let mut column = 0;
        // SAFETY: as promised by the caller; each call stays inside the k columns.
        unsafe {
            // The sums, the loaded columns of x and a value fit 16 registers.
            while R <= 2 && column + 16 <= k {
                self.block::<R, 4, 16>(column, y);
                column += 16;
            }
            // 16 columns are two times 8: four columns alone wait for their sums.
            while R <= 4 && column + 12 <= k && column + 16 != k {
                self.block::<R, 3, 12>(column, y);
                column += 12;
            }
            while R <= 6 && column + 8 <= k {
                self.block::<R, 2, 8>(column, y);
                column += 8;
            }
            while column + 4 <= k {
                self.block::<R, 1, 4>(column, y);
                column += 4;
            }
            for column in column..k {
                self.one::<R>(column, y);
            }
        }
    }

    /// Prefetches the rows of x that the next block row needs first: those at the end of each run of
    /// neighbouring blocks, which in the matrix of a grid no earlier block row has read.
    #[inline]
    fn fetch_next(&self) {
        /// Longer rows are not those of a grid.
        const LONGEST: usize = 64;
        /// Bytes of a row of x below which prefetching costs more than it saves.
        const FEWEST: usize = 256;
        let Product { x, k, .. } = *self.product;
        if self.next.len() > LONGEST || k * size_of::<T>() < FEWEST {
            return;
        }
        let elements = self.across * k;
        for (at, &block_column) in self.next.iter().enumerate() {
            if self.next.get(at + 1) != Some(&(block_column + 1)) {
                let first = x.as_ptr().wrapping_add(block_column as usize * elements);
                (0..elements).step_by(64 / size_of::<T>()).for_each(|i| fetch_from(first.wrapping_add(i)));
            }
        }
    }

    /// Multiplies for N = 4 W columns from `column` on.
    ///
    /// # Safety
    /// As for `multiply`, and the columns exist.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn block<const R: usize, const W: usize, const N: usize>(&self, column: usize, y: &mut [T]) {
        let Product { x, k, .. } = *self.product;
        let across = self.across;
        let mut sums = [[_mm256_setzero_pd(); W]; R];
        for (block, &block_column) in self.columns.iter().enumerate() {
            let first = block_column as usize * across;
            // The last block column of the matrix may be cut off.
            let inside = across.min(self.width - first);
            // SAFETY: the rows of x from `first` on exist as far as `inside`, and so do the
            // values of the block.
            unsafe {
                let values = self.values.as_ptr().add(block * R * across);
                let x = x.as_ptr().add(first * k + column);
                for c in 0..inside {
                    let (values, x) = (values.add(c), x.add(c * k));
                    let mut row = [_mm256_setzero_pd(); W];
                    for (register, row) in row.iter_mut().enumerate() {
                        *row = load::<T, LANES>(x.add(register * LANES));
                    }
                    for (r, sums) in sums.iter_mut().enumerate() {
                        let value = broadcast(values.add(r * across));
                        for (sum, x) in sums.iter_mut().zip(row) {
                            *sum = _mm256_fmadd_pd(value, x, *sum);
                        }
                    }
                }
            }
        }
        for (y, sums) in y.chunks_exact_mut(k).zip(sums) {
            emit::<T, N>(self.product, &mut y[column..], stored(sums));
        }
    }

    /// Multiplies for one of the columns that do not fill a register.
    ///
    /// # Safety
    /// As for `multiply`, and the column exists.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn one<const R: usize>(&self, column: usize, y: &mut [T]) {
        let Product { x, k, .. } = *self.product;
        let across = self.across;
        let mut sums = [0.0; R];
        for (&block_column, values) in self.columns.iter().zip(self.values.chunks_exact(R * across)) {
            let first = block_column as usize * across;
            for c in 0..across.min(self.width - first) {
                let x = x[(first + c) * k + column].to_f64();
                for (r, sum) in sums.iter_mut().enumerate() {
                    *sum = values[r * across + c].to_f64().mul_add(x, *sum);
                }
            }
        }
        for (y, sum) in y.chunks_exact_mut(k).zip(sums) {
            self.product.emit(&mut y[column], T::from_f64(sum));
        }
    }
}
