//! Power iteration: x = P' x, on any device, where the chain forgets when it began; x = (x + P' x) / 2 where it does not.
//!
//! ```text
//! y = P' x
//! y = y - x            the residual of x
//! x = x + lazy y       lazy is 1, or 1/2
//! ||y||_1
//! ```
//!
//! Memory traffic in n-vectors, besides the operator: y 1 read + 1 written, x 1 + 1: 4; where the sweep follows each row, y
//! is never in memory, and these 4 with the operator's own 2 become 2.

use crate::backend::Operator;
use crate::device::{Device, Dot, Op, Operand, Slot, SlotState, Sweep, Term, Test, Update};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::solve::steps::Steps;
use crate::stop::StopCode;

/// The l1 norm of the residual, counted in every iteration.
const STEP: Slot = Slot(0);
/// The one to reach.
const TARGET: Slot = Slot(1);
const LAZY: Slot = Slot(2);
const SLOTS: usize = 3;

const Y: Operand = Operand::Write(0);
const X: Operand = Operand::Write(1);

const STEPPED: Sweep<'static> = Sweep {
    name: "markov_step",
    numbers: &[],
    writes: 2,
    reads: 0,
    updates: &[
        Update { target: 0, terms: &[Term::one(Y), Term::minus_one(X)] },
        Update { target: 1, terms: &[Term::one(X), Term::slot(LAZY, Y)] },
    ],
    dots: &[Dot::magnitudes(Y, STEP)],
    then: &[
        Op::StopIf(Test::NotFinite(STEP), StopCode::NotFinite),
        Op::Count(STEP),
        Op::StopIf(Test::AtMost(STEP, TARGET), StopCode::Converged),
    ],
};

/// Every sweep of this method, for whoever compiles them ahead; it follows a product.
pub const SWEEPS: &[Sweep<'static>] = &[STEPPED];

/// Operator, vectors and scalars of an iteration.
pub(super) struct Work<D: Device, T: Scalar> {
    steps: Operator<D, T>,
    y: D::Vector<T>,
    x: D::Vector<T>,
    slots: D::Slots,
}

/// Vectors in the workspace.
pub const VECTORS: usize = 2;

impl<D: Device, T: Scalar> Work<D, T> {
    /// Bytes that an iteration moves.
    pub fn bytes(steps: &Operator<D, T>) -> u64 {
        steps.bytes_with(&STEPPED)
    }

    /// The workspace, and the host's copy of its scalars; iteration begins at x.
    pub fn start(device: &D, steps: Operator<D, T>, x: &[f64], lazy: f64) -> Result<(Self, SlotState)> {
        let mut work = Work {
            steps,
            y: device.vector(x.len(), 1)?,
            x: device.vector(x.len(), 1)?,
            slots: device.slots(SLOTS, 1)?,
        };
        let host: Vec<T> = x.iter().map(|&x| T::from_f64(x)).collect();
        device.upload(&host, &mut work.x)?;
        let mut state = SlotState::new(SLOTS, 1);
        state.set(LAZY, 0, lazy);
        Ok((work, state))
    }
}

impl<D: Device, T: Scalar> Steps<D, T> for Work<D, T> {
    const TARGET: Slot = TARGET;

    fn step(_: &D, w: &mut Self) -> Result<()> {
        w.steps.apply_sweep([&mut w.y, &mut w.x], &[], &mut w.slots, &STEPPED)
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
