//! Whether a run is believed, and what its end means for the solve.

use super::{Column, Solve};
use crate::device::{Device, SlotState, Work};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::solve::answer::Answer;
use crate::solve::recurrence::{Operators, Recurrence};
use crate::solve::run::{Run, Stop};
use crate::stop::{Progress, StopCode, StopReason};

/// A run must bring the true residual below this part of what it was, or it is the last.
const GAIN: f64 = 0.5;
/// A true residual this many times the recursive one, and the one before the run, is all rounding.
const LOST: f64 = 10.0;
/// The normal residual below which a least-squares solution is believed.
const NORMAL: f64 = 1e-6;

impl<A: Answer<D, T>, M: Recurrence, D: Device, T: Scalar> Solve<'_, A, M, D, T> {
    /// Finds the reason for which each column has ended, with its evidence, and marks all columns as done.
    pub(super) fn explain(
        &mut self,
        run: &mut Run<'_, '_>,
        operators: &Operators<D, T>,
        work: &mut Work<'_, D, T>,
        state: &mut SlotState,
    ) -> Result<()> {
        for done in &mut state.done {
            if StopCode::from_device(*done) == StopCode::Running {
                *done = StopCode::Limit as u32;
            }
        }
        for place in 0..self.columns.len() {
            let column = &self.columns[place];
            let Some(stop) = run.tracks[place].stop.filter(|_| column.end.is_none() && !column.idle) else {
                continue;
            };
            let now = run.tracks[place].now;
            let reason = match stop {
                Stop::Rule(reason) => reason,
                Stop::Code(StopCode::Converged) => StopReason::Converged,
                Stop::Code(StopCode::Diverged) => {
                    let growth = now.residual / now.norms.initial;
                    StopReason::Diverged { iteration: now.iteration, growth }
                }
                Stop::Code(code) => M::reason(operators, work, code, state, place, now.run_began)?,
            };
            let preconditioned = operators.m.is_some();
            let reason = self.locate(place, reason, work, preconditioned)?;
            self.columns[place].reason = self.underflown(place, reason, work)?;
        }
        Ok(())
    }

    /// Where NaN or infinity stands, if that is why the run ended.
    fn locate(
        &mut self,
        column: usize,
        reason: StopReason,
        work: &Work<'_, D, T>,
        preconditioned: bool,
    ) -> Result<StopReason> {
        let StopReason::NotFinite { iteration, .. } = reason else { return Ok(reason) };
        for &(vector, name) in M::FACTS.suspects[usize::from(preconditioned)] {
            if let Some(row) = self.answer.first_not_finite(work, name, column)? {
                return Ok(StopReason::NotFinite { iteration, vector, row: Some(row) });
            }
        }
        Ok(reason)
    }

    /// A curvature that is zero because its products fell below the range of numbers is not blamed on the matrix; other
    /// evidence is told in the units of the system.
    fn underflown(&mut self, column: usize, reason: StopReason, work: &Work<'_, D, T>) -> Result<StopReason> {
        let scale = self.answer.scale(column);
        let evidence = |product: f64| {
            let product_of_system = product * scale * scale;
            if product_of_system.is_normal() { product_of_system } else { product }
        };
        Ok(match reason {
            StopReason::IndefiniteMatrix { iteration, curvature } => {
                if !curvature.is_normal()
                    && let Some(direction) = M::FACTS.direction
                    && self.answer.has_underflown(work, direction, column)?
                {
                    return Ok(StopReason::Underflow { iteration });
                }
                StopReason::IndefiniteMatrix { iteration, curvature: evidence(curvature) }
            }
            StopReason::IndefinitePreconditioner { iteration, product } => {
                StopReason::IndefinitePreconditioner { iteration, product: evidence(product) }
            }
            other => other,
        })
    }

    /// Judges what a run has found for a column; whether the column starts again.
    pub(super) fn judge_column(&mut self, run: &Run<'_, '_>, place: usize) -> bool {
        if self.columns[place].end.is_some() {
            return false;
        }
        let now = &run.tracks[place].now;
        let before = self.columns[place].truth.residual;
        let (reason, better) = self.collect(place, now);
        let reason = self.measured(place, reason);
        let column = &mut self.columns[place];
        let gained = better && (column.restarts == 0 || column.truth.residual <= GAIN * before);
        let restart = (gained || column.idle) && column.may_restart(&reason);
        let against = if restart { run.rule.check(&column.next_run(now)) } else { None };
        if restart && against.is_none() {
            column.restarts += 1;
            return true;
        }
        column.end = Some(column.believe(reason, against, now.residual));
        false
    }

    /// Brings home what a run has found: the reason as its numbers let it stand, and whether they are better than what
    /// was there.
    fn collect(&mut self, place: usize, now: &Progress) -> (StopReason, bool) {
        let norm_a = self.norm_of_a(place);
        let column = &mut self.columns[place];
        if column.idle {
            return (StopReason::Converged, false);
        }
        let (aim, reason) = (column.aim(norm_a), column.reason);
        let truth = self.answer.propose(place, self.sigma, &aim);
        if !truth.is_finite() {
            // A vector of the method that was not finite before is the better evidence.
            if matches!(reason, StopReason::NotFinite { .. }) {
                return (reason, false);
            }
            let found = self.answer.out_of_range();
            let (vector, row) = found.map_or(("", None), |(vector, row)| (vector, Some(row)));
            return (StopReason::NotFinite { iteration: now.iteration, vector, row }, false);
        }
        // Residuals of a first run may end above the start, but not by rounding alone.
        let (first_run, before) = (column.restarts == 0, column.truth.residual);
        let lost = truth > LOST * now.residual.max(before);
        let better = truth < before || (first_run && !lost);
        if better {
            column.recursive = now.residual;
            column.truth = self.answer.accept(place, &aim);
        }
        (reason, better)
    }

    /// The largest eigenvalue of A seen, where measuring a residual takes it.
    pub(super) fn norm_of_a(&mut self, place: usize) -> f64 {
        if !self.answer.needs_norm() {
            return 0.0;
        }
        self.largest_eigenvalue(place).unwrap_or(0.0)
    }

    /// The magnitude of the largest eigenvalue of A that the first run has seen; none with a preconditioner.
    fn largest_eigenvalue(&mut self, place: usize) -> Option<f64> {
        let Column { coefficients, projection, .. } = &mut self.columns[place];
        if coefficients.is_empty() || !self.tells_of_a {
            return None;
        }
        M::FACTS.coefficients.project(coefficients, projection);
        projection.extremes().map(|s| s.smallest.abs().max(s.largest.abs()) / self.sigma)
    }

    /// A reason of least squares with its numbers.
    fn measured(&mut self, place: usize, reason: StopReason) -> StopReason {
        match reason {
            StopReason::LeastSquares { .. } => {
                let norm_a = if self.answer.needs_norm() { self.largest_eigenvalue(place) } else { None };
                let normal = self.answer.normal_residual(place, norm_a);
                StopReason::LeastSquares { residual: self.columns[place].truth.residual, normal }
            }
            other => other,
        }
    }

    /// What the first runs have seen of the spectrum, and how far answers that converged may be from the solution.
    pub(super) fn conclude(
        &mut self,
        run: &mut Run<'_, '_>,
        operators: &Operators<D, T>,
        work: &mut Work<'_, D, T>,
    ) {
        for place in 0..self.columns.len() {
            if run.tracks[place].now.iteration == 0 && self.columns[place].began_with == 0.0 {
                // It has ended before its first run.
                continue;
            }
            let column = &mut self.columns[place];
            M::FACTS.coefficients.project(&column.coefficients, &mut column.projection);
            column.spectrum = column.projection.extremes().map(|s| s.of_multiple(self.sigma));
            if column.end != Some(StopReason::Converged) {
                continue;
            }
            run.phase("estimating the error");
            let positive = column.spectrum.map(|s| s.smallest).filter(|smallest| *smallest > 0.0);
            let estimate = positive.map_or(Ok(None), |smallest| {
                let m = operators.m.as_ref().map(|m| (m, M::FACTS.spare));
                self.answer.error_estimate(place, m, work, smallest)
            });
            // The answer is worth more than an estimate of its error.
            column.error_estimate = estimate.unwrap_or_else(|e| {
                log::warn!("the error of x could not be estimated: {e}");
                None
            });
        }
    }
}

impl Column {
    /// Whether starting again from the true residual may bring the solve to its goal.
    fn may_restart(&self, reason: &StopReason) -> bool {
        let misled = matches!(
            reason,
            StopReason::Converged
                | StopReason::Stagnated { .. }
                | StopReason::LeastSquares { .. }
                | StopReason::Breakdown { .. }
                | StopReason::Underflow { .. }
        );
        misled && !self.meets()
    }

    /// What rules would see of another run.
    fn next_run(&self, now: &Progress) -> Progress {
        let iteration = now.iteration;
        Progress { residual: self.truth.at_most, improved_at: iteration, run_began: iteration, ..*now }
    }

    /// The reason, corrected by the residual of x. An x that meets the goal has converged, whatever rounding made a run
    /// end. Otherwise a rule that forbade another run is the reason, unless x is a least-squares solution. `last` is the
    /// recursive residual at the end of the last run.
    fn believe(&self, reason: StopReason, against: Option<StopReason>, last: f64) -> StopReason {
        if self.meets() {
            return StopReason::Converged;
        }
        match reason {
            StopReason::LeastSquares { normal, .. } if normal <= NORMAL => reason,
            StopReason::LeastSquares { residual, normal } if self.recursive > self.goal => {
                against.unwrap_or(StopReason::NearlySingular { residual, normal })
            }
            StopReason::Converged | StopReason::LeastSquares { .. } => {
                against.unwrap_or_else(|| self.gap(last))
            }
            other => against.unwrap_or(other),
        }
    }

    /// Why an x that the recursion calls converged is not.
    fn gap(&self, last: f64) -> StopReason {
        let (residual, at_most) = (self.truth.residual, self.truth.at_most);
        if residual <= self.goal {
            return StopReason::Rounding { residual, at_most };
        }
        // Where the last run made nothing better, x is that of a run before it, but the last one was said to converge.
        let recursive = if self.recursive <= self.goal { self.recursive } else { last };
        StopReason::ResidualGap { recursive, recomputed: residual }
    }
}
