//! Symmetric successive over-relaxation: one forward and one backward sweep.
//!
//! With A = L + D + L' and the relaxation w, the preconditioner inverts `(D/w + L) (w/(2-w) D^-1) (D/w + L')`. Its factors with a
//! diagonal of 1 need no factorisation: they are `I + w L D^-1` and its transpose, with `D / (w (2 - w))` between them. Only the
//! lower triangle of A is read.
//!
//! # Reference
//! O. Axelsson, A generalized SSOR method, BIT 12, 1972.

use super::entry::{self, Given, Size};
use super::params::{Numbers, Param};
use super::triangle::{self, Triangle};
use crate::backend::{Operator, Pick};
use crate::error::Result;
use crate::parallel::room;
use crate::scalar::Scalar;

/// The preconditioner's row in the table.
pub(super) struct Family;

impl entry::Family for Family {
    const NAME: &'static str = "ssor";
    const SYNONYMS: &'static [&'static str] = &["sor", "gauss-seidel", "sgs"];
    const SUMMARY: &'static str = "a forward and a backward sweep of over-relaxation; CPU only so far";
    const PARAMS: &'static [Param] = &[Param {
        name: "omega",
        letter: "W",
        summary: "the relaxation, between 0 and 2; 1",
        allowed: "a number above 0 and below 2",
        is_integer: false,
        has: |omega| omega > 0.0 && omega < 2.0,
        default: 1.0,
        always_printed: false,
    }];
    const NEEDS_CPU: bool = true;
    const READS_LOWER_TRIANGLE: bool = true;

    fn bytes(_: Numbers, size: Size, width: u64) -> u64 {
        triangle::bytes(size, width)
    }

    fn bytes_to_build(_: Numbers, size: Size) -> u64 {
        triangle::bytes_to_build(size)
    }

    /// Builds the operator; every diagonal entry must be positive and finite.
    fn build<D: Pick<T>, T: Scalar>(given: &Given<'_, D, T>) -> Result<Operator<D, T>> {
        let omega = given.values[0];
        let triangle = Triangle::of(given.matrix, Self::NAME)?;
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
        given.triangles(Self::NAME, triangle.with_values::<T>(factor, Self::NAME)?)
    }
}
