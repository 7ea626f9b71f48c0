//! Distributions, and what they say about themselves.

use super::distribution::Distribution;
use super::report::{ClassReport, MarkovReport, State};
use super::{Settings, files};
use crate::engine::advice::{self, Ended, Naming, as_method};
use crate::engine::device::DeviceHandle;
use crate::engine::graph::Names;
use crate::engine::running::{by_rank, message};
use crate::error::Result;
use crate::observe::History;
use crate::observe::report::{Measure, Report};
use crate::scalar::Precision;
use crate::solve::markov::Stationary;
use crate::stop::StopReason;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What all distributions of a prepared chain have in common.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub name: String,
    pub notes: Vec<String>,
    pub names: Names,
    pub settings: Settings,
    pub nnz: u64,
    pub transient: u64,
    pub device: String,
    pub precision: Precision,
    pub seconds_load: f64,
    pub seconds_setup: f64,
}

/// The distributions of all classes of a chain, with their history.
#[derive(Clone, Debug)]
pub struct Distributions {
    /// One at least, as a chain without states is refused.
    classes: Vec<Distribution>,
    facts: Arc<Facts>,
}

impl Distributions {
    pub(super) fn new(classes: Vec<Distribution>, facts: Arc<Facts>) -> Distributions {
        Distributions { classes, facts }
    }

    /// One for each class, in the order of their first states.
    pub fn classes(&self) -> &[Distribution] {
        &self.classes
    }

    /// Whether every class has met the tolerance.
    pub fn converged(&self) -> bool {
        self.classes.iter().all(Distribution::converged)
    }

    /// What the states are called.
    pub fn names(&self) -> &Names {
        &self.facts.names
    }

    /// Writes the distributions: .npy with a column for each class, or .csv by class and falling probability.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        files::write(path.as_ref(), self.names(), &self.classes)
    }

    /// The place of the class that moves most in an iteration, whose speed is reported: the last of several.
    fn largest(&self) -> usize {
        let bytes = |place: &usize| self.classes[*place].outcome.bytes_per_iteration;
        (0..self.classes.len()).max_by_key(bytes).unwrap_or(0)
    }

    /// The place of the class with the largest residual, whose history is kept: the first of several.
    fn worst(&self) -> usize {
        let residual = |place: usize| self.classes[place].outcome.residual;
        let places = (0..self.classes.len()).rev();
        places.max_by(|&a, &b| residual(a).total_cmp(&residual(b))).unwrap_or(0)
    }

    /// Measures how near the iterations came to what the machine allows, which takes up to half a second for each of the class
    /// whose speed is reported and that of the history; `cancel` ends that.
    pub fn measure_limit(&mut self, device: &DeviceHandle, cancel: Option<&AtomicBool>) {
        let (largest, worst) = (self.largest(), self.worst());
        self.classes[largest].measure(device, cancel);
        if worst != largest {
            self.classes[worst].measure(device, cancel);
        }
    }

    /// Everything that the solves say about themselves.
    pub fn report(&self) -> MarkovReport {
        self.report_naming(&as_method)
    }

    /// The report, whose advice names settings as the caller's users give them.
    pub fn report_naming(&self, naming: Naming<'_>) -> MarkovReport {
        let (facts, largest) = (&*self.facts, &self.classes[self.largest()]);
        let outcomes = || self.classes.iter().map(|class| &class.outcome);
        let failed = outcomes().map(|outcome| outcome.reason).rfind(|reason| !reason.is_success());
        let iterations = outcomes().map(|outcome| outcome.iterations as u64).sum::<u64>();
        let seconds_solve = outcomes().map(|outcome| outcome.seconds_solve).sum::<f64>();
        MarkovReport {
            solver: "markov",
            method: facts.settings.method.name(),
            matrix: facts.name.clone(),
            states: facts.names.rows() as u64,
            nnz: facts.nnz,
            transient: facts.transient,
            device: facts.device.clone(),
            backend: largest.chosen.backend.clone(),
            backend_because: largest.chosen.because.clone(),
            precision: facts.precision.name(),
            tolerance: facts.settings.tol,
            converged: failed.is_none(),
            reason: failed.unwrap_or(StopReason::Converged).name(),
            iterations,
            residual: outcomes().map(|outcome| outcome.residual).fold(0.0, larger),
            seconds_load: facts.seconds_load,
            seconds_setup: facts.seconds_setup + outcomes().map(|outcome| outcome.seconds_setup).sum::<f64>(),
            seconds_solve,
            seconds_per_iteration: seconds_solve / iterations.max(1) as f64,
            bytes_per_iteration: largest.outcome.bytes_per_iteration,
            gigabytes_per_second: largest.gigabytes_per_second(),
            percent_of_limit: largest.percent_of_limit,
            notes: facts.notes.clone(),
            classes: self.classes.iter().map(|class| self.of_class(class, naming)).collect(),
        }
    }

    fn of_class(&self, class: &Distribution, naming: Naming<'_>) -> ClassReport {
        let Stationary { reason, probabilities, groups, .. } = &class.outcome;
        let top = by_rank(probabilities).into_iter().take(self.facts.settings.top).map(|place| {
            let row = class.class.states[place] as usize;
            let (state, label) = (self.names().id(row), self.names().label(row).map(str::to_owned));
            State { state, label, probability: probabilities[place] }
        });
        ClassReport {
            states: class.class.states.len() as u64,
            period: class.class.period as u64,
            lazy: class.outcome.lazy,
            groups: groups.map(|(count, _)| count as u64),
            seldom: groups.map(|(_, seldom)| seldom),
            converged: reason.is_success(),
            reason: reason.name(),
            message: message(reason),
            hint: self.hint(class, naming),
            iterations: class.outcome.iterations as u64,
            residual: class.outcome.residual,
            residual_recursive: class.outcome.residual_recursive,
            seconds_solve: class.outcome.seconds_solve,
            top: top.collect(),
        }
    }

    /// What could help with a class.
    fn hint(&self, class: &Distribution, naming: Naming<'_>) -> Option<String> {
        let ended = Ended {
            reason: &class.outcome.reason,
            residuals: class.recorder.residuals(),
            goal: self.facts.settings.tol,
            seconds_each: class.seconds_each(),
            precision: self.facts.precision,
            restarts: false,
            tolerance: "tol",
            precond: None,
            resume: None,
        };
        advice::hint(&ended, naming)
    }

    /// The history of the class with the largest residual.
    pub fn history(&self) -> History {
        self.history_naming(&as_method)
    }

    /// The same, whose advice names settings as the caller's users give them.
    pub fn history_naming(&self, naming: Naming<'_>) -> History {
        let (all, class) = (self.report_naming(naming), &self.classes[self.worst()]);
        let found = &class.outcome;
        let report = Report {
            solver: format!("markov, {}", all.method),
            measure: Measure::Balance,
            matrix: all.matrix,
            rows: all.states,
            nnz: all.nnz,
            device: all.device,
            backend: class.chosen.backend.clone(),
            backend_because: class.chosen.because.clone(),
            precision: all.precision.to_owned(),
            rtol: all.tolerance,
            converged: class.converged(),
            reason: found.reason.name().to_owned(),
            message: message(&found.reason),
            hint: self.hint(class, naming),
            iterations: found.iterations as u64,
            residual_recursive: found.residual_recursive,
            residual_true: found.residual,
            residual_at_most: found.residual,
            seconds_load: all.seconds_load,
            seconds_setup: all.seconds_setup,
            seconds_solve: found.seconds_solve,
            seconds_per_iteration: class.seconds_each(),
            bytes_per_iteration: found.bytes_per_iteration,
            percent_of_limit: class.percent_of_limit,
            ..Report::default()
        };
        History::new(report, class.recorder.clone())
    }
}

/// The larger of two residuals; NaN, of a chain that left the numbers, stays.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}
