//! Storage of values in single precision if this is exact for all of them: half the bytes. Products and sums
//! stay in their precision, so that results are bit-identical.

use super::{Csr, Values};
use std::sync::Arc;

/// Values of a parallel task; the first value that does not fit ends the search.
const PIECE: usize = 1 << 16;
/// Values that are tested together.
const GROUP: usize = 1 << 10;

/// Returns whether single precision represents a value exactly. False for NaN, as its payload
/// would be truncated.
fn fits(value: &f64) -> bool {
    f64::from(*value as f32).to_bits() == value.to_bits() && !value.is_nan()
}

/// Returns whether the values can be stored in single precision without a change; ones and
/// single precision can.
pub(crate) fn narrows(matrix: &Csr) -> bool {
    match matrix.values() {
        Values::F64(values) => all_fit(values),
        Values::Ones | Values::F32(_) => true,
    }
}

/// Returns the matrix with its values in single precision if this is exact for all of them.
pub(crate) fn narrowest(matrix: &Arc<Csr>) -> Arc<Csr> {
    match matrix.values() {
        Values::F64(_) if narrows(matrix) => Arc::new(matrix.to_f32()),
        _ => Arc::clone(matrix),
    }
}

/// Returns whether single precision represents the first values exactly. In most matrices with inexact
/// values, one of the first is inexact.
pub(crate) fn may_narrow(values: &[f64]) -> bool {
    values.iter().take(64).all(fits)
}

/// Returns whether single precision represents all values exactly.
fn all_fit(values: &[f64]) -> bool {
    use rayon::prelude::*;
    // Without an early exit the loop over a group is vectorised.
    let group_fits = |group: &[f64]| group.iter().fold(true, |all, value| all & fits(value));
    let piece_fits = |piece: &[f64]| piece.chunks(GROUP).all(group_fits);
    // A single piece does not wake the pool.
    let all =
        || if values.len() <= PIECE { piece_fits(values) } else { values.par_chunks(PIECE).all(piece_fits) };
    may_narrow(values) && all()
}

/// Returns whether single precision represents a sample of the values exactly.
fn sample_fits(values: &[f64]) -> bool {
    values.iter().step_by((values.len() / 1000).max(1)).all(fits)
}

/// Estimates from a sample the bytes of a value as [`narrowest`] stores it; ones count as
/// stored in single precision.
pub(crate) fn value_bytes(matrix: &Csr) -> f64 {
    match matrix.values() {
        Values::F64(values) if !sample_fits(values) => 8.0,
        _ => 4.0,
    }
}

#[cfg(test)]
mod tests {
    use super::all_fit;

    #[test]
    fn only_values_with_an_exact_round_trip_are_narrowed() {
        assert!(all_fit(&[0.0, -0.0, 1.5, -4.0, f64::INFINITY]));
        for value in [0.1, 1e300, 1e-300, 16_777_217.0, f64::NAN] {
            assert!(!all_fit(&[1.0, value]), "{value}");
        }
        let mut many = vec![1.0; 200_000];
        assert!(all_fit(&many));
        many[150_000] = 0.1;
        assert!(!all_fit(&many));
    }
}
