//! Arrays in memory of a caller on a device.

use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// A matrix in compressed sparse rows in device memory of a caller, who says how long it stays there.
#[derive(Clone, Copy, Debug)]
pub struct LentRows {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Number of entries.
    pub entries: usize,
    /// The offset at which each row begins, and the number of entries as the last offset.
    pub offsets: LentIndices,
    /// The column of each entry.
    pub columns: LentIndices,
    /// The value of each entry.
    pub values: LentNumbers,
    /// The stream of the caller, in whose order the arrays are read; 0 for the default stream.
    pub stream: u64,
}

/// The address of an array of indices, a multiple of 16 bytes, with the type of its elements.
#[derive(Clone, Copy, Debug)]
pub enum LentIndices {
    /// Signed, 32 bits.
    I32(u64),
    /// Signed, 64 bits.
    I64(u64),
}

/// The address of an array of values with the type of its elements.
#[derive(Clone, Copy, Debug)]
pub enum LentNumbers {
    /// Single precision.
    F32(u64),
    /// Double precision.
    F64(u64),
    /// There is no array: every value is 1.
    Ones,
}

impl LentNumbers {
    /// Returns the address of an array with elements of type `T`. Fails for any other elements.
    pub(crate) fn address<T: Scalar>(self) -> Result<u64> {
        match (self, size_of::<T>()) {
            (LentNumbers::F32(address), 4) | (LentNumbers::F64(address), 8) => Ok(address),
            _ => Err(Error::setting("precision", T::NAME, "the array has elements of another type")),
        }
    }
}

/// C = alpha A B + beta C for arrays in device memory of a caller. B and C are in row-major order.
#[derive(Clone, Copy, Debug)]
pub struct LentProduct {
    /// The factor of the product.
    pub alpha: f64,
    /// B: as many rows as A has columns.
    pub b: LentNumbers,
    /// The factor of the C before. If it is 0, that C is not read.
    pub beta: f64,
    /// C: as many rows as A.
    pub c: LentNumbers,
    /// The number of columns of B and C.
    pub columns: usize,
    /// The stream of the caller, in whose order the arrays are read and written; 0 for the default stream.
    pub stream: u64,
}
