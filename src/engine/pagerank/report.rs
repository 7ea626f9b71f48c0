//! The report of a ranking.

mod lines;

use crate::observe::report::{Common, Measure, Report, has_common};
use serde::Serialize;

/// One of the highest ranks.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Top {
    /// The row of the vertex in the matrix, counted from 0.
    #[serde(skip)]
    pub row: usize,
    /// The id of the vertex; none if vertices have labels only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The label of the vertex, if vertices have labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The rank.
    pub rank: f64,
    /// Whether the error bound guarantees that this rank is above the next.
    pub above_next_is_certain: bool,
}

/// The report of a ranking; its fields are those of the JSON output.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RankReport {
    /// The fields of every report. The solver is `pagerank`.
    #[serde(flatten)]
    pub common: Common,
    /// The method of the solve.
    pub method: &'static str,
    /// The graph as the user named it.
    pub graph: String,
    /// The name of the real graph, if this graph is a generated imitation of it.
    pub stand_in: Option<&'static str>,
    /// Number of vertices.
    pub vertices: u64,
    /// Number of links in the solve, after removal of self-loops and duplicates if requested.
    pub links: u64,
    /// Number of links from a vertex to itself in the given graph.
    pub self_loops: u64,
    /// Number of repeated links, beyond the first between the same two vertices, in the given graph.
    pub duplicates: u64,
    /// Number of vertices without links.
    pub sinks: u64,
    /// Whether the vertices were reordered for the solve, by their links.
    pub reordered: bool,
    /// The probability that the surfer follows a link.
    pub damping: f64,
    /// The treatment of sinks.
    pub dangling: &'static str,
    /// The equation of the ranks.
    pub formula: &'static str,
    /// The tolerance on the l1 error of the ranks.
    pub tolerance: f64,
    /// The reason as a sentence with its evidence.
    pub message: String,
    /// Advice, if the solve did not converge.
    pub hint: Option<String>,
    /// Number of extrapolations.
    pub extrapolations: u64,
    /// Bound on the l1 norm of the difference from the exact ranks.
    pub error_bound: f64,
    /// Estimate of that error from the last step, without rounding errors.
    pub error_estimate: f64,
    /// The sum of the ranks.
    pub sum: f64,
    /// Seconds to compute the error bound.
    pub seconds_certify: f64,
    /// Links processed per second.
    pub links_per_second: f64,
    /// Measured bandwidth in GB/s of a plain stream on this device, over a working set as
    /// large as that of the solve.
    pub stream_gigabytes_per_second: Option<f64>,
    /// Notes of the reader on its choices and on skipped parts of the file.
    pub notes: Vec<String>,
    /// The highest ranks.
    pub top: Vec<Top>,
    /// A record for each of several personalisations; the other fields then describe all of them
    /// together, and `top` is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnRanks>,
}

has_common!(RankReport);

impl RankReport {
    /// Converts the report to that of a history, which plots are drawn from.
    pub(crate) fn for_history(self) -> Report {
        let preconditioner = format!("damping {}, dangling {}", self.damping, self.dangling);
        Report {
            common: Common { solver: format!("pagerank, {}", self.method), ..self.common },
            matrix: self.graph,
            stand_in: self.stand_in.map(str::to_owned),
            rows: self.vertices,
            nnz: self.links,
            preconditioner,
            measure: Measure::ErrorBound,
            rtol: self.tolerance,
            message: self.message,
            hint: self.hint,
            residual_recursive: self.error_estimate,
            residual_true: self.error_bound,
            residual_at_most: self.error_bound,
            stream_gigabytes_per_second: self.stream_gigabytes_per_second,
            ..Report::default()
        }
    }
}

/// The outcome of one of several personalisations. The fields have the meanings of those of [`RankReport`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ColumnRanks {
    /// The number of the column, counted from 1.
    pub column: u64,
    /// The personalisation: its file and line, or its vertices.
    pub personalise: String,
    /// Whether the error bound meets the tolerance.
    pub converged: bool,
    /// Why the column ended, as one word.
    pub reason: String,
    /// The reason as a sentence with its evidence.
    pub message: String,
    /// Iterations done.
    pub iterations: u64,
    /// Bound on the l1 norm of the difference from the exact ranks.
    pub error_bound: f64,
    /// Estimate of that error from the last step, without rounding errors.
    pub error_estimate: f64,
    /// The sum of the ranks.
    pub sum: f64,
    /// Seconds from the first iteration to the last of this column.
    pub seconds_solve: f64,
    /// Seconds to compute the error bound.
    pub seconds_certify: f64,
    /// The highest ranks.
    pub top: Vec<Top>,
}

impl ColumnRanks {
    /// Takes the record of a personalisation, counted from 1, from its report.
    pub(super) fn of(column: u64, personalise: &str, report: RankReport) -> ColumnRanks {
        ColumnRanks {
            column,
            personalise: personalise.to_owned(),
            converged: report.common.converged,
            reason: report.common.reason,
            message: report.message,
            iterations: report.common.iterations,
            error_bound: report.error_bound,
            error_estimate: report.error_estimate,
            sum: report.sum,
            seconds_solve: report.common.seconds_solve,
            seconds_certify: report.seconds_certify,
            top: report.top,
        }
    }
}
