//! The judgement of an answer, in double precision by the serial reference and the matrix as its source gave it.
//!
//! - The true residual: ||b - A x|| / ||b||, in Euclidean norms.
//! - The normwise backward error: ||r|| / (||A|| ||x|| + ||b||), in maximum norms (of A: the largest sum of magnitudes
//!   in a row). It is the smallest relative change of A and b that makes x exact; at a few times 1e-16 nobody can ask
//!   for more (J. L. Rigal and J. Gaches, On the compatibility of a given solution with the data of a linear system, J.
//!   ACM 14, 1967).
//! - The normal residual: ||A r|| / (||A|| ||r||), with the Frobenius norm of A: small where r is all but orthogonal to
//!   the range of a symmetric A, so that x minimises the residual.

use crate::format::Csr;
use crate::scalar::Scalar;

/// b - A x.
pub fn residual(matrix: &Csr, b: &[f64], x: &[f64]) -> Vec<f64> {
    let mut r = matrix.multiply_reference(x);
    r.iter_mut().zip(b).for_each(|(r, b)| *r = b - *r);
    r
}

/// Norm of b - A x over the norm of b.
pub fn true_residual<T: Scalar>(matrix: &Csr, b: &[f64], x: &[T]) -> f64 {
    let x: Vec<f64> = x.iter().map(|v| v.to_f64()).collect();
    let difference = norm(&residual(matrix, b, &x));
    let norm_b = norm(b);
    if norm_b == 0.0 { difference } else { difference / norm_b }
}

/// The normwise backward error of x with the residual r.
pub fn backward_error(matrix: &Csr, b: &[f64], x: &[f64], r: &[f64]) -> f64 {
    let sums = matrix.map_rows(|i| matrix.row(i).map(|(_, v)| v.abs()).sum::<f64>());
    let largest = |v: &[f64]| largest_magnitude(v.iter().copied());
    let r = largest(r);
    if r == 0.0 { 0.0 } else { r / (largest(&sums) * largest(x) + largest(b)) }
}

/// The normal residual of a symmetric system with the residual r; 0 where r is.
pub fn normal_residual(matrix: &Csr, r: &[f64]) -> f64 {
    let rows = matrix.map_rows(|i| matrix.row(i).map(|(_, v)| v * v).sum::<f64>());
    let frobenius = rows.iter().sum::<f64>().sqrt();
    let ar = norm(&matrix.multiply_reference(r));
    if ar == 0.0 { 0.0 } else { ar / (frobenius * norm(r)) }
}

/// The Euclidean norm, safe from overflow and underflow.
pub(super) fn norm(values: &[f64]) -> f64 {
    let largest = largest_magnitude(values.iter().copied());
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * values.iter().map(|v| (v / largest) * (v / largest)).sum::<f64>().sqrt()
}

/// The largest magnitude among the values, NaN if any of them is.
pub(super) fn largest_magnitude(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::abs).fold(0.0, |m: f64, v| if m.is_nan() || v.is_nan() { f64::NAN } else { m.max(v) })
}
