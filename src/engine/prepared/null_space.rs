//! The null space of a prepared matrix.

use super::Prepared;
use crate::engine::settings::Input;
use crate::engine::singular::{KnownNullSpace, Singular, may_lack_a_solution};
use crate::error::Result;
use crate::observe::profile::{self, Phase};
use crate::solve::Outcome;
use std::sync::Arc;

impl Prepared {
    /// Returns the null space of the matrix, as far as known vectors are in it. The first call looks for it.
    /// It is not looked for if the matrix may be unsymmetric: it is then not orthogonal to the range.
    pub(super) fn null_space(&mut self) -> Result<Option<Arc<KnownNullSpace>>> {
        let Input::Stored(matrix) = &self.settings.matrix else { return Ok(None) };
        if !self.settings.method.needs().symmetric {
            return Ok(None);
        }
        if self.null_space.is_none() {
            let _span = profile::begin(Phase::Analyse);
            self.null_space = Some(KnownNullSpace::of(matrix, &self.recipe.precond)?.map(Arc::new));
        }
        Ok(self.null_space.clone().flatten())
    }

    /// Returns for each column of `b`, if the matrix is singular, how much lies in the null space. Looks for
    /// a null space if a column may lack a solution, or if the preconditioner has near-null vectors.
    pub(super) fn singular(&mut self, b: &[f64], outcomes: &[Outcome]) -> Vec<Singular> {
        let lacking = outcomes.iter().any(|outcome| may_lack_a_solution(&outcome.reason));
        let (projects, k) = (self.settings.projects, outcomes.len());
        if !projects && !lacking && !self.recipe.precond.takes_near_null() {
            return Vec::new();
        }
        let known = self.null_space().unwrap_or_else(|error| {
            log::warn!("the null space was not looked for: {error}");
            None
        });
        match known {
            Some(known) => {
                let share = known.space.shares(b, k).into_iter().fold(0.0, f64::max);
                vec![known.told(share, k, projects); k]
            }
            None if projects => vec![Singular::UNKNOWN; k],
            None => Vec::new(),
        }
    }
}
