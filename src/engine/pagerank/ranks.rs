//! Ranks, and what they say about themselves.

use super::report::{RankReport, Top};
use super::{Settings, files};
use crate::bench::stream::Limit;
use crate::engine::advice::{self, Ended, Naming, as_method};
use crate::engine::device::DeviceHandle;
use crate::engine::graph::Names;
use crate::engine::limit::{self, Moved};
use crate::engine::matrix::Matrix;
use crate::engine::running::{Chosen, by_rank, message};
use crate::error::Result;
use crate::observe::{History, Recorder};
use crate::scalar::Precision;
use crate::solve::pagerank::Ranking;
use crate::stop::StopReason;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is known of a graph before it is prepared.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub names: Names,
    pub name: String,
    pub stand_in: Option<&'static str>,
    pub notes: Vec<String>,
    pub self_loops: u64,
    /// Links beyond the first between the same two vertices.
    pub duplicates: u64,
    pub seconds_load: f64,
}

impl Graph {
    pub fn of(graph: &Matrix) -> Graph {
        let counts = graph.csr.map_rows(|i| {
            let row = graph.csr.row_columns(i);
            let loops = row.iter().filter(|&&j| j as usize == i).count() as u64;
            (loops, row.windows(2).filter(|w| w[0] == w[1]).count() as u64)
        });
        Graph {
            names: Names::of(graph, 0),
            name: graph.title(),
            stand_in: graph.stand_in(),
            notes: graph.notes().to_vec(),
            self_loops: counts.iter().map(|c| c.0).sum(),
            duplicates: counts.iter().map(|c| c.1).sum(),
            seconds_load: graph.about.seconds_load,
        }
    }
}

/// What all ranks of a prepared solve have in common.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub graph: Graph,
    pub settings: Settings,
    pub links: u64,
    pub sinks: u64,
    pub reordered: bool,
    pub device: String,
    pub chosen: Chosen,
    pub precision: Precision,
    pub seconds_setup: f64,
}

/// The rank of each vertex, with a bound on their error and the history of the solve.
#[derive(Clone, Debug)]
pub struct Ranks {
    ranking: Ranking,
    recorder: Recorder,
    facts: Arc<Facts>,
    limit: Option<Limit>,
}

impl Ranks {
    pub(super) fn new(ranking: Ranking, recorder: Recorder, facts: Arc<Facts>) -> Ranks {
        Ranks { ranking, recorder, facts, limit: None }
    }

    /// The ranks in the order of the vertices.
    pub fn ranks(&self) -> &[f64] {
        &self.ranking.ranks
    }

    /// The ranks, without what is known of them.
    pub fn into_ranks(self) -> Vec<f64> {
        self.ranking.ranks
    }

    /// Whether the bound on the error meets the tolerance.
    pub fn converged(&self) -> bool {
        self.ranking.reason.is_success()
    }

    /// Why the solve ended.
    pub fn reason(&self) -> StopReason {
        self.ranking.reason
    }

    /// No more than this lies between these ranks and the exact ones, all differences summed.
    pub fn error_bound(&self) -> f64 {
        self.ranking.certificate.error_bound
    }

    /// How the solve ended, in numbers.
    pub fn outcome(&self) -> &Ranking {
        &self.ranking
    }

    /// The bound on the error by each step, before the first iteration and after each.
    pub fn residuals(&self) -> &[f64] {
        self.recorder.residuals()
    }

    /// What the vertices are called.
    pub fn names(&self) -> &Names {
        &self.facts.graph.names
    }

    /// The highest ranks. The bound covers all errors together, and so the two of any pair: farther apart than that, their
    /// order is certain.
    pub fn top(&self, count: usize) -> Vec<Top> {
        let (ranks, names) = (self.ranks(), self.names());
        let order = by_rank(ranks);
        let certain = |place: usize| {
            let next = order.get(place + 1);
            next.is_none_or(|&next| ranks[order[place]] - ranks[next] > self.error_bound())
        };
        let all = order.iter().take(count).enumerate();
        all.map(|(place, &vertex)| Top {
            id: names.id(vertex),
            label: names.label(vertex).map(str::to_owned),
            rank: ranks[vertex],
            above_next_is_certain: certain(place),
        })
        .collect()
    }

    /// Writes the ranks: .npy in the order of the vertices, .csv and .json by falling rank, with ids or labels.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        files::write(path.as_ref(), self.ranks(), self.names())
    }

    /// Measures how near the iterations came to what the machine allows, which takes up to half a second; `cancel` ends that.
    pub fn measure_limit(&mut self, device: &DeviceHandle, cancel: Option<&AtomicBool>) {
        let ranking = &self.ranking;
        let moved = Moved {
            operators: ranking.operator_bytes,
            vectors: ranking.vector_bytes,
            each: ranking.bytes_per_iteration,
            iterations: ranking.iterations,
            seconds: self.seconds_each(),
        };
        self.limit = limit::measure_on(device, &moved, cancel);
    }

    /// Everything that the solve says about itself.
    pub fn report(&self) -> RankReport {
        self.report_naming(&as_method)
    }

    /// The report with the bound on the error of every iteration.
    pub fn history(&self) -> History {
        self.history_naming(&as_method)
    }

    /// The same, whose advice names settings as the caller's users give them.
    pub fn history_naming(&self, naming: Naming<'_>) -> History {
        History::new(self.report_naming(naming).for_history(), self.recorder.clone())
    }

    fn seconds_each(&self) -> f64 {
        self.ranking.seconds_solve / self.ranking.iterations.max(1) as f64
    }

    /// The report, whose advice names settings as the caller's users give them.
    pub fn report_naming(&self, naming: Naming<'_>) -> RankReport {
        let (Facts { graph, settings, chosen, .. }, ranking) = (&*self.facts, &self.ranking);
        let each = self.seconds_each();
        let per_second = |amount: u64| if ranking.iterations == 0 { 0.0 } else { amount as f64 / each };
        RankReport {
            solver: "pagerank",
            method: settings.method.name(),
            graph: graph.name.clone(),
            stand_in: graph.stand_in,
            vertices: ranking.ranks.len() as u64,
            links: self.facts.links,
            self_loops: graph.self_loops,
            duplicates: graph.duplicates,
            sinks: self.facts.sinks,
            reordered: self.facts.reordered,
            damping: settings.damping,
            dangling: settings.dangling.name(),
            formula: settings.dangling.formula(),
            device: self.facts.device.clone(),
            backend: chosen.backend.clone(),
            backend_because: chosen.because.clone(),
            precision: self.facts.precision.name(),
            tolerance: settings.tol,
            converged: self.converged(),
            reason: ranking.reason.name(),
            message: message(&ranking.reason),
            hint: self.hint(naming),
            iterations: ranking.iterations as u64,
            extrapolations: ranking.extrapolations as u64,
            error_bound: self.error_bound(),
            error_estimate: ranking.estimate,
            sum: ranking.certificate.sum,
            seconds_load: graph.seconds_load,
            seconds_setup: self.facts.seconds_setup + ranking.seconds_setup,
            seconds_solve: ranking.seconds_solve,
            seconds_certify: ranking.seconds_certify,
            seconds_per_iteration: each,
            bytes_per_iteration: ranking.bytes_per_iteration,
            gigabytes_per_second: per_second(ranking.bytes_per_iteration) / 1e9,
            links_per_second: per_second(self.facts.links),
            stream_gigabytes_per_second: self.limit.map(|limit| limit.stream),
            percent_of_limit: self.limit.map(|limit| 100.0 * limit.seconds / each),
            notes: graph.notes.clone(),
            top: self.top(settings.top),
        }
    }

    /// What could help, by what the bounds of all iterations say.
    fn hint(&self, naming: Naming<'_>) -> Option<String> {
        let ended = Ended {
            reason: &self.ranking.reason,
            residuals: self.recorder.residuals(),
            goal: self.facts.settings.tol,
            seconds_each: self.seconds_each(),
            precision: self.facts.precision,
            restarts: false,
            tolerance: "tol",
            precond: None,
            resume: None,
        };
        advice::hint(&ended, naming)
    }
}
