//! Matrices whose rows and columns are multiplied by factors, such as those that make the diagonal 1.

use crate::error::Result;
use crate::format::product::Rows;
use crate::format::{Csr, Values};
use crate::parallel::{collected, run_all, split_front, zeros};
use crate::scalar::Scalar;
use std::ops::Range;
use std::sync::Arc;

/// Rows that a thread multiplies as one task.
const ROWS: usize = 8192;

/// The reciprocal square roots of a diagonal.
pub(super) struct Roots(Option<Vec<f64>>);

impl Roots {
    /// Computes them from the reciprocals of the diagonal.
    pub(crate) fn of(inverse: &[f64]) -> Roots {
        Roots(Some(collected(inverse.len(), |row| inverse[row].sqrt())))
    }

    /// Returns those of a diagonal of ones.
    pub(crate) fn ones() -> Roots {
        Roots(None)
    }

    #[inline(always)]
    pub(crate) fn at(&self, row: usize) -> f64 {
        self.0.as_ref().map_or(1.0, |roots| roots[row])
    }
}

/// Returns the matrix, whose values must be in double precision, with its rows and columns multiplied by
/// factors; in single precision if `narrow`.
pub(super) fn with_factors(
    matrix: &Csr,
    narrow: bool,
    rows: impl Fn(usize) -> f64 + Sync,
    columns: impl Fn(usize) -> f64 + Sync,
) -> Result<Csr> {
    let values = match narrow {
        true => Values::F32(multiplied(matrix, rows, columns)?),
        false => Values::F64(multiplied(matrix, rows, columns)?),
    };
    Csr::with_pattern(Arc::clone(matrix.pattern()), values)
}

fn multiplied<S: Scalar>(
    matrix: &Csr,
    rows: impl Fn(usize) -> f64 + Sync,
    columns: impl Fn(usize) -> f64 + Sync,
) -> Result<Vec<S>> {
    let (n, entries) = (matrix.rows(), Rows::of(matrix));
    let mut values: Vec<S> = zeros(matrix.nnz())?;
    let mut left = &mut values[..];
    let tasks = (0..n).step_by(ROWS).map(|first| {
        let rows = first..(first + ROWS).min(n);
        let count = rows.clone().map(|row| matrix.row_range(row).len()).sum();
        (rows, split_front(&mut left, count))
    });
    run_all(tasks.collect(), |(range, values): (Range<usize>, &mut [S])| {
        let mut values = values.iter_mut();
        for row in range {
            let factor = rows(row);
            for ((column, value), to) in entries.row(row).zip(&mut values) {
                // In this order, so that a symmetric matrix stays symmetric to the last bit.
                *to = S::from_f64(value * (factor * columns(column)));
            }
        }
    });
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::product::in_double;
    use crate::source;

    #[test]
    fn factors_multiply_rows_and_columns_in_both_precisions() {
        // More rows than a task has.
        let matrix = in_double(source::load("poisson2d:100x90").unwrap().matrix);
        let (rows, columns) = (|row: usize| row as f64 + 1.0, |column: usize| 1.0 / (column as f64 + 2.0));
        for narrow in [false, true] {
            let scaled = with_factors(&matrix, narrow, rows, columns).unwrap();
            assert_eq!(scaled.pattern(), matrix.pattern());
            for row in 0..matrix.rows() {
                for ((column, value), (_, found)) in matrix.row(row).zip(scaled.row(row)) {
                    let exact = value * (rows(row) * columns(column));
                    let rounded = if narrow { f64::from(exact as f32) } else { exact };
                    assert_eq!(found, rounded, "{row}, {column}");
                }
            }
        }
    }

    #[test]
    fn roots_of_the_diagonal_make_it_one() {
        let matrix = in_double(source::load("spd-random:n=300,row=9").unwrap().matrix);
        let inverse: Vec<f64> = matrix.diagonal().iter().map(|diagonal| 1.0 / diagonal).collect();
        let roots = Roots::of(&inverse);
        let scaled = with_factors(&matrix, false, |row| roots.at(row), |column| roots.at(column)).unwrap();
        assert!(scaled.diagonal().iter().all(|diagonal| (diagonal - 1.0).abs() < 1e-14));
        assert_eq!(scaled.transposed().unwrap(), scaled, "a symmetric matrix stays symmetric");
        assert_eq!(Roots::ones().at(7), 1.0);
    }
}
