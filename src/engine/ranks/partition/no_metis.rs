//! Takes the place of the graph partitioner in a build without it.

use crate::error::{Error, Result};

/// Whether this build has the graph partitioner.
pub(crate) const AVAILABLE: bool = false;

/// Tells how to get it.
pub(crate) const MISSING: &str =
    "this build has no graph partitioner; build the program with the cargo feature metis";

/// Fails.
pub(crate) fn parts_of(_: &[usize], _: &[u32], _: &[u64], _: usize) -> Result<Vec<u32>> {
    Err(Error::setting("partition", "graph", MISSING))
}
