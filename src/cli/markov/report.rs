//! What the solve of a chain says about itself.

use super::{MarkovArgs, Solved};
use crate::cli::flags::as_flag;
use crate::cli::ids::Ids;
use crate::cli::interrupt;
use crate::cli::layout::{labelled, named, ranked};
use crate::cli::pagerank::by_rank;
use crate::cli::running::message;
use crate::cli::summary::{LABELS, Line, around, count, ended, short, speed, time};
use crate::cli::{duration, thousands};
use crate::device::Device;
use crate::engine::{self, Ended, Moved};
use crate::observe::report::{Measure, Report};
use crate::solve::markov::chain::{Chain, Closed};
use crate::solve::markov::{Method, Stationary};
use serde::Serialize;

/// A state, by its id, counted from 1, or by its label, with its probability.
#[derive(Debug, Serialize)]
pub(super) struct State {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub probability: f64,
}

/// Classes that are told in words.
const SHOWN: usize = 20;

/// The distribution of one class.
#[derive(Debug, Serialize)]
pub(super) struct ClassReport {
    pub states: u64,
    pub period: u64,
    /// Whether the lazy chain was taken, because of the period.
    pub lazy: bool,
    /// Groups of states that are seldom left, and the probability below which steps lead from one to another.
    pub groups: Option<u64>,
    pub seldom: Option<f64>,
    pub converged: bool,
    pub reason: &'static str,
    pub message: String,
    /// What could help where the solve did not converge.
    pub hint: Option<String>,
    pub iterations: u64,
    /// The l1 norm of pi P - pi, recomputed.
    pub residual: f64,
    pub residual_recursive: f64,
    pub seconds_solve: f64,
    pub top: Vec<State>,
}

/// The report, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct MarkovReport {
    pub solver: &'static str,
    pub method: &'static str,
    pub matrix: String,
    pub states: u64,
    pub nnz: u64,
    /// States that are left for good, and have probability 0.
    pub transient: u64,
    pub device: String,
    pub backend: String,
    pub backend_because: Option<String>,
    pub precision: &'static str,
    pub tolerance: f64,
    /// Whether every class has met the tolerance.
    pub converged: bool,
    pub reason: &'static str,
    /// Of all classes together.
    pub iterations: u64,
    /// The largest of all classes.
    pub residual: f64,
    pub seconds_load: f64,
    pub seconds_setup: f64,
    pub seconds_solve: f64,
    pub seconds_per_iteration: f64,
    pub bytes_per_iteration: u64,
    pub gigabytes_per_second: f64,
    pub percent_of_limit: Option<f64>,
    /// What the reader of the chain decided, and did not read.
    pub notes: Vec<String>,
    pub classes: Vec<ClassReport>,
}

impl ClassReport {
    fn of(args: &MarkovArgs, ids: &Ids, class: &Closed, solved: &Solved) -> ClassReport {
        let Stationary { reason, probabilities, .. } = &solved.stationary;
        let top = by_rank(probabilities).into_iter().take(args.top);
        ClassReport {
            states: class.states.len() as u64,
            period: class.period as u64,
            lazy: solved.stationary.lazy,
            groups: solved.stationary.groups.map(|(count, _)| count as u64),
            seldom: solved.stationary.groups.map(|(_, seldom)| seldom),
            converged: reason.is_success(),
            reason: reason.name(),
            message: message(reason),
            hint: hint(args, solved),
            iterations: solved.stationary.iterations as u64,
            residual: solved.stationary.residual,
            residual_recursive: solved.stationary.residual_recursive,
            seconds_solve: solved.stationary.seconds_solve,
            top: top
                .map(|place| {
                    let row = class.states[place] as usize;
                    let (state, label) = (ids.id(row), ids.label(row).map(str::to_owned));
                    State { state, label, probability: probabilities[place] }
                })
                .collect(),
        }
    }
}

impl MarkovReport {
    pub fn new(args: &MarkovArgs, method: Method, chain: &Chain, load: f64, setup: f64) -> MarkovReport {
        MarkovReport {
            solver: "markov",
            method: method.name(),
            matrix: args.matrix.to_string_lossy().into_owned(),
            states: chain.steps().rows() as u64,
            nnz: chain.steps().nnz() as u64,
            transient: chain.transient() as u64,
            device: String::new(),
            backend: String::new(),
            backend_because: None,
            precision: args.run.precision.name(),
            tolerance: args.tol,
            converged: true,
            reason: "converged",
            iterations: 0,
            residual: 0.0,
            seconds_load: load,
            seconds_setup: setup,
            seconds_solve: 0.0,
            seconds_per_iteration: 0.0,
            bytes_per_iteration: 0,
            gigabytes_per_second: 0.0,
            percent_of_limit: None,
            notes: Vec::new(),
            classes: Vec::new(),
        }
    }

    /// Takes in one class more; whether its speed is the one that is reported, as of now.
    pub fn take_in(&mut self, args: &MarkovArgs, ids: &Ids, class: &Closed, solved: &Solved) -> bool {
        let found = &solved.stationary;
        let report = ClassReport::of(args, ids, class, solved);
        if !report.converged {
            (self.converged, self.reason) = (false, report.reason);
        }
        self.iterations += report.iterations;
        // NaN, of a chain that left the numbers, stays.
        self.residual = if report.residual.is_nan() { f64::NAN } else { self.residual.max(report.residual) };
        self.seconds_setup += found.seconds_setup;
        self.seconds_solve += report.seconds_solve;
        let largest = found.bytes_per_iteration >= self.bytes_per_iteration;
        if largest {
            self.bytes_per_iteration = found.bytes_per_iteration;
            let each = found.seconds_solve / found.iterations.max(1) as f64;
            self.gigabytes_per_second =
                if found.iterations == 0 { 0.0 } else { found.bytes_per_iteration as f64 / each / 1e9 };
            (self.device, self.backend) = (solved.device.clone(), solved.backend.clone());
            self.backend_because = solved.backend_because.clone();
        }
        self.classes.push(report);
        largest
    }

    pub fn conclude(&mut self) {
        self.seconds_per_iteration = self.seconds_solve / self.iterations.max(1) as f64;
    }

    /// What pictures are made of.
    pub fn for_history(&self, args: &MarkovArgs, solved: &Solved) -> Report {
        let found = &solved.stationary;
        Report {
            solver: format!("markov, {}", self.method),
            measure: Measure::Balance,
            matrix: self.matrix.clone(),
            rows: self.states,
            nnz: self.nnz,
            device: solved.device.clone(),
            backend: solved.backend.clone(),
            backend_because: solved.backend_because.clone(),
            precision: self.precision.to_owned(),
            rtol: args.tol,
            converged: found.reason.is_success(),
            reason: found.reason.name().to_owned(),
            message: message(&found.reason),
            hint: hint(args, solved),
            iterations: found.iterations as u64,
            residual_recursive: found.residual_recursive,
            residual_true: found.residual,
            residual_at_most: found.residual,
            seconds_load: self.seconds_load,
            seconds_setup: self.seconds_setup,
            seconds_solve: found.seconds_solve,
            seconds_per_iteration: found.seconds_solve / found.iterations.max(1) as f64,
            bytes_per_iteration: found.bytes_per_iteration,
            ..Report::default()
        }
    }

    /// The report for people in a few lines; all of it where it is `complete`.
    pub fn in_words(&self, files: Option<Line>, complete: bool) -> String {
        let classes = self.classes.len() as u64;
        let transient = match self.transient {
            0 => String::new(),
            n => format!(", {} outside", count(n, "state")),
        };
        let classes = format!("{} closed class{}", thousands(classes), if classes == 1 { "" } else { "es" });
        let states = count(self.states, "state");
        let mut lines = vec![("chain", format!("{}: {states}, {classes}{transient}", self.matrix))];
        let shown = self.classes.iter().take(SHOWN).enumerate();
        for (place, class) in shown {
            lines.push(("result", self.of_class(place, class, complete)));
            lines.extend(class.hint.clone().map(|hint| ("hint", hint)));
        }
        if let Some(others) = self.classes.get(SHOWN..).filter(|others| !others.is_empty()) {
            let failed = others.iter().filter(|class| !class.converged).count();
            let text = format!("{} more classes, {failed} of them not converged: see --json", others.len());
            lines.push(("result", text));
        }
        let any = if self.classes.len() > 1 { " at most" } else { " =" };
        lines.push((
            "residual",
            format!(
                "||pi P - pi||{any} {:.3e}, recomputed in f64; tolerance {}",
                self.residual,
                short(self.tolerance)
            ),
        ));
        lines.push(time(self.seconds_solve, &self.device, &self.backend, self.precision));
        if self.iterations > 0 {
            let rate = format!("{} an iteration", duration(self.seconds_per_iteration));
            lines.push(speed(self.gigabytes_per_second, self.percent_of_limit, &rate));
        }
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        lines.extend(files);
        if complete {
            lines.push(("matrix", format!("{} entries", thousands(self.nnz))));
            lines.extend(self.backend_because.clone().map(|why| ("because", why)));
            lines.push(around(self.seconds_setup, self.seconds_load));
            lines.push(("traffic", format!("{:.1} MB an iteration", self.bytes_per_iteration as f64 / 1e6)));
        }
        let mut text = labelled(LABELS, &lines);
        for class in self.classes.iter().take(SHOWN) {
            let rows = class
                .top
                .iter()
                .map(|top| (named(top.state, top.label.as_deref()), format!("{:.12e}", top.probability)));
            text.push_str(&ranked(rows.collect()));
        }
        text
    }
}

impl MarkovReport {
    /// How the solve of the class at this place ended.
    fn of_class(&self, place: usize, class: &ClassReport, complete: bool) -> String {
        let name = match self.classes.len() {
            1 => String::new(),
            _ => format!("class {}, {}: ", place + 1, count(class.states, "state")),
        };
        let period = match class.lazy {
            true => format!("; period {}, so by the lazy chain", class.period),
            false if class.period > 1 => format!("; period {}", class.period),
            false => String::new(),
        };
        let groups = match (class.groups, class.seldom) {
            (Some(groups), Some(seldom)) => {
                format!("; {groups} groups, between which steps are less likely than {seldom:e}")
            }
            _ => String::new(),
        };
        let residuals = match complete {
            true => format!(
                "; residual {:.3e} recomputed, {:.3e} by the iteration",
                class.residual, class.residual_recursive
            ),
            false => String::new(),
        };
        let ended = ended(&class.message, class.reason, class.iterations, self.method);
        format!("{name}{ended}{period}{groups}{residuals}")
    }
}

/// What could help with a class.
fn hint(args: &MarkovArgs, solved: &Solved) -> Option<String> {
    let found = &solved.stationary;
    engine::hint(
        &Ended {
            reason: &found.reason,
            residuals: solved.recorder.residuals(),
            goal: args.tol,
            seconds_each: found.seconds_solve / found.iterations.max(1) as f64,
            precision: args.run.precision,
            restarts: false,
            tolerance: "tol",
            precond: None,
            resume: None,
        },
        &as_flag,
    )
}

/// What the iterations for a class moved.
pub(super) fn moved(found: &Stationary) -> Moved {
    Moved {
        operators: found.operator_bytes,
        vectors: found.vector_bytes,
        each: found.bytes_per_iteration,
        iterations: found.iterations,
        seconds: found.seconds_solve / found.iterations.max(1) as f64,
    }
}

/// How near they came to what the machine allows.
pub(super) fn percent_of_limit<D: Device>(device: &D, moved: &Moved) -> Option<f64> {
    engine::measure(device, moved, Some(&interrupt::catch()))
        .map(|limit| 100.0 * limit.seconds / moved.seconds)
}
