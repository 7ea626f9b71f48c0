//! The inverse of the last matrix of a hierarchy.
//!
//! The matrix is factored as L D L' without exchanges. A pivot that is not clearly positive is left out: its
//! unknown stays 0, so that the result is positive semidefinite for any symmetric matrix, and inverts a
//! semidefinite one on its range. The null space of a singular matrix is thus removed in as few unknowns as
//! it has dimensions.

use crate::error::Result;
use crate::format::{Csr, Offsets, Values};
use rayon::prelude::*;

/// The share of its diagonal entry that a pivot must keep.
const PIVOT: f64 = 1e-11;

/// Returns the inverse with all its entries. `matrix` is symmetric; its lower triangle is read.
pub(super) fn inverse(matrix: &Csr) -> Result<Csr> {
    let n = matrix.rows();
    let mut l = vec![0.0; n * n];
    for row in 0..n {
        matrix
            .row(row)
            .filter(|(column, _)| *column <= row)
            .for_each(|(column, value)| l[row * n + column] = value);
    }
    let mut kept = vec![true; n];
    // Row by row: L has its rows in `l`, with the square roots of the pivots on the diagonal.
    for i in 0..n {
        let (done, rest) = l.split_at_mut(i * n);
        let own = &mut rest[..=i];
        for j in 0..i {
            let other = &done[j * n..=j * n + j];
            let sum: f64 = own[..j].iter().zip(&other[..j]).map(|(a, b)| a * b).sum();
            own[j] = if kept[j] { (own[j] - sum) / other[j] } else { 0.0 };
        }
        let pivot = own[i] - own[..i].iter().map(|value| value * value).sum::<f64>();
        kept[i] = pivot > PIVOT * own[i] && pivot.is_finite();
        own[i] = if kept[i] { pivot.sqrt() } else { 1.0 };
        if !kept[i] {
            own[..i].fill(0.0);
        }
    }
    let column = |unit: usize| {
        let mut x = vec![0.0; n];
        if !kept[unit] {
            return x;
        }
        for i in unit..n {
            let row = &l[i * n..=i * n + i];
            let sum: f64 = row[unit..i].iter().zip(&x[unit..i]).map(|(a, b)| a * b).sum();
            let right = if i == unit { 1.0 } else { 0.0 };
            x[i] = if kept[i] { (right - sum) / row[i] } else { 0.0 };
        }
        for i in (0..n).rev() {
            x[i] = if kept[i] { x[i] / l[i * n + i] } else { 0.0 };
            let by = x[i];
            x[..i].iter_mut().zip(&l[i * n..i * n + i]).for_each(|(x, l)| *x -= l * by);
        }
        x
    };
    let columns: Vec<Vec<f64>> = (0..n).into_par_iter().map(column).collect();
    // Both triangles have equal bits.
    let entry = |row: usize, column: usize| columns[row.min(column)][row.max(column)];
    let values = (0..n * n).map(|at| entry(at / n, at % n)).collect();
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
    }
}
