//! The judgement of an answer: b - A x, recomputed in double precision by the serial reference.

use super::Outcome;
use crate::format::Csr;
use crate::scalar::Scalar;
use crate::stop::StopReason;

/// Norm of b - A x over the norm of b, all in double precision with the matrix as its source gave it.
pub fn true_residual<T: Scalar>(matrix: &Csr, b: &[f64], x: &[T]) -> f64 {
    let x: Vec<f64> = x.iter().map(|v| v.to_f64()).collect();
    let ax = matrix.multiply_reference(&x);
    let difference = norm(ax.iter().zip(b).map(|(ax, b)| b - ax));
    let norm_b = norm(b.iter().copied());
    if norm_b == 0.0 { difference } else { difference / norm_b }
}

/// The Euclidean norm, safe from overflow and underflow.
fn norm(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = largest_magnitude(values.clone());
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * values.map(|v| (v / largest) * (v / largest)).sum::<f64>().sqrt()
}

/// The largest magnitude among the values, NaN if any of them is.
pub(super) fn largest_magnitude(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::abs).fold(0.0, |m: f64, v| if m.is_nan() || v.is_nan() { f64::NAN } else { m.max(v) })
}

/// Lets `Converged` stand only where the true residual meets the tolerance; returns that residual.
pub fn judge<T: Scalar>(matrix: &Csr, b: &[f64], tolerance: f64, outcome: &mut Outcome<T>) -> f64 {
    let recomputed = true_residual(matrix, b, &outcome.x);
    // Written so that NaN does not pass.
    let meets = recomputed <= tolerance;
    if outcome.reason.is_success() && !meets {
        outcome.reason = StopReason::ResidualGap { recursive: outcome.residual, recomputed };
    }
    recomputed
}
