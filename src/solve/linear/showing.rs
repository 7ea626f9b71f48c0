//! Shows x during a solve to observers that want it.
//!
//! Between two steps, x may lack the last update, which the next step performs in the same pass as its own work, or which a step
//! that converged left out. So the vectors of the recurrence are copied to the host, the update is performed as at the end of a
//! solve, and then they are restored with the same bits. This takes a few times as long as an iteration.

use super::Solve;
use super::saving::carried;
use crate::device::{Device, SlotState, Work};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::solve::answer::Answer;
use crate::solve::recurrence::{Operators, Recurrence};
use crate::solve::run::Run;

impl<A: Answer<D, T>, M: Recurrence, D: Device, T: Scalar> Solve<'_, A, M, D, T> {
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
        let n = self.answer.rows();
        let mut kept = Vec::new();
        for name in carried::<M, D, T>(operators) {
            let mut values = vec![T::default(); n];
            work.download(*name, &mut values)?;
            kept.push((*name, values));
        }
        M::finish(work, &mut state.clone(), &|_| run.tracks[0].now.run_began)?;
        self.answer.fetch(work, M::FACTS.answer)?;
        let (iteration, x) = (run.tracks[0].now.iteration, self.answer.preview(self.sigma));
        run.observers.iter_mut().filter(|o| o.wants_iterates()).for_each(|o| o.iterate(iteration, x));
        for (name, values) in kept {
            work.upload(name, &values)?;
        }
        work.write(state)
    }
}
