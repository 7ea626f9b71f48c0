//! The state of one column of a solve.

use super::begin::Common;
use super::{FLOOR, Track};
use crate::solve::answer::{Aim, Truth};
use crate::solve::run::{Run, Stop};
use crate::solve::{Effort, Outcome};
use crate::spectrum::{MOST_COEFFICIENTS, Spectrum, Tridiagonal};
use crate::stop::{Norms, Progress, StopReason, StoppingRule};
use std::time::Duration;

/// The state of a column, in addition to the [`Track`] of the loop. Its lists are reused from
/// one solve to the next.
pub(super) struct Column {
    /// The reason for the permanent end of the column.
    pub end: Option<StopReason>,
    /// The reason for which its last run has ended, once the run has been judged.
    pub reason: StopReason,
    /// Whether the column waits until the other columns start again: it had ended when the solve was saved.
    pub idle: bool,
    norm_b: f64,
    pub truth: Truth,
    /// The recursive residual at the end of the run that produced x, relative to b.
    pub recursive: f64,
    /// The residual to reach, relative to b, and the one that the rules specify.
    pub goal: f64,
    rule_goal: Option<f64>,
    /// The square of the residual norm on the device at the beginning of the run.
    pub initial_rr: f64,
    /// The norm on the device of a residual as large as b.
    pub unit: f64,
    /// The independent columns of the first run's block, if the method has a block.
    pub block_rank: Option<usize>,
    /// Number of runs before this one.
    pub restarts: usize,
    pub energy: f64,
    /// The value of `energy` at the last progress.
    pub energy_mark: f64,
    /// The coefficients of the first run, and the projection that they define.
    pub coefficients: Vec<(f64, f64)>,
    most_coefficients: usize,
    pub projection: Tridiagonal,
    /// Iterations done by earlier processes.
    pub earlier_iterations: usize,
    pub spectrum: Option<Spectrum>,
    pub error_estimate: Option<f64>,
}

impl Default for Column {
    fn default() -> Column {
        Column {
            end: None,
            reason: StopReason::ZeroRightHandSide,
            idle: false,
            norm_b: 0.0,
            truth: Truth { residual: 0.0, at_most: 0.0, backward_error: 0.0 },
            recursive: 0.0,
            goal: 0.0,
            rule_goal: None,
            initial_rr: 0.0,
            unit: 1.0,
            block_rank: None,
            restarts: 0,
            energy: 0.0,
            energy_mark: 0.0,
            coefficients: Vec::new(),
            most_coefficients: 0,
            projection: Tridiagonal::default(),
            earlier_iterations: 0,
            spectrum: None,
            error_estimate: None,
        }
    }
}

impl Column {
    /// Resets the column but keeps its allocated memory; keeps coefficients of at most this many iterations.
    pub(crate) fn clear(&mut self, iterations: Option<usize>) {
        let most = iterations.unwrap_or(MOST_COEFFICIENTS).min(MOST_COEFFICIENTS);
        let (mut coefficients, projection) =
            (std::mem::take(&mut self.coefficients), std::mem::take(&mut self.projection));
        coefficients.clear();
        *self = Column { coefficients, projection, most_coefficients: most, ..Column::default() };
    }

    /// Sets the norm of the right-hand side, before the residual of the start is measured.
    pub(crate) fn begin(&mut self, rule: &StoppingRule, norm_b: f64) {
        self.coefficients.reserve(self.most_coefficients);
        self.projection.reserve(self.most_coefficients);
        // A tolerance relative to the residual of the start is below that residual, so the
        // start cannot meet it.
        let unknown = Norms { b: norm_b, initial: 0.0 };
        (self.norm_b, self.goal) = (norm_b, rule.residual_tolerance(&unknown).unwrap_or(0.0));
    }

    /// Sets the measured residual of the start.
    pub(crate) fn set_start(&mut self, run: &mut Run<'_, '_>, index: usize, truth: Truth) {
        let initial = truth.residual;
        let norms = Norms { b: self.norm_b, initial };
        self.rule_goal = run.rule.residual_tolerance(&norms);
        self.goal = self.rule_goal.unwrap_or(FLOOR * f64::EPSILON);
        (self.truth, self.recursive) = (truth, initial);
        run.tracks[index].begin(at_start(norms, initial), self.rule_goal);
    }

    /// Ends a column with a right-hand side of zeros, for which x = 0.
    pub(crate) fn end_as_zero(&mut self, run: &mut Run<'_, '_>, index: usize) {
        run.tracks[index].begin(at_start(Norms { b: 1.0, initial: 1.0 }, 0.0), None);
        self.end_before_iterating(run, index, StopReason::ZeroRightHandSide);
    }

    /// Ends a column if the start meets the goal.
    pub(crate) fn end_at_start(&mut self, run: &mut Run<'_, '_>, index: usize) {
        self.end_before_iterating(run, index, StopReason::Converged);
    }

    /// Ends a column that cannot be solved.
    pub(crate) fn end_unsolved(&mut self, run: &mut Run<'_, '_>, index: usize, reason: StopReason) {
        run.tracks[index].begin(at_start(Norms { b: 1.0, initial: 1.0 }, 1.0), None);
        (self.truth, self.recursive) = (Truth::UNKNOWN, f64::NAN);
        self.end_before_iterating(run, index, reason);
    }

    fn end_before_iterating(&mut self, run: &mut Run<'_, '_>, index: usize, reason: StopReason) {
        self.end = Some(reason);
        run.tracks[index].stop = Some(Stop::Rule(reason));
        run.notify_start(index);
    }

    /// Returns the goal and the norms for the measurement of a residual.
    pub(crate) fn aim(&self, norm_a: f64) -> Aim {
        Aim { norm_b: self.norm_b, goal: self.goal, norm_a }
    }

    /// Returns whether x certainly meets the goal, rounding included.
    pub(crate) fn meets_goal(&self) -> bool {
        self.truth.at_most <= self.goal
    }

    /// Stores the coefficients of an iteration of the first run.
    pub(crate) fn keep_coefficients(&mut self, coefficients: (f64, f64)) {
        if self.restarts == 0 && self.coefficients.len() < self.most_coefficients {
            self.coefficients.push(coefficients);
        }
    }

    /// Returns the outcome with the verdict.
    pub(crate) fn outcome(&self, common: &Common, track: &Track) -> Outcome {
        let now = &track.now;
        // Iterations before a checkpoint may have run on a different device.
        let (earlier, here) = (now.elapsed.min(common.earlier), now.elapsed.saturating_sub(common.earlier));
        let (seconds, iterations) = match now.iteration - self.earlier_iterations {
            0 => (now.elapsed, now.iteration),
            iterations => (here, iterations),
        };
        let effort = common.effort.after(iterations, seconds.as_secs_f64());
        let effort = Effort { iterations: now.iteration, seconds_solve: here.as_secs_f64(), ..effort };
        Outcome {
            reason: self.end.unwrap_or(StopReason::Interrupted),
            effort,
            restarts: self.restarts,
            block_rank: self.block_rank,
            residual: self.recursive,
            residual_true: self.truth.residual,
            residual_at_most: self.truth.at_most,
            backward_error: self.truth.backward_error,
            error_estimate: self.error_estimate,
            goal: self.rule_goal,
            spectrum: self.spectrum,
            seconds_earlier: earlier.as_secs_f64(),
            iterations_earlier: self.earlier_iterations,
            checkpoint_fault: common.checkpoint_fault.clone(),
        }
    }
}

fn at_start(norms: Norms, residual: f64) -> Progress {
    Progress { iteration: 0, residual, norms, run_began: 0, improved_at: 0, elapsed: Duration::ZERO }
}
