//! The distributions of all closed classes, and their report.

use super::analysis::ChainFacts;
use super::distribution::Distribution;
use super::report::{ClassReport, MarkovReport, State};
use super::{Settings, files};
use crate::device::Ranks;
use crate::engine::advice::{self, Ended, Naming};
use crate::engine::device::DeviceHandle;
use crate::engine::graph::Names;
use crate::engine::ranks::agreed;
use crate::engine::report::{Found, reports};
use crate::engine::running::{highest, message};
use crate::engine::tune::Explanation;
use crate::error::Result;
use crate::observe::report::{Common, Measure, Report};
use crate::observe::{History, Phase, Profile, profile};
use crate::scalar::Precision;
use crate::solve::markov::Stationary;
use crate::stop::StopReason;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Facts that all distributions of a prepared chain share.
#[derive(Clone, Debug)]
pub(super) struct DistributionFacts {
    pub of_chain: ChainFacts,
    pub settings: Settings,
    /// What the report has before a solve, without the backend of a class.
    pub common: Common,
    pub precision: Precision,
}

/// The distributions of all closed classes of a chain, with their history. Over ranks, the first
/// rank has the probabilities.
#[derive(Clone)]
pub struct Distributions {
    /// Never empty, as a chain without states is refused.
    classes: Vec<Distribution>,
    facts: Arc<DistributionFacts>,
    /// The ranks that have shared the solve.
    ranks: Option<Ranks>,
    /// Whether the ranks are devices of this process: one of them does not set the limit of the solve.
    shared: bool,
    profile: Option<Profile>,
}

impl fmt::Debug for Distributions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distributions").field("classes", &self.classes).field("facts", &self.facts).finish()
    }
}

impl Distributions {
    pub(super) fn new(
        classes: Vec<Distribution>,
        facts: Arc<DistributionFacts>,
        ranks: Option<Ranks>,
    ) -> Distributions {
        Distributions { classes, facts, ranks, shared: false, profile: profile::active() }
    }

    /// Returns the distributions of the first rank, if the ranks are devices of this process.
    pub(super) fn in_one_process(self) -> Distributions {
        Distributions { ranks: None, shared: true, ..self }
    }

    /// Returns the distribution of each class, in the order of their first states.
    pub fn classes(&self) -> &[Distribution] {
        &self.classes
    }

    /// Returns whether every class met the tolerance.
    pub fn converged(&self) -> bool {
        self.classes.iter().all(Distribution::converged)
    }

    /// Returns the names of the states.
    pub fn names(&self) -> &Names {
        &self.facts.of_chain.names
    }

    /// Writes the distributions: .npy with a column for each class, or .csv by class and decreasing
    /// probability. Over ranks, all ranks call this together, and the first writes the file.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let _span = profile::begin(Phase::Write);
        let ranks = self.ranks.as_ref();
        agreed(
            ranks,
            match ranks.is_none_or(Ranks::is_first) {
                true => files::write(path.as_ref(), self.names(), &self.classes),
                false => Ok(()),
            },
        )
    }

    /// Returns the reasons for the backend of the class with the most memory traffic.
    pub fn explanation(&self) -> &Explanation {
        &self.classes[self.largest()].chosen.explanation
    }

    /// Returns the index of the class with the most memory traffic per iteration, the last such
    /// class. Its speed is reported.
    fn largest(&self) -> usize {
        let bytes = |class: &usize| self.classes[*class].outcome.bytes_per_iteration;
        (0..self.classes.len()).max_by_key(bytes).unwrap_or(0)
    }

    /// Returns the index of the class with the largest residual, the first such class. Its
    /// history is reported.
    fn worst(&self) -> usize {
        let residual = |class: usize| self.classes[class].outcome.residual;
        let classes = (0..self.classes.len()).rev();
        classes.max_by(|&a, &b| residual(a).total_cmp(&residual(b))).unwrap_or(0)
    }

    /// Returns the common part of the report of a class.
    fn common(&self, class: &Distribution) -> Common {
        let Distribution { outcome, chosen, parts, limit, .. } = class;
        let (facts, profile) = (&self.facts, self.profile.as_ref());
        Common {
            backend: chosen.backend.clone(),
            backend_because: chosen.because.clone(),
            parts: parts.clone(),
            ..facts.common.after(&self.names().origin, outcome, &outcome.reason, *limit, profile)
        }
    }

    fn of_class(&self, class: &Distribution, naming: Naming<'_>) -> ClassReport {
        let Stationary { reason, probabilities, groups, .. } = &class.outcome;
        let top = highest(probabilities, self.facts.settings.top).into_iter().map(|index| {
            let row = class.class.states[index] as usize;
            let (state, label) = (self.names().id(row), self.names().label(row).map(str::to_owned));
            State { state, label, probability: probabilities[index] }
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

    /// Returns advice for a class that did not converge.
    fn hint(&self, class: &Distribution, naming: Naming<'_>) -> Option<String> {
        let ended = Ended {
            reason: &class.outcome.reason,
            residuals: class.recorder.residuals(),
            goal: self.facts.settings.tol,
            seconds_each: class.outcome.seconds_each,
            precision: self.facts.precision,
            restarts: false,
            tolerance: "tol",
            precond: None,
            resume: None,
        };
        advice::hint(&ended, naming)
    }
}

impl Found for Distributions {
    type Report = MarkovReport;

    /// Measures for the class whose speed is reported and for the class of the history.
    fn measure_limit(&mut self, device: &DeviceHandle, cancel: Option<&AtomicBool>) {
        if self.shared {
            return;
        }
        let (largest, worst) = (self.largest(), self.worst());
        self.classes[largest].measure(device, cancel);
        if worst != largest {
            self.classes[worst].measure(device, cancel);
        }
    }

    fn report_naming(&self, naming: Naming<'_>) -> MarkovReport {
        let (facts, largest) = (&*self.facts, &self.classes[self.largest()]);
        let origin = &*facts.of_chain.names.origin;
        let outcomes = || self.classes.iter().map(|class| &class.outcome);
        let failed = outcomes().map(|outcome| outcome.reason).rfind(|reason| !reason.is_success());
        let iterations = outcomes().map(|outcome| outcome.iterations as u64).sum::<u64>();
        let seconds_solve = outcomes().map(|outcome| outcome.seconds_solve).sum::<f64>();
        let setup = outcomes().map(|outcome| outcome.seconds_setup).sum::<f64>();
        let common = Common {
            converged: failed.is_none(),
            reason: failed.unwrap_or(StopReason::Converged).name().to_owned(),
            iterations,
            seconds_setup: facts.common.seconds_setup + setup,
            seconds_solve,
            seconds_per_iteration: seconds_solve / iterations.max(1) as f64,
            ..self.common(largest)
        };
        MarkovReport {
            common,
            method: facts.settings.method.name(),
            matrix: origin.title().to_owned(),
            states: facts.of_chain.names.rows() as u64,
            nnz: facts.of_chain.nnz,
            transient: facts.of_chain.transient,
            tolerance: facts.settings.tol,
            residual: outcomes().map(|outcome| outcome.residual).fold(0.0, larger),
            notes: origin.notes.clone(),
            classes: self.classes.iter().map(|class| self.of_class(class, naming)).collect(),
        }
    }

    /// Returns the history of the class with the largest residual.
    fn history_of(&self, all: &MarkovReport) -> History {
        let (class, reported) = (&self.classes[self.worst()], &all.classes[self.worst()]);
        let outcome = &class.outcome;
        let common = Common {
            solver: format!("markov, {}", all.method),
            seconds_setup: all.seconds_setup,
            gigabytes_per_second: 0.0,
            ..self.common(class)
        };
        let report = Report {
            common,
            measure: Measure::Balance,
            matrix: all.matrix.clone(),
            rows: all.states,
            nnz: all.nnz,
            rtol: all.tolerance,
            message: reported.message.clone(),
            hint: reported.hint.clone(),
            residual_recursive: outcome.residual_recursive,
            residual_true: outcome.residual,
            residual_at_most: outcome.residual,
            ..Report::default()
        };
        History::new(report, class.recorder.clone())
    }
}

reports!(Distributions, MarkovReport);

/// Returns the larger of two residuals; NaN if either is NaN.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}
