//! Powers of two that keep products of vectors and entries of A in the range of numbers.

use crate::format::Csr;
use crate::scalar::Scalar;
use crate::solve::verdict::largest_magnitude;

/// A power of two near the largest magnitude, by which a residual is scaled without rounding; 1 where it has none.
pub(super) fn scale(r: &[f64]) -> f64 {
    let largest = largest_magnitude(r.iter().copied());
    if largest.is_normal() { 2f64.powi(largest.log2().floor().clamp(-1000.0, 1000.0) as i32) } else { 1.0 }
}

/// The power of two that brings the largest entry of a matrix to about 1; exactly 1 where the squares of its entries, in
/// vectors of this precision, are in range anyway.
pub(super) fn matrix_scale<T: Scalar>(matrix: &Csr) -> f64 {
    let safe = if size_of::<T>() == 4 { 16 } else { 256 };
    let largest = largest_magnitude((0..matrix.nnz()).map(|j| matrix.values().get(j)));
    let exponent = if largest.is_normal() { largest.log2().floor() as i32 } else { 0 };
    if exponent.abs() <= safe { 1.0 } else { 2f64.powi(-exponent.clamp(-1000, 1000)) }
}
