//! Several right-hand sides of one matrix: what a solve of all of them takes and returns.

use super::advice::Naming;
use super::answer::{Answer, AnswerFacts};
use super::device::DeviceHandle;
use super::limit;
use super::report::{Found, reports};
use super::rhs::RightHandSide;
use super::singular::Singular;
use crate::device::stream::Limit;
use crate::observe::phrases::ends_of_columns;
use crate::observe::report::{ColumnReport, Report};
use crate::observe::{History, Recorder, largest, slowest};
use crate::solve::Outcome;
use crate::solve::problem::Problem;
use crate::stop::StopReason;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Several right-hand sides of one matrix, as an n x k array, row-major: the entry in `row` of `column` is
/// number `row * k + column`.
#[derive(Clone, Copy, Debug)]
pub struct RightHandSides<'a> {
    pub(super) b: &'a [f64],
    pub(super) k: usize,
    pub(super) description: &'a str,
    pub(super) x0: Option<&'a [f64]>,
    pub(super) start: Option<&'a str>,
}

impl<'a> RightHandSides<'a> {
    /// Takes `k` right-hand sides from an n x k array, row-major. The solve checks the length of the array.
    pub fn new(b: &'a [f64], k: usize) -> RightHandSides<'a> {
        RightHandSides { b, k, description: "given", x0: None, start: None }
    }

    /// Sets the initial guesses, an array of the same shape; 0 by default.
    pub fn from_start(self, x0: &'a [f64]) -> RightHandSides<'a> {
        RightHandSides { x0: Some(x0), ..self }
    }

    /// Sets the name of the initial guesses for the report.
    pub(crate) fn start_named(self, name: &'a str) -> RightHandSides<'a> {
        RightHandSides { start: Some(name), ..self }
    }
}

impl<'a> From<&'a Problem> for RightHandSides<'a> {
    fn from(problem: &'a Problem) -> RightHandSides<'a> {
        let Problem { b, columns, description, .. } = problem;
        RightHandSides { description, ..RightHandSides::new(b, *columns) }
    }
}

/// The solutions of several systems with one matrix, with the outcome and the history of each column.
#[derive(Clone, Debug)]
pub struct Answers {
    x: Vec<f64>,
    /// One answer per column, without the vector.
    columns: Vec<Answer>,
    limit: Option<Limit>,
}

impl Answers {
    pub(super) fn new(
        x: Vec<f64>,
        outcomes: Vec<Outcome>,
        recorders: Vec<Recorder>,
        facts: &Arc<AnswerFacts>,
        b: &RightHandSides<'_>,
    ) -> Answers {
        let one = RightHandSide {
            description: b.description,
            start: b.start,
            ..RightHandSide::from(&[] as &[f64])
        };
        let column =
            |(outcome, recorder)| Answer::new(Vec::new(), outcome, recorder, Arc::clone(facts), &one);
        Answers { x, columns: outcomes.into_iter().zip(recorders).map(column).collect(), limit: None }
    }

    /// Adds what is known about the null space, for each column.
    pub(super) fn singular(self, singular: Vec<Singular>) -> Answers {
        let singular = singular.into_iter().map(Some).chain(std::iter::repeat(None));
        let columns = self.columns.into_iter().zip(singular);
        Answers { columns: columns.map(|(answer, singular)| answer.singular(singular)).collect(), ..self }
    }

    /// Returns the solutions as an n x k array, row-major. The column of a right-hand side
    /// that was not solved is 0.
    pub fn x(&self) -> &[f64] {
        &self.x
    }

    /// Returns the solutions as an n x k array, row-major, and drops the rest of the answers.
    pub fn into_x(self) -> Vec<f64> {
        self.x
    }

    /// Takes the solutions out of the answers, whose `x` is empty from then on.
    pub fn take_x(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.x)
    }

    /// Returns the number of columns.
    pub fn count(&self) -> usize {
        self.columns.len()
    }

    /// Returns the solution of one column, counted from 0, if there is such a column.
    pub fn column(&self, column: usize) -> Option<Vec<f64>> {
        let k = self.columns.len();
        (column < k).then(|| self.x.iter().skip(column).step_by(k).copied().collect())
    }

    /// Returns whether every column has converged.
    pub fn converged(&self) -> bool {
        self.columns.iter().all(Answer::converged)
    }

    /// Returns the outcome of each column.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = &Outcome> {
        self.columns.iter().map(Answer::outcome)
    }

    /// Returns the recursive residual of a column relative to its right-hand side, before the first iteration
    /// and after each iteration, if there is such a column.
    pub fn residuals(&self, column: usize) -> Option<&[f64]> {
        self.columns.get(column).map(Answer::residuals)
    }

    /// Returns the index of the column that took the most iterations.
    fn slowest(&self) -> usize {
        slowest(self.outcomes().map(|outcome| outcome.iterations))
    }

    /// Returns the index of the column that the report describes: the first one that did not converge, or
    /// else the one that took the most iterations.
    fn decisive(&self) -> usize {
        let failed = self.columns.iter().position(|column| !column.converged());
        failed.unwrap_or_else(|| self.slowest())
    }

    /// Describes how the columns ended.
    fn message(&self) -> String {
        let reasons: Vec<Option<String>> =
            self.columns.iter().map(|c| (!c.converged()).then(|| c.reason().to_string())).collect();
        ends_of_columns("right-hand sides", reasons.iter().map(Option::as_deref))
    }
}

impl Found for Answers {
    type Report = Report;

    fn measure_limit(&mut self, device: &DeviceHandle, cancel: Option<&AtomicBool>) {
        if self.columns.first().is_some_and(Answer::is_limited_by_one_device) {
            self.limit = limit::measure_on(device, self.columns[self.slowest()].outcome(), cancel);
        }
    }

    fn report_naming(&self, naming: Naming<'_>) -> Report {
        let Some(column) = self.columns.get(self.decisive()) else { return Report::default() };
        let all: Vec<Report> = self.columns.iter().map(|column| column.report_naming(naming)).collect();
        let columns: Vec<ColumnReport> =
            (1..).zip(&all).map(|(number, one)| ColumnReport::of(number, one)).collect();
        let slow = &all[self.slowest()];
        // A column that was not solved has no residual and no tolerance.
        let is_solved = |column: &Answer| !matches!(column.reason(), StopReason::NotSolved { .. });
        let none = !self.columns.iter().any(is_solved);
        let solved: Vec<&Report> = self
            .columns
            .iter()
            .zip(&all)
            .filter(|(column, _)| none || is_solved(column))
            .map(|(_, one)| one)
            .collect();
        let largest = |value: &dyn Fn(&Report) -> f64| largest(solved.iter().map(|one| value(one)));
        let caution = all.iter().zip(1..).find_map(|(one, number)| {
            one.caution.as_ref().map(|caution| format!("column {number}: {caution}"))
        });
        Report {
            common: column.common(self.columns[self.slowest()].outcome(), self.limit),
            message: self.message(),
            caution,
            rtol: largest(&|one| one.rtol),
            iterations_earlier: slow.iterations_earlier,
            iterations_predicted: None,
            restarts: all.iter().map(|one| one.restarts).max().unwrap_or(0),
            block_rank: all.iter().find_map(|one| one.block_rank),
            residual_recursive: largest(&|one| one.residual_recursive),
            residual_true: largest(&|one| one.residual_true),
            residual_at_most: largest(&|one| one.residual_at_most),
            backward_error: largest(&|one| one.backward_error),
            seconds_earlier: slow.seconds_earlier,
            stream_gigabytes_per_second: self.limit.map(|limit| limit.stream),
            vector_stream_gigabytes_per_second: self.limit.map(|limit| limit.vector_stream),
            limit_seconds_per_iteration: self.limit.map(|limit| limit.seconds),
            convergence_factor: None,
            columns,
            ..column.report_naming(naming)
        }
    }

    fn history_of(&self, report: &Report) -> History {
        let recorders = self.columns.iter().map(|column| column.recorder().clone()).collect();
        History::of_columns(report.clone(), recorders)
    }
}

reports!(
    ///
    /// It has a record for each column, and its other fields describe all columns together: `converged` is
    /// true if every column converged, `iterations` and `seconds_solve` are those of the slowest column,
    /// residuals are the largest of all columns, and `reason` is that of the first column that did not
    /// converge.
    Answers,
    Report
);
