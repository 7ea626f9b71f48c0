//! Pipelined conjugate gradients: the same iterates with one synchronisation point per iteration.
//!
//! # Method
//! With r = b - A x, u = M r, w = A u and beta = 0 at the start, alpha = r'u / w'u, each iteration computes
//!
//! ```text
//! m = M w,  n = A m
//! z = n + beta z,   q = m + beta q,   s = w + beta s,   p = u + beta p
//! x = x + alpha p,  r = r - alpha s,  u = u - alpha q,  w = w - alpha z
//! gamma' = r'u,     beta = gamma' / gamma,   p'Ap = w'u - beta gamma' / alpha,   alpha = gamma' / p'Ap
//! ```
//!
//! so that s = A p, q = M s and z = A q hold by recurrence. Without preconditioner u = r, m = w and q = s.
//!
//! # Variant
//! The product A m and the dot products are independent of each other, so that many processors can overlap
//! them; on a GPU an iteration is two kernels instead of three. This implementation does not overlap them
//! yet. The price is more vectors and less accuracy: four recurrences replace products, and rounding
//! separates them from the true products sooner than in the classic form. The solve detects that by the true
//! residual and restarts from it.
//!
//! # Cost
//! Per iteration: one operator, the preconditioner, two dot products or three, and 15 n-vectors read or
//! written without preconditioner (see `Pipelined::iteration`).
//!
//! # Stopping
//! As in the [classic form](super::cg).
//!
//! # Reference
//! P. Ghysels and W. Vanroose, Hiding global synchronization latency in the preconditioned conjugate gradient
//! algorithm, Parallel Computing 40, 2014, algorithm 4.

use super::recurrence::{
    self, CEILING, Coefficients, FIRST, Facts, Needs, Operators, RR, Recurrence, SECOND, TARGET,
};
use crate::device::formula::{names, product, program, sweep};
use crate::device::{Device, Formula, Op, Product, SlotState, Work};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::stop::{StopCode, StopReason};

names! {
    /// u, m and q exist only with a preconditioner; without one they are r, w and s.
    vectors v { x, r, w, p, s, z, n, u, m, q }
    scalars s {
        rr, target, ceiling,
        /// r'u; without preconditioner r'r.
        gamma,
        gamma_next,
        /// w'u.
        delta,
        /// p'Ap of the next direction.
        curvature,
        alpha, beta, temporary,
    }
}
const _: () = assert!(s::rr.0 == RR.0 && s::target.0 == TARGET.0 && s::ceiling.0 == CEILING.0);

/// Computes the initial r'r; without preconditioner it is gamma as well.
const NORM: Formula = sweep!({ "pipelined_norm": rr = <r, r>; } then { gamma = rr; });
/// Computes the first r'u.
const FIRST_GAMMA: Product = product!({ u = M r; gamma = <r, u> } then {
    stop NotFinite if not_finite(gamma);
    stop IndefinitePreconditioner if not_positive(gamma);
});
/// Computes the first alpha.
const FIRST_ALPHA: &[Op] = program!(
    stop NotFinite if not_finite(delta);
    curvature = delta;
    stop IndefiniteMatrix if not_positive(curvature);
    alpha = gamma / curvature;
);
const FIRST_W: Product = product!({ w = A r; delta = <r, w> } then (FIRST_ALPHA));
const FIRST_W_PRECONDITIONED: Product = product!({ w = A u; delta = <u, w> } then (FIRST_ALPHA));

const N: Product = product!({ n = A w });
const STEP: Formula = sweep!({
    "pipelined_step":
    z = n + beta * z;
    s = w + beta * s;
    p = r + beta * p;
    x = x + alpha * p;
    r = r - alpha * s;
    w = w - alpha * z;
    rr = <r, r>;
    delta = <w, r>;
} then {
    stop NotFinite if not_finite(rr);
    note FIRST = alpha;
    note SECOND = gamma;
    count rr;
    stop Converged if rr <= target;
    stop Diverged if ceiling <= rr;
    stop NotFinite if not_finite(delta);
    beta = rr / gamma;
    temporary = beta * rr;
    temporary = temporary / alpha;
    curvature = delta - temporary;
    stop IndefiniteMatrix if not_positive(curvature);
    alpha = rr / curvature;
    gamma = rr;
});

const M: Product = product!({ m = M w });
const N_PRECONDITIONED: Product = product!({ n = A m });
const STEP_PRECONDITIONED: Formula = sweep!({
    "pipelined_step_pre":
    z = n + beta * z;
    q = m + beta * q;
    s = w + beta * s;
    p = u + beta * p;
    x = x + alpha * p;
    r = r - alpha * s;
    u = u - alpha * q;
    w = w - alpha * z;
    rr = <r, r>;
    gamma_next = <r, u>;
    delta = <w, u>;
} then {
    stop NotFinite if not_finite(rr);
    note FIRST = alpha;
    note SECOND = gamma;
    count rr;
    stop Converged if rr <= target;
    stop Diverged if ceiling <= rr;
    stop NotFinite if not_finite(gamma_next);
    stop IndefinitePreconditioner if not_positive(gamma_next);
    stop NotFinite if not_finite(delta);
    beta = gamma_next / gamma;
    temporary = beta * gamma_next;
    temporary = temporary / alpha;
    curvature = delta - temporary;
    stop IndefiniteMatrix if not_positive(curvature);
    alpha = gamma_next / curvature;
    gamma = gamma_next;
});

/// Computes only the next direction, to check its curvature with the matrix itself.
const DIRECTION: Formula = sweep!({ "pipelined_direction": p = r + beta * p; });
const DIRECTION_PRECONDITIONED: Formula = sweep!({ "pipelined_direction": p = u + beta * p; });
const TRY: Product = product!({ n = A p; delta = <p, n> } then (FIRST_ALPHA));

/// The pipelined conjugate gradient method.
pub(super) struct Pipelined;

/// Translates a code to a reason from the slots alone.
fn meaning(code: StopCode, state: &SlotState, column: usize, first: usize) -> StopReason {
    let (counted, value) = (state.counts[column] as usize, |slot| state.get(slot, column));
    let began = counted > first;
    match code {
        StopCode::IndefiniteMatrix => {
            StopReason::IndefiniteMatrix { iteration: counted + 1, curvature: value(s::curvature) }
        }
        StopCode::IndefinitePreconditioner => {
            let product = value(if began { s::gamma_next } else { s::gamma });
            StopReason::IndefinitePreconditioner { iteration: counted, product }
        }
        _ => {
            let before = !began && value(s::gamma).is_finite();
            let inside = began && !value(s::rr).is_finite();
            recurrence::not_finite(counted + usize::from(before || inside))
        }
    }
}

impl Recurrence for Pipelined {
    const FACTS: Facts = Facts {
        name: "pipelined cg",
        needs: Needs { linear_m: true, ..Needs::DEFINITE },
        state: 1,
        slots: s::COUNT,
        dense: None,
        vectors: [
            &[v::x, v::r, v::w, v::p, v::s, v::z, v::n],
            &[v::x, v::r, v::w, v::p, v::s, v::z, v::n, v::u, v::m, v::q],
        ],
        zero: [&[v::x, v::p, v::s, v::z], &[v::x, v::p, v::s, v::z, v::q]],
        residual: [&[v::r]; 2],
        carried: [&[v::x, v::r, v::w, v::p, v::s, v::z], &[v::x, v::r, v::w, v::p, v::s, v::z, v::u, v::q]],
        unfinished: [&[]; 2],
        suspects: [
            &[("A p", v::n), ("A u", v::w), ("the residual", v::r)],
            &[
                ("the preconditioned residual", v::u),
                ("M A u", v::m),
                ("A p", v::n),
                ("A u", v::w),
                ("the residual", v::r),
            ],
        ],
        answer: v::x,
        direction: None,
        spare: [v::r, v::u],
        sweeps: [&[STEP], &[STEP_PRECONDITIONED]],
        other_sweeps: &[NORM, DIRECTION],
        #[cfg(test)]
        products: &[FIRST_GAMMA, FIRST_W],
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
                // u = M r, r'u; w = A u, w'u, alpha
                w.product(m, &FIRST_GAMMA)?;
                w.product(&k.a, &FIRST_W_PRECONDITIONED)
            }
            // w = A r, w'r, alpha
            None => w.product(&k.a, &FIRST_W),
        }
    }

    /// Memory traffic in n-vectors read + written, in addition to the matrix: n = A w 1 + 1, the sweep 7 + 6:
    /// 15 in all. With a preconditioner: the preconditioner (jacobi: d and w in, m out), n = A m 1 + 1, the
    /// sweep 10 + 8: 23 in all.
    fn iteration<D: Device, T: Scalar>(k: &Operators<D, T>, w: &mut Work<'_, D, T>, _: usize) -> Result<()> {
        match &k.m {
            Some(m) => {
                // m = M w, n = A m
                w.product(m, &M)?;
                w.product(&k.a, &N_PRECONDITIONED)?;
                // z, q, s, p; x, r, u, w; r'r, r'u, w'u, beta, alpha
                w.sweep(&STEP_PRECONDITIONED)
            }
            None => {
                // n = A w
                w.product(&k.a, &N)?;
                // z, s, p; x, r, w; r'r, w'r, beta, alpha
                w.sweep(&STEP)
            }
        }
    }

    /// Checks an indefinite curvature after the first iteration of a run with a product, because the
    /// curvature then comes from recurrences.
    fn reason<D: Device, T: Scalar>(
        k: &Operators<D, T>,
        w: &mut Work<'_, D, T>,
        code: StopCode,
        state: &mut SlotState,
        column: usize,
        first: usize,
    ) -> Result<StopReason> {
        let reason = meaning(code, state, column, first);
        let StopReason::IndefiniteMatrix { iteration, .. } = reason else { return Ok(reason) };
        if iteration == first + 1 {
            return Ok(reason);
        }
        state.done[column] = StopCode::Running as u32;
        w.write(state)?;
        // p = u + beta p, n = A p, p'n
        w.sweep(if k.m.is_some() { &DIRECTION_PRECONDITIONED } else { &DIRECTION })?;
        w.product(&k.a, &TRY)?;
        w.read(state)?;
        match StopCode::from_device(state.done[column]) {
            StopCode::IndefiniteMatrix => Ok(meaning(StopCode::IndefiniteMatrix, state, column, first)),
            _ => {
                state.done[column] = StopCode::Limit as u32;
                Ok(StopReason::Breakdown { iteration })
            }
        }
    }
}
