//! What is checked and known before the first iteration.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::observe::{Batch, Observer};
use crate::scalar::Scalar;
use crate::solve::recurrence::{Operators, Recurrence};
use crate::solve::{Outcome, System};
use crate::stop::StopReason;

/// Rows of the system, whose parts must fit.
pub(super) fn check(
    solver: &'static str,
    (rows, cols): (usize, usize),
    system: &System<'_>,
    x: &[f64],
) -> Result<usize> {
    if rows != cols {
        return Err(Error::NotSquare { rows, cols, solver });
    }
    let fits = |what, got| match got == rows {
        true => Ok(()),
        false => Err(Error::Dimension { what, expected: rows, got }),
    };
    let given = system.matrix.shape();
    fits("rows of the system's matrix", given.0)?;
    fits("columns of the system's matrix", given.1)?;
    fits("entries of the right-hand side", system.b.len())?;
    fits("entries of the start", system.x0.map_or(rows, <[f64]>::len))?;
    fits("entries of the answer", x.len())?;
    Ok(rows)
}

/// What is known before the first iteration.
pub(super) fn outcome<M: Recurrence<D, T>, D: Device, T: Scalar>(
    operators: &Operators<D, T>,
    n: usize,
) -> Outcome {
    let m = operators.m.as_ref();
    let preconditioned = m.is_some();
    let bytes = operators.a.cost().bytes + m.map_or(0, |m| m.cost().bytes);
    Outcome {
        reason: StopReason::ZeroRightHandSide,
        iterations: 0,
        restarts: 0,
        residual: 0.0,
        residual_true: 0.0,
        residual_at_most: 0.0,
        backward_error: 0.0,
        error_estimate: None,
        goal: None,
        spectrum: None,
        seconds_setup: 0.0,
        seconds_solve: 0.0,
        seconds_each: 0.0,
        bytes_per_iteration: bytes + M::sweep_bytes(n, preconditioned),
        operator_bytes: operators.a.storage() + m.map_or(0, |m| m.storage()),
        vector_bytes: (M::vectors(preconditioned) * n * size_of::<T>()) as u64,
    }
}

/// Tells observers of a solve that is over before its first iteration.
pub(super) fn tell_start(observers: &mut [&mut dyn Observer], residual: f64, tolerance: Option<f64>) {
    let batch = Batch { first: 0, residuals: &[residual], seconds: (0.0, 0.0), tolerance };
    observers.iter_mut().for_each(|o| o.batch(&batch));
}
