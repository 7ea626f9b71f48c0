//! Incomplete Cholesky factors without fill: L D L' is equal to the matrix wherever the matrix has an entry.
//!
//! L has a diagonal of 1 and the pattern of the lower triangle; only that triangle is read. Row by row,
//!
//! ```text
//! u(i,j) = a(i,j) - sum over k < j of u(i,k) l(j,k),   l(i,j) = u(i,j) / d(j)
//! d(i) = a(i,i) - sum over k of u(i,k) l(i,k)
//! ```
//!
//! with sums over the entries that both rows have. Row i of u is scattered to a dense array of row length, so
//! that the product with row j only traverses row j. All arithmetic is in double precision.
//!
//! # Breakdown
//! The factors exist for M-matrices and H-matrices, not for every positive definite matrix. If a pivot d(i)
//! is not positive, or consists of rounding alone, the factorisation restarts with s times the diagonal added
//! to the matrix, for s = 0.001, 0.002, 0.004 and so on.
//!
//! # Reference
//! J. A. Meijerink and H. A. van der Vorst, An iterative solution method for linear systems of which the
//! coefficient matrix is a symmetric M-matrix, Math. Comp. 31, 1977; T. A. Manteuffel, An incomplete
//! factorization technique for positive definite linear systems, Math. Comp. 34, 1980.

use super::entry::{Construction, Given, Size};
use super::triangle::{self, Triangle};
use crate::backend::{Operator, Pick};
use crate::error::{Error, Result};
use crate::parallel::zeros;
use crate::params::{Kind, Param, Params};
use crate::scalar::Scalar;
use crate::text::{COUNTED, Index};
use std::ops::Bound;

/// The first shift after a breakdown; each following shift is twice as large.
const FIRST_SHIFT: f64 = 1e-3;
/// Larger shifts result in factors that hardly approximate the matrix.
const LARGEST_SHIFT: f64 = 10.0;
const SHIFT: Kind = Kind::Real(Bound::Included(0.0), Bound::Included(LARGEST_SHIFT));
/// A pivot below this fraction of its diagonal entry consists of rounding alone.
const TINY: f64 = 64.0 * f64::EPSILON;

/// The preconditioner's row in the table.
pub(super) struct Row;

impl Construction for Row {
    const NAME: &'static str = "ic0";
    const SYNONYMS: &'static [&'static str] = &["ic", "icc", "ichol", "cholesky", "ilu", "ilu0"];
    const SUMMARY: &'static str = "incomplete Cholesky factors on the pattern of the matrix; CPU only so far";
    const PARAMS: &'static [Param] =
        &[Param::new("shift", SHIFT, "multiple of the diagonal that is added to it first").or("0")];
    const NEEDS_CPU: bool = true;
    const READS_LOWER_TRIANGLE: bool = true;

    fn bytes(_: &Params, size: Size, width: u64) -> u64 {
        triangle::bytes(size, width)
    }

    fn bytes_to_build(_: &Params, size: Size) -> u64 {
        triangle::bytes_to_build(size)
    }

    /// Builds the operator; every diagonal entry must be positive and finite.
    fn build<D: Pick<T>, T: Scalar>(given: &Given<'_, D, T>) -> Result<Operator<D, T>> {
        let triangle = Triangle::of(given.matrix, Self::NAME)?;
        let values = factors(&triangle, given.params.real("shift"))?;
        given.triangles(Self::NAME, triangle.with_values::<T>(values, Self::NAME)?)
    }
}

/// A pivot that is not positive.
struct BadPivot {
    row: usize,
    pivot: f64,
}

/// Computes L below the diagonal and 1 / d on it, with the first shift that succeeds, starting with `shift`.
fn factors(triangle: &Triangle, mut shift: f64) -> Result<Vec<f64>> {
    let mut values = zeros(triangle.values.len())?;
    let mut spread = zeros(triangle.matrix.rows())?;
    loop {
        let Err(bad) = factor(triangle, shift, &mut values, &mut spread) else {
            if shift > 0.0 {
                log::info!("ic0: {shift} times the diagonal was added to the matrix");
            }
            return Ok(values);
        };
        log::debug!(
            "ic0 with a shift of {shift}: the pivot of row {} ({COUNTED}) is {:e}",
            Index(bad.row),
            bad.pivot
        );
        let next = (2.0 * shift).max(FIRST_SHIFT);
        if next > LARGEST_SHIFT {
            return Err(Error::Breakdown {
                precond: "ic0",
                row: bad.row,
                what: format!("has the pivot {:e}, even with {shift} times the diagonal added", bad.pivot),
                hint: "use preconditioner jacobi, or check that the matrix is positive definite",
            });
        }
        shift = next;
    }
}

/// Factors the matrix. `spread` must be zero and is zero again afterwards.
fn factor(
    triangle: &Triangle,
    shift: f64,
    values: &mut [f64],
    spread: &mut [f64],
) -> std::result::Result<(), BadPivot> {
    let matrix = &triangle.matrix;
    for row in 0..matrix.rows() {
        let range = matrix.row_range(row);
        let diagonal = range.end - 1;
        let columns = &matrix.col_indices()[range.start..diagonal];
        let (finished, new_values) = values.split_at_mut(range.start);
        for (position, &column) in columns.iter().enumerate() {
            let other = matrix.row_range(column as usize);
            let other = other.start..other.end - 1;
            let sum = dot(&matrix.col_indices()[other.clone()], &finished[other], spread);
            spread[column as usize] = triangle.values[range.start + position] - sum;
        }
        let entry = triangle.values[diagonal] * (1.0 + shift);
        let mut pivot = entry;
        for (&column, l) in columns.iter().zip(&mut new_values[..]) {
            let u = std::mem::take(&mut spread[column as usize]);
            *l = u * finished[matrix.row_range(column as usize).end - 1];
            pivot -= u * *l;
        }
        if !(pivot > TINY * entry && pivot.is_finite()) {
            return Err(BadPivot { row, pivot });
        }
        new_values[columns.len()] = 1.0 / pivot;
    }
    Ok(())
}

/// Computes the product of a row with a scattered row, in four independent sums, which shortens the
/// chain of dependent additions.
fn dot(columns: &[u32], values: &[f64], spread: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (fours, four_values) = (columns.chunks_exact(4), values.chunks_exact(4));
    let rest = fours.remainder().iter().zip(four_values.remainder());
    for (columns, values) in fours.zip(four_values) {
        for lane in 0..4 {
            sums[lane] += values[lane] * spread[columns[lane] as usize];
        }
    }
    for (&column, value) in rest {
        sums[0] += value * spread[column as usize];
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}
