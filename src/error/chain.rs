//! What goes wrong with graphs and chains whose distributions are looked for.

/// A graph has no ranks, or a chain no one stationary distribution.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// The links out of a vertex cannot be chosen by their weights.
    #[error("the links out of vertex {vertex}{}: {reason}", to.map_or(String::new(), |to| format!(", the one to vertex {to}")))]
    LinkWeights {
        /// The vertex, by its id or counted from 0.
        vertex: u64,
        /// The vertex that the link leads to, where it is about one.
        to: Option<u64>,
        /// What is wrong.
        reason: String,
    },
    /// The same, of vertices with labels.
    #[error("the links out of vertex {vertex}{}: {reason}", to.as_ref().map_or(String::new(), |to| format!(", the one to vertex {to}")))]
    NamedWeights {
        /// The vertex, by its label or id.
        vertex: String,
        /// The vertex that the link leads to, where it is about one.
        to: Option<String>,
        /// What is wrong.
        reason: String,
    },
    /// The steps out of a state with a label or an id are no distribution.
    #[error(
        "the links out of vertex {vertex}: their weights sum to {sum}, and must sum to 1; where the sum is not 0, each can be \
         divided by it"
    )]
    NamedSum {
        /// The vertex, by its label or id.
        vertex: String,
        /// The sum.
        sum: f64,
    },
    /// A row of a chain is no distribution.
    #[error(
        "row {} sums to {sum}, and the steps out of a state must sum to 1 (counted from 1); a row whose sum is not 0 \
         can be divided by it", row + 1
    )]
    RowSum {
        /// The row, counted from 0.
        row: usize,
        /// Its sum.
        sum: f64,
    },
    /// A chain of nothing.
    #[error("the chain has no states, and so no distribution over them")]
    NoStates,
    /// An entry of a chain is no probability.
    #[error("the entry ({}, {}) is {value}, and the probability of a step is not negative (counted from 1)", row + 1, col + 1)]
    Probability {
        /// The row, counted from 0.
        row: usize,
        /// The column, counted from 0.
        col: usize,
        /// The entry.
        value: f64,
    },
    /// The chain has several classes that are never left, and one distribution for each.
    #[error(
        "the chain has {classes} classes of states that are never left, and as many stationary distributions; ask for \
         that of each class"
    )]
    Reducible {
        /// How many.
        classes: usize,
    },
    /// A vector is no distribution over the vertices.
    #[error("{what}: they must not be negative, and sum to 1; their sum is {sum}")]
    NoDistribution {
        /// The vector.
        what: &'static str,
        /// Its sum.
        sum: f64,
    },
}
