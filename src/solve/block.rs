//! Block conjugate gradients: all right-hand sides search in one common space, so that each takes
//! fewer iterations than alone.
//!
//! # Method
//! The block of residuals is kept as R = Q C, where Q is n x k with orthonormal columns and C is k x k. With
//! the factorisation Q C = B - A X and S = Q at the start, each iteration computes
//!
//! ```text
//! T = A S              G = S'T
//! X = X + S G^-1 C
//! Q' zeta = Q - T G^-1,  C = zeta C
//! S = Q' + S zeta'
//! ```
//!
//! where Q' zeta is again a factorisation with an orthonormal factor Q', the next Q. This is Dubrulle's form
//! BCGrQ of O'Leary's method. It stays stable if the residuals become dependent or of very different size,
//! because that concerns only C. The norm of the residual of column j is that of column j of C.
//!
//! # Factorisation
//! W = Q zeta comes from the Gram matrix W'W by a Cholesky factorisation with pivots (`small.rs`). If
//! its smallest pivot shows a loss of orthogonality, it is repeated. A column that depends on the others
//! up to rounding is left out: zeros take its place, and the rank of the block falls. So right-hand
//! sides that are zero, equal or dependent need no special case. The vectors keep their k columns, so a
//! smaller rank saves no time.
//!
//! # Preconditioner
//! With a preconditioner M the columns of Q are orthonormal in the inner product x'M y: Z = M Q is updated
//! along with Q, W'M W takes the place of W'W, and S = Z + S zeta'. The norms of residuals then come from
//! W'W, and k = 1 is the preconditioned method.
//!
//! # Host
//! The device computes T, the Gram matrices and the combinations of vectors. The host factors the small
//! matrices, so it waits for two Gram matrices in each iteration (three with a preconditioner), and for one
//! more if a factorisation is repeated. A GPU also makes it wait for each small matrix that it sends. The
//! iteration is therefore not recorded.
//!
//! # Cost
//! Per iteration: one operator, the preconditioner, and dense products that read or write 14 vectors of n x k
//! and take 11 n k^2 operations (18 vectors and 15 n k^2 with a preconditioner), and about 10 k^3 operations
//! on the host. A GPU computes both halves of a symmetric Gram matrix, which adds n k^2.
//!
//! # Stopping
//! Each column is tested as in the [classic form](super::cg). A column that has ended keeps its x, and its
//! direction stays in the block. If G is not positive definite, the matrix is not, and all columns end.
//!
//! # Reference
//! D. P. O'Leary, The block conjugate gradient algorithm and related methods, Linear Algebra Appl. 29, 1980;
//! A. A. Dubrulle, Retooling the method of block conjugate gradients, Electron. Trans. Numer. Anal. 12, 2001.

mod basis;
mod small;

use super::recurrence::{
    self, CEILING, Coefficients, Dense, FIRST, Facts, Needs, Operators, RR, Recurrence, SECOND, TARGET,
};
use crate::backend::Operator;
use crate::device::formula::{names, product};
use crate::device::{Device, MOST_COMBINED, Product, SlotState, Work};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::stop::{StopCode, StopReason};
use arrayvec::ArrayVec;
use basis::{MATRICES, Small, next_directions, orthonormalise, small};
use small::{Fault, column_norm_squared, column_product};

names! {
    /// z exists only with a preconditioner; without one it is q.
    vectors v { x, q, s, t, z }
    scalars s {
        rr, target, ceiling,
        /// The energy d'A d that the iteration gains, divided by rho.
        alpha,
        /// The squared norm of the column of C before the iteration.
        rho,
        /// The pivot that is not positive.
        pivot,
        /// 1 if the fault appeared after the iteration had been counted.
        late,
        /// The columns of Q that are not zero.
        rank,
    }
}
const _: () = assert!(s::rr.0 == RR.0 && s::target.0 == TARGET.0 && s::ceiling.0 == CEILING.0);

const T: Product = product!({ t = A s });
const Z: Product = product!({ z = M q });

/// Block conjugate gradients.
pub(super) struct Block;

/// Returns whether a column is not done.
fn runs(state: &SlotState, column: usize) -> bool {
    state.done[column] == StopCode::Running as u32
}

/// Ends all running columns because of a fault; `code` is the meaning of a pivot that is not positive.
fn end_with(state: &mut SlotState, fault: Fault, code: StopCode, late: bool) {
    let k = state.k;
    for column in 0..k {
        if !runs(state, column) {
            continue;
        }
        let scale = column_norm_squared(small(&mut state.values, k).c, k, column);
        let (code, pivot) = match fault {
            Fault::NotFinite => (StopCode::NotFinite, 0.0),
            Fault::NotPositive(pivot) => (code, pivot * scale),
            Fault::Lost => (StopCode::Breakdown, 0.0),
        };
        state.set(s::pivot, column, pivot);
        state.set(s::late, column, f64::from(u8::from(late)));
        state.done[column] = code as u32;
    }
}

/// Counts an iteration of the running columns with the squares of their residual norms, and ends
/// those that meet a limit.
fn count(state: &mut SlotState, square: impl Fn(&mut Small<'_>, usize) -> f64) {
    let k = state.k;
    for column in 0..k {
        if !runs(state, column) {
            continue;
        }
        let rr = square(&mut small(&mut state.values, k), column);
        state.set(s::rr, column, rr);
        if !rr.is_finite() {
            state.done[column] = StopCode::NotFinite as u32;
            continue;
        }
        state.note(FIRST, column, state.get(s::alpha, column));
        state.note(SECOND, column, state.get(s::rho, column));
        state.count(column, rr);
        if rr <= state.get(s::target, column) {
            state.done[column] = StopCode::Converged as u32;
        } else if state.get(s::ceiling, column) <= rr {
            state.done[column] = StopCode::Diverged as u32;
        }
    }
}

/// Records the rank of the block, and reports if it is smaller than before.
fn set_rank(state: &mut SlotState, rank: usize, before: usize) {
    if rank < before {
        log::info!(
            "block conjugate gradients: {rank} of {before} residuals are linearly independent, so the rank of the block is {rank}"
        );
    }
    (0..state.k).for_each(|column| state.set(s::rank, column, rank as f64));
}

impl Recurrence for Block {
    const FACTS: Facts = Facts {
        name: "block cg",
        needs: Needs::DEFINITE,
        state: 2,
        slots: s::COUNT,
        // S and T, X, S and X, Q, T and Q, Q, Q and Q, Q, S and S; with a preconditioner Q
        // again, Z, and Z and Z.
        dense: Some(Dense { matrices: MATRICES, rank: s::rank, traffic: [14, 18] }),
        vectors: [&[v::x, v::q, v::s, v::t], &[v::x, v::q, v::s, v::t, v::z]],
        zero: [&[v::x, v::s]; 2],
        residual: [&[v::q]; 2],
        carried: [&[v::x, v::q, v::s]; 2],
        unfinished: [&[]; 2],
        suspects: [
            &[("the direction s", v::s), ("A s", v::t), ("the residual", v::q)],
            &[
                ("the direction s", v::s),
                ("A s", v::t),
                ("the residual", v::q),
                ("the preconditioned residual", v::z),
            ],
        ],
        answer: v::x,
        direction: Some(v::s),
        spare: [v::q, v::z],
        sweeps: [&[], &[]],
        other_sweeps: &[],
        #[cfg(test)]
        products: &[],
        coefficients: Some(Coefficients::Conjugate),
        stride: 1,
        sigma: None,
        limit: None,
    };

    fn start<D: Device, T: Scalar>(
        k: &Operators<D, T>,
        w: &mut Work<'_, D, T>,
        state: &mut SlotState,
    ) -> Result<()> {
        let columns = state.k;
        // R'R
        w.gram(v::q, v::q, small(&mut state.values, columns).g)?;
        for column in 0..columns {
            let rr = small(&mut state.values, columns).g[column * columns + column];
            state.set(s::rr, column, rr);
        }
        if let Some(m) = &k.m {
            w.product(m, &Z)?;
        }
        let live = (0..columns).filter(|column| runs(state, *column)).count();
        let mut own = small(&mut state.values, columns);
        // Q C = R
        match orthonormalise(w, k.m.as_ref(), &mut own, |norm| norm)? {
            Ok(rank) => {
                own.c.copy_from_slice(own.zeta);
                // S = Q
                next_directions(w, k.m.is_some(), &mut own)?;
                set_rank(state, rank, live);
                if rank == 0 && k.m.is_some() {
                    end_with(state, Fault::NotPositive(0.0), StopCode::IndefinitePreconditioner, true);
                }
            }
            Err(fault) => {
                small::set_identity(own.c, columns, columns);
                end_with(state, fault, StopCode::IndefinitePreconditioner, true);
            }
        }
        w.write(state)
    }

    /// Memory traffic in n x k vectors read + written, besides the matrix: T = A S 1 + 1, the Gram matrices
    /// 3, X, W and S 2 + 1 each, Q 1 + 1: 16 in all. A preconditioner adds its own, and 3 + 1.
    fn iteration_with_host<D: Device, T: Scalar>(
        k: &Operators<D, T>,
        w: &mut Work<'_, D, T>,
        state: &mut SlotState,
    ) -> Result<()> {
        if !(0..state.k).any(|column| runs(state, column)) {
            return Ok(());
        }
        let (columns, rank) = (state.k, state.get(s::rank, 0) as usize);
        // T = A S, G = S'T
        w.product(&k.a, &T)?;
        let own = small(&mut state.values, columns);
        w.gram(v::s, v::t, own.g)?;
        small::symmetrise(own.g, columns);
        if let Err(fault) = small::factor(own.g, columns, rank, T::EPSILON) {
            end_with(state, fault, StopCode::IndefiniteMatrix, false);
            return Ok(());
        }
        step(w, state, rank)?;
        match &k.m {
            None => next_block(w, state, rank),
            Some(m) => next_preconditioned_block(m, w, state, rank),
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
        let late = value(s::late) > 0.0;
        let iteration = if late { counted } else { counted + 1 };
        Ok(match code {
            StopCode::Breakdown => StopReason::Breakdown { iteration },
            StopCode::IndefiniteMatrix => {
                StopReason::IndefiniteMatrix { iteration, curvature: value(s::pivot) }
            }
            StopCode::IndefinitePreconditioner => {
                StopReason::IndefinitePreconditioner { iteration, product: value(s::pivot) }
            }
            _ => recurrence::not_finite(iteration),
        })
    }
}

/// Sets X = X + S G^-1 C in the running columns, and Q to W = Q - T G^-1, with the factor of G.
fn step<D: Device, T: Scalar>(w: &mut Work<'_, D, T>, state: &mut SlotState, rank: usize) -> Result<()> {
    let k = state.k;
    let done: ArrayVec<bool, MOST_COMBINED> = (0..k).map(|column| !runs(state, column)).collect();
    let own = small(&mut state.values, k);
    own.alpha.copy_from_slice(own.c);
    for row in own.alpha.chunks_exact_mut(k) {
        row.iter_mut().zip(&done).filter(|(_, done)| **done).for_each(|(v, _)| *v = 0.0);
    }
    small::solve(own.g, own.alpha, k, rank);
    w.combine(v::x, None, Some((v::s, Some(own.alpha))))?;
    for column in 0..k {
        let own = small(&mut state.values, k);
        let rho = column_norm_squared(own.c, k, column);
        let energy = column_product(own.c, own.alpha, k, column);
        state.set(s::rho, column, rho);
        state.set(s::alpha, column, energy / rho);
    }
    let own = small(&mut state.values, k);
    small::set_identity(own.b, k, rank);
    small::solve(own.g, own.b, k, rank);
    own.b.iter_mut().for_each(|v| *v = -*v);
    w.combine(v::q, None, Some((v::t, Some(own.b))))
}

/// Factors W, and computes the next C, residuals and directions.
fn next_block<D: Device, T: Scalar>(
    w: &mut Work<'_, D, T>,
    state: &mut SlotState,
    before: usize,
) -> Result<()> {
    let k = state.k;
    let mut own = small(&mut state.values, k);
    let rank = match orthonormalise(w, None, &mut own, |norm| 1.0 + norm)? {
        Ok(rank) => rank,
        Err(fault) => {
            end_with(state, fault, StopCode::NotFinite, false);
            return Ok(());
        }
    };
    next_coefficients(&mut own, k);
    next_directions(w, false, &mut own)?;
    set_rank(state, rank, before);
    count(state, |own, column| column_norm_squared(own.c, k, column));
    Ok(())
}

/// The same in the inner product of the preconditioner M.
fn next_preconditioned_block<D: Device, T: Scalar>(
    m: &Operator<D, T>,
    w: &mut Work<'_, D, T>,
    state: &mut SlotState,
    before: usize,
) -> Result<()> {
    let k = state.k;
    // The residuals are W C, so their squares are the diagonal of C'(W'W) C.
    let own = small(&mut state.values, k);
    w.gram(v::q, v::q, own.g)?;
    small::multiply(own.g, own.c, own.alpha, k);
    count(state, |own, column| column_product(own.c, own.alpha, k, column).max(0.0));
    if !(0..k).any(|column| runs(state, column)) {
        return Ok(());
    }
    w.product(m, &Z)?;
    let mut own = small(&mut state.values, k);
    match orthonormalise(w, Some(m), &mut own, |norm| 1.0 + norm)? {
        Ok(rank) => {
            next_coefficients(&mut own, k);
            next_directions(w, true, &mut own)?;
            set_rank(state, rank, before);
        }
        Err(fault) => end_with(state, fault, StopCode::IndefinitePreconditioner, true),
    }
    Ok(())
}

/// Sets C = zeta C.
fn next_coefficients(own: &mut Small<'_>, k: usize) {
    small::multiply(own.zeta, own.c, own.alpha, k);
    own.c.copy_from_slice(own.alpha);
}
