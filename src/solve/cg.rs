//! Preconditioned conjugate gradients for symmetric positive definite systems.
//!
//! # Method
//! With r = b - A x, z = M r, p = z and rho = r'z at the start, each iteration does
//!
//! ```text
//! q = A p          alpha = rho / p'q
//! r = r - alpha q
//! z = M r          beta = r'z / rho,  rho = r'z
//! x = x + alpha p,  p = z + beta p
//! ```
//!
//! # Variant
//! The update of x waits for that of p, so that one pass reads p for both: one n-vector less. So when the residual
//! meets the tolerance inside a step, x lacks its last alpha p, which is added once at the end. Scalars stay on the
//! device; the host reads residuals once a batch. Definiteness is not checked up front: a curvature p'Ap that is not
//! positive ends the solve with its evidence. The start is x = 0.
//!
//! # Cost
//! For each iteration: one operator, the preconditioner, two dot products, and 10 n-vectors read or written without
//! preconditioner (see `step`).
//!
//! # Stopping
//! The recursive residual ||r|| / ||b|| is tested on the device in every iteration; whoever reports the result
//! recomputes b - A x (see [`verdict`](super::verdict)).
//!
//! # Reference
//! M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49, 1952.

use super::Outcome;
use super::pace::Pace;
use super::verdict::largest_magnitude;
use crate::backend::Operator;
use crate::device::{Device, Dot, Op, Operand, RING, Recorded, Slot, SlotState, Sweep, Term, Test, Update};
use crate::error::{Error, Result};
use crate::observe::{Batch, Observer};
use crate::operator::{DotInto, dot_into};
use crate::scalar::Scalar;
use crate::stop::{Progress, StopCode, StopReason, StoppingRule};
use std::time::Instant;

const RR: Slot = Slot(0);
const PQ: Slot = Slot(1);
/// r'z of this iteration; without preconditioner r'r.
const RHO: Slot = Slot(2);
const RHO_NEXT: Slot = Slot(3);
const ALPHA: Slot = Slot(4);
const BETA: Slot = Slot(5);
/// The square of the residual norm to reach.
const TARGET: Slot = Slot(6);
const SLOTS: usize = 7;

const INTO_PQ: DotInto = dot_into(PQ);
const INTO_RHO: DotInto = dot_into(RHO);
const INTO_RHO_NEXT: DotInto = dot_into(RHO_NEXT);
/// alpha = rho / p'q, unless the curvature is not positive.
const AFTER_PQ: &[Op] = &[
    Op::StopIf(Test::NotFinite(PQ), StopCode::NotFinite),
    Op::StopIf(Test::NotPositive(PQ), StopCode::IndefiniteMatrix),
    Op::Divide(ALPHA, RHO, PQ),
];
const CHECK_RHO: &[Op] = &[
    Op::StopIf(Test::NotFinite(RHO), StopCode::NotFinite),
    Op::StopIf(Test::NotPositive(RHO), StopCode::IndefinitePreconditioner),
];
/// beta = r'z / rho, rho = r'z.
const AFTER_RHO: &[Op] = &[
    Op::StopIf(Test::NotFinite(RHO_NEXT), StopCode::NotFinite),
    Op::StopIf(Test::NotPositive(RHO_NEXT), StopCode::IndefinitePreconditioner),
    Op::Divide(BETA, RHO_NEXT, RHO),
    Op::Copy(RHO, RHO_NEXT),
];

const R_MINUS_ALPHA_Q: &[Update<'static>] =
    &[Update { target: 0, terms: &[Term::one(Operand::Write(0)), Term::minus(ALPHA, Operand::Read(0))] }];
const INTO_RR: &[Dot] = &[Dot { a: Operand::Write(0), b: Operand::Write(0), out: RR }];

/// The initial r'r; without preconditioner it is rho as well.
const NORM: Sweep<'static> = Sweep {
    name: "cg_norm",
    writes: 0,
    reads: 1,
    updates: &[],
    dots: &[Dot { a: Operand::Read(0), b: Operand::Read(0), out: RR }],
    then: &[Op::Copy(RHO, RR)],
};
/// p = z.
const START: Sweep<'static> = Sweep {
    name: "cg_start",
    writes: 1,
    reads: 1,
    updates: &[Update { target: 0, terms: &[Term::one(Operand::Read(0))] }],
    dots: &[],
    then: &[],
};
/// r -= alpha q with r'r; then, without preconditioner, beta and rho.
const RESIDUAL: Sweep<'static> = Sweep {
    name: "cg_residual",
    writes: 1,
    reads: 1,
    updates: R_MINUS_ALPHA_Q,
    dots: INTO_RR,
    then: &[
        Op::StopIf(Test::NotFinite(RR), StopCode::NotFinite),
        Op::Count(RR),
        Op::StopIf(Test::AtMost(RR, TARGET), StopCode::Converged),
        Op::Divide(BETA, RR, RHO),
        Op::Copy(RHO, RR),
    ],
};
/// The same where a preconditioner provides rho.
const RESIDUAL_PRECONDITIONED: Sweep<'static> = Sweep {
    name: "cg_residual_pre",
    then: &[
        Op::StopIf(Test::NotFinite(RR), StopCode::NotFinite),
        Op::Count(RR),
        Op::StopIf(Test::AtMost(RR, TARGET), StopCode::Converged),
    ],
    ..RESIDUAL
};
/// x += alpha p, p = z + beta p.
const DIRECTION: Sweep<'static> = Sweep {
    name: "cg_direction",
    writes: 2,
    reads: 1,
    updates: &[
        Update { target: 0, terms: &[Term::one(Operand::Write(0)), Term::slot(ALPHA, Operand::Write(1))] },
        Update { target: 1, terms: &[Term::slot(BETA, Operand::Write(1)), Term::one(Operand::Read(0))] },
    ],
    dots: &[],
    then: &[],
};
/// x += alpha p: the update that a step left open when it stopped.
const FINISH: Sweep<'static> = Sweep {
    name: "cg_finish",
    writes: 1,
    reads: 1,
    updates: &[Update {
        target: 0,
        terms: &[Term::one(Operand::Write(0)), Term::slot(ALPHA, Operand::Read(0))],
    }],
    dots: &[],
    then: &[],
};

/// Every sweep of this method, for whoever compiles them ahead.
pub const SWEEPS: &[Sweep<'static>] = &[NORM, START, RESIDUAL, RESIDUAL_PRECONDITIONED, DIRECTION, FINISH];
/// Every program that follows the dot product of an operator, likewise.
pub const PROGRAMS: &[(DotInto, &[Op])] =
    &[(INTO_PQ, AFTER_PQ), (INTO_RHO, CHECK_RHO), (INTO_RHO_NEXT, AFTER_RHO)];

/// Operators, vectors and scalars of a solve, allocated once.
struct Workspace<D: Device, T: Scalar> {
    a: Operator<D, T>,
    m: Option<Operator<D, T>>,
    x: D::Vector<T>,
    r: D::Vector<T>,
    p: D::Vector<T>,
    q: D::Vector<T>,
    /// Only with a preconditioner; otherwise z is r.
    z: Option<D::Vector<T>>,
    slots: D::Slots,
}

/// One iteration.
///
/// Memory traffic in n-vectors read + written, besides the matrix: q = A p 1 + 1, r 2 + 1, x and p 3 + 2: 10 in all.
/// A preconditioner adds its own (jacobi: d and r in, z out: 13 in all).
fn step<D: Device, T: Scalar>(device: &D, w: &mut Workspace<D, T>) -> Result<()> {
    // q = A p, p'q, alpha
    w.a.apply_dot(device, &w.p, &mut w.q, &mut w.slots, &INTO_PQ, AFTER_PQ)?;
    match (&w.m, &mut w.z) {
        (Some(m), Some(z)) => {
            // r -= alpha q, r'r
            device.sweep(&mut [&mut w.r], &[&w.q], &mut w.slots, &RESIDUAL_PRECONDITIONED)?;
            // z = M r, r'z, beta
            m.apply_dot(device, &w.r, z, &mut w.slots, &INTO_RHO_NEXT, AFTER_RHO)?;
            // x += alpha p, p = z + beta p
            device.sweep(&mut [&mut w.x, &mut w.p], &[z], &mut w.slots, &DIRECTION)
        }
        _ => {
            // r -= alpha q, r'r, beta
            device.sweep(&mut [&mut w.r], &[&w.q], &mut w.slots, &RESIDUAL)?;
            // x += alpha p, p = r + beta p
            device.sweep(&mut [&mut w.x, &mut w.p], &[&w.r], &mut w.slots, &DIRECTION)
        }
    }
}

/// Solves A x = b from x = 0; `m` approximates the inverse of A.
pub fn solve<D: Device, T: Scalar>(
    device: &D,
    a: Operator<D, T>,
    m: Option<Operator<D, T>>,
    b: &[T],
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Outcome<T>> {
    let began = Instant::now();
    let (rows, cols) = a.shape();
    if rows != cols {
        return Err(Error::NotSquare { rows, cols, solver: "cg" });
    }
    if b.len() != rows {
        return Err(Error::Dimension {
            what: "entries of the right-hand side",
            expected: rows,
            got: b.len(),
        });
    }
    let bytes_per_iteration = bytes_per_iteration(&a, m.as_ref());
    let operator_bytes = a.storage() + m.as_ref().map_or(0, |m| m.storage());
    let vector_bytes = (vectors(m.is_some()) * rows * size_of::<T>()) as u64;
    let largest = largest_magnitude(b.iter().map(|v| v.to_f64()));
    let mut outcome = Outcome {
        x: vec![T::default(); rows],
        reason: StopReason::ZeroRightHandSide,
        iterations: 0,
        residual: 0.0,
        seconds_setup: 0.0,
        seconds_solve: 0.0,
        bytes_per_iteration,
        operator_bytes,
        vector_bytes,
    };
    if largest == 0.0 {
        return Ok(outcome);
    }
    let (mut work, mut state) = start(device, a, m, b)?;
    let norm_squared = state.get(RR, 0);
    if !norm_squared.is_normal() {
        return Err(Error::RightHandSideScale { largest, norm_squared });
    }
    let tolerance = rule.residual_tolerance();
    // A residual of exactly zero ends every solve: there is no direction left.
    state.set(TARGET, 0, tolerance.map_or(0.0, |t| t * t * norm_squared));
    device.write(&state, &mut work.slots)?;
    let mut recorded = device.record(work, step::<D, T>)?;
    device.synchronize()?;
    outcome.seconds_setup = began.elapsed().as_secs_f64();
    iterate(device, &mut recorded, &mut state, norm_squared.sqrt(), rule, observers, &mut outcome)?;
    finish(device, recorded, state, outcome)
}

/// Bytes that one [`step`] must move.
fn bytes_per_iteration<D: Device, T: Scalar>(a: &Operator<D, T>, m: Option<&Operator<D, T>>) -> u64 {
    let (n, width) = (a.shape().0, size_of::<T>());
    let residual = if m.is_some() { RESIDUAL_PRECONDITIONED } else { RESIDUAL };
    a.cost().bytes
        + residual.bytes(n, 1, width)
        + DIRECTION.bytes(n, 1, width)
        + m.map_or(0, |m| m.cost().bytes)
}

/// x, r, p, q, and z with a preconditioner.
fn vectors(preconditioned: bool) -> usize {
    if preconditioned { 5 } else { 4 }
}

/// Workspace with r = b, p = z = M r, rho and r'r, and the host's copy of the scalars.
fn start<D: Device, T: Scalar>(
    device: &D,
    a: Operator<D, T>,
    m: Option<Operator<D, T>>,
    b: &[T],
) -> Result<(Workspace<D, T>, SlotState)> {
    let n = b.len();
    device.require_memory("the vectors of a solve", (vectors(m.is_some()) * n * size_of::<T>()) as u64)?;
    let vector = || device.vector::<T>(n, 1);
    let z = m.is_some().then(vector).transpose()?;
    let slots = device.slots(SLOTS, 1)?;
    let mut w = Workspace { a, m, x: vector()?, r: vector()?, p: vector()?, q: vector()?, z, slots };
    device.upload(b, &mut w.r)?;
    // r'r
    device.sweep::<T>(&mut [], &[&w.r], &mut w.slots, &NORM)?;
    match (&w.m, &mut w.z) {
        (Some(m), Some(z)) => {
            // z = M r, r'z; p = z
            m.apply_dot(device, &w.r, z, &mut w.slots, &INTO_RHO, CHECK_RHO)?;
            device.sweep(&mut [&mut w.p], &[z], &mut w.slots, &START)?;
        }
        // p = r
        _ => device.sweep(&mut [&mut w.p], &[&w.r], &mut w.slots, &START)?,
    }
    let mut state = SlotState::new(SLOTS, 1);
    device.read(&w.slots, &mut state)?;
    Ok((w, state))
}

/// Replays the step in batches until the device or a rule says stop.
fn iterate<D: Device, T: Scalar>(
    device: &D,
    recorded: &mut Recorded<D, Workspace<D, T>>,
    state: &mut SlotState,
    norm_b: f64,
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
    outcome: &mut Outcome<T>,
) -> Result<()> {
    let tolerance = rule.residual_tolerance();
    let mut residuals = Vec::with_capacity(RING);
    residuals.push(state.get(RR, 0).sqrt() / norm_b);
    let began = Instant::now();
    let mut now = Progress { iteration: 0, residual: residuals[0], elapsed: began.elapsed() };
    notify(observers, &residuals, 0, (0.0, 0.0), tolerance);
    let mut pace = Pace::default();
    loop {
        let code = StopCode::from_device(state.done[0]);
        let stop = reason(code, state).or_else(|| rule.check(&now));
        if device.agree(stop.is_some()) {
            outcome.reason = stop.unwrap_or(StopReason::Interrupted);
            break;
        }
        let longest = D::BATCH.min(rule.iterations_left(now.iteration)).max(1);
        device.replay(recorded, pace.next(&now, tolerance, longest))?;
        device.read(&recorded.work().slots, state)?;
        let (first, before) = (now.iteration, now.elapsed);
        now.elapsed = began.elapsed();
        now.iteration = state.counts[0] as usize;
        residuals.clear();
        residuals.extend((first..now.iteration).map(|i| state.counted(i, 0).sqrt() / norm_b));
        if let Some(&last) = residuals.last() {
            now.residual = last;
            notify(
                observers,
                &residuals,
                first,
                (before.as_secs_f64(), now.elapsed.as_secs_f64()),
                tolerance,
            );
        }
    }
    outcome.iterations = now.iteration;
    outcome.residual = now.residual;
    outcome.seconds_solve = now.elapsed.as_secs_f64();
    Ok(())
}

fn notify(
    observers: &mut [&mut dyn Observer],
    residuals: &[f64],
    first: usize,
    seconds: (f64, f64),
    tolerance: Option<f64>,
) {
    let batch = Batch { first, residuals, seconds, tolerance };
    observers.iter_mut().for_each(|o| o.batch(&batch));
}

/// Whether it was the preconditioner that gave NaN or infinity: after the residual of its iteration was counted.
fn preconditioner_not_finite(state: &SlotState) -> bool {
    !state.get(RHO, 0).is_finite() || !state.get(RHO_NEXT, 0).is_finite()
}

/// What a code on the device means, with the evidence that the slots still hold.
fn reason(code: StopCode, state: &SlotState) -> Option<StopReason> {
    let counted = state.counts[0] as usize;
    match code {
        StopCode::Running => None,
        StopCode::Converged => Some(StopReason::Converged),
        StopCode::NotFinite => {
            let iteration = if preconditioner_not_finite(state) { counted } else { counted + 1 };
            Some(StopReason::NotFinite { iteration })
        }
        StopCode::IndefiniteMatrix => {
            Some(StopReason::IndefiniteMatrix { iteration: counted + 1, curvature: state.get(PQ, 0) })
        }
        StopCode::IndefinitePreconditioner => {
            let product = if counted == 0 { state.get(RHO, 0) } else { state.get(RHO_NEXT, 0) };
            Some(StopReason::IndefinitePreconditioner { iteration: counted, product })
        }
    }
}

/// Adds the update of x that the last step left open, and takes x home.
fn finish<D: Device, T: Scalar>(
    device: &D,
    recorded: Recorded<D, Workspace<D, T>>,
    mut state: SlotState,
    mut outcome: Outcome<T>,
) -> Result<Outcome<T>> {
    let mut w = recorded.into_work();
    let open = match StopCode::from_device(state.done[0]) {
        StopCode::Converged => true,
        StopCode::IndefinitePreconditioner => outcome.iterations > 0,
        StopCode::NotFinite => outcome.iterations > 0 && preconditioner_not_finite(&state),
        _ => false,
    };
    if open {
        state.done[0] = StopCode::Running as u32;
        device.write(&state, &mut w.slots)?;
        device.sweep(&mut [&mut w.x], &[&w.p], &mut w.slots, &FINISH)?;
    }
    device.download(&w.x, &mut outcome.x)?;
    Ok(outcome)
}
