//! The answer of a solve, and its report.

use super::advice::{self, Ended, Naming};
use super::device::DeviceHandle;
use super::limit;
use super::origin::Origin;
use super::report::{Found, reports};
use super::rhs::RightHandSide;
use super::seat::Labels;
use super::settings::Input;
use super::singular::Singular;
use crate::device::Ranks;
use crate::device::stream::Limit;
use crate::observe::report::{Common, Levels, Report};
use crate::observe::{History, Profile, Recorder, profile};
use crate::scalar::Precision;
use crate::solve::{Effort, Method, Outcome};
use crate::stop::StopReason;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The matrix of a solve, for the report of an answer.
#[derive(Clone, Debug)]
pub(super) struct MatrixFacts {
    origin: Arc<Origin>,
    rows: u64,
    nnz: u64,
    /// Whether the coordinates of the nodes are known.
    has_coordinates: bool,
}

impl MatrixFacts {
    pub(crate) fn of(matrix: &Input) -> MatrixFacts {
        let (origin, nnz) = match matrix {
            Input::Stored(matrix) => (Arc::clone(&matrix.origin), matrix.nnz() as u64),
            Input::OfRank(matrix) => (Arc::clone(&matrix.facts.origin), matrix.facts.nnz),
            Input::Applied(_) => {
                let note = "the residual is computed with the caller's product, whose rounding is estimated";
                let (name, notes) = (Some("a product of the caller".to_owned()), vec![note.to_owned()]);
                (Arc::new(Origin { name, notes, ..Origin::default() }), 0)
            }
        };
        let has_coordinates = matches!(matrix, Input::Stored(matrix) if matrix.coordinates().is_some());
        MatrixFacts { origin, rows: matrix.total_rows() as u64, nnz, has_coordinates }
    }
}

/// Facts that all answers of a prepared solve share.
#[derive(Clone, Debug)]
pub(super) struct AnswerFacts {
    pub method: Method,
    pub matrix: MatrixFacts,
    pub labels: Labels,
    /// The levels of the preconditioner, if it has any.
    pub levels: Option<Arc<Levels>>,
    pub on_cpu: bool,
    pub precision: Precision,
    /// Note on the symmetry of the matrix.
    pub note: Option<String>,
    /// The checkpoint file.
    pub checkpoint: Option<PathBuf>,
    /// Whether the memory traffic of an iteration is known.
    pub moves: bool,
}

/// The solution of a system, with the outcome and the history of the solve.
#[derive(Clone, Debug)]
pub struct Answer {
    x: Vec<f64>,
    outcome: Outcome,
    recorder: Recorder,
    facts: Arc<AnswerFacts>,
    description: String,
    start: Option<String>,
    /// The largest difference from the known solution, and the largest entry of the known solution.
    error: Option<(f64, f64)>,
    limit: Option<Limit>,
    profile: Option<Profile>,
    /// Whether the matrix is singular, as far as that was found out.
    singular: Option<Singular>,
}

/// The error of x relative to its largest entry above which the report of a converged answer has a caution.
const DOUBTFUL: f64 = 0.1;

fn max_abs(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::abs).fold(0.0, f64::max)
}

impl Answer {
    pub(super) fn new(
        x: Vec<f64>,
        outcome: Outcome,
        recorder: Recorder,
        facts: Arc<AnswerFacts>,
        b: &RightHandSide<'_>,
    ) -> Answer {
        let error = b
            .exact
            .map(|exact| (max_abs(x.iter().zip(exact).map(|(x, e)| x - e)), max_abs(exact.iter().copied())));
        let (description, start) = (b.description.to_owned(), b.start.map(str::to_owned));
        Answer {
            x,
            outcome,
            recorder,
            facts,
            description,
            start,
            error,
            limit: None,
            profile: profile::active(),
            singular: None,
        }
    }

    /// Adds what is known about the null space.
    pub(super) fn singular(self, singular: Option<Singular>) -> Answer {
        Answer { singular, ..self }
    }

    /// Combines the errors of the rows of all ranks.
    pub(super) fn combine_errors(&mut self, ranks: &Ranks) {
        let largest = |mine: f64| ranks.fold(mine, f64::max);
        self.error = self.error.map(|(error, size)| (largest(error), largest(size)));
    }

    /// Returns the solution vector; over ranks, the rows of this rank.
    pub fn x(&self) -> &[f64] {
        &self.x
    }

    /// Returns the solution vector, and drops the rest of the answer.
    pub fn into_x(self) -> Vec<f64> {
        self.x
    }

    /// Takes the solution vector out of the answer, whose `x` is empty from then on.
    pub fn take_x(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.x)
    }

    /// Returns whether the true residual b - A x, recomputed with the given matrix, meets the tolerance.
    pub fn converged(&self) -> bool {
        self.outcome.reason.is_success()
    }

    /// Returns why the solve ended.
    pub fn reason(&self) -> StopReason {
        self.outcome.reason
    }

    /// Returns the number of iterations.
    pub fn iterations(&self) -> usize {
        self.outcome.iterations
    }

    /// Returns the norm of the true residual b - A x, recomputed with the given matrix, over that of b.
    pub fn true_residual(&self) -> f64 {
        self.outcome.residual_true
    }

    /// Returns the seconds from the first iteration to the last, restarts included.
    pub fn seconds(&self) -> f64 {
        self.outcome.seconds_solve
    }

    /// Returns the numerical outcome of the solve.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Returns the recursive residual relative to the right-hand side, before the first iteration
    /// and after each iteration.
    pub fn residuals(&self) -> &[f64] {
        self.recorder.residuals()
    }

    /// Returns whether the memory traffic of an iteration is known, and is that of one device.
    pub(super) fn is_limited_by_one_device(&self) -> bool {
        self.facts.moves && self.facts.labels.common.parts.is_none()
    }

    /// Returns the mean factor by which an iteration of this run reduces the residual of the recurrence.
    pub(super) fn convergence_factor(&self) -> Option<f64> {
        let (first, last) = (self.residuals().first()?, self.residuals().last()?);
        let iterations = self.outcome.iterations - self.outcome.iterations_earlier;
        let factor = (last / first).powf(1.0 / iterations as f64);
        Some(factor).filter(|factor| iterations > 0 && factor.is_finite())
    }

    /// Returns the recorded residuals with their times.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns the common part of the report, with this effort. Its traffic is 0 if it is not known.
    pub(super) fn common(&self, effort: &Effort, limit: Option<Limit>) -> Common {
        let bytes_per_iteration = if self.facts.moves { effort.bytes_per_iteration } else { 0 };
        let effort = Effort { bytes_per_iteration, ..*effort };
        let (facts, profile) = (&self.facts, self.profile.as_ref());
        facts.labels.common.after(&facts.matrix.origin, &effort, &self.outcome.reason, limit, profile)
    }

    /// Returns advice for a solve that did not converge: another method, or advice from the recorded
    /// residuals. A solve with many iterations may need the coordinates of the nodes, also if it converged.
    fn hint(&self, naming: Naming<'_>) -> Option<String> {
        let (facts, outcome) = (&*self.facts, &self.outcome);
        let definite = facts.method.needs().definite;
        let untried = facts.labels.precond == "none" && definite && facts.moves;
        let singular = self.singular.as_ref().filter(|_| !self.converged());
        let unsolvable =
            singular.and_then(|singular| singular.hint(outcome.goal.unwrap_or(0.0), &naming("project", "")));
        if unsolvable.is_some() {
            return unsolvable;
        }
        let suitable = if facts.on_cpu { "ic0" } else { "chebyshev" };
        match outcome.reason {
            StopReason::IndefiniteMatrix { .. } if facts.precision.narrow_values() => {
                return Some(format!(
                    "{}; or {}: rounding to f32 may have made the matrix indefinite",
                    naming("method", "minres"),
                    naming("precision", "f64")
                ));
            }
            StopReason::IndefiniteMatrix { .. } => return Some(naming("method", "minres")),
            // Levels in single precision may have rounded away that the preconditioner is positive.
            StopReason::IndefinitePreconditioner { .. }
                if facts.labels.precond.starts_with("amg")
                    && !facts.labels.precond.contains("precision=f64") =>
            {
                return Some(naming("precond", "amg:precision=f64"));
            }
            StopReason::Diverged { .. } if definite => {
                let minres = naming("method", "minres");
                return Some(format!("MINRES is the method for an indefinite matrix: {minres}"));
            }
            _ => {}
        }
        let ended = Ended {
            reason: &outcome.reason,
            residuals: self.recorder.residuals(),
            goal: outcome.goal.unwrap_or(0.0),
            seconds_each: outcome.seconds_each,
            precision: facts.precision,
            restarts: true,
            tolerance: "rtol",
            precond: untried.then_some(suitable),
            resume: advice::resume(
                facts.checkpoint.as_deref().filter(|file| file.exists()),
                outcome.seconds_solve + outcome.seconds_earlier,
                naming,
            ),
        };
        let coordinates = facts.levels.as_ref().filter(|_| !facts.matrix.has_coordinates);
        let coordinates =
            coordinates.and_then(|levels| advice::coordinates(levels, outcome.iterations as f64, naming));
        let hints: Vec<String> = advice::hint(&ended, naming).into_iter().chain(coordinates).collect();
        (!hints.is_empty()).then(|| hints.join("; "))
    }

    /// Returns a caution if a converged answer has a large error. Uses the known error, or
    /// else the estimated one.
    fn caution(&self, naming: Naming<'_>) -> Option<String> {
        if self.outcome.reason != StopReason::Converged {
            return None;
        }
        let known = self.error.map(|(error, largest)| error / largest);
        let error = known.or(self.outcome.error_estimate).filter(|error| *error > DOUBTFUL)?;
        let how = if known.is_some() { "" } else { "estimated " };
        if error == f64::INFINITY {
            let text = "the matrix is not positive definite to working precision, so the error of x is not known; if the \
                        matrix is singular, x is one of many solutions";
            return Some(text.to_owned());
        }
        let precond = match self.facts.labels.precond.as_str() {
            "none" => format!(", or a preconditioner such as {}", naming("precond", "jacobi")),
            _ => String::new(),
        };
        Some(format!(
            "the {how}error of x is {:.0} % of its largest entry, although the residual is small; use a smaller {}{precond}",
            100.0 * error,
            naming("rtol", "")
        ))
    }
}

impl Found for Answer {
    type Report = Report;

    fn measure_limit(&mut self, device: &DeviceHandle, cancel: Option<&AtomicBool>) {
        if self.is_limited_by_one_device() {
            self.limit = limit::measure_on(device, &self.outcome, cancel);
        }
    }

    fn report_naming(&self, naming: Naming<'_>) -> Report {
        let (facts, outcome) = (&*self.facts, &self.outcome);
        let goal = outcome.goal.unwrap_or(0.0);
        let spectrum = outcome.spectrum;
        let definite = facts.method.needs().definite && outcome.reason.name() != "indefinite_matrix";
        let predicted = spectrum.filter(|_| definite).and_then(|s| s.iterations(goal));
        let origin = &*facts.matrix.origin;
        let many = self.singular.as_ref().and_then(|singular| singular.note(self.converged()));
        let notes = origin.notes.iter().chain(&facts.note).chain(&outcome.checkpoint_fault).chain(&many);
        let notes: Vec<&str> = notes.map(String::as_str).collect();
        let resumed = outcome.iterations_earlier > 0;
        let limit = self.limit;
        Report {
            common: self.common(outcome, limit),
            matrix: origin.title().to_owned(),
            stand_in: origin.stand_in.map(str::to_owned),
            rows: facts.matrix.rows,
            nnz: facts.matrix.nnz,
            preconditioner: facts.labels.precond.clone(),
            right_hand_side: self.description.clone(),
            start: self.start.clone(),
            rtol: goal,
            message: outcome.reason.to_string(),
            hint: self.hint(naming),
            iterations_earlier: resumed.then_some(outcome.iterations_earlier as u64),
            restarts: outcome.restarts as u64,
            block_rank: outcome.block_rank.map(|rank| rank as u64),
            iterations_predicted: predicted.filter(|p| p.is_finite()).map(|p| p as u64),
            eigenvalue_smallest: spectrum.map(|s| s.smallest),
            eigenvalue_largest: spectrum.map(|s| s.largest),
            condition_number: spectrum.and_then(|s| s.condition()),
            residual_recursive: outcome.residual,
            residual_true: outcome.residual_true,
            residual_at_most: outcome.residual_at_most,
            backward_error: outcome.backward_error,
            error_max: self.error.map(|(error, _)| error),
            caution: self.caution(naming),
            note: (!notes.is_empty()).then(|| notes.join("; ")),
            seconds_earlier: resumed.then_some(outcome.seconds_earlier),
            stream_gigabytes_per_second: limit.map(|limit| limit.stream),
            vector_stream_gigabytes_per_second: limit.map(|limit| limit.vector_stream),
            limit_seconds_per_iteration: limit.map(|limit| limit.seconds),
            multigrid: facts.levels.as_deref().cloned(),
            convergence_factor: facts.levels.as_ref().and_then(|_| self.convergence_factor()),
            ..Report::default()
        }
    }

    fn history_of(&self, report: &Report) -> History {
        History::new(report.clone(), self.recorder.clone())
    }
}

reports!(Answer, Report);
