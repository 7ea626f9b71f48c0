//! The inverse of the diagonal, applied as one sweep with the same source on every device.

use super::entry::{Construction, DotSweep, Given, Size};
use super::{beyond, holds};
use crate::backend::{Operator, Pick};
use crate::device::formula::{names, sweep};
use crate::device::{Device, Dot, Formula, Op, Sweep};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::parallel::collected;
use crate::parallel::lock;
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Mutex;

/// The preconditioner's row in the table.
pub(super) struct Row;

impl Construction for Row {
    const NAME: &'static str = "jacobi";
    const SYNONYMS: &'static [&'static str] = &["diagonal", "diag"];
    const SUMMARY: &'static str = "the inverse of the diagonal";
    const IS_SWEEPS: bool = true;
    const DOT_SWEEP: Option<DotSweep> = Some(jacobi_dot);
    const EXACT_OVER_RANKS: bool = true;

    fn bytes(_: &Params, size: Size, width: u64) -> u64 {
        size.rows * width
    }

    /// Builds the operator; every diagonal entry must be positive and finite.
    fn build<D: Pick<T>, T: Scalar>(given: &Given<'_, D, T>) -> Result<Operator<D, T>> {
        let Given { device, matrix, .. } = *given;
        let n = matrix.rows();
        let host: Vec<T> = inverse_diagonal::<T>(Self::NAME, matrix)?.into_iter().map(T::from_f64).collect();
        let mut diagonal = device.vector(n, 1)?;
        device.upload(&host, &mut diagonal)?;
        let slots = Mutex::new((1, device.slots(1, 1)?));
        Ok(given.bind(Jacobi::<D, T> { n, diagonal, slots }))
    }
}

/// Computes the inverse of each diagonal entry and checks that `T` can represent it; `precond`
/// is the name in errors.
pub(super) fn inverse_diagonal<T: Scalar>(precond: &'static str, matrix: &Csr) -> Result<Vec<f64>> {
    let inverse = |row: usize| {
        let fault = |value| Error::BadDiagonal { precond, row, value };
        match matrix.get(row, row) {
            None => Err(fault(None)),
            Some(d) if !(d > 0.0 && d.is_finite()) => Err(fault(Some(d))),
            Some(d) if !holds::<T>(1.0 / d) => Err(beyond::<T>(precond, row, 1.0 / d)),
            Some(d) => Ok(1.0 / d),
        }
    };
    collected(matrix.rows(), inverse).into_iter().collect()
}

struct Jacobi<D: Device, T: Scalar> {
    n: usize,
    diagonal: D::Vector<T>,
    /// The slots for sweeps without a scalar of the solver, and their number of columns.
    slots: Mutex<(usize, D::Slots)>,
}

/// Allocates slots for sweeps over `k` columns, if they have another number of columns.
fn fit<D: Device>(slots: &mut (usize, D::Slots), device: &D, k: usize) -> Result<()> {
    if slots.0 != k {
        *slots = (k, device.slots(1, k)?);
    }
    Ok(())
}

names! {
    vectors v { y, d, x }
    scalars s { dot }
}

/// y = alpha D x. Reads d and x, writes y.
const APPLY: Formula = sweep!({ "jacobi": y = [0] * d .* x; });
/// y = alpha D x + beta y.
const UPDATE: Formula = sweep!({ "jacobi_update": y = [0] * d .* x + [1] * y; });
/// y = D x, with `<x, y>` and a program.
const APPLY_DOT: Formula = sweep!({ "jacobi_dot": y = d .* x; dot = <x, y>; });

/// Returns the last of these sweeps with the dot product and the program of a solver.
pub(crate) const fn jacobi_dot<'a>(dots: &'a [Dot; 1], then: &'a [Op]) -> Sweep<'a> {
    APPLY_DOT.ending_in(dots, then)
}

impl<D: Device, T: Scalar> LinearOperator<D, T> for Jacobi<D, T> {
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }

    fn prepare(&self, device: &D, k: usize) -> Result<()> {
        fit(&mut lock(&self.slots), device, k)
    }

    fn apply(&self, device: &D, alpha: f64, x: &D::Vector<T>, beta: f64, y: &mut D::Vector<T>) -> Result<()> {
        let formula = if beta == 0.0 { &APPLY } else { &UPDATE };
        let numbers = [alpha, beta];
        let numbers = if beta == 0.0 { &numbers[..1] } else { &numbers };
        let slots = &mut *lock(&self.slots);
        fit(slots, device, device.columns(x))?;
        formula.run(device, [(v::y, y)], [(v::d, &self.diagonal), (v::x, x)], &mut slots.1, numbers)
    }

    fn apply_dot(
        &self,
        device: &D,
        x: &D::Vector<T>,
        y: &mut D::Vector<T>,
        slots: &mut D::Slots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        let (dots, reads) = (APPLY_DOT.sum_into(dot[0].out), [(v::d, &self.diagonal), (v::x, x)]);
        APPLY_DOT.run_as(&jacobi_dot(&dots, then), device, [(v::y, y)], reads, slots)
    }

    fn cost(&self) -> Cost {
        Cost { bytes: (3 * self.n * size_of::<T>()) as u64, flops: self.n as u64 }
    }

    fn storage(&self) -> u64 {
        (self.n * size_of::<T>()) as u64
    }
}
