//! New values for the matrix of a prepared solve.

use super::Prepared;
use crate::engine::answer::MatrixFacts;
use crate::engine::matrix::Matrix;
use crate::engine::range::check_values;
use crate::engine::seat::Seat;
use crate::engine::settings::Input;
use crate::engine::spread;
use crate::engine::team::{Seats, turn};
use crate::engine::watch::Phases;
use crate::error::{Error, Result};
use std::sync::Arc;
use std::time::Instant;

impl Prepared {
    /// Replaces the values of the matrix; the sparsity pattern must be the same. Device, backend and block
    /// sizes stay as chosen; the arrays of matrix and preconditioner are rebuilt.
    pub fn update(&mut self, matrix: &Matrix) -> Result<()> {
        let Input::Stored(before) = &self.settings.matrix else {
            let reason = match self.settings.matrix {
                Input::OfRank(_) => "the prepared matrix is distributed over ranks; prepare another solve",
                _ => "the prepared matrix is given only by its product; change what the product computes",
            };
            return Err(Error::setting("matrix", matrix.name(), reason));
        };
        let (old, new) = (before.csr.pattern(), matrix.csr.pattern());
        if !Arc::ptr_eq(old, new) && old != new {
            let reason = "its pattern is not that of the prepared matrix; prepare another solve";
            return Err(Error::setting("matrix", matrix.name(), reason));
        }
        if matrix.coordinates().is_some() && matrix.coordinates() != before.coordinates() {
            let reason = "its coordinates are not those of the prepared matrix; prepare another solve";
            return Err(Error::setting("matrix", matrix.name(), reason));
        }
        let (method, began) = (self.facts.method, Instant::now());
        let note = matrix.require_for(method, self.settings.assume_symmetric, &self.recipe.precond)?;
        check_values(self.facts.precision, &matrix.csr)?;
        // Chosen again, for the new values, if another solve has several columns.
        (self.several, self.columns, self.null_space) = (None, 1, None);
        self.label_checkpoints(1);
        let before = std::mem::replace(&mut self.settings.matrix, Input::Stored(matrix.clone()));
        let rebuilt = match &mut self.seats {
            Seats::One(device, seat) => {
                self.is_stale = true;
                seat.rebuild(device, matrix)
            }
            // A thread that must not wait for several devices is refused before anything is freed.
            Seats::Several(team) => turn().and_then(|turn| {
                self.is_stale = true;
                // The old operators are freed first: memory need not hold both.
                team.clear();
                let (ordered, phases) = (&self.recipe.ordered, Phases::default());
                *team = spread::build(&turn, team.devices(), &self.settings, ordered, phases)?;
                Ok(())
            }),
        };
        if let Err(error) = rebuilt {
            self.settings.matrix = before;
            return Err(error);
        }
        self.is_stale = false;
        let levels = self.seats.states().first().and_then(Seat::levels);
        let facts = Arc::make_mut(&mut self.facts);
        facts.levels = levels;
        (facts.matrix, facts.note) = (MatrixFacts::of(&self.settings.matrix), note);
        facts.labels.common.seconds_setup = began.elapsed().as_secs_f64();
        Ok(())
    }
}
