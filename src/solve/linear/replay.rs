//! The iterations of a method: a recorded step, or iterations in which the host takes part.

use super::narrow::Narrowing;
use super::steps::Steps;
use crate::device::{Device, SlotState, Work};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::solve::agree;
use crate::solve::recurrence::{Operators, Recurrence};
use crate::solve::run::{Iterations, Stop};

/// A recorded step that is replayed, or an iteration in which the host takes part.
pub(super) struct Replay<'a, D: Device, T: Scalar> {
    pub recorded: &'a mut Steps<D, T>,
    /// Number of iterations in a step.
    stride: usize,
    /// The iteration of a method in which the host takes part; the step is then not recorded.
    with_host: Option<WithHost<D, T>>,
    narrowing: Narrowing<D, T>,
}

/// An iteration in which the host takes part.
type WithHost<D, T> = fn(&Operators<D, T>, &mut Work<'_, D, T>, &mut SlotState) -> Result<()>;

impl<'a, D: Device, T: Scalar> Replay<'a, D, T> {
    /// Makes the iterations of a method.
    pub(crate) fn of<M: Recurrence>(recorded: &'a mut Steps<D, T>, starts: Vec<usize>) -> Replay<'a, D, T> {
        let with_host = M::FACTS.dense.as_ref().map(|_| M::iteration_with_host::<D, T> as WithHost<D, T>);
        let narrowing = Narrowing::of::<M>(starts);
        Replay { recorded, stride: M::FACTS.stride, with_host, narrowing }
    }

    /// Copies the columns that iterate in vectors of their own back to the others; they
    /// continue in their own.
    pub(crate) fn copy_back(&mut self, state: &SlotState) -> Result<()> {
        self.narrowing.copy_back(self.recorded, state)
    }

    /// Begins another run, in which the columns have these counts.
    pub(crate) fn begin_run(&mut self, starts: Vec<usize>) {
        self.narrowing.begin_run(starts);
    }

    /// Lets all columns iterate together again.
    pub(crate) fn widen(&mut self, state: &SlotState) -> Result<()> {
        self.narrowing.widen(self.recorded, state)
    }
}

impl<D: Device, T: Scalar> Iterations for Replay<'_, D, T> {
    fn prepare(&mut self, _: usize, state: &SlotState) -> Result<usize> {
        if self.with_host.is_some() {
            return Ok(1);
        }
        Ok(D::BATCH.min(self.narrowing.check(self.recorded, state)?))
    }

    fn stops_early(&self) -> bool {
        self.narrowing.stops_early().unwrap_or_else(|| self.recorded.stops_early())
    }

    fn agree(&self, stop: Option<Stop>) -> Option<Stop> {
        agree::stop(self.recorded.workspace().device(), stop)
    }

    fn least(&self, iterations: usize) -> usize {
        self.recorded.workspace().device().least(iterations)
    }

    fn advance(&mut self, iterations: usize, state: &mut SlotState) -> Result<()> {
        if let Some(iteration) = self.with_host {
            let (mut work, operators) = self.recorded.open();
            return (0..iterations).try_for_each(|_| iteration(operators, &mut work, state));
        }
        let steps = iterations.div_ceil(self.stride);
        match self.narrowing.narrow() {
            Some(narrow) => narrow.advance(steps, state),
            None => {
                self.recorded.replay(steps)?;
                self.recorded.workspace().read(state)
            }
        }
    }

    fn write(&mut self, state: &SlotState) -> Result<()> {
        match self.narrowing.narrow() {
            Some(narrow) => narrow.write(state),
            None => self.recorded.open().0.write(state),
        }
    }
}
