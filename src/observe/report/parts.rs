//! How the rows of a solve are divided among ranks, and what the ranks exchange.

use crate::error::in_words;
use crate::observe::number::nan_for_null;
use crate::observe::phrases::{Line, count};
use crate::text::thousands;
use serde::{Deserialize, Serialize};

/// The parts of the ranks of a solve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Number of ranks.
    pub ranks: u64,
    /// The partition of the rows.
    pub partition: String,
    /// Rows of the rank with the most.
    pub rows_most: u64,
    /// Entries of the rank with the most.
    pub entries_most: u64,
    /// That number over the mean of all ranks.
    #[serde(deserialize_with = "nan_for_null")]
    pub imbalance: f64,
    /// Ranks that the rank with the most exchanges numbers with.
    pub neighbours_most: u64,
    /// Bytes that the rank with the most receives in a product with one vector.
    pub halo_bytes_most: u64,
    /// Bytes that all ranks receive in a product with one vector.
    pub halo_bytes: u64,
}

impl Parts {
    /// Returns the line of the report.
    pub(crate) fn line(&self) -> Line {
        let text = format!(
            "{} by {}: at most {}, {} ({:.2} times the mean), {} and {} of halo per product; all ranks together {}",
            count(self.ranks, "rank"),
            self.partition,
            count(self.rows_most, "row"),
            match self.entries_most {
                1 => "1 entry".to_owned(),
                more => format!("{} entries", thousands(more)),
            },
            self.imbalance,
            count(self.neighbours_most, "neighbour"),
            in_words(self.halo_bytes_most),
            in_words(self.halo_bytes),
        );
        ("parts", text)
    }
}
