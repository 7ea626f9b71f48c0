//! The report of the solve of a chain.

mod lines;

use crate::observe::profile::Times;
use crate::observe::report::Parts;
use serde::Serialize;

/// A state with its probability.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct State {
    /// The id of the state, or its number counted from 1; none if states have labels only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<u64>,
    /// The label of the state, if states have labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The probability of the state.
    pub probability: f64,
}

/// The report on one closed class.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ClassReport {
    /// Number of states.
    pub states: u64,
    /// The period of the class; 1 for an aperiodic class.
    pub period: u64,
    /// Whether the lazy chain was iterated instead, because of the period.
    pub lazy: bool,
    /// Number of groups of states that are seldom left.
    pub groups: Option<u64>,
    /// The probability below which steps lead from one group to another.
    pub seldom: Option<f64>,
    /// Whether the residual meets the tolerance.
    pub converged: bool,
    /// Why the solve ended, as one word.
    pub reason: &'static str,
    /// The reason as a sentence with its evidence.
    pub message: String,
    /// Advice, if the solve did not converge.
    pub hint: Option<String>,
    /// Iterations done.
    pub iterations: u64,
    /// The l1 norm of pi P - pi, recomputed.
    pub residual: f64,
    /// The l1 norm of pi P - pi as the iteration computed it.
    pub residual_recursive: f64,
    /// Seconds from the first iteration to the last.
    pub seconds_solve: f64,
    /// The most probable states.
    pub top: Vec<State>,
}

/// The report of the solves of a chain; its fields are those of the JSON output.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MarkovReport {
    /// `markov`.
    pub solver: &'static str,
    /// The method of the solve.
    pub method: &'static str,
    /// The chain as the user named it.
    pub matrix: String,
    /// Number of states.
    pub states: u64,
    /// Number of stored transition probabilities.
    pub nnz: u64,
    /// Number of transient states, which have probability 0.
    pub transient: u64,
    /// The device: `cpu (2 threads)`, `cuda:0 (NVIDIA H200)`.
    pub device: String,
    /// The SpMV backend of the largest class, with its parameters; `none` if the method needs no backend.
    pub backend: String,
    /// The reason for the backend, if `auto` chose it.
    pub backend_because: Option<String>,
    /// `f64`, `f32` or `mixed`.
    pub precision: &'static str,
    /// The residual to reach.
    pub tolerance: f64,
    /// Whether every class met the tolerance.
    pub converged: bool,
    /// Why the solve ended, as one word.
    pub reason: &'static str,
    /// Iterations of all classes together.
    pub iterations: u64,
    /// The largest residual of all classes.
    pub residual: f64,
    /// Seconds to read or generate the chain.
    pub seconds_load: f64,
    /// Seconds to prepare chain, operators and workspace.
    pub seconds_setup: f64,
    /// Seconds from the first iteration to the last.
    pub seconds_solve: f64,
    /// Seconds from the start of the command to this report; none in a program that calls the library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_total: Option<f64>,
    /// Seconds of one iteration.
    pub seconds_per_iteration: f64,
    /// Least memory traffic of one iteration of the largest class, in bytes, counted from the arrays.
    pub bytes_per_iteration: u64,
    /// `bytes_per_iteration` over the time of an iteration.
    pub gigabytes_per_second: f64,
    /// The time limit that the stream bandwidth sets for an iteration of the largest class in
    /// percent of the measured time.
    pub percent_of_limit: Option<f64>,
    /// The parts of the ranks of the largest class, if several share the solve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Notes of the reader on its choices and on skipped parts of the file.
    pub notes: Vec<String>,
    /// The closed classes, in the order of their first states.
    pub classes: Vec<ClassReport>,
    /// Seconds of wall time by phase up to this report, if a `Profile` is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Times>,
}
