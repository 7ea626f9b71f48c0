//! What the solve of a chain says about itself.

mod lines;

use serde::Serialize;

/// A state with its probability.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct State {
    /// Its id, or its number counted from 1; none where states have labels alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<u64>,
    /// Its label, where states have labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its probability.
    pub probability: f64,
}

/// The distribution of one class.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ClassReport {
    /// States.
    pub states: u64,
    /// The period of the class: 1 where the chain forgets when it began.
    pub period: u64,
    /// Whether the lazy chain was taken, because of the period.
    pub lazy: bool,
    /// Groups of states that are seldom left.
    pub groups: Option<u64>,
    /// The probability below which steps lead from one group to another.
    pub seldom: Option<f64>,
    /// Whether the residual meets the tolerance.
    pub converged: bool,
    /// Why the solve ended, as one word.
    pub reason: &'static str,
    /// The reason as a sentence with its evidence.
    pub message: String,
    /// What could help where the solve did not converge.
    pub hint: Option<String>,
    /// Iterations done.
    pub iterations: u64,
    /// The l1 norm of pi P - pi, recomputed.
    pub residual: f64,
    /// The same by the iteration.
    pub residual_recursive: f64,
    /// Seconds from the first iteration to the last.
    pub seconds_solve: f64,
    /// The likeliest states.
    pub top: Vec<State>,
}

/// Everything that the solves of a chain say about themselves, as JSON has it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MarkovReport {
    /// `markov`.
    pub solver: &'static str,
    /// How the distributions were found.
    pub method: &'static str,
    /// The chain as the user named it.
    pub matrix: String,
    /// States.
    pub states: u64,
    /// Steps that are stored.
    pub nnz: u64,
    /// States that are left for good, and have probability 0.
    pub transient: u64,
    /// Where it ran: `cpu (2 threads)`, `cuda:0 (NVIDIA H200)`.
    pub device: String,
    /// The SpMV backend of the largest class, with its parameters; `none` where the method needs none.
    pub backend: String,
    /// Why `auto` chose it, where the user did not.
    pub backend_because: Option<String>,
    /// `f64`, `f32` or `mixed`.
    pub precision: &'static str,
    /// The residual to reach.
    pub tolerance: f64,
    /// Whether every class has met the tolerance.
    pub converged: bool,
    /// Why the solve ended, as one word.
    pub reason: &'static str,
    /// Of all classes together.
    pub iterations: u64,
    /// The largest of all classes.
    pub residual: f64,
    /// Seconds to read or generate the chain.
    pub seconds_load: f64,
    /// Seconds to make chain, operators and workspace ready.
    pub seconds_setup: f64,
    /// Seconds from the first iteration to the last.
    pub seconds_solve: f64,
    /// Seconds of one iteration.
    pub seconds_per_iteration: f64,
    /// Bytes that one iteration of the largest class must move, counted from the arrays.
    pub bytes_per_iteration: u64,
    /// Those bytes over the time of an iteration.
    pub gigabytes_per_second: f64,
    /// The machine's limit for an iteration of that class in percent of the measured time.
    pub percent_of_limit: Option<f64>,
    /// What the reader of the chain decided, and did not read.
    pub notes: Vec<String>,
    /// The classes that are never left, in the order of their first states.
    pub classes: Vec<ClassReport>,
}
