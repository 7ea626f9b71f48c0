//! Decides whether the result of a run is accepted, and what the end of a run means for the solve.

use super::{Column, Solve};
use crate::device::{Device, SlotState, Work};
use crate::error::Result;
use crate::observe::Phase;
use crate::scalar::Scalar;
use crate::solve::agree;
use crate::solve::answer::{Aim, Truth};
use crate::solve::recurrence::{Operators, Recurrence};
use crate::solve::run::{Run, Stop};
use crate::spectrum::Spectrum;
use crate::stop::{Progress, StopCode, StopReason};

/// A run must reduce the true residual below this fraction of the previous one; otherwise it is the last run.
const GAIN: f64 = 0.5;
/// A true residual larger than this multiple of both the recursive residual and the residual before the run
/// consists of rounding alone.
const LOST: f64 = 10.0;
/// The normal residual below which a least-squares solution is accepted.
const NORMAL: f64 = 1e-6;

impl<M: Recurrence, D: Device, T: Scalar> Solve<'_, M, D, T> {
    /// Determines the reason for which each column has ended, with its evidence, and marks all
    /// columns as done.
    pub(super) fn find_reasons(
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
        for index in 0..self.columns.len() {
            let column = &self.columns[index];
            let Some(stop) = run.tracks[index].stop.filter(|_| column.end.is_none() && !column.idle) else {
                continue;
            };
            let now = run.tracks[index].now;
            let reason = match stop {
                Stop::Rule(reason) => reason,
                Stop::Code(StopCode::Converged) => StopReason::Converged,
                Stop::Code(StopCode::Diverged) => {
                    let growth = now.residual / now.norms.initial;
                    StopReason::Diverged { iteration: now.iteration, growth }
                }
                // NaN of an operator that has ended the solve is no evidence.
                Stop::Code(StopCode::NotFinite)
                    if agree::interrupted(operators.a.device(), run.rule.product_has_ended()) =>
                {
                    StopReason::Interrupted
                }
                Stop::Code(code) => M::reason(operators, work, code, state, index, now.run_began)?,
            };
            let preconditioned = operators.m.is_some();
            let reason = self.locate(index, reason, work, preconditioned)?;
            self.columns[index].reason = self.check_underflow(index, reason, work)?;
        }
        Ok(())
    }

    /// Finds the vector and the row of NaN or infinity, if that is the reason for the end of the run.
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

    /// Reports underflow instead of an indefinite matrix if a curvature is zero because its products fell
    /// below the range of numbers. Converts other evidence to the scale of the system.
    fn check_underflow(
        &mut self,
        column: usize,
        reason: StopReason,
        work: &Work<'_, D, T>,
    ) -> Result<StopReason> {
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

    /// Judges the result of a run for a column. Returns whether the column starts again.
    pub(super) fn judge_column(&mut self, run: &Run<'_, '_>, index: usize, device: &D) -> bool {
        if self.columns[index].end.is_some() {
            return false;
        }
        let now = &run.tracks[index].now;
        let before = self.columns[index].truth.residual;
        let ended = || agree::interrupted(device, run.rule.product_has_ended());
        let (reason, better) = self.accept_result(index, now, &ended);
        let reason = match self.with_measurements(index, reason) {
            StopReason::LeastSquares { normal, .. } if normal.is_nan() && ended() => StopReason::Interrupted,
            reason => reason,
        };
        let column = &mut self.columns[index];
        let gained = better && (column.restarts == 0 || column.truth.residual <= GAIN * before);
        let restart = (gained || column.idle) && column.may_restart(&reason);
        let next = || agree::reason(device, run.rule.check(&column.next_run(now)));
        let forbidden_by = if restart { next() } else { None };
        if restart && forbidden_by.is_none() {
            column.restarts += 1;
            return true;
        }
        column.end = Some(column.final_reason(reason, forbidden_by, now.residual));
        false
    }

    /// Measures the result of a run, and accepts it if it is better than the previous x. Returns the reason,
    /// corrected by the measurement, and whether the result is better. `ended` returns whether a product of
    /// the caller has ended the solve.
    fn accept_result(
        &mut self,
        index: usize,
        now: &Progress,
        ended: &dyn Fn() -> bool,
    ) -> (StopReason, bool) {
        let norm_a = self.norm_of_a(index);
        let column = &mut self.columns[index];
        if column.idle {
            return (StopReason::Converged, false);
        }
        let (aim, reason) = (column.aim(norm_a), column.reason);
        let truth = self.answer.propose(index, self.sigma, &aim);
        if !truth.is_finite() {
            let found = self.answer.out_of_range();
            if ended() && found.is_some_and(|(vector, _)| vector != "x") {
                self.accept_unmeasured(index, now.residual, &aim);
                return (StopReason::Interrupted, false);
            }
            // If a vector of the method became non-finite earlier, it is the better evidence.
            if matches!(reason, StopReason::NotFinite { .. }) {
                return (reason, false);
            }
            let (vector, row) = found.map_or(("", None), |(vector, row)| (vector, Some(row)));
            return (StopReason::NotFinite { iteration: now.iteration, vector, row }, false);
        }
        // Residuals of a first run may end above the start, but not because of rounding alone.
        let (first_run, before) = (column.restarts == 0, column.truth.residual);
        let lost = truth > LOST * now.residual.max(before);
        let better = truth < before || (first_run && !lost);
        if better {
            column.recursive = now.residual;
            column.truth = self.answer.accept(index, &aim);
        }
        (reason, better)
    }

    /// Accepts an x whose residual is not known, because the caller's product has ended the solve: in the
    /// first run, and later if the recursive residual is below the residual of the previous x.
    fn accept_unmeasured(&mut self, index: usize, residual: f64, aim: &Aim) {
        let column = &mut self.columns[index];
        if column.restarts == 0 || residual < column.truth.residual {
            self.answer.accept(index, aim);
            (column.truth, column.recursive) = (Truth::UNKNOWN, residual);
        }
    }

    /// Returns the largest eigenvalue of A found, if measuring a residual requires it.
    pub(super) fn norm_of_a(&mut self, index: usize) -> f64 {
        if !self.answer.needs_norm() {
            return 0.0;
        }
        self.largest_eigenvalue(index).unwrap_or(0.0)
    }

    /// Returns the magnitude of the largest eigenvalue of A found in the first run; `None`
    /// with a preconditioner.
    fn largest_eigenvalue(&mut self, index: usize) -> Option<f64> {
        let spectrum = if self.coefficients_of_a { self.spectrum(index) } else { None };
        spectrum.map(|s| s.smallest.abs().max(s.largest.abs()))
    }

    /// Returns the spectrum of M A that the first run has found, if the coefficients of the method show it.
    fn spectrum(&mut self, index: usize) -> Option<Spectrum> {
        let Column { coefficients, projection, .. } = &mut self.columns[index];
        M::FACTS.coefficients?.project(coefficients, projection);
        projection.extremes().map(|s| s.of_multiple(self.sigma))
    }

    /// Adds the measured values to a least-squares reason. The method needs a symmetric matrix: A r is A'r.
    fn with_measurements(&mut self, index: usize, reason: StopReason) -> StopReason {
        match reason {
            StopReason::LeastSquares { .. } => {
                let norm_a = if self.answer.needs_norm() { self.largest_eigenvalue(index) } else { None };
                let normal = self.answer.normal_residual(index, norm_a);
                StopReason::LeastSquares { residual: self.columns[index].truth.residual, normal }
            }
            other => other,
        }
    }

    /// Computes the spectrum estimates of the first runs, and estimates the errors of answers that converged.
    pub(super) fn conclude(
        &mut self,
        run: &mut Run<'_, '_>,
        operators: &Operators<D, T>,
        work: &mut Work<'_, D, T>,
    ) {
        for index in 0..self.columns.len() {
            if run.tracks[index].now.iteration == 0 && self.columns[index].initial_rr == 0.0 {
                // The column ended before its first run.
                continue;
            }
            let spectrum = self.spectrum(index);
            let column = &mut self.columns[index];
            column.spectrum = spectrum;
            if column.end != Some(StopReason::Converged) {
                continue;
            }
            let _span = run.phase(Phase::Verify, "estimating the error");
            let positive = spectrum.map(|s| s.smallest).filter(|smallest| *smallest > 0.0);
            let estimate = positive.map_or(Ok(None), |smallest| {
                let m = operators.m.as_ref().map(|m| (m, M::FACTS.spare));
                self.answer.error_estimate(index, m, work, smallest)
            });
            // If the estimate fails, the answer is still returned.
            column.error_estimate = estimate.unwrap_or_else(|e| {
                log::warn!("the error of x could not be estimated: {e}");
                None
            });
        }
    }
}

impl Column {
    /// Returns whether a restart from the true residual may bring the solve to its goal.
    fn may_restart(&self, reason: &StopReason) -> bool {
        let misled = matches!(
            reason,
            StopReason::Converged
                | StopReason::Stagnated { .. }
                | StopReason::LeastSquares { .. }
                | StopReason::Breakdown { .. }
                | StopReason::Underflow { .. }
        );
        misled && !self.meets_goal()
    }

    /// Returns the progress by which the rules judge another run.
    fn next_run(&self, now: &Progress) -> Progress {
        let iteration = now.iteration;
        Progress { residual: self.truth.at_most, improved_at: iteration, run_began: iteration, ..*now }
    }

    /// Returns the reason, corrected by the residual of x. An x that meets the goal has converged, regardless
    /// of how rounding ended a run. Otherwise, if a rule forbade another run, that rule is the reason, unless
    /// x is a least-squares solution. `last` is the recursive residual at the end of the last run.
    fn final_reason(&self, reason: StopReason, forbidden_by: Option<StopReason>, last: f64) -> StopReason {
        if self.meets_goal() {
            return StopReason::Converged;
        }
        match reason {
            StopReason::LeastSquares { normal, .. } if normal <= NORMAL => reason,
            StopReason::LeastSquares { residual, normal } if self.recursive > self.goal => {
                forbidden_by.unwrap_or(StopReason::NearlySingular { residual, normal })
            }
            StopReason::Converged | StopReason::LeastSquares { .. } => {
                forbidden_by.unwrap_or_else(|| self.gap_reason(last))
            }
            other => forbidden_by.unwrap_or(other),
        }
    }

    /// Returns the reason why x has not converged although the recursive residual met the tolerance.
    fn gap_reason(&self, last: f64) -> StopReason {
        let (residual, at_most) = (self.truth.residual, self.truth.at_most);
        if residual <= self.goal {
            return StopReason::Rounding { residual, at_most };
        }
        // If the last run did not improve x, x comes from an earlier run, but the reported convergence
        // comes from the last run.
        let recursive = if self.recursive <= self.goal { self.recursive } else { last };
        StopReason::ResidualGap { recursive, recomputed: residual }
    }
}
