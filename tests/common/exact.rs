//! Verdicts in exact arithmetic, for small systems: every f64 is a fraction.

use num_bigint::BigInt;
use num_rational::BigRational;
use solver::format::Csr;

fn exact(value: f64) -> BigRational {
    BigRational::from_float(value).unwrap_or_else(|| panic!("{value} is not finite"))
}

fn sum(terms: impl Iterator<Item = BigRational>) -> BigRational {
    terms.fold(BigRational::from_integer(BigInt::ZERO), |sum, term| sum + term)
}

/// Returns b - A x without rounding.
fn residual(matrix: &Csr, b: &[f64], x: &[f64]) -> Vec<BigRational> {
    let row = |i: usize| exact(b[i]) - sum(matrix.row(i).map(|(j, a)| exact(a) * exact(x[j])));
    (0..matrix.rows()).map(row).collect()
}

fn square_of_norm(values: &[BigRational]) -> BigRational {
    sum(values.iter().map(|v| v * v))
}

/// Returns whether ||b - A x|| is at most this, exactly.
pub fn norm_is_at_most(matrix: &Csr, b: &[f64], x: &[f64], limit: f64) -> bool {
    square_of_norm(&residual(matrix, b, x)) <= exact(limit) * exact(limit)
}

/// Returns whether ||b - A x|| <= rtol ||b|| holds exactly.
pub fn meets(matrix: &Csr, b: &[f64], x: &[f64], rtol: f64) -> bool {
    let b_squared: Vec<_> = b.iter().map(|&b| exact(b)).collect();
    square_of_norm(&residual(matrix, b, x)) <= exact(rtol) * exact(rtol) * square_of_norm(&b_squared)
}
