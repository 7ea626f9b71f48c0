//! The progress of several columns as one line: in each iteration the largest residual of the
//! columns that still run.

use super::Live;
use crate::observe::{Batch, Observer};

/// Combines the batches of all columns for [`Live`].
pub(crate) struct Largest {
    live: Live,
    /// The batches of the current round, one of each running column, combined.
    residuals: Vec<f64>,
    first: usize,
    seconds: (f64, f64),
    tolerance: Option<f64>,
    /// The last column of the round so far.
    column: Option<usize>,
}

impl Largest {
    /// Shows the progress of several columns with `live`.
    pub(crate) fn new(live: Live) -> Largest {
        Largest { live, residuals: Vec::new(), first: 0, seconds: (0.0, 0.0), tolerance: None, column: None }
    }

    /// Passes the round to the line.
    fn end_round(&mut self) {
        if self.column.take().is_some() {
            let Largest { first, seconds, tolerance, .. } = *self;
            let residuals = &self.residuals[..];
            self.live.batch(&Batch { column: 0, first, residuals, seconds, tolerance });
        }
        self.residuals.clear();
    }
}

impl Observer for Largest {
    fn batch(&mut self, batch: &Batch<'_>) {
        // A column comes once in a round, and columns come in their order.
        if self.column.is_some_and(|last| batch.column <= last) {
            self.end_round();
        }
        if self.column.is_none() {
            (self.first, self.seconds, self.tolerance) = (batch.first, batch.seconds, batch.tolerance);
        }
        self.column = Some(batch.column);
        for (index, &residual) in batch.residuals.iter().enumerate() {
            match self.residuals.get_mut(index) {
                Some(largest) => *largest = largest.max(residual),
                None => self.residuals.push(residual),
            }
        }
    }

    fn phase(&mut self, what: &'static str) {
        self.end_round();
        self.live.phase(what);
    }
}

impl Drop for Largest {
    fn drop(&mut self) {
        self.end_round();
    }
}
