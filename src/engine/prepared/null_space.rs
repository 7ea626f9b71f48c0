//! The null space of a prepared matrix.

use super::Prepared;
use crate::engine::settings::Input;
use crate::engine::singular::{KnownNullSpace, Singular, may_lack_a_solution};
use crate::observe::profile::{self, Phase};
use crate::solve::Outcome;
use std::sync::Arc;

impl Prepared {
    /// Returns the null space of the matrix, as far as known vectors span it. The first call looks for it.
    pub(super) fn null_space(&mut self) -> Option<Arc<KnownNullSpace>> {
        let Input::Stored(matrix) = &self.settings.matrix else { return None };
        let find = || {
            let _span = profile::begin(Phase::Analyse);
            KnownNullSpace::of(matrix, &self.recipe.precond).unwrap_or_else(|error| {
                log::warn!("the null space was not looked for: {error}");
                None
            })
        };
        self.null_space.get_or_insert_with(|| find().map(Arc::new)).clone()
    }

    /// Returns for each of `k` columns of `b`, if the matrix is singular, how much of it lies in the null
    /// space. Looks for a null space if a column may lack a solution, or if the preconditioner has near-null
    /// vectors.
    pub(super) fn singular(&mut self, b: &[f64], outcomes: &[Outcome]) -> Vec<Singular> {
        let lacking = outcomes.iter().any(|outcome| may_lack_a_solution(&outcome.reason));
        let projects = self.settings.projects;
        let known = match projects || lacking || self.recipe.precond.takes_near_null() {
            true => self.null_space(),
            false => None,
        };
        let Some(known) = known else { return Vec::new() };
        let shares = known.space.shares(b, outcomes.len());
        shares.into_iter().map(|share| known.told(share, projects)).collect()
    }
}
