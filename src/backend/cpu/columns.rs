//! Products with several columns, vectorised over the columns: four columns fill a register, and a value of the matrix is
//! broadcast to all of them.
//!
//! The vectors are row-major, so the columns of a row are contiguous, and each element of x that is loaded is used for as many
//! rows as share the load: one for CSR, R for blocks of R x C. Sums are in double precision. Columns that do not fill a register
//! are summed one by one in the same order, so a column has the same bits in any company.

use super::chunked::Product;
use super::lanes::{broadcast, load};
use super::rows::RowValues;
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

    /// Multiplies a row for all columns, each summed entry by entry.
    ///
    /// # Safety
    /// The range lies inside the entries, and the processor has AVX2 and FMA.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn row_in_order(&self, range: Range<usize>, y: &mut [T]) {
        let k = self.product.k;
        let mut column = 0;
        // SAFETY: as promised by the caller; each call stays inside the k columns.
        unsafe {
            while column + 32 <= k {
                self.in_order::<8, 32>(range.clone(), column, &mut y[column..]);
                column += 32;
            }
            if column + 16 <= k {
                self.in_order::<4, 16>(range.clone(), column, &mut y[column..]);
                column += 16;
            }
            if column + 8 <= k {
                self.in_order::<2, 8>(range.clone(), column, &mut y[column..]);
                column += 8;
            }
            if column + 4 <= k {
                self.in_order::<1, 4>(range.clone(), column, &mut y[column..]);
                column += 4;
            }
            for (column, y) in (column..k).zip(&mut y[column..]) {
                let add = |sum, j| {
                    let x = (*self.x(j, column)).to_f64();
                    self.values.value(j).to_f64().mul_add(x, sum)
                };
                self.product.emit(y, T::from_f64(range.clone().fold(0.0, add)));
            }
        }
    }

    /// Multiplies a row for N = 4 R columns from `column` on.
    ///
    /// # Safety
    /// As for `row_in_order`, and the columns exist.
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

    /// Multiplies a row for all columns with the sums of a product with one column that takes eight entries at a time: in eight
    /// partial sums, then the entries that are left.
    ///
    /// # Safety
    /// T is f64, the range lies inside the entries, and the processor has AVX2 and FMA.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn row_in_eights(&self, range: Range<usize>, y: &mut [T]) {
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

    /// Multiplies a row for N = 4 R columns from `column` on: first the groups of four entries of even index, then those of odd
    /// index, so that their partial sums fit the registers.
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
        // One set of lanes for groups of even index, one for odd; the last group of an odd count has an even index.
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
    /// The block columns and the values of the blocks of the row.
    pub columns: &'a [u32],
    pub values: &'a [V],
    /// The number of columns of the matrix.
    pub width: usize,
    pub product: &'a Product<'a, T>,
}

impl<T: Scalar, V: Scalar> BlockRow<'_, T, V> {
    /// Multiplies a block row of R x C blocks for all columns, each summed block by block and column by column of a block. `y` has
    /// the rows of the matrix that lie in the block row.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA, the values are those of as many blocks as there are columns, and each block begins inside
    /// the matrix.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn multiply<const R: usize, const C: usize>(&self, y: &mut [T]) {
        let k = self.product.k;
        let mut column = 0;
        // SAFETY: as promised by the caller; each call stays inside the k columns.
        unsafe {
            // The sums, the loaded columns of x and a value fit 16 registers.
            while R <= 2 && column + 16 <= k {
                self.block::<R, C, 4, 16>(column, y);
                column += 16;
            }
            // 16 columns are two times 8: four columns alone wait for their sums.
            while R <= 4 && column + 12 <= k && column + 16 != k {
                self.block::<R, C, 3, 12>(column, y);
                column += 12;
            }
            while R <= 6 && column + 8 <= k {
                self.block::<R, C, 2, 8>(column, y);
                column += 8;
            }
            while column + 4 <= k {
                self.block::<R, C, 1, 4>(column, y);
                column += 4;
            }
            for column in column..k {
                self.one::<R, C>(column, y);
            }
        }
    }

    /// Multiplies for N = 4 W columns from `column` on.
    ///
    /// # Safety
    /// As for `multiply`, and the columns exist.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn block<const R: usize, const C: usize, const W: usize, const N: usize>(
        &self,
        column: usize,
        y: &mut [T],
    ) {
        let Product { x, k, .. } = *self.product;
        let mut sums = [[_mm256_setzero_pd(); W]; R];
        for (block, &block_column) in self.columns.iter().enumerate() {
            let first = block_column as usize * C;
            let inside = C.min(self.width - first);
            // SAFETY: the rows of x from `first` on exist as far as `inside`, and so do R x C values of the block.
            unsafe {
                let values = self.values.as_ptr().add(block * R * C);
                let x = x.as_ptr().add(first * k + column);
                // Only the last block column of the matrix may be cut off, so the usual loop has a constant length.
                if inside == C {
                    for c in 0..C {
                        add_column::<T, V, R, C, W>(&mut sums, values.add(c), x.add(c * k));
                    }
                } else {
                    for c in 0..inside {
                        add_column::<T, V, R, C, W>(&mut sums, values.add(c), x.add(c * k));
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
    unsafe fn one<const R: usize, const C: usize>(&self, column: usize, y: &mut [T]) {
        let Product { x, k, .. } = *self.product;
        let mut sums = [0.0; R];
        for (&block_column, values) in self.columns.iter().zip(self.values.chunks_exact(R * C)) {
            let first = block_column as usize * C;
            for c in 0..C.min(self.width - first) {
                let x = x[(first + c) * k + column].to_f64();
                for (r, sum) in sums.iter_mut().enumerate() {
                    *sum = values[r * C + c].to_f64().mul_add(x, *sum);
                }
            }
        }
        for (y, sum) in y.chunks_exact_mut(k).zip(sums) {
            self.product.emit(&mut y[column], T::from_f64(sum));
        }
    }
}

/// Adds the products of a column of a block, whose values are C apart, with 4 W columns of a row of x.
///
/// # Safety
/// The R values and the 4 W numbers of x exist, and the processor has AVX2 and FMA.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn add_column<T: Scalar, V: Scalar, const R: usize, const C: usize, const W: usize>(
    sums: &mut [[__m256d; W]; R],
    values: *const V,
    x: *const T,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut row = [_mm256_setzero_pd(); W];
        for (register, row) in row.iter_mut().enumerate() {
            *row = load::<T, LANES>(x.add(register * LANES));
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            let value = broadcast(values.add(r * C));
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum = _mm256_fmadd_pd(value, x, *sum);
            }
        }
    }
}
