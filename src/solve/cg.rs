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
//! device; the host reads residuals and coefficients once a batch. Definiteness is not checked up front: a curvature
//! p'Ap that is not positive ends the solve with its evidence.
//!
//! # Cost
//! For each iteration: one operator, the preconditioner, two dot products, and 10 n-vectors read or written without
//! preconditioner (see `Work::step`).
//!
//! # Stopping
//! The recursive residual ||r|| / ||b|| is tested on the device in every iteration; the
//! shell recomputes b - A x.
//!
//! # Reference
//! M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49, 1952.

use super::recurrence::{
    self, CEILING, FIRST, OWN, Operators, Preconditioning, RR, Recurrence, SECOND, TARGET,
};
use crate::device::{Device, Dot, Op, Operand, Slot, SlotState, Sweep, Term, Test, Update};
use crate::error::Result;
use crate::operator::{DotInto, dot_into};
use crate::scalar::Scalar;
use crate::spectrum::Tridiagonal;
use crate::stop::{StopCode, StopReason};

const PQ: Slot = Slot(OWN);
/// r'z of this iteration; without preconditioner r'r.
const RHO: Slot = Slot(OWN + 1);
const RHO_NEXT: Slot = Slot(OWN + 2);
const ALPHA: Slot = Slot(OWN + 3);
const BETA: Slot = Slot(OWN + 4);
/// Slots that a workspace has.
pub const SLOTS: usize = OWN as usize + 5;

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
const INTO_RR: &[Dot] = &[Dot::product(Operand::Write(0), Operand::Write(0), RR)];

/// The initial r'r; without preconditioner it is rho as well.
const NORM: Sweep<'static> = Sweep {
    name: "cg_norm",
    numbers: &[],
    writes: 0,
    reads: 1,
    updates: &[],
    dots: &[Dot::product(Operand::Read(0), Operand::Read(0), RR)],
    then: &[Op::Copy(RHO, RR)],
};
/// p = z.
const START: Sweep<'static> = Sweep {
    name: "cg_start",
    numbers: &[],
    writes: 1,
    reads: 1,
    updates: &[Update { target: 0, terms: &[Term::one(Operand::Read(0))] }],
    dots: &[],
    then: &[],
};
/// r -= alpha q with r'r; then, without preconditioner, beta and rho. The coefficients are noted here and not where
/// alpha is computed: there the registers that it takes cost the product of the matrix 3 % of its speed on an H200.
const RESIDUAL: Sweep<'static> = Sweep {
    name: "cg_residual",
    numbers: &[],
    writes: 1,
    reads: 1,
    updates: R_MINUS_ALPHA_Q,
    dots: INTO_RR,
    then: &[
        Op::StopIf(Test::NotFinite(RR), StopCode::NotFinite),
        Op::Note(FIRST, ALPHA),
        Op::Note(SECOND, RHO),
        Op::Count(RR),
        Op::StopIf(Test::AtMost(RR, TARGET), StopCode::Converged),
        Op::StopIf(Test::AtMost(CEILING, RR), StopCode::Diverged),
        Op::Divide(BETA, RR, RHO),
        Op::Copy(RHO, RR),
    ],
};
/// The same where a preconditioner provides rho.
const RESIDUAL_PRECONDITIONED: Sweep<'static> = Sweep {
    name: "cg_residual_pre",
    then: &[
        Op::StopIf(Test::NotFinite(RR), StopCode::NotFinite),
        Op::Note(FIRST, ALPHA),
        Op::Note(SECOND, RHO),
        Op::Count(RR),
        Op::StopIf(Test::AtMost(RR, TARGET), StopCode::Converged),
        Op::StopIf(Test::AtMost(CEILING, RR), StopCode::Diverged),
    ],
    ..RESIDUAL
};
/// x += alpha p, p = z + beta p.
const DIRECTION: Sweep<'static> = Sweep {
    name: "cg_direction",
    numbers: &[],
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
    numbers: &[],
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

/// Operators, vectors and scalars of a solve.
pub(super) struct Work<D: Device, T: Scalar> {
    operators: Operators<D, T>,
    x: D::Vector<T>,
    r: D::Vector<T>,
    p: D::Vector<T>,
    q: D::Vector<T>,
    /// Only with a preconditioner; otherwise z is r.
    z: Option<D::Vector<T>>,
    slots: D::Slots,
}

/// Whether it was the preconditioner that gave NaN or infinity: after the residual of its iteration was counted.
fn preconditioner_not_finite(state: &SlotState) -> bool {
    !state.get(RHO, 0).is_finite() || !state.get(RHO_NEXT, 0).is_finite()
}

impl<D: Device, T: Scalar> Recurrence<D, T> for Work<D, T> {
    const STATE: u32 = 1;
    const SLOTS: usize = SLOTS;

    /// x, r, p, q, and z with a preconditioner.
    fn vectors(preconditioned: bool) -> usize {
        if preconditioned { 5 } else { 4 }
    }

    fn sweep_bytes(n: usize, preconditioned: bool) -> u64 {
        let residual = if preconditioned { RESIDUAL_PRECONDITIONED } else { RESIDUAL };
        residual.bytes(n, 1, size_of::<T>()) + DIRECTION.bytes(n, 1, size_of::<T>())
    }

    fn new(device: &D, operators: Operators<D, T>, n: usize) -> Result<Self> {
        let vector = || device.vector::<T>(n, 1);
        let z = operators.m.is_some().then(vector).transpose()?;
        let slots = device.slots(SLOTS, 1)?;
        Ok(Work { operators, x: vector()?, r: vector()?, p: vector()?, q: vector()?, z, slots })
    }

    fn clear(&mut self, device: &D) -> Result<()> {
        device.clear(&mut self.x)
    }

    fn start(&mut self, device: &D, r: &[T]) -> Result<()> {
        let w = self;
        device.upload(r, &mut w.r)?;
        // r'r
        device.sweep::<T>(&mut [], &[&w.r], &mut w.slots, &NORM)?;
        match (&w.operators.m, &mut w.z) {
            (Some(m), Some(z)) => {
                // z = M r, r'z; p = z
                m.apply_dot(&w.r, z, &mut w.slots, &INTO_RHO, CHECK_RHO)?;
                device.sweep(&mut [&mut w.p], &[z], &mut w.slots, &START)
            }
            // p = r
            _ => device.sweep(&mut [&mut w.p], &[&w.r], &mut w.slots, &START),
        }
    }

    /// Memory traffic in n-vectors read + written, besides the matrix: q = A p 1 + 1, r 2 + 1, x and p 3 + 2: 10 in
    /// all. A preconditioner adds its own (jacobi: d and r in, z out: 13 in all).
    fn step(device: &D, w: &mut Self) -> Result<()> {
        // q = A p, p'q, alpha
        w.operators.a.apply_dot(&w.p, &mut w.q, &mut w.slots, &INTO_PQ, AFTER_PQ)?;
        match (&w.operators.m, &mut w.z) {
            (Some(m), Some(z)) => {
                // r -= alpha q, r'r
                device.sweep(&mut [&mut w.r], &[&w.q], &mut w.slots, &RESIDUAL_PRECONDITIONED)?;
                // z = M r, r'z, beta
                m.apply_dot(&w.r, z, &mut w.slots, &INTO_RHO_NEXT, AFTER_RHO)?;
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

    fn slots(&self) -> &D::Slots {
        &self.slots
    }

    fn slots_mut(&mut self) -> &mut D::Slots {
        &mut self.slots
    }

    fn carried(&self) -> Vec<&D::Vector<T>> {
        vec![&self.x, &self.r, &self.p]
    }

    fn carried_mut(&mut self) -> Vec<&mut D::Vector<T>> {
        vec![&mut self.x, &mut self.r, &mut self.p]
    }

    fn reason(code: StopCode, state: &SlotState, first: usize) -> StopReason {
        let counted = state.counts[0] as usize;
        match code {
            StopCode::IndefiniteMatrix => {
                StopReason::IndefiniteMatrix { iteration: counted + 1, curvature: state.get(PQ, 0) }
            }
            StopCode::IndefinitePreconditioner => {
                let product = if counted == first { state.get(RHO, 0) } else { state.get(RHO_NEXT, 0) };
                StopReason::IndefinitePreconditioner { iteration: counted, product }
            }
            _ => recurrence::not_finite(if preconditioner_not_finite(state) { counted } else { counted + 1 }),
        }
    }

    /// Adds the update of x that the last step left open.
    fn finish(&mut self, device: &D, state: &mut SlotState, first: usize) -> Result<()> {
        let counted = state.counts[0] as usize > first;
        let open = match StopCode::from_device(state.done[0]) {
            StopCode::Converged | StopCode::Diverged => true,
            StopCode::IndefinitePreconditioner => counted,
            StopCode::NotFinite => counted && preconditioner_not_finite(state),
            _ => false,
        };
        if open && counted {
            state.done[0] = StopCode::Running as u32;
            device.write(state, &mut self.slots)?;
            device.sweep(&mut [&mut self.x], &[&self.p], &mut self.slots, &FINISH)?;
        }
        Ok(())
    }

    fn answer(&self) -> &D::Vector<T> {
        &self.x
    }

    fn preconditioner(&mut self) -> Option<Preconditioning<'_, D, T>> {
        Some((self.operators.m.as_ref()?, [&mut self.r, self.z.as_mut()?]))
    }

    fn suspects(&self) -> Vec<(&'static str, &D::Vector<T>)> {
        let mut all = vec![("the direction p", &self.p), ("A p", &self.q), ("the residual", &self.r)];
        all.extend(self.z.as_ref().map(|z| ("the preconditioned residual", z)));
        all
    }

    fn direction(&self) -> Option<&D::Vector<T>> {
        Some(&self.p)
    }

    fn energy(first: f64, second: f64) -> f64 {
        first * second
    }

    fn project(coefficients: &[(f64, f64)], projection: &mut Tridiagonal) {
        projection.set_to_conjugate_gradients(coefficients);
    }
}
