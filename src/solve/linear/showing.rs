//! Shows x during a solve to observers that want it.
//!
//! Between two steps, x may lack the last update, which the next step performs in the same pass as its own
//! work, or which a step that converged left out. So the vectors that the update changes are copied to the
//! host, the update is performed as at the end of a solve, and then they are restored with the same bits.
//! Where nothing is missing, x is only copied.

use super::Solve;
use super::saving::carried;
use crate::device::{Device, SlotState, Work};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::solve::recurrence::{Operators, Recurrence};
use crate::solve::run::Run;
use crate::stop::StopCode;

impl<M: Recurrence, D: Device, T: Scalar> Solve<'_, M, D, T> {
    /// Passes x after the last iteration to the observers that want it, in a solve of one right-hand side.
    pub(super) fn show(
        &mut self,
        run: &mut Run<'_, '_>,
        operators: &Operators<D, T>,
        work: &mut Work<'_, D, T>,
        state: &SlotState,
    ) -> Result<()> {
        if self.columns.len() != 1 || !run.observers.iter().any(|o| o.wants_iterates()) {
            return Ok(());
        }
        let ended = StopCode::from_device(state.done[0]) != StopCode::Running;
        let changed = match ended {
            true => carried::<M, D, T>(operators),
            false => M::FACTS.unfinished[usize::from(operators.m.is_some())],
        };
        self.kept.resize_with(changed.len(), Vec::new);
        for (name, values) in changed.iter().zip(&mut self.kept) {
            values.resize(self.answer.rows(), T::default());
            work.download(*name, values)?;
        }
        if !changed.is_empty() {
            M::finish(work, &mut state.clone(), &|_| run.tracks[0].now.run_began)?;
        }
        self.answer.fetch(work, M::FACTS.answer)?;
        let (iteration, x) = (run.tracks[0].now.iteration, self.answer.preview(self.sigma));
        run.observers.iter_mut().filter(|o| o.wants_iterates()).for_each(|o| o.iterate(iteration, x));
        for (name, values) in changed.iter().zip(&self.kept) {
            work.upload(*name, values)?;
        }
        if changed.is_empty() { Ok(()) } else { work.write(state) }
    }
}
