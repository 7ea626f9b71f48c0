//! Preconditioned conjugate gradients for symmetric positive definite systems.
//!
//! # Method
//! With r = b - A x, z = M r, p = z and rho = r'z at the start, each iteration computes
//!
//! ```text
//! q = A p          alpha = rho / p'q
//! r = r - alpha q
//! z = M r          beta = r'z / rho,  rho = r'z
//! x = x + alpha p,  p = z + beta p
//! ```
//!
//! # Variant
//! The update of x is combined with that of p, so that one pass reads p for both: one n-vector less. When the
//! residual meets the tolerance inside a step, x therefore lacks its last alpha p, which is added once at the
//! end. Scalars stay on the device; the host reads residuals and coefficients once per batch. Definiteness is
//! not checked up front: a curvature p'Ap that is not positive ends the solve, which reports that value.
//!
//! # Cost
//! Per iteration: one operator, the preconditioner, two dot products, and 10 n-vectors read or written
//! without preconditioner (see `Cg::iteration`).
//!
//! # Stopping
//! The recursive residual ||r|| / ||b|| is tested on the device in every iteration; the
//! solve recomputes b - A x.
//!
//! # Reference
//! M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems,
//! J. Res. NBS 49, 1952.

use super::recurrence::{
    self, CEILING, Coefficients, FIRST, Facts, Needs, Operators, RR, Recurrence, SECOND, TARGET,
};
use crate::device::formula::{names, product, sweep};
use crate::device::{Device, Formula, Product, SlotState, Work};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::stop::{StopCode, StopReason};

names! {
    /// z exists only with a preconditioner; without one it is r.
    vectors v { x, r, p, q, z }
    scalars s {
        rr, target, ceiling, pq,
        /// r'z of this iteration; without preconditioner r'r.
        rho,
        rho_next, alpha, beta,
    }
}
const _: () = assert!(s::rr.0 == RR.0 && s::target.0 == TARGET.0 && s::ceiling.0 == CEILING.0);
/// Number of slots in a workspace.
pub(crate) const SLOTS: usize = s::COUNT;

/// Computes alpha, and stops if the curvature p'q is not positive.
const CURVATURE: Product = product!({ q = A p; pq = <p, q> } then {
    stop NotFinite if not_finite(pq);
    stop IndefiniteMatrix if not_positive(pq);
    alpha = rho / pq;
});
/// Computes the first r'z.
const FIRST_RHO: Product = product!({ z = M r; rho = <r, z> } then {
    stop NotFinite if not_finite(rho);
    stop IndefinitePreconditioner if not_positive(rho);
});
const NEXT_RHO: Product = product!({ z = M r; rho_next = <r, z> } then {
    stop NotFinite if not_finite(rho_next);
    stop IndefinitePreconditioner if not_positive(rho_next);
    beta = rho_next / rho;
    rho = rho_next;
});
/// Computes the initial r'r; without preconditioner it is rho as well.
const NORM: Formula = sweep!({ "cg_norm": rr = <r, r>; } then { rho = rr; });
const START: Formula = sweep!({ "cg_start": p = r; });
const START_PRECONDITIONED: Formula = sweep!({ "cg_start": p = z; });
/// The coefficients are recorded here and not where alpha is computed: there, the registers that the
/// recording needs slow the product of the matrix down by 3 % on an H200.
const RESIDUAL: Formula = sweep!({ "cg_residual": r = r - alpha * q; rr = <r, r>; } then {
    stop NotFinite if not_finite(rr);
    note FIRST = alpha;
    note SECOND = rho;
    count rr;
    stop Converged if rr <= target;
    stop Diverged if ceiling <= rr;
    beta = rr / rho;
    rho = rr;
});
/// The same if a preconditioner provides rho.
const RESIDUAL_PRECONDITIONED: Formula = sweep!({ "cg_residual_pre": r = r - alpha * q; rr = <r, r>; } then {
    stop NotFinite if not_finite(rr);
    note FIRST = alpha;
    note SECOND = rho;
    count rr;
    stop Converged if rr <= target;
    stop Diverged if ceiling <= rr;
});
const DIRECTION: Formula = sweep!({ "cg_direction": x = x + alpha * p; p = beta * p + r; });
const DIRECTION_PRECONDITIONED: Formula = sweep!({ "cg_direction": x = x + alpha * p; p = beta * p + z; });
/// The update of x that is still missing when a step stops.
const FINISH: Formula = sweep!({ "cg_finish": x = x + alpha * p; });

/// The conjugate gradient method.
pub(super) struct Cg;

/// Returns whether the preconditioner produced NaN or infinity. This happens after the residual of
/// its iteration is counted.
fn preconditioner_not_finite(state: &SlotState, column: usize) -> bool {
    !state.get(s::rho, column).is_finite() || !state.get(s::rho_next, column).is_finite()
}

impl Recurrence for Cg {
    const FACTS: Facts = Facts {
        name: "cg",
        needs: Needs::DEFINITE,
        state: 1,
        slots: SLOTS,
        dense: None,
        vectors: [&[v::x, v::r, v::p, v::q], &[v::x, v::r, v::p, v::q, v::z]],
        zero: [&[v::x]; 2],
        residual: [&[v::r]; 2],
        carried: [&[v::x, v::r, v::p]; 2],
        unfinished: [&[]; 2],
        suspects: [
            &[("the direction p", v::p), ("A p", v::q), ("the residual", v::r)],
            &[
                ("the direction p", v::p),
                ("A p", v::q),
                ("the residual", v::r),
                ("the preconditioned residual", v::z),
            ],
        ],
        answer: v::x,
        direction: Some(v::p),
        spare: [v::r, v::z],
        sweeps: [&[RESIDUAL, DIRECTION], &[RESIDUAL_PRECONDITIONED, DIRECTION_PRECONDITIONED]],
        other_sweeps: &[NORM, START, FINISH],
        #[cfg(test)]
        products: &[CURVATURE, FIRST_RHO, NEXT_RHO],
        coefficients: Some(Coefficients::Conjugate),
        stride: 1,
        sigma: None,
        limit: None,
    };

    fn start<D: Device, T: Scalar>(
        k: &Operators<D, T>,
        w: &mut Work<'_, D, T>,
        _: &mut SlotState,
    ) -> Result<()> {
        // r'r
        w.sweep(&NORM)?;
        match &k.m {
            Some(m) => {
                // z = M r, r'z; p = z
                w.product(m, &FIRST_RHO)?;
                w.sweep(&START_PRECONDITIONED)
            }
            // p = r
            None => w.sweep(&START),
        }
    }

    /// Memory traffic in n-vectors read + written, besides the matrix: q = A p 1 + 1, r 2 + 1, x and p 3 + 2:
    /// 10 in all. A preconditioner adds its own (jacobi: d and r in, z out: 13 in all).
    fn iteration<D: Device, T: Scalar>(k: &Operators<D, T>, w: &mut Work<'_, D, T>, _: usize) -> Result<()> {
        // q = A p, p'q, alpha
        w.product(&k.a, &CURVATURE)?;
        match &k.m {
            Some(m) => {
                // r -= alpha q, r'r
                w.sweep(&RESIDUAL_PRECONDITIONED)?;
                // z = M r, r'z, beta
                w.product(m, &NEXT_RHO)?;
                // x += alpha p, p = z + beta p
                w.sweep(&DIRECTION_PRECONDITIONED)
            }
            None => {
                // r -= alpha q, r'r, beta
                w.sweep(&RESIDUAL)?;
                // x += alpha p, p = r + beta p
                w.sweep(&DIRECTION)
            }
        }
    }

    fn reason<D: Device, T: Scalar>(
        _: &Operators<D, T>,
        _: &mut Work<'_, D, T>,
        code: StopCode,
        state: &mut SlotState,
        column: usize,
        first: usize,
    ) -> Result<StopReason> {
        let (counted, value) = (state.counts[column] as usize, |slot| state.get(slot, column));
        Ok(match code {
            StopCode::IndefiniteMatrix => {
                StopReason::IndefiniteMatrix { iteration: counted + 1, curvature: value(s::pq) }
            }
            StopCode::IndefinitePreconditioner => {
                let product = value(if counted == first { s::rho } else { s::rho_next });
                StopReason::IndefinitePreconditioner { iteration: counted, product }
            }
            _ => {
                let last = preconditioner_not_finite(state, column);
                recurrence::not_finite(if last { counted } else { counted + 1 })
            }
        })
    }

    /// Adds the update of x that the last step did not perform.
    fn finish<D: Device, T: Scalar>(
        w: &mut Work<'_, D, T>,
        state: &mut SlotState,
        first: &dyn Fn(usize) -> usize,
    ) -> Result<()> {
        let mut any = false;
        for column in 0..state.k {
            let open = match StopCode::from_device(state.done[column]) {
                StopCode::Converged | StopCode::Diverged | StopCode::IndefinitePreconditioner => true,
                StopCode::NotFinite => preconditioner_not_finite(state, column),
                _ => false,
            };
            if open && state.counts[column] as usize > first(column) {
                (state.done[column], any) = (StopCode::Running as u32, true);
            }
        }
        if any {
            w.write(state)?;
            w.sweep(&FINISH)?;
        }
        Ok(())
    }
}
