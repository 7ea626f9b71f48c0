//! Symmetric successive over-relaxation: one forward and one backward sweep.
//!
//! With A = L + D + L' and the relaxation w, the preconditioner inverts
//! `(D/w + L) (w/(2-w) D^-1) (D/w + L')`. Its factors with a diagonal of 1 need no
//! factorisation: they are `I + w L D^-1` and its transpose, with `D / (w (2 - w))` between
//! them. Only the lower triangle of A is read.
//!
//! # Reference
//! O. Axelsson, A generalized SSOR method, BIT 12, 1972.

use super::entry::{Construction, Given, Size};
use super::triangle::{self, Triangle};
use crate::backend::{Operator, Pick};
use crate::error::Result;
use crate::parallel::room;
use crate::params::{Kind, Param, Params};
use crate::scalar::Scalar;
use std::ops::Bound;

const OMEGA: Kind = Kind::Real(Bound::Excluded(0.0), Bound::Excluded(2.0));

/// The preconditioner's row in the table.
pub(super) struct Row;

impl Construction for Row {
    const NAME: &'static str = "ssor";
    const SYNONYMS: &'static [&'static str] = &["sor", "gauss-seidel", "sgs"];
    const SUMMARY: &'static str = "a forward and a backward sweep of over-relaxation; CPU only so far";
    const PARAMS: &'static [Param] = &[Param::new("omega", OMEGA, "the relaxation").or("1")];
    const NEEDS_CPU: bool = true;
    const READS_LOWER_TRIANGLE: bool = true;

    fn bytes(_: &Params, size: Size, width: u64) -> u64 {
        triangle::bytes(size, width)
    }

    fn bytes_to_build(_: &Params, size: Size) -> u64 {
        triangle::bytes_to_build(size)
    }

    /// Builds the operator; every diagonal entry must be positive and finite.
    fn build<D: Pick<T>, T: Scalar>(given: &Given<'_, D, T>) -> Result<Operator<D, T>> {
        let omega = given.params.real("omega");
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
