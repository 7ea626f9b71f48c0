//! The inverse of the diagonal, as one sweep: the same source on every device.

use super::{beyond, holds};
use crate::backend::Made;
use crate::device::{Device, Dot, Op, Operand, Sweep, Term, Update};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::parallel::lock;
use crate::scalar::Scalar;
use std::sync::{Arc, Mutex};

/// Builds the operator; every diagonal entry must be positive and finite.
pub(super) fn build<D: Device, T: Scalar>(device: &D, matrix: &Csr) -> Result<Made<D, T>> {
    let n = matrix.rows();
    let host: Vec<T> = inverse_diagonal::<T>("jacobi", matrix)?.into_iter().map(T::from_f64).collect();
    let mut diagonal = device.vector(n, 1)?;
    device.upload(&host, &mut diagonal)?;
    Ok(Arc::new(Jacobi::<D, T> { n, diagonal, slots: Mutex::new(device.slots(1, 1)?) }))
}

/// One over each diagonal entry, as `T` can hold it, for the preconditioner of that name.
pub(super) fn inverse_diagonal<T: Scalar>(precond: &'static str, matrix: &Csr) -> Result<Vec<f64>> {
    let inverse = |row: usize| {
        let fault = |value| Error::BadDiagonal { precond, row: row + 1, value };
        match matrix.get(row, row) {
            None => Err(fault("not stored".to_owned())),
            Some(d) if !(d > 0.0 && d.is_finite()) => Err(fault(d.to_string())),
            Some(d) if !holds::<T>(1.0 / d) => Err(beyond::<T>(precond, row, 1.0 / d)),
            Some(d) => Ok(1.0 / d),
        }
    };
    (0..matrix.rows()).map(inverse).collect()
}

struct Jacobi<D: Device, T: Scalar> {
    n: usize,
    diagonal: D::Vector<T>,
    /// For sweeps that use no scalar of the solver's.
    slots: Mutex<D::Slots>,
}

/// z = D r with `<r, z>` and a program: z = `Write(0)`, d = `Read(0)`, r = `Read(1)`. Reads d and r, writes z.
pub const fn jacobi_dot<'a>(dots: &'a [Dot; 1], then: &'a [Op]) -> Sweep<'a> {
    const D_TIMES_R: &[Update<'static>] = &[Update { target: 0, terms: &[product(1.0)] }];
    Sweep { name: "jacobi_dot", writes: 1, reads: 2, updates: D_TIMES_R, dots, then }
}

/// y = alpha d x (+ beta y), with y = `Write(0)`, d = `Read(0)`, x = `Read(1)`.
const fn product(alpha: f64) -> Term {
    Term::constant(alpha, Operand::Read(0)).times(Operand::Read(1))
}

impl<D: Device, T: Scalar> LinearOperator<D, T> for Jacobi<D, T> {
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }

    fn apply(&self, device: &D, alpha: f64, x: &D::Vector<T>, beta: f64, y: &mut D::Vector<T>) -> Result<()> {
        let own = Term::constant(beta, Operand::Write(0));
        let terms = [product(alpha), own];
        let terms = if beta == 0.0 { &terms[..1] } else { &terms };
        let updates = [Update { target: 0, terms }];
        let sweep = Sweep { name: "jacobi", writes: 1, reads: 2, updates: &updates, dots: &[], then: &[] };
        device.sweep(&mut [y], &[&self.diagonal, x], &mut lock(&self.slots), &sweep)
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
        let dots = [Dot::product(Operand::Read(1), Operand::Write(0), dot[0].out)];
        device.sweep(&mut [y], &[&self.diagonal, x], slots, &jacobi_dot(&dots, then))
    }

    fn cost(&self) -> Cost {
        Cost { bytes: (3 * self.n * size_of::<T>()) as u64, flops: self.n as u64 }
    }

    fn storage(&self) -> u64 {
        (self.n * size_of::<T>()) as u64
    }
}
