//! The checked lower triangle of a matrix, for preconditioners with triangular factors.

use super::entry::Size;
use super::{beyond, holds};
use crate::error::{Error, Result};
use crate::format::{Csr, Values};
use crate::scalar::Scalar;
use crate::text::Index;

/// Estimates the bytes of the operator of two triangles: each is stored once, with a column and a value per
/// entry; the pivots, and a vector.
pub(super) fn bytes(size: Size, width: u64) -> u64 {
    size.entries.saturating_sub(size.rows) * (4 + width) + 2 * size.rows * width
}

/// Returns the bytes used temporarily during construction. Per entry below the diagonal these are the factor
/// with its columns, 12 bytes, the dependencies of both directions, 8, and its position above the diagonal,
/// 8; per row, the diagonal of the factor, four offsets and a schedule.
pub(super) fn bytes_to_build(size: Size) -> u64 {
    14 * size.entries.saturating_sub(size.rows) + (16 + 32 + 10) * size.rows
}

/// The entries below and on the diagonal.
pub(super) struct Triangle {
    /// The pattern. The last entry of every row is on the diagonal.
    pub matrix: Csr,
    pub values: Vec<f64>,
}

impl Triangle {
    /// Extracts the triangle. Its diagonal must be positive and finite, and the entries below finite.
    pub(crate) fn of(matrix: &Csr, precond: &'static str) -> Result<Triangle> {
        let matrix = matrix.lower_triangle()?;
        let matrix = if matrix.pattern().has_repeats() { matrix.summed()? } else { matrix };
        let entries = matrix.nnz();
        let (pattern, values) = matrix.into_parts();
        let values = values.into_f64(entries)?;
        let matrix = Csr::with_pattern(pattern, Values::Ones)?;
        for row in 0..matrix.rows() {
            check(&matrix, &values, row, precond)?;
        }
        Ok(Triangle { matrix, values })
    }

    /// Returns the pattern with the values of a factor, after checking that `T` can represent them.
    pub(crate) fn with_values<T: Scalar>(self, values: Vec<f64>, precond: &'static str) -> Result<Csr> {
        for row in 0..self.matrix.rows() {
            let own = &values[self.matrix.row_range(row)];
            if let Some(&value) = own.iter().find(|&&value| !holds::<T>(value)) {
                return Err(beyond::<T>(precond, row, value));
            }
        }
        Csr::with_pattern(self.matrix.into_parts().0, Values::F64(values))
    }
}

fn check(matrix: &Csr, values: &[f64], row: usize, precond: &'static str) -> Result<()> {
    let range = matrix.row_range(row);
    let columns = &matrix.col_indices()[range.clone()];
    let fault = |value| Err(Error::BadDiagonal { precond, row, value });
    match (columns.last(), values[range.clone()].last()) {
        (Some(&column), Some(&value)) if column as usize == row => {
            if !(value > 0.0 && value.is_finite()) {
                return fault(Some(value));
            }
        }
        _ => return fault(None),
    }
    match values[range].iter().zip(columns).find(|(value, _)| !value.is_finite()) {
        None => Ok(()),
        Some((value, column)) => Err(Error::Breakdown {
            precond,
            row,
            what: format!("holds {value} in column {}", Index(*column as usize)),
            hint: "a matrix with this value cannot be preconditioned or solved; correct it",
        }),
    }
}
