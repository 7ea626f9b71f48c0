//! What a ranking says about itself.

mod lines;

use crate::observe::report::{Measure, Report};
use serde::Serialize;

/// One of the highest ranks.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Top {
    /// The id of the vertex; none where vertices have labels alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The label of the vertex, where vertices have labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The rank.
    pub rank: f64,
    /// Whether the bound makes it certain that this rank is above the next.
    pub above_next_is_certain: bool,
}

/// Everything that a ranking says about itself, as JSON has it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RankReport {
    /// `pagerank`.
    pub solver: &'static str,
    /// How the ranks were found.
    pub method: &'static str,
    /// The graph as the user named it.
    pub graph: String,
    /// The real graph that this one only imitates.
    pub stand_in: Option<&'static str>,
    /// Vertices.
    pub vertices: u64,
    /// Links that were followed, after those that were asked away.
    pub links: u64,
    /// Links from a vertex to itself, in the graph as it was given.
    pub self_loops: u64,
    /// Links beyond the first between the same two vertices, in the graph as it was given.
    pub duplicates: u64,
    /// Vertices without links.
    pub sinks: u64,
    /// Whether vertices were numbered anew for the solve, by their links.
    pub reordered: bool,
    /// The probability that the surfer follows a link.
    pub damping: f64,
    /// What becomes of the surfer at a sink.
    pub dangling: &'static str,
    /// The equation of the ranks.
    pub formula: &'static str,
    /// Where it ran: `cpu (2 threads)`, `cuda:0 (NVIDIA H200)`.
    pub device: String,
    /// The SpMV backend, with its parameters; `none` where the method needs none.
    pub backend: String,
    /// Why `auto` chose it, where the user did not.
    pub backend_because: Option<String>,
    /// `f64`, `f32` or `mixed`.
    pub precision: &'static str,
    /// The error of all ranks together to reach.
    pub tolerance: f64,
    /// Whether the bound meets the tolerance.
    pub converged: bool,
    /// Why the solve ended, as one word.
    pub reason: &'static str,
    /// The same as a sentence with its evidence.
    pub message: String,
    /// What could help where the solve did not converge.
    pub hint: Option<String>,
    /// Iterations done.
    pub iterations: u64,
    /// How often the ranks were moved ahead.
    pub extrapolations: u64,
    /// No more than this lies between these ranks and the exact ones, all differences summed.
    pub error_bound: f64,
    /// The same by the last step alone, rounding left out.
    pub error_estimate: f64,
    /// The sum of the ranks.
    pub sum: f64,
    /// Seconds to read or generate the graph.
    pub seconds_load: f64,
    /// Seconds to make links, operator and workspace ready.
    pub seconds_setup: f64,
    /// Seconds from the first iteration to the last.
    pub seconds_solve: f64,
    /// Seconds for the bound on the error.
    pub seconds_certify: f64,
    /// Seconds of one iteration.
    pub seconds_per_iteration: f64,
    /// Bytes that one iteration must move, counted from the arrays.
    pub bytes_per_iteration: u64,
    /// Those bytes over the time of an iteration.
    pub gigabytes_per_second: f64,
    /// Links that were followed in a second.
    pub links_per_second: f64,
    /// What a plain stream over a working set as large as the whole solve's reached on this device, in GB/s, where it was measured.
    pub stream_gigabytes_per_second: Option<f64>,
    /// The machine's limit for an iteration in percent of the measured time.
    pub percent_of_limit: Option<f64>,
    /// What the reader of the graph decided, and did not read.
    pub notes: Vec<String>,
    /// The highest ranks.
    pub top: Vec<Top>,
}

impl RankReport {
    /// The report as histories keep it, which pictures are made of.
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
}
