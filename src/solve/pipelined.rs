//! Pipelined conjugate gradients: the same iterates with one place in an iteration where sums must come together.
//!
//! # Method
//! With r = b - A x, u = M r, w = A u and beta = 0 at the start, alpha = r'u / w'u, each iteration does
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
//! The product A m does not wait for the dot products nor they for it, so that many processors can hide the one behind
//! the other; on a GPU an iteration is two kernels instead of three. Nothing overlaps here yet. The price is more
//! vectors, and accuracy: four recurrences stand in for products, and rounding parts them from what they stand for
//! sooner than in the classic form. The shell finds that out by the true residual and starts again from it.
//!
//! # Cost
//! For each iteration: one operator, the preconditioner, two dot products or three, and 15 n-vectors read or written
//! without preconditioner (see `Work::step`).
//!
//! # Stopping
//! As in the [classic form](super::cg).
//!
//! # Reference
//! P. Ghysels and W. Vanroose, Hiding global synchronization latency in the preconditioned conjugate gradient
//! algorithm, Parallel Computing 40, 2014, algorithm 4.

use super::recurrence::{
    self, CEILING, FIRST, OWN, Operators, Preconditioning, RR, Recurrence, SECOND, TARGET,
};
use crate::device::{Device, Dot, Op, Operand, Slot, SlotState, Sweep, Term, Test, Update};
use crate::error::Result;
use crate::operator::{DotInto, dot_into};
use crate::scalar::Scalar;
use crate::spectrum::Tridiagonal;
use crate::stop::{StopCode, StopReason};

/// r'u; without preconditioner r'r.
const GAMMA: Slot = Slot(OWN);
const GAMMA_NEXT: Slot = Slot(OWN + 1);
/// w'u.
const DELTA: Slot = Slot(OWN + 2);
/// p'Ap of the direction to come.
const CURVATURE: Slot = Slot(OWN + 3);
const ALPHA: Slot = Slot(OWN + 4);
const BETA: Slot = Slot(OWN + 5);
const TEMPORARY: Slot = Slot(OWN + 6);
const SLOTS: usize = OWN as usize + 7;

const INTO_GAMMA: DotInto = dot_into(GAMMA);
const INTO_DELTA: DotInto = dot_into(DELTA);
const CHECK_GAMMA: &[Op] = &[
    Op::StopIf(Test::NotFinite(GAMMA), StopCode::NotFinite),
    Op::StopIf(Test::NotPositive(GAMMA), StopCode::IndefinitePreconditioner),
];
/// The first alpha.
const FIRST_ALPHA: &[Op] = &[
    Op::StopIf(Test::NotFinite(DELTA), StopCode::NotFinite),
    Op::Copy(CURVATURE, DELTA),
    Op::StopIf(Test::NotPositive(CURVATURE), StopCode::IndefiniteMatrix),
    Op::Divide(ALPHA, GAMMA, CURVATURE),
];

/// The initial r'r; without preconditioner it is gamma as well.
const NORM: Sweep<'static> = Sweep {
    name: "pipelined_norm",
    numbers: &[],
    writes: 0,
    reads: 1,
    updates: &[],
    dots: &[Dot::product(Operand::Read(0), Operand::Read(0), RR)],
    then: &[Op::Copy(GAMMA, RR)],
};

const fn write(i: u8) -> Operand {
    Operand::Write(i)
}

/// target = v + beta target.
const fn extend(v: Operand, target: u8) -> [Term; 2] {
    [Term::one(v), Term::slot(BETA, Operand::Write(target))]
}

/// target -= alpha v.
const fn reduce(target: u8, v: u8) -> [Term; 2] {
    [Term::one(Operand::Write(target)), Term::minus(ALPHA, Operand::Write(v))]
}

/// z, s, p, x, r, w = `Write(0..6)`, n = `Read(0)`.
const STEP: Sweep<'static> = Sweep {
    name: "pipelined_step",
    numbers: &[],
    writes: 6,
    reads: 1,
    updates: &[
        Update { target: 0, terms: &extend(Operand::Read(0), 0) },
        Update { target: 1, terms: &extend(write(5), 1) },
        Update { target: 2, terms: &extend(write(4), 2) },
        Update { target: 3, terms: &[Term::one(write(3)), Term::slot(ALPHA, write(2))] },
        Update { target: 4, terms: &reduce(4, 1) },
        Update { target: 5, terms: &reduce(5, 0) },
    ],
    dots: &[Dot::product(write(4), write(4), RR), Dot::product(write(5), write(4), DELTA)],
    then: &[
        Op::StopIf(Test::NotFinite(RR), StopCode::NotFinite),
        Op::Note(FIRST, ALPHA),
        Op::Note(SECOND, GAMMA),
        Op::Count(RR),
        Op::StopIf(Test::AtMost(RR, TARGET), StopCode::Converged),
        Op::StopIf(Test::AtMost(CEILING, RR), StopCode::Diverged),
        Op::StopIf(Test::NotFinite(DELTA), StopCode::NotFinite),
        Op::Divide(BETA, RR, GAMMA),
        Op::Multiply(TEMPORARY, BETA, RR),
        Op::Divide(TEMPORARY, TEMPORARY, ALPHA),
        Op::Subtract(CURVATURE, DELTA, TEMPORARY),
        Op::StopIf(Test::NotPositive(CURVATURE), StopCode::IndefiniteMatrix),
        Op::Divide(ALPHA, RR, CURVATURE),
        Op::Copy(GAMMA, RR),
    ],
};

/// z, q, s, p, x, r, u, w = `Write(0..8)`, n, m = `Read(0..2)`.
const STEP_PRECONDITIONED: Sweep<'static> = Sweep {
    name: "pipelined_step_pre",
    numbers: &[],
    writes: 8,
    reads: 2,
    updates: &[
        Update { target: 0, terms: &extend(Operand::Read(0), 0) },
        Update { target: 1, terms: &extend(Operand::Read(1), 1) },
        Update { target: 2, terms: &extend(write(7), 2) },
        Update { target: 3, terms: &extend(write(6), 3) },
        Update { target: 4, terms: &[Term::one(write(4)), Term::slot(ALPHA, write(3))] },
        Update { target: 5, terms: &reduce(5, 2) },
        Update { target: 6, terms: &reduce(6, 1) },
        Update { target: 7, terms: &reduce(7, 0) },
    ],
    dots: &[
        Dot::product(write(5), write(5), RR),
        Dot::product(write(5), write(6), GAMMA_NEXT),
        Dot::product(write(7), write(6), DELTA),
    ],
    then: &[
        Op::StopIf(Test::NotFinite(RR), StopCode::NotFinite),
        Op::Note(FIRST, ALPHA),
        Op::Note(SECOND, GAMMA),
        Op::Count(RR),
        Op::StopIf(Test::AtMost(RR, TARGET), StopCode::Converged),
        Op::StopIf(Test::AtMost(CEILING, RR), StopCode::Diverged),
        Op::StopIf(Test::NotFinite(GAMMA_NEXT), StopCode::NotFinite),
        Op::StopIf(Test::NotPositive(GAMMA_NEXT), StopCode::IndefinitePreconditioner),
        Op::StopIf(Test::NotFinite(DELTA), StopCode::NotFinite),
        Op::Divide(BETA, GAMMA_NEXT, GAMMA),
        Op::Multiply(TEMPORARY, BETA, GAMMA_NEXT),
        Op::Divide(TEMPORARY, TEMPORARY, ALPHA),
        Op::Subtract(CURVATURE, DELTA, TEMPORARY),
        Op::StopIf(Test::NotPositive(CURVATURE), StopCode::IndefiniteMatrix),
        Op::Divide(ALPHA, GAMMA_NEXT, CURVATURE),
        Op::Copy(GAMMA, GAMMA_NEXT),
    ],
};

/// p = u + beta p alone: the next direction, to try its curvature on the matrix itself.
const DIRECTION: Sweep<'static> = Sweep {
    name: "pipelined_direction",
    numbers: &[],
    writes: 1,
    reads: 1,
    updates: &[Update { target: 0, terms: &extend(Operand::Read(0), 0) }],
    dots: &[],
    then: &[],
};

/// Every sweep of this method, for whoever compiles them ahead.
pub const SWEEPS: &[Sweep<'static>] = &[NORM, STEP, STEP_PRECONDITIONED, DIRECTION];
/// Every program that follows the dot product of an operator, likewise.
pub const PROGRAMS: &[(DotInto, &[Op])] = &[(INTO_GAMMA, CHECK_GAMMA), (INTO_DELTA, FIRST_ALPHA)];

/// Operators, vectors and scalars of a solve.
pub(super) struct Work<D: Device, T: Scalar> {
    operators: Operators<D, T>,
    x: D::Vector<T>,
    r: D::Vector<T>,
    w: D::Vector<T>,
    p: D::Vector<T>,
    s: D::Vector<T>,
    z: D::Vector<T>,
    n: D::Vector<T>,
    preconditioned: Option<Preconditioned<D, T>>,
    slots: D::Slots,
}

/// The vectors that only a preconditioner needs.
struct Preconditioned<D: Device, T: Scalar> {
    u: D::Vector<T>,
    m: D::Vector<T>,
    q: D::Vector<T>,
}

impl<D: Device, T: Scalar> Recurrence<D, T> for Work<D, T> {
    const STATE: u32 = 1;
    const SLOTS: usize = SLOTS;

    /// x, r, w, p, s, z, n, and u, m, q with a preconditioner.
    fn vectors(preconditioned: bool) -> usize {
        if preconditioned { 10 } else { 7 }
    }

    fn sweep_bytes(n: usize, preconditioned: bool) -> u64 {
        if preconditioned { STEP_PRECONDITIONED } else { STEP }.bytes(n, 1, size_of::<T>())
    }

    fn new(device: &D, operators: Operators<D, T>, n: usize) -> Result<Self> {
        let v = || device.vector::<T>(n, 1);
        let extra = || -> Result<_> { Ok(Preconditioned { u: v()?, m: v()?, q: v()? }) };
        let preconditioned = operators.m.is_some().then(extra).transpose()?;
        let slots = device.slots(SLOTS, 1)?;
        let (x, s, z, n) = (v()?, v()?, v()?, v()?);
        Ok(Work { operators, x, r: v()?, w: v()?, p: v()?, s, z, n, preconditioned, slots })
    }

    fn clear(&mut self, device: &D) -> Result<()> {
        let all = [&mut self.x, &mut self.p, &mut self.s, &mut self.z];
        all.into_iter()
            .chain(self.preconditioned.as_mut().map(|extra| &mut extra.q))
            .try_for_each(|v| device.clear(v))
    }

    fn start(&mut self, device: &D, r: &[T]) -> Result<()> {
        let k = self;
        device.upload(r, &mut k.r)?;
        // r'r
        device.sweep::<T>(&mut [], &[&k.r], &mut k.slots, &NORM)?;
        let a = &k.operators.a;
        match (&k.operators.m, &mut k.preconditioned) {
            (Some(m), Some(extra)) => {
                // u = M r, r'u; w = A u, w'u, alpha
                m.apply_dot(&k.r, &mut extra.u, &mut k.slots, &INTO_GAMMA, CHECK_GAMMA)?;
                a.apply_dot(&extra.u, &mut k.w, &mut k.slots, &INTO_DELTA, FIRST_ALPHA)
            }
            // w = A r, w'r, alpha
            _ => a.apply_dot(&k.r, &mut k.w, &mut k.slots, &INTO_DELTA, FIRST_ALPHA),
        }
    }

    /// Memory traffic in n-vectors read + written, besides the matrix: n = A w 1 + 1, the sweep 7 + 6: 15 in all. With
    /// a preconditioner its own (jacobi: d and w in, m out), n = A m 1 + 1, the sweep 10 + 8: 23 in all.
    fn step(device: &D, k: &mut Self) -> Result<()> {
        let a = &k.operators.a;
        match (&k.operators.m, &mut k.preconditioned) {
            (Some(precond), Some(Preconditioned { u, m, q })) => {
                // m = M w
                precond.apply(1.0, &k.w, 0.0, m)?;
                // n = A m
                a.apply(1.0, m, 0.0, &mut k.n)?;
                // z, q, s, p; x, r, u, w; r'r, r'u, w'u, beta, alpha
                let writes = &mut [&mut k.z, q, &mut k.s, &mut k.p, &mut k.x, &mut k.r, u, &mut k.w];
                device.sweep(writes, &[&k.n, m], &mut k.slots, &STEP_PRECONDITIONED)
            }
            _ => {
                // n = A w
                a.apply(1.0, &k.w, 0.0, &mut k.n)?;
                // z, s, p; x, r, w; r'r, w'r, beta, alpha
                let writes = &mut [&mut k.z, &mut k.s, &mut k.p, &mut k.x, &mut k.r, &mut k.w];
                device.sweep(writes, &[&k.n], &mut k.slots, &STEP)
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
        let mut all = vec![&self.x, &self.r, &self.w, &self.p, &self.s, &self.z];
        all.extend(self.preconditioned.iter().flat_map(|extra| [&extra.u, &extra.q]));
        all
    }

    fn carried_mut(&mut self) -> Vec<&mut D::Vector<T>> {
        let mut all = vec![&mut self.x, &mut self.r, &mut self.w, &mut self.p, &mut self.s, &mut self.z];
        all.extend(self.preconditioned.iter_mut().flat_map(|extra| [&mut extra.u, &mut extra.q]));
        all
    }

    fn reason(code: StopCode, state: &SlotState, first: usize) -> StopReason {
        let counted = state.counts[0] as usize;
        let began = counted > first;
        match code {
            StopCode::IndefiniteMatrix => {
                StopReason::IndefiniteMatrix { iteration: counted + 1, curvature: state.get(CURVATURE, 0) }
            }
            StopCode::IndefinitePreconditioner => {
                let product = state.get(if began { GAMMA_NEXT } else { GAMMA }, 0);
                StopReason::IndefinitePreconditioner { iteration: counted, product }
            }
            _ => {
                let before = !began && state.get(GAMMA, 0).is_finite();
                let inside = began && !state.get(RR, 0).is_finite();
                recurrence::not_finite(counted + usize::from(before || inside))
            }
        }
    }

    /// After the first iteration of a run the curvature comes from recurrences: whether it is the matrix that is not
    /// positive definite, the product tells.
    fn verify(
        &mut self,
        device: &D,
        reason: StopReason,
        state: &mut SlotState,
        first: usize,
    ) -> Result<StopReason> {
        let StopReason::IndefiniteMatrix { iteration, .. } = reason else { return Ok(reason) };
        if iteration == first + 1 {
            return Ok(reason);
        }
        state.done[0] = StopCode::Running as u32;
        device.write(state, &mut self.slots)?;
        let u = self.preconditioned.as_ref().map_or(&self.r, |extra| &extra.u);
        // p = u + beta p, n = A p, p'n
        device.sweep(&mut [&mut self.p], &[u], &mut self.slots, &DIRECTION)?;
        let a = &self.operators.a;
        a.apply_dot(&self.p, &mut self.n, &mut self.slots, &INTO_DELTA, FIRST_ALPHA)?;
        device.read(&self.slots, state)?;
        match StopCode::from_device(state.done[0]) {
            StopCode::IndefiniteMatrix => Ok(Self::reason(StopCode::IndefiniteMatrix, state, first)),
            _ => Ok(StopReason::Breakdown { iteration }),
        }
    }

    /// Nothing is ever left open.
    fn finish(&mut self, _: &D, _: &mut SlotState, _: usize) -> Result<()> {
        Ok(())
    }

    fn answer(&self) -> &D::Vector<T> {
        &self.x
    }

    fn preconditioner(&mut self) -> Option<Preconditioning<'_, D, T>> {
        Some((self.operators.m.as_ref()?, [&mut self.r, &mut self.preconditioned.as_mut()?.u]))
    }

    fn suspects(&self) -> Vec<(&'static str, &D::Vector<T>)> {
        let mut all = Vec::new();
        if let Some(extra) = &self.preconditioned {
            all.extend([("the preconditioned residual", &extra.u), ("M A u", &extra.m)]);
        }
        all.extend([("A p", &self.n), ("A u", &self.w), ("the residual", &self.r)]);
        all
    }

    fn energy(first: f64, second: f64) -> f64 {
        first * second
    }

    fn project(coefficients: &[(f64, f64)], projection: &mut Tridiagonal) {
        projection.set_to_conjugate_gradients(coefficients);
    }
}
