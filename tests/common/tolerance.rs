//! Every tolerance of the tests, each with its reason. No other file defines one.

use solver::scalar::Scalar;

/// Bounds |y - A x| for one row: each product and each addition rounds once, in any order, and so do the
/// two scalings; `magnitude` is `|alpha| (|A| |x|)_row + |beta y|`. The factor 4 is for orders that add
/// in several partial sums.
pub fn spmv_row<T: Scalar>(entries: usize, magnitude: f64) -> f64 {
    4.0 * (entries as f64 + 2.0) * T::EPSILON * magnitude
}

/// Bounds one product of a sweep: the coefficient, an element-wise product and the product
/// with the coefficient round.
pub fn term<T: Scalar>(magnitude: f64) -> f64 {
    3.0 * T::EPSILON * magnitude
}

/// Bounds the sum of at most three terms, rounded twice.
pub fn sum<T: Scalar>(magnitude: f64) -> f64 {
    2.0 * T::EPSILON * magnitude
}

/// Bounds a dot product of `n` elements in double precision, in any order; `magnitude` is the
/// sum of the magnitudes.
pub fn dot(n: usize, magnitude: f64) -> f64 {
    (n as f64 + 2.0) * f64::EPSILON * magnitude
}

/// Bounds a division of scalars in double precision.
pub fn divide(quotient: f64) -> f64 {
    f64::EPSILON * quotient.abs()
}

/// The relative residual required of solves in double precision.
pub const RTOL: f64 = 1e-8;
/// The relative residual required of solves in single precision, whose true residual stalls near 1e-6 here.
pub const RTOL_F32: f64 = 1e-4;
/// A tolerance below the true residual that one run in single precision reaches.
pub const RTOL_BEYOND_F32: f64 = 1e-12;
/// A tolerance below the true residual that one run of pipelined conjugate gradients reaches
/// in double precision.
pub const RTOL_BEYOND_PIPELINED: f64 = 1e-13;
/// A tolerance below the smallest b - A x in double precision, because x has no more digits.
pub const RTOL_BEYOND_F64: f64 = 1e-18;

/// Bounds the difference, in norms, of a preconditioner that is applied in two ways: a few products and
/// passes of some hundred roundings in a row, of numbers that may cancel.
pub fn preconditioned<T: Scalar>(magnitude: f64) -> f64 {
    1e3 * T::EPSILON * magnitude
}

/// The error of an entry of x whose true value is 1: `RTOL` times the condition numbers (below
/// 2e3) of the systems solved.
pub const X: f64 = 2e-5;

/// The largest difference between the recursive residual and that of b - A x in double precision on the
/// small systems of the tests, relative to b: far below the change of one iteration, so that an x that lacks
/// one iteration is detected.
pub const RESIDUAL_GAP: f64 = 1e-12;

/// Returns the difference allowed in the iterations of the same solve elsewhere: one in a hundred, because
/// rounding moves the last of them.
pub fn iterations(expected: usize) -> usize {
    expected.div_ceil(100)
}

/// The error of triangular solves with rows of up to a few hundred entries and condition numbers below a
/// hundred, in units of the rounding and of the largest entry of the answer.
pub const TRIANGLES: f64 = 2000.0;

/// Iterations allowed to ill-conditioned systems, on which rounding delays convergence.
pub const LOOSE_ITERATIONS: usize = 20_000;

/// The error of generators' values against their formulas, which add in the same order.
pub const GENERATED: f64 = 1e-14;

/// The error of forces of a rigid motion of a body with stiffness below 1e3, whose terms cancel.
pub const RIGID_MOTION: f64 = 1e-11;

/// The error of the force on a node of irregular elements that are not strained, relative to the sum of the
/// magnitudes of the row's entries and to the largest displacement.
pub const UNSTRAINED: f64 = 1e-12;

/// Bounds the error of a sum of `entries` numbers that were scaled to sum to 1: each division and each
/// addition rounds, twice over.
pub fn row_sum(entries: usize) -> f64 {
    4.0 * entries as f64 * f64::EPSILON
}
