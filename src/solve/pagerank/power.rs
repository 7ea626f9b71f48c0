//! Power iteration: x = F(x), on any device.
//!
//! The operator multiplies the links by the vertex that they lead to with c, what each vertex gives along a link: x over
//! the sum of its links. So a graph without weights needs no values, and any backend serves. One sweep does the rest:
//!
//! ```text
//! y = A c
//! y = d y + mu 1 + rho v - x (+ d x at sinks)     the step
//! x = x + y
//! c = x / out
//! ||y||_1, and the sum of x over sinks, from which mu and rho of the next iteration follow
//! ```
//!
//! Memory traffic in n-vectors, besides the operator: y 1 read + 1 written, x 1 + 1, c 1 written, 1 / out and sinks 1
//! read each: 7; v is one more where ranks are personal. Backends that own rows sweep each chunk as soon as they have
//! multiplied it: y is never in memory then, and these 7 with the operator's own 2 become 6.

use super::{Dangling, Problem};
use crate::backend::Operator;
use crate::device::{Coefficient, Device, Dot, Op, Operand, Slot, SlotState, Sweep, Term, Test, Update};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::solve::steps::Steps;
use crate::stop::StopCode;

/// The l1 norm of the step, counted in every iteration.
const STEP: Slot = Slot(0);
/// The step to reach.
const TARGET: Slot = Slot(1);
/// The sum of x over sinks.
const STRANDED: Slot = Slot(2);
const DAMPING: Slot = Slot(3);
/// What every vertex gets, and how it follows from what is stranded.
const MU: Slot = Slot(4);
const MU_SHARE: Slot = Slot(5);
const MU_REST: Slot = Slot(6);
/// What v is multiplied by, likewise.
const RHO: Slot = Slot(7);
const RHO_SHARE: Slot = Slot(8);
const RHO_REST: Slot = Slot(9);
/// What sinks keep of their own.
const KEPT: Slot = Slot(10);
/// Slots that a workspace has.
const SLOTS: usize = 11;

/// mu and rho from what is stranded.
const SPREAD: [Op; 4] = [
    Op::Multiply(MU, MU_SHARE, STRANDED),
    Op::Add(MU, MU, MU_REST),
    Op::Multiply(RHO, RHO_SHARE, STRANDED),
    Op::Add(RHO, RHO, RHO_REST),
];
const AFTER_STEP: &[Op] = &[
    Op::StopIf(Test::NotFinite(STEP), StopCode::NotFinite),
    Op::Count(STEP),
    // Before the end, so that it holds where iteration goes on after one.
    SPREAD[0],
    SPREAD[1],
    SPREAD[2],
    SPREAD[3],
    Op::StopIf(Test::AtMost(STEP, TARGET), StopCode::Converged),
];

const Y: Operand = Operand::Write(0);
const X: Operand = Operand::Write(2);
const INVERSE: Operand = Operand::Read(0);
const SINKS: Operand = Operand::Read(1);
const V: Operand = Operand::Read(2);

const MINUS_X: Term = Term { by: Coefficient::Constant(-1.0), v: X, times: None };
/// x = x + y, c = x / out.
const MOVE: Update<'static> = Update { target: 2, terms: &[Term::one(X), Term::one(Y)] };
const GIVE: Update<'static> =
    Update { target: 1, terms: &[Term { by: Coefficient::Constant(1.0), v: X, times: Some(INVERSE) }] };
const SUMS: &[Dot] = &[Dot::magnitudes(Y, STEP), Dot::product(X, SINKS, STRANDED)];

/// c = x / out and the sum over sinks, before the first iteration.
const START: Sweep<'static> = Sweep {
    name: "pagerank_start",
    writes: 1,
    reads: 3,
    updates: &[Update {
        target: 0,
        terms: &[Term { by: Coefficient::Constant(1.0), v: V, times: Some(INVERSE) }],
    }],
    dots: &[Dot::product(V, SINKS, STRANDED)],
    then: &SPREAD,
};
/// Where every vertex gets the same.
const EVEN: Sweep<'static> = Sweep {
    name: "pagerank_even",
    writes: 3,
    reads: 2,
    updates: &[
        Update { target: 0, terms: &[Term::slot(DAMPING, Y), Term::slot(MU, Operand::Ones), MINUS_X] },
        MOVE,
        GIVE,
    ],
    dots: SUMS,
    then: AFTER_STEP,
};
/// Where v says who gets how much, or sinks keep their own.
const PERSONAL: Sweep<'static> = Sweep {
    name: "pagerank_personal",
    writes: 3,
    reads: 3,
    updates: &[
        Update {
            target: 0,
            terms: &[Term::slot(DAMPING, Y), Term::slot(MU, Operand::Ones), Term::slot(RHO, V)],
        },
        Update {
            target: 0,
            terms: &[Term::one(Y), MINUS_X, Term { by: Coefficient::Slot(KEPT), v: X, times: Some(SINKS) }],
        },
        MOVE,
        GIVE,
    ],
    dots: SUMS,
    then: AFTER_STEP,
};

/// Every sweep of this method, for whoever compiles them ahead.
pub const SWEEPS: &[Sweep<'static>] = &[START, EVEN, PERSONAL];

/// Operator, vectors and scalars of an iteration.
pub(super) struct Work<D: Device, T: Scalar> {
    links: Operator<D, T>,
    y: D::Vector<T>,
    x: D::Vector<T>,
    c: D::Vector<T>,
    inverse: D::Vector<T>,
    sinks: D::Vector<T>,
    /// Only where not every vertex gets the same.
    v: Option<D::Vector<T>>,
    slots: D::Slots,
}

impl<D: Device, T: Scalar> Work<D, T> {
    /// Vectors in the workspace.
    pub fn vectors(problem: &Problem<'_>) -> usize {
        5 + usize::from(!is_even(problem))
    }

    /// Bytes that an iteration moves.
    pub fn bytes(links: &Operator<D, T>, problem: &Problem<'_>) -> u64 {
        links.bytes_with(&sweep(problem))
    }

    /// The workspace, and the host's copy of its scalars; iteration begins at x.
    pub fn start(
        device: &D,
        links: Operator<D, T>,
        problem: &Problem<'_>,
        x: &[f64],
    ) -> Result<(Self, SlotState)> {
        let n = x.len();
        let upload = |value: &dyn Fn(usize) -> f64| -> Result<D::Vector<T>> {
            let host: Vec<T> = (0..n).map(|i| T::from_f64(value(i))).collect();
            let mut vector = device.vector::<T>(n, 1)?;
            device.upload(&host, &mut vector)?;
            Ok(vector)
        };
        let out = problem.links.out();
        let mut work = Work {
            links,
            y: device.vector(n, 1)?,
            x: upload(&|i| x[i])?,
            c: device.vector(n, 1)?,
            inverse: upload(&|i| if out[i] > 0.0 { 1.0 / out[i] } else { 0.0 })?,
            sinks: upload(&|i| f64::from(u8::from(out[i] == 0.0)))?,
            v: if is_even(problem) { None } else { Some(upload(&|i| problem.teleport(i))?) },
            slots: device.slots(SLOTS, 1)?,
        };
        let mut state = SlotState::new(SLOTS, 1);
        shares(problem).into_iter().for_each(|(slot, value)| state.set(slot, 0, value));
        device.write(&state, &mut work.slots)?;
        device.sweep(&mut [&mut work.c], &[&work.inverse, &work.sinks, &work.x], &mut work.slots, &START)?;
        device.read(&work.slots, &mut state)?;
        Ok((work, state))
    }
}

impl<D: Device, T: Scalar> Steps<D, T> for Work<D, T> {
    const TARGET: Slot = TARGET;

    fn step(device: &D, w: &mut Self) -> Result<()> {
        let writes = [&mut w.y, &mut w.c, &mut w.x];
        match &w.v {
            None => w.links.apply_sweep(device, writes, &[&w.inverse, &w.sinks], &mut w.slots, &EVEN),
            Some(v) => {
                w.links.apply_sweep(device, writes, &[&w.inverse, &w.sinks, v], &mut w.slots, &PERSONAL)
            }
        }
    }

    fn slots(&self) -> &D::Slots {
        &self.slots
    }

    fn slots_mut(&mut self) -> &mut D::Slots {
        &mut self.slots
    }

    fn answer(&self) -> &D::Vector<T> {
        &self.x
    }
}

/// Whether every vertex gets the same of what is spread.
fn is_even(problem: &Problem<'_>) -> bool {
    problem.teleport.is_none() && problem.dangling != Dangling::SelfLoop
}

fn sweep(problem: &Problem<'_>) -> Sweep<'static> {
    if is_even(problem) { EVEN } else { PERSONAL }
}

/// What is spread to whom, by policy.
fn shares(problem: &Problem<'_>) -> [(Slot, f64); 6] {
    let (n, d) = (problem.links.vertices() as f64, problem.damping);
    let spread = matches!(problem.dangling, Dangling::Uniform | Dangling::Personalised);
    let share = if spread { d } else { 0.0 };
    let (mu, rho) = if is_even(problem) {
        ((share / n, (1.0 - d) / n), (0.0, 0.0))
    } else if problem.dangling == Dangling::Uniform {
        ((share / n, 0.0), (0.0, 1.0 - d))
    } else {
        ((0.0, 0.0), (share, 1.0 - d))
    };
    let kept = if problem.dangling == Dangling::SelfLoop { d } else { 0.0 };
    [(DAMPING, d), (MU_SHARE, mu.0), (MU_REST, mu.1), (RHO_SHARE, rho.0), (RHO_REST, rho.1), (KEPT, kept)]
}
