//! Minimal residuals for symmetric systems, including indefinite and singular ones.
//!
//! # Method
//! The Lanczos process makes y_(k+1) orthogonal to all vectors before it, from y_1 = b - A x with z = M
//! y and beta_k^2 = y_k'z_k:
//!
//! ```text
//! q = A z_k,   alpha = z_k'q / beta_k^2 - y_k'z_(k-1) / beta_(k-1)
//! y_(k+1) = q / beta_k - alpha / beta_k y_k - beta_k / beta_(k-1) y_(k-1),   z_(k+1) = M y_(k+1)
//! ```
//!
//! Plane rotations (c, s) turn the tridiagonal matrix of alpha and beta into a triangular one with gamma,
//! delta and epsilon in its rows. With phi = c phi_bar and phi_bar = s phi_bar, the answer moves along w:
//!
//! ```text
//! w_k = (z_k / beta_k - delta w_(k-1) - epsilon w_(k-2)) / gamma,   x = x + phi w_k
//! ```
//!
//! Among all x of the space searched so far, this one has the smallest residual (in the norm of M).
//!
//! # Variant
//! The last term of alpha is zero except for rounding; with it, alpha is as if y_(k-1) were subtracted from q
//! first, and ill-conditioned systems take up to 4 % fewer iterations. Lanczos vectors are not scaled to
//! length 1; the coefficients contain their lengths. Vectors that exchange their roles from one iteration to
//! the next are stored in pairs, so a step is two iterations, and the limit of iterations is checked on the
//! device. Without preconditioner the update of w and x is deferred to the next iteration, whose sweep reads
//! y_k anyway; the last update is performed at the end. With a preconditioner, the residual is kept as a
//! vector, r = s^2 r - phi / gamma y_(k+1), so that the stopping test uses the same norm as in other methods.
//!
//! # Range
//! The Lanczos coefficients are as large as A, and their squares are summed. If these squares would
//! leave the range of numbers, the method runs on sigma A, with a power of two sigma that makes the
//! largest entry about 1, and the solve multiplies the answer by sigma. With a preconditioner, M A is
//! about 1 without this scaling.
//!
//! # Cost
//! Per iteration: one operator, the preconditioner, three dot products or four, and 11 n-vectors read or
//! written without preconditioner (see `Minres::iteration`).
//!
//! # Stopping
//! ||r|| / ||b||, tested on the device in every iteration; without preconditioner it is |phi_bar|. If the
//! system has no solution, ||r|| stagnates and ||A r|| falls: once it is 1e-7 of ||A|| ||r|| (64 units of
//! rounding in single precision), x is a least-squares solution. ||A|| is the root mean square of the
//! Lanczos coefficients in a row. A smaller threshold is not attainable: near the square root of the
//! rounding, x begins to grow along the null space and ||A r|| rises again. So a consistent system with a
//! condition number beyond 1e7 may appear to have no solution; the solve therefore restarts once, and
//! accepts a result that does not change.
//!
//! # Reference
//! C. C. Paige and M. A. Saunders, Solution of sparse indefinite systems of linear equations, SIAM
//! J. Numer. Anal. 12, 1975.

mod sweeps;

use super::recurrence::{self, Coefficients, Facts, Needs, Operators, Recurrence};
use crate::device::{Device, Name, SlotState, Work};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::stop::{StopCode, StopReason};
pub(crate) use sweeps::SLOTS;
use sweeps::*;

/// The threshold of the normal residual for a least-squares solution, and the smallest
/// threshold in units of rounding.
const LEAST_SQUARES: f64 = 1e-7;
const LEAST_SQUARES_ROUNDING: f64 = 64.0;

/// The MINRES method.
pub(super) struct Minres;

/// Pairs of vectors that exchange their roles from one iteration to the next.
const ROLES: [(Name, Name); 3] = [(v::y, v::old), (v::w2, v::w1), (v::z, v::z_next)];

impl Recurrence for Minres {
    const FACTS: Facts = Facts {
        name: "minres",
        needs: Needs { definite: false, ..Needs::DEFINITE },
        state: 2,
        slots: SLOTS,
        dense: None,
        vectors: [
            &[v::x, v::y, v::old, v::w2, v::w1, v::q],
            &[v::x, v::y, v::old, v::w2, v::w1, v::q, v::z, v::z_next, v::r],
        ],
        zero: [&[v::x, v::old, v::w2, v::w1]; 2],
        residual: [&[v::y], &[v::y, v::r]],
        carried: [
            &[v::x, v::y, v::old, v::w2, v::w1],
            &[v::x, v::y, v::old, v::w2, v::w1, v::z, v::z_next, v::r],
        ],
        unfinished: [&[v::x, v::w2, v::w1], &[]],
        suspects: [
            &[("A v", v::q), ("v", v::y), ("v", v::old)],
            &[("A v", v::q), ("M v", v::z), ("M v", v::z_next), ("v", v::y), ("v", v::old)],
        ],
        answer: v::x,
        direction: None,
        spare: [v::q, v::z],
        sweeps: [&[STEP], &[LANCZOS, UPDATE]],
        other_sweeps: &[NORM, FINISH],
        #[cfg(test)]
        products: &[CURVATURE, FIRST_SQUARE, NEXT_SQUARE],
        coefficients: Some(Coefficients::Lanczos),
        stride: 2,
        sigma: Some(s::sigma),
        limit: Some(s::limit),
    };

    fn start<D: Device, T: Scalar>(
        k: &Operators<D, T>,
        w: &mut Work<'_, D, T>,
        state: &mut SlotState,
    ) -> Result<()> {
        // r'r
        w.sweep(&NORM)?;
        if let Some(m) = &k.m {
            // z = M y, y'z
            w.product(m, &FIRST_SQUARE)?;
        }
        w.read(state)?;
        let normal = LEAST_SQUARES.max(LEAST_SQUARES_ROUNDING * T::EPSILON);
        for column in 0..state.k {
            let beta = state.get(s::square, column).sqrt();
            let values = [
                (s::beta, beta),
                (s::phi_bar, beta),
                (s::beta_old, 1.0),
                (s::c, -1.0),
                (s::normal, normal * normal),
                (s::one, 1.0),
            ];
            values.into_iter().for_each(|(slot, value)| state.set(slot, column, value));
        }
        w.write(state)
    }

    /// Memory traffic in n-vectors read + written, in addition to the matrix: q = A y 1 + 1, the sweep 6 + 3:
    /// 11 in all. With a preconditioner q = A z 1 + 1, the next vector 3 + 1, the preconditioner (jacobi: d
    /// and y in, z out), w, x and r 6 + 3: 18 in all.
    fn iteration<D: Device, T: Scalar>(
        k: &Operators<D, T>,
        w: &mut Work<'_, D, T>,
        turn: usize,
    ) -> Result<()> {
        let mut w = w.with_exchanged(&ROLES[..if turn == 0 { 0 } else { ROLES.len() }]);
        match &k.m {
            Some(m) => {
                // q = A z, z'q, alpha
                w.product(&k.a, &CURVATURE_PRECONDITIONED)?;
                // y' = q / beta - alpha / beta y - beta / beta_old y_old
                w.sweep(&LANCZOS)?;
                // z' = M y', y''z', the rotation
                w.product(m, &NEXT_SQUARE)?;
                // w = (v - epsilon w1 - delta w2) / gamma, x += phi w, r = s^2 r - phi / gamma y', r'r
                w.sweep(&UPDATE)
            }
            None => {
                // q = A y, y'q, alpha
                w.product(&k.a, &CURVATURE)?;
                // w and x of the iteration before; y' = q / beta - alpha / beta y - beta /
                // beta_old y_old, the rotation
                w.sweep(&STEP)
            }
        }
    }

    fn reason<D: Device, T: Scalar>(
        _: &Operators<D, T>,
        _: &mut Work<'_, D, T>,
        code: StopCode,
        state: &mut SlotState,
        column: usize,
        _: usize,
    ) -> Result<StopReason> {
        let (counted, value) = (state.counts[column] as usize, |slot| state.get(slot, column));
        Ok(match code {
            // The numbers are computed when x is judged.
            StopCode::LeastSquares => StopReason::LeastSquares { residual: f64::NAN, normal: f64::NAN },
            StopCode::IndefinitePreconditioner => {
                let before = !matches!(value(s::square), square if square > 0.0);
                let product = value(if before { s::square } else { s::square_next });
                StopReason::IndefinitePreconditioner { iteration: counted + usize::from(!before), product }
            }
            _ => recurrence::not_finite(counted + usize::from(value(s::square).is_finite())),
        })
    }

    /// Performs the last update of w and x, which is missing without preconditioner unless the sweep
    /// that stopped performed it.
    fn finish<D: Device, T: Scalar>(
        w: &mut Work<'_, D, T>,
        state: &mut SlotState,
        first: &dyn Fn(usize) -> usize,
    ) -> Result<()> {
        if w.has(v::z) {
            return Ok(());
        }
        // Which vector of a pair is the newer one depends on the iterations of a column, so columns that have
        // done an odd number of them take a sweep of their own, after the others; `WAITS` marks them.
        const WAITS: StopCode = StopCode::Converged;
        for column in 0..state.k {
            let missing = match StopCode::from_device(state.done[column]) {
                StopCode::LeastSquares => false,
                StopCode::NotFinite => !state.get(s::zq, column).is_finite(),
                _ => true,
            };
            let odd = (state.counts[column] as usize - first(column)) % 2 == 1;
            let code = match (missing, odd) {
                (true, false) => StopCode::Running,
                (true, true) => WAITS,
                (false, _) => StopCode::Limit,
            };
            state.done[column] = code as u32;
        }
        for roles in [&ROLES[..0], &ROLES] {
            if state.done.contains(&(StopCode::Running as u32)) {
                w.write(state)?;
                w.with_exchanged(roles).sweep(&FINISH)?;
            }
            for done in &mut state.done {
                let waits = *done == WAITS as u32;
                *done = if waits { StopCode::Running } else { StopCode::Limit } as u32;
            }
        }
        Ok(())
    }
}
