//! The levels of multigrid, as reports describe them.

use crate::observe::phrases::{Line, count};
use crate::text::thousands;
use serde::{Deserialize, Serialize};

/// The levels of a preconditioner, with the near-null vectors that they represent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Levels {
    /// The near-null vectors in words.
    pub near_null: String,
    /// Whether no near-null vectors are known, so that there is a constant for each unknown of a node.
    pub constants: bool,
    /// The unknowns of a node of the matrix.
    pub unknowns: u64,
    /// The entries of all levels relative to those of the matrix.
    pub operator_complexity: f64,
    /// The rows of all levels relative to those of the matrix.
    pub grid_complexity: f64,
    /// The levels, from the matrix to the smallest one.
    pub levels: Vec<Level>,
}

/// One level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Rows of its matrix.
    pub rows: u64,
    /// Entries of its matrix, or of the inverse if the last level is inverted.
    pub entries: u64,
    /// The aggregates from which the next level is made; none on the last level, as the two fields below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregates: Option<u64>,
    /// The mean number of nodes of an aggregate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_mean: Option<f64>,
    /// The nodes of the largest aggregate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_largest: Option<u64>,
    /// The estimate, from above, of the largest eigenvalue of D^-1 A, with the diagonal D of its matrix A;
    /// none if the level is inverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eigenvalue_largest: Option<f64>,
    /// The backend of the products with its matrix.
    pub backend: String,
    /// Bytes of its operators and vectors.
    pub bytes: u64,
}

impl Levels {
    /// Describes levels, whose complexities follow from their sizes.
    pub(crate) fn new(near_null: String, constants: bool, unknowns: u64, levels: Vec<Level>) -> Levels {
        let relative = |of: fn(&Level) -> u64| {
            let first = levels.first().map_or(0, of).max(1);
            levels.iter().map(of).sum::<u64>() as f64 / first as f64
        };
        Levels {
            near_null,
            constants,
            unknowns,
            operator_complexity: relative(|level| level.entries),
            grid_complexity: relative(|level| level.rows),
            levels,
        }
    }

    /// Returns the number of levels with their complexities.
    pub(crate) fn in_words(&self) -> String {
        let [operator, grid] = [self.operator_complexity, self.grid_complexity];
        let levels = thousands(self.levels.len() as u64);
        format!("{levels}, operator complexity {operator:.2}, grid complexity {grid:.2}")
    }

    /// Returns the line of a report. A convergence factor follows from the iterations of a solve.
    pub(crate) fn line(&self, iterations: u64, factor: Option<f64>) -> Line {
        let solve = factor.map_or(String::new(), |factor| {
            format!("; {}, convergence factor {factor:.2}", count(iterations, "iteration"))
        });
        ("levels", format!("{}{solve}", self.in_words()))
    }
}
