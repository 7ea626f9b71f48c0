//! Values of a matrix in cache-line-aligned memory, as CPU kernels load them.

use crate::device::cpu::aligned::Aligned;
use crate::error::Result;
use crate::format::Values;

/// Values in memory that begins at a cache line.
pub(super) enum AlignedValues {
    Ones,
    F32(Aligned<f32>),
    F64(Aligned<f64>),
}

impl AlignedValues {
    pub(crate) fn of(values: Values) -> Result<AlignedValues> {
        Ok(match values {
            Values::Ones => AlignedValues::Ones,
            Values::F32(values) => AlignedValues::F32(Aligned::of(values)?),
            Values::F64(values) => AlignedValues::F64(Aligned::of(values)?),
        })
    }

    /// Returns the number of values in memory; 0 if all values are an implicit 1.
    pub(crate) fn stored(&self) -> usize {
        match self {
            AlignedValues::Ones => 0,
            AlignedValues::F32(values) => values.len(),
            AlignedValues::F64(values) => values.len(),
        }
    }

    /// Returns the bytes of the stored values.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            AlignedValues::Ones => 0,
            AlignedValues::F32(values) => size_of_val(&values[..]),
            AlignedValues::F64(values) => size_of_val(&values[..]),
        }
    }
}
