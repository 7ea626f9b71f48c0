//! Values in single precision where it holds all of them exactly: half the bytes and, as products and sums stay in the
//! precision that they had, the same bits.

use super::{Csr, Values};
use std::sync::Arc;

/// Values that are looked at together; the first that does not fit ends the search.
const PIECE: usize = 1 << 16;

/// Whether a value is the same number in single precision. NaN is not: its payload would be cut.
fn fits(value: &f64) -> bool {
    f64::from(*value as f32).to_bits() == value.to_bits() && !value.is_nan()
}

/// The same matrix, with its values in single precision if that changes none.
pub(crate) fn narrowest(matrix: &Arc<Csr>) -> Arc<Csr> {
    match matrix.values() {
        Values::F64(values) if all_fit(values) => Arc::new(matrix.to_f32()),
        _ => Arc::clone(matrix),
    }
}

/// Whether single precision holds all values exactly.
fn all_fit(values: &[f64]) -> bool {
    use rayon::prelude::*;
    // Mostly a few values tell.
    values.iter().take(64).all(fits) && values.par_chunks(PIECE).all(|piece| piece.iter().all(fits))
}

/// Whether single precision holds a sample of the values exactly.
fn sample_fits(values: &[f64]) -> bool {
    values.iter().step_by((values.len() / 1000).max(1)).all(fits)
}

/// Bytes of a value as [`narrowest`] stores it, judged by a sample; ones count as stored in single precision.
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
    fn only_values_that_come_back_bit_for_bit_are_narrowed() {
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
