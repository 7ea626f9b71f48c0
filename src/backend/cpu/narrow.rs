//! Values in single precision where it holds all of them exactly: half the bytes and, as products and sums stay in the
//! precision that they had, the same bits.

use crate::device::cpu::aligned::Aligned;
use crate::error::Result;
use crate::format::{Csr, Values};
use std::sync::Arc;

/// Values as kernels load them.
pub(super) enum AlignedValues {
    Ones,
    F32(Aligned<f32>),
    F64(Aligned<f64>),
}

impl AlignedValues {
    pub fn of(values: Values) -> Result<AlignedValues> {
        Ok(match values {
            Values::Ones => AlignedValues::Ones,
            Values::F32(values) => AlignedValues::F32(Aligned::of(values)?),
            Values::F64(values) => AlignedValues::F64(Aligned::of(values)?),
        })
    }

    /// How many are stored.
    pub fn stored(&self) -> usize {
        match self {
            AlignedValues::Ones => 0,
            AlignedValues::F32(values) => values.len(),
            AlignedValues::F64(values) => values.len(),
        }
    }

    /// Bytes of those.
    pub fn bytes(&self) -> usize {
        match self {
            AlignedValues::Ones => 0,
            AlignedValues::F32(values) => size_of_val(&values[..]),
            AlignedValues::F64(values) => size_of_val(&values[..]),
        }
    }
}

/// Values that are looked at together; the first that does not fit ends the search.
const PIECE: usize = 1 << 16;

/// Whether a value is the same number in single precision. NaN is not: its payload would be cut.
fn fits(value: &f64) -> bool {
    f64::from(*value as f32).to_bits() == value.to_bits() && !value.is_nan()
}

/// The same matrix, with its values in single precision if that changes none.
pub(in crate::backend) fn narrowest(matrix: &Arc<Csr>) -> Arc<Csr> {
    match matrix.values() {
        Values::F64(values) if all_fit(values) => Arc::new(matrix.to_f32()),
        _ => Arc::clone(matrix),
    }
}

/// Whether single precision holds all values exactly.
pub(super) fn all_fit(values: &[f64]) -> bool {
    use rayon::prelude::*;
    // Mostly a few values tell.
    values.iter().take(64).all(fits) && values.par_chunks(PIECE).all(|piece| piece.iter().all(fits))
}

/// The same, judged by a sample.
pub(in crate::backend) fn sample_fits(values: &[f64]) -> bool {
    values.iter().step_by((values.len() / 1000).max(1)).all(fits)
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
