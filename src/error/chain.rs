//! Errors of graphs and Markov chains.

use super::{COUNTED, Index};

/// A graph has no ranks, or a chain has no unique stationary distribution.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// The weights of the links out of a vertex are invalid.
    #[error("the links out of vertex {vertex}{}: {reason}", to.map_or(String::new(), |to| format!(", the one to vertex {to}")))]
    LinkWeights {
        /// The vertex, by its id or counted from 0.
        vertex: u64,
        /// The target of the link, if the error is about one link.
        to: Option<u64>,
        /// What is wrong.
        reason: String,
    },
    /// The weights of the links out of a vertex with a label are invalid.
    #[error("the links out of vertex {vertex}{}: {reason}", to.as_ref().map_or(String::new(), |to| format!(", the one to vertex {to}")))]
    NamedWeights {
        /// The vertex, by its label or id.
        vertex: String,
        /// The target of the link, if the error is about one link.
        to: Option<String>,
        /// What is wrong.
        reason: String,
    },
    /// The weights of the links out of a state with a label or an id do not sum to 1.
    #[error(
        "the links out of vertex {vertex}: their weights sum to {sum}, but must sum to 1; weights with a nonzero sum can be \
         divided by it"
    )]
    NamedSum {
        /// The vertex, by its label or id.
        vertex: String,
        /// The sum.
        sum: f64,
    },
    /// A row of a chain does not sum to 1.
    #[error(
        "row {} sums to {sum} ({COUNTED}), but the probabilities of the steps out of a state must sum to 1; a row with a \
         nonzero sum can be divided by it", Index(*row)
    )]
    RowSum {
        /// The row, counted from 0.
        row: usize,
        /// Its sum.
        sum: f64,
    },
    /// The graph has no vertices.
    #[error("the graph{} has no vertices, so it has no ranks; a list or table of edges needs at least one edge", if graph.is_empty() { String::new() } else { format!(" {graph}") })]
    NoVertices {
        /// The graph as the user named it; empty if it has no name.
        graph: String,
    },
    /// The chain has no states.
    #[error("the chain has no states, so it has no distribution")]
    NoStates,
    /// An entry of a chain is negative.
    #[error("the entry ({}, {}) is {value} ({COUNTED}), but the probability of a step must not be negative", Index(*row), Index(*col))]
    Probability {
        /// The row, counted from 0.
        row: usize,
        /// The column, counted from 0.
        col: usize,
        /// The entry.
        value: f64,
    },
    /// The chain has several closed classes, with one distribution each.
    #[error(
        "the chain has {classes} closed classes of states, and each has its own stationary distribution; compute that of \
         each class"
    )]
    Reducible {
        /// How many.
        classes: usize,
    },
    /// A vector is not a distribution over the vertices.
    #[error("{what}: the values must not be negative and must sum to 1; their sum is {sum}")]
    NoDistribution {
        /// The vector.
        what: &'static str,
        /// Its sum.
        sum: f64,
    },
}
