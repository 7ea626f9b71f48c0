//! The inverse of the last matrix of a hierarchy.
//!
//! The matrix, scaled to a diagonal of ones, is factored as L L' with diagonal pivoting: the largest diagonal
//! entry that is left is the next pivot, so that small pivots come last. Once no pivot is clearly positive,
//! the unknowns that are left stay 0. The result is positive semidefinite for any symmetric matrix, and
//! inverts a semidefinite one on its range: the null space of a singular matrix is removed in as few unknowns
//! as it has dimensions.
//!
//! # Reference
//! N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, SIAM, 2002, section 10.3.

use crate::error::Result;
use crate::format::{Csr, Offsets, Values};
use rayon::prelude::*;

/// The share of its diagonal entry that a pivot must keep.
const PIVOT: f64 = 1e-11;
/// Partial sums of a dot product.
const LANES: usize = 8;

/// Returns the dot product of two arrays of the same length.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// The factor L of a scaled matrix.
struct Factor {
    /// The rows of L of the pivots, in their order.
    rows: Vec<f64>,
    /// The unknowns of the pivots.
    pivots: Vec<usize>,
}

impl Factor {
    /// Factors a symmetric matrix of `n` rows with a diagonal of ones or zeros.
    fn of(a: &[f64], n: usize) -> Factor {
        // L in the order of the unknowns.
        let mut l = vec![0.0; n * n];
        // NaN is no pivot, either.
        let mut left: Vec<f64> = (0..n).map(|i| a[i * n + i].max(0.0)).collect();
        let mut pivots = Vec::with_capacity(n);
        for step in 0..n {
            let Some(pivot) = (0..n).max_by(|&i, &j| left[i].total_cmp(&left[j]).then(j.cmp(&i))) else {
                break;
            };
            if left[pivot] <= PIVOT {
                break;
            }
            let root = left[pivot].sqrt();
            let own = l[pivot * n..pivot * n + step].to_vec();
            for i in 0..n {
                if left[i] > 0.0 && i != pivot {
                    let row = &mut l[i * n..][..=step];
                    let value = (a[i * n + pivot] - dot(&row[..step], &own)) / root;
                    row[step] = value;
                    // Stays positive, also if it was NaN; -1 marks a pivot.
                    left[i] = (left[i] - value * value).max(f64::MIN_POSITIVE);
                }
            }
            l[pivot * n + step] = root;
            left[pivot] = -1.0;
            pivots.push(pivot);
        }
        let rows = pivots.iter().flat_map(|&pivot| &l[pivot * n..][..pivots.len()]).copied().collect();
        Factor { rows, pivots }
    }

    /// Solves for the unit vector of a pivot.
    fn column(&self, unit: usize) -> Vec<f64> {
        let n = self.pivots.len();
        let mut x = vec![0.0; n];
        for i in unit..n {
            let row = &self.rows[i * n..=i * n + i];
            let right = if i == unit { 1.0 } else { 0.0 };
            x[i] = (right - dot(&row[unit..i], &x[unit..i])) / row[i];
        }
        for i in (0..n).rev() {
            let row = &self.rows[i * n..=i * n + i];
            x[i] /= row[i];
            let by = x[i];
            x[..i].iter_mut().zip(row).for_each(|(x, l)| *x -= l * by);
        }
        x
    }
}

/// Returns the inverse of a symmetric matrix, with all its entries.
pub(super) fn inverse(matrix: &Csr) -> Result<Csr> {
    let n = matrix.rows();
    let scale = |diagonal: f64| if diagonal > 0.0 { 1.0 / diagonal.sqrt() } else { 0.0 };
    let scale: Vec<f64> = matrix.diagonal().into_iter().map(scale).collect();
    let mut scaled = vec![0.0; n * n];
    for row in 0..n {
        for (column, value) in matrix.row(row) {
            scaled[row * n + column] = value * (scale[row] * scale[column]);
        }
    }
    let factor = Factor::of(&scaled, n);
    let columns: Vec<Vec<f64>> =
        (0..factor.pivots.len()).into_par_iter().map(|unit| factor.column(unit)).collect();
    let mut values = vec![0.0; n * n];
    for (j, &column) in factor.pivots.iter().enumerate() {
        for (i, &row) in factor.pivots.iter().enumerate() {
            // Both triangles have equal bits.
            values[row * n + column] = columns[i.min(j)][i.max(j)] * (scale[row] * scale[column]);
        }
    }
    let offsets = Offsets::narrowest((0..=n as u64).map(|row| row * n as u64).collect());
    Csr::new(n, n, offsets, (0..n * n).map(|at| (at % n) as u32).collect(), Values::F64(values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::product::Workspace;
    use crate::source;

    /// Returns the largest entry of A X A - A.
    fn fault(name: &str) -> f64 {
        let a = source::load(name).unwrap().matrix;
        let x = inverse(&a).unwrap();
        let space = Workspace::default();
        let again = space.product(&space.product(&a, &x).unwrap(), &a).unwrap();
        let n = a.rows();
        let difference = |i: usize, j: usize| again.get(i, j).unwrap_or(0.0) - a.get(i, j).unwrap_or(0.0);
        (0..n * n).map(|at| difference(at / n, at % n).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn a_definite_matrix_is_inverted_and_a_singular_one_on_its_range() {
        assert!(fault("poisson2d:9x8") < 1e-12);
        assert!(fault("poisson2d:9x8,boundary=neumann") < 1e-12);
        // A floating elastic body, with three dimensions of rigid-body modes.
        assert!(fault("delaunay2d:n=60,unknowns=2,boundary=neumann") < 1e-9);
    }

    #[test]
    fn unknowns_without_a_positive_diagonal_stay_zero() {
        let offsets = Offsets::narrowest(vec![0, 2, 4, 5]);
        let values = Values::F64(vec![4.0, 1.0, 1.0, f64::NAN, -1.0]);
        let x = inverse(&Csr::new(3, 3, offsets, vec![0, 1, 0, 1, 2], values).unwrap()).unwrap();
        for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
            assert_eq!(x.get(i, j), Some(if (i, j) == (0, 0) { 0.25 } else { 0.0 }), "{i}, {j}");
        }
    }
}
