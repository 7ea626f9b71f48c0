//! What a ranking says about itself.

use super::Ranked;
use super::args::PagerankArgs;
use super::output::by_rank;
use super::plan::Plan;
use crate::cli::ids::Ids;
use crate::cli::interrupt;
use crate::cli::layout::{labelled, named, ranked};
use crate::cli::running::message;
use crate::cli::summary::{LABELS, Line, around, count, ended, short, speed, time};
use crate::cli::{duration, thousands};
use crate::device::Device;
use crate::engine::{self, Moved};
use crate::observe::report::{Measure, Report};
use crate::solve::pagerank::Ranking;
use crate::source::Loaded;
use serde::Serialize;

/// What is known of graph and machine before the ranking.
#[derive(Default)]
pub(super) struct Facts {
    pub stand_in: Option<&'static str>,
    pub notes: Vec<String>,
    pub self_loops: u64,
    /// Links beyond the first between the same two vertices.
    pub duplicates: u64,
    pub device: String,
    pub backend: String,
    pub backend_because: Option<String>,
    pub seconds_load: f64,
    /// Before the method begins.
    pub seconds_setup: f64,
}

impl Facts {
    pub fn of(loaded: &Loaded) -> Facts {
        let graph = &loaded.matrix;
        let counts = graph.map_rows(|i| {
            let row = graph.row_columns(i);
            let loops = row.iter().filter(|&&j| j as usize == i).count() as u64;
            (loops, row.windows(2).filter(|w| w[0] == w[1]).count() as u64)
        });
        Facts {
            stand_in: loaded.stand_in,
            notes: loaded.notes.clone(),
            self_loops: counts.iter().map(|c| c.0).sum(),
            duplicates: counts.iter().map(|c| c.1).sum(),
            ..Facts::default()
        }
    }
}

/// One of the highest ranks.
#[derive(Debug, Serialize)]
pub(super) struct Top {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub rank: f64,
    /// Whether the bound makes it certain that this rank is above the next.
    pub above_next_is_certain: bool,
}

/// The report, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct RankReport {
    pub solver: &'static str,
    pub method: &'static str,
    pub graph: String,
    pub stand_in: Option<&'static str>,
    pub vertices: u64,
    /// Links that were followed, after those that were asked away.
    pub links: u64,
    pub self_loops: u64,
    pub duplicates: u64,
    pub sinks: u64,
    /// Whether vertices were numbered anew for the solve, by their links.
    pub reordered: bool,
    pub damping: f64,
    pub dangling: &'static str,
    pub formula: &'static str,
    pub device: String,
    pub backend: String,
    pub backend_because: Option<String>,
    pub precision: &'static str,
    pub tolerance: f64,
    pub converged: bool,
    pub reason: &'static str,
    pub message: String,
    /// What could help where the solve did not converge.
    pub hint: Option<String>,
    pub iterations: u64,
    pub extrapolations: u64,
    /// No more than this lies between these ranks and the exact ones, all differences summed.
    pub error_bound: f64,
    /// The same by the last step alone, rounding left out.
    pub error_estimate: f64,
    pub sum: f64,
    pub seconds_load: f64,
    pub seconds_setup: f64,
    pub seconds_solve: f64,
    pub seconds_certify: f64,
    pub seconds_per_iteration: f64,
    pub bytes_per_iteration: u64,
    pub gigabytes_per_second: f64,
    pub links_per_second: f64,
    pub stream_gigabytes_per_second: Option<f64>,
    pub percent_of_limit: Option<f64>,
    /// What the reader of the graph decided, and did not read.
    pub notes: Vec<String>,
    pub top: Vec<Top>,
}

impl RankReport {
    pub fn new(args: &PagerankArgs, plan: &Plan, ranked: &Ranked, ranking: &Ranking) -> RankReport {
        let Ranked { links, vertices, facts } = ranked;
        let followed = links.incoming().nnz() as u64;
        let each = ranking.seconds_solve / ranking.iterations.max(1) as f64;
        let per_second = |amount: u64| if ranking.iterations == 0 { 0.0 } else { amount as f64 / each };
        RankReport {
            solver: "pagerank",
            method: plan.method.name(),
            graph: args.graph.to_string_lossy().into_owned(),
            stand_in: facts.stand_in,
            vertices: links.vertices() as u64,
            links: followed,
            self_loops: facts.self_loops,
            duplicates: facts.duplicates,
            sinks: links.count_sinks() as u64,
            reordered: links.are_reordered(),
            damping: args.damping,
            dangling: plan.dangling.name(),
            formula: plan.dangling.formula(),
            device: facts.device.clone(),
            backend: facts.backend.clone(),
            backend_because: facts.backend_because.clone(),
            precision: args.run.precision.name(),
            tolerance: args.tol,
            converged: ranking.reason.is_success(),
            reason: ranking.reason.name(),
            message: message(&ranking.reason),
            hint: None,
            iterations: ranking.iterations as u64,
            extrapolations: ranking.extrapolations as u64,
            error_bound: ranking.certificate.error_bound,
            error_estimate: ranking.estimate,
            sum: ranking.certificate.sum,
            seconds_load: facts.seconds_load,
            seconds_setup: facts.seconds_setup + ranking.seconds_setup,
            seconds_solve: ranking.seconds_solve,
            seconds_certify: ranking.seconds_certify,
            seconds_per_iteration: each,
            bytes_per_iteration: ranking.bytes_per_iteration,
            gigabytes_per_second: per_second(ranking.bytes_per_iteration) / 1e9,
            links_per_second: per_second(followed),
            stream_gigabytes_per_second: None,
            percent_of_limit: None,
            notes: facts.notes.clone(),
            top: top(args.top, ranking, vertices),
        }
    }

    /// What pictures are made of.
    pub fn for_history(&self) -> Report {
        Report {
            solver: format!("pagerank, {}", self.method),
            matrix: self.graph.clone(),
            stand_in: self.stand_in.map(str::to_owned),
            rows: self.vertices,
            nnz: self.links,
            device: self.device.clone(),
            backend: self.backend.clone(),
            backend_because: self.backend_because.clone(),
            precision: self.precision.to_owned(),
            preconditioner: format!("damping {}, dangling {}", self.damping, self.dangling),
            measure: Measure::ErrorBound,
            rtol: self.tolerance,
            converged: self.converged,
            reason: self.reason.to_owned(),
            message: self.message.clone(),
            hint: self.hint.clone(),
            iterations: self.iterations,
            residual_recursive: self.error_estimate,
            residual_true: self.error_bound,
            residual_at_most: self.error_bound,
            seconds_load: self.seconds_load,
            seconds_setup: self.seconds_setup,
            seconds_solve: self.seconds_solve,
            seconds_per_iteration: self.seconds_per_iteration,
            bytes_per_iteration: self.bytes_per_iteration,
            gigabytes_per_second: self.gigabytes_per_second,
            stream_gigabytes_per_second: self.stream_gigabytes_per_second,
            percent_of_limit: self.percent_of_limit,
            ..Report::default()
        }
    }

    /// The report for people in a few lines; all of it where it is `complete`.
    pub fn in_words(&self, files: Option<Line>, complete: bool) -> String {
        let stands = self.stand_in.map_or(String::new(), |real| format!(", a stand-in for {real}"));
        let ended = ended(&self.message, self.reason, self.iterations, self.method);
        let mut lines = vec![
            ("result", format!("{ended} on {}{stands}", self.graph)),
            ("graph", self.counts()),
            (
                "error",
                match self.error_bound.is_finite() {
                    true => format!(
                        "at most {:.3e} in all ranks together, certified; tolerance {}",
                        self.error_bound,
                        short(self.tolerance)
                    ),
                    false => "nothing is certain of these ranks".to_owned(),
                },
            ),
            time(self.seconds_solve, &self.device, &self.backend, self.precision),
        ];
        if self.iterations > 0 {
            let rate = format!("{:.0} million links a second", self.links_per_second / 1e6);
            lines.push(speed(self.gigabytes_per_second, self.percent_of_limit, &rate));
        }
        let hint = self.hint.iter().map(|hint| ("hint", hint.clone()));
        let notes = self.notes.iter().map(|note| ("note", note.clone()));
        lines.splice(1..1, hint.chain(notes));
        lines.extend(files);
        if complete {
            lines.extend(self.details());
        }
        let mut text = labelled(LABELS, &lines);
        let rows = self.top.iter().map(|top| {
            let doubt = if top.above_next_is_certain { "" } else { "  (order with the next uncertain)" };
            (named(top.id, top.label.as_deref()), format!("{:.12e}{doubt}", top.rank))
        });
        text.push_str(&ranked(rows.collect()));
        text
    }
}

impl RankReport {
    /// What was counted in the graph.
    fn counts(&self) -> String {
        let all = [
            (self.vertices, "vertex", "vertices"),
            (self.links, "link", "links"),
            (self.sinks, "sink", "sinks"),
            (self.self_loops, "self-loop", "self-loops"),
            (self.duplicates, "duplicate", "duplicates"),
        ];
        let told = all.iter().enumerate().filter(|(place, (n, ..))| *place < 2 || *n > 0);
        let words = |(_, &(n, one, many)): (usize, &(u64, &str, &str))| {
            format!("{} {}", thousands(n), if n == 1 { one } else { many })
        };
        told.map(words).collect::<Vec<_>>().join(", ")
    }

    fn details(&self) -> Vec<Line> {
        let ahead = match self.extrapolations {
            0 => String::new(),
            times => format!(", {}", count(times, "extrapolation")),
        };
        let mut lines = vec![(
            "method",
            format!("{}{ahead}, damping {}, dangling {}", self.method, self.damping, self.dangling),
        )];
        lines.extend(self.backend_because.clone().map(|why| ("because", why)));
        lines.push((
            "estimate",
            format!("error {:.3e} by the last step; sum of ranks {:.15}", self.error_estimate, self.sum),
        ));
        lines.push(("certified", format!("in {}", duration(self.seconds_certify))));
        lines.push(around(self.seconds_setup, self.seconds_load));
        lines.push((
            "traffic",
            format!(
                "{:.1} MB an iteration in {}",
                self.bytes_per_iteration as f64 / 1e6,
                duration(self.seconds_per_iteration)
            ),
        ));
        lines
    }
}

/// The highest ranks. The bound covers all errors together, and so the two of any pair: farther apart than that, their
/// order is certain.
fn top(count: usize, ranking: &Ranking, vertices: &Ids) -> Vec<Top> {
    let ranks = &ranking.ranks;
    let order = by_rank(ranks);
    let certain = |place: usize| {
        order
            .get(place + 1)
            .is_none_or(|&next| ranks[order[place]] - ranks[next] > ranking.certificate.error_bound)
    };
    let all = order.iter().take(count).enumerate();
    all.map(|(place, &vertex)| Top {
        id: vertices.id(vertex),
        label: vertices.label(vertex).map(str::to_owned),
        rank: ranks[vertex],
        above_next_is_certain: certain(place),
    })
    .collect()
}

/// How near the iterations came to what the machine allows.
pub(super) fn measure<D: Device>(report: &mut RankReport, device: &D, ranking: &Ranking) {
    let moved = Moved {
        operators: ranking.operator_bytes,
        vectors: ranking.vector_bytes,
        each: ranking.bytes_per_iteration,
        iterations: ranking.iterations,
        seconds: report.seconds_per_iteration,
    };
    if let Some(limit) = engine::measure(device, &moved, Some(&interrupt::catch())) {
        report.stream_gigabytes_per_second = Some(limit.stream);
        report.percent_of_limit = Some(100.0 * limit.seconds / report.seconds_per_iteration);
    }
}
