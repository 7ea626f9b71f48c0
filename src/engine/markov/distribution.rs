//! The distribution of one closed class of states.

use super::class::PreparedClass;
use crate::device::stream::Limit;
use crate::engine::device::DeviceHandle;
use crate::engine::limit;
use crate::engine::running::Chosen;
use crate::observe::Recorder;
use crate::observe::report::Parts;
use crate::solve::markov::Stationary;
use crate::solve::markov::chain::Closed;
use crate::stop::StopReason;
use std::sync::atomic::AtomicBool;

/// The stationary distribution of one closed class.
#[derive(Clone, Debug)]
pub struct Distribution {
    pub(super) class: Closed,
    pub(super) outcome: Stationary,
    pub(super) recorder: Recorder,
    pub(super) chosen: Chosen,
    pub(super) limit: Option<Limit>,
    /// The parts of the ranks, if several share the solve.
    pub(super) parts: Option<Parts>,
}

impl Distribution {
    pub(super) fn new(
        class: Closed,
        outcome: Stationary,
        recorder: Recorder,
        prepared: &PreparedClass,
    ) -> Distribution {
        let (chosen, parts) = (prepared.chosen.clone(), prepared.parts.clone());
        Distribution { class, outcome, recorder, chosen, limit: None, parts }
    }

    /// Returns the states of the class, counted from 0, in increasing order.
    pub fn states(&self) -> &[u32] {
        &self.class.states
    }

    /// Returns the probability of each state, in the order of [`states`](Distribution::states).
    pub fn probabilities(&self) -> &[f64] {
        &self.outcome.probabilities
    }

    /// Returns whether the recomputed residual meets the tolerance.
    pub fn converged(&self) -> bool {
        self.outcome.reason.is_success()
    }

    /// Returns why the solve ended.
    pub fn reason(&self) -> StopReason {
        self.outcome.reason
    }

    /// Returns the number of iterations.
    pub fn iterations(&self) -> usize {
        self.outcome.iterations
    }

    /// Returns the recomputed residual, the l1 norm of pi P - pi.
    pub fn residual(&self) -> f64 {
        self.outcome.residual
    }

    /// Returns the seconds from the first iteration to the last.
    pub fn seconds(&self) -> f64 {
        self.outcome.seconds_solve
    }

    /// Returns the numerical outcome of the solve.
    pub fn outcome(&self) -> &Stationary {
        &self.outcome
    }

    /// Returns 2, the largest possible l1 distance of two distributions, and then a number for each
    /// iteration: with power iteration the l1 norm of P' x - x for x before that iteration, with the other
    /// methods the l1 norm of the change of x.
    pub fn residuals(&self) -> &[f64] {
        self.recorder.residuals()
    }

    /// Measures the least time of an iteration at the bandwidth of the machine.
    pub(super) fn measure(&mut self, device: &DeviceHandle, cancel: Option<&AtomicBool>) {
        self.limit = limit::measure_on(device, &self.outcome, cancel);
    }
}
