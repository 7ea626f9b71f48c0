//! The report of the solve of a chain.

mod lines;

use crate::observe::report::{Common, has_common};
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
    /// The fields of every report. The solver is `markov`. Backend, traffic and speed are those of the class
    /// with the most traffic; iterations and seconds are those of all classes together.
    #[serde(flatten)]
    pub common: Common,
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
    /// The residual to reach.
    pub tolerance: f64,
    /// The largest residual of all classes.
    pub residual: f64,
    /// Notes of the reader on its choices and on skipped parts of the file.
    pub notes: Vec<String>,
    /// The closed classes, in the order of their first states.
    pub classes: Vec<ClassReport>,
}

has_common!(MarkovReport);
