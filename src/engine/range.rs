//! The range of numbers in single precision.

use crate::error::{Error, Result};
use crate::format::Csr;
use crate::scalar::Precision;

/// Refuses a matrix with values that the precision cannot hold.
pub(super) fn check_values(precision: Precision, matrix: &Csr) -> Result<()> {
    let (values, count) = (matrix.values(), if precision.narrow_values() { matrix.nnz() } else { 0 });
    check_range(precision, "the matrix", (0..count).map(|j| values.get(j)))
}

/// Refuses numbers that underflow to 0 or overflow in f32, as they would change the problem.
pub(super) fn check_range(
    precision: Precision,
    what: &str,
    mut values: impl Iterator<Item = f64>,
) -> Result<()> {
    let lost = |v: &f64| *v != 0.0 && v.is_finite() && (*v as f32 == 0.0 || (*v as f32).is_infinite());
    match values.find(lost) {
        None => Ok(()),
        Some(value) => Err(Error::setting(
            "precision",
            precision.name(),
            format!("{what} holds {value:e}, out of range for f32; use precision f64, or scale the system"),
        )),
    }
}
