//! Power iteration: x = P' x, on any device, for an aperiodic chain; x = (x + P' x) / 2 for a periodic one.
//!
//! ```text
//! y = P' x
//! y = y - x            the residual of x
//! x = x + lazy y       lazy is 1, or 1/2
//! ||y||_1
//! ```
//!
//! Memory traffic in n-vectors, in addition to the operator: y 1 read + 1 written, x 1 + 1: 4 in all. If the
//! sweep follows each row, y is never in memory, and these 4 with the operator's 2 become 2.

use crate::backend::Operator;
use crate::device::formula::{names, sweep};
use crate::device::{Device, Formula, Name, SlotState, Sweep, Work, Workspace};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::solve::fixed::Steps;

names! {
    vectors v { y, x }
    scalars s {
        /// The l1 norm of the residual, counted in every iteration, and the norm to reach.
        step, target,
        lazy,
    }
}

const STEPPED: Formula = sweep!({ "markov_step": y = y - x; x = x + lazy * y; step = norm1(y); } then {
    stop NotFinite if not_finite(step);
    count step;
    stop Converged if step <= target;
});

/// The sweeps of this method, so that they can be compiled ahead; the sweep follows a product.
pub(crate) const SWEEPS: &[Sweep<'static>] = &[STEPPED.sweep];

/// Number of vectors in the workspace.
pub(crate) const VECTORS: usize = 2;

/// P' of the chain.
pub(super) struct Power<D: Device, T: Scalar>(pub Operator<D, T>);

impl<D: Device, T: Scalar> Power<D, T> {
    /// Returns the bytes that an iteration moves.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes_with(&STEPPED.sweep)
    }

    /// Allocates the workspace, and the host's copy of its scalars; iteration begins at x.
    pub(crate) fn workspace(&self, x: &[f64], lazy: f64) -> Result<(Workspace<D, T>, SlotState)> {
        let mut workspace = Workspace::new(self.0.device(), [v::y, v::x], (x.len(), 1), s::COUNT)?;
        let host: Vec<T> = x.iter().map(|&x| T::from_f64(x)).collect();
        workspace.work().upload(v::x, &host)?;
        let mut state = SlotState::new(s::COUNT, 1);
        state.set(s::lazy, 0, lazy);
        Ok((workspace, state))
    }

    /// Performs one iteration.
    pub(crate) fn step(&self, w: &mut Work<'_, D, T>) -> Result<()> {
        // y = P' x, y = y - x, x = x + lazy y, ||y||_1
        w.product_then(&self.0, &STEPPED)
    }
}

impl<D: Device, T: Scalar> Steps<D, T> for Power<D, T> {
    const ANSWER: Name = v::x;
}
