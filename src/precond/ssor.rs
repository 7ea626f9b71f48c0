//! Symmetric successive over-relaxation: one sweep forward and one back.
//!
//! With A = L + D + L' and the relaxation w, the matrix that is inverted is
//! `(D/w + L) (w/(2-w) D^-1) (D/w + L')`. Its factors with a diagonal of 1 need no factorisation: they are `I + w L
//! D^-1` and its transpose, with `D / (w (2 - w))` between them. Only the lower triangle of A is read.
//!
//! # Reference
//! O. Axelsson, A generalized SSOR method, BIT 12, 1972.

use super::triangle::Triangle;
use crate::backend::{Made, Pick};
use crate::error::Result;
use crate::format::Csr;
use crate::parallel::room;
use crate::scalar::Scalar;

/// Builds the operator; every diagonal entry must be positive and finite.
pub(super) fn build<D: Pick<T>, T: Scalar>(device: &D, matrix: &Csr, omega: f64) -> Result<Made<D, T>> {
    let triangle = Triangle::of(matrix, "ssor")?;
    let rows = triangle.matrix.rows();
    let ends = |row: usize| triangle.matrix.row_range(row).end - 1;
    let mut inverse = room::<f64>(rows)?;
    inverse.extend((0..rows).map(|row| 1.0 / triangle.values[ends(row)]));
    let columns = triangle.matrix.col_indices();
    let scaled = |(&value, &column): (&f64, &u32)| omega * value * inverse[column as usize];
    let mut factor = room::<f64>(columns.len())?;
    factor.extend(triangle.values.iter().zip(columns).map(scaled));
    for row in 0..rows {
        factor[ends(row)] = omega * (2.0 - omega) * inverse[row];
    }
    device.triangles("ssor", triangle.with_values::<T>(factor, "ssor")?)
}
