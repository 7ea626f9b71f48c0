//! Partitions a graph with METIS: multilevel k-way partitioning that minimises the numbers
//! that the parts exchange.
//!
//! # Reference
//! G. Karypis and V. Kumar, Multilevel k-way partitioning scheme for irregular graphs, Journal of Parallel
//! and Distributed Computing 48, 1998.

use crate::error::{Error, Result};
use crate::parallel::{lock, room};
use metis::Graph;
use metis::option::{ObjType, Seed};
use std::ffi::c_int;
use std::sync::Mutex;

/// Whether this build has the graph partitioner.
pub(crate) const AVAILABLE: bool = true;

/// Not used: the partitioner is there.
pub(crate) const MISSING: &str = "";

/// The seed of its random numbers.
const SEED: i32 = 1;
/// The largest sum of all weights: METIS adds them as numbers of 32 bits.
const LARGEST: u64 = 1 << 30;

/// METIS takes its random numbers from the generator of the process, so one graph is partitioned at a time.
static ONE: Mutex<()> = Mutex::new(());

// SAFETY: `metis/errors.c` defines the function with this signature; it reads and writes a
// number of the calling thread.
unsafe extern "C" {
    /// Returns whether METIS has failed for lack of memory on this thread since the last call.
    /// Because of this call, the program is linked with `metis/errors.c`, and not with the file of
    /// METIS that has the same names.
    safe fn solver_metis_lacked_memory() -> c_int;
}

/// Returns the part of each vertex of an undirected graph. The neighbours of vertex i are
/// `offsets[i]..offsets[i + 1]` of `neighbours`. There are more vertices than parts.
pub(crate) fn parts_of(
    offsets: &[usize],
    neighbours: &[u32],
    weights: &[u64],
    parts: usize,
) -> Result<Vec<u32>> {
    let failed = |reason: String| Error::setting("partition", "graph", reason);
    let narrow = |number: usize| i32::try_from(number);
    let (Ok(_), Ok(nparts)) = (narrow(neighbours.len().max(offsets.len())), narrow(parts)) else {
        let reason = "the graph has 2^31 nodes or 2^30 links or more, the limits of METIS; use the partition coordinates or entries";
        return Err(failed(reason.to_owned()));
    };
    let (mut starts, mut links) = (room::<i32>(offsets.len())?, room::<i32>(neighbours.len())?);
    starts.extend(offsets.iter().map(|offset| *offset as i32));
    links.extend(neighbours.iter().map(|vertex| *vertex as i32));
    let scale = weights.iter().sum::<u64>().div_ceil(LARGEST).max(1);
    let mut scaled = room::<i32>(weights.len())?;
    scaled.extend(weights.iter().map(|weight| (weight / scale).clamp(1, LARGEST) as i32));
    let mut found = room::<i32>(weights.len())?;
    found.resize(weights.len(), 0);
    let graph = Graph::new(1, nparts, &starts, &links).map_err(|error| failed(error.to_string()))?;
    // The number of vertices that parts need of other parts, and not that of the links between parts.
    let graph = graph.set_vwgt(&scaled).set_option(ObjType::Vol).set_option(Seed(SEED));
    let one = lock(&ONE);
    let cut = graph.part_kway(&mut found);
    let lacks_memory = solver_metis_lacked_memory() != 0;
    drop(one);
    cut.map_err(|error| {
        failed(match lacks_memory {
            true => "METIS lacks memory for the graph; use the partition coordinates or entries".to_owned(),
            false => format!("METIS: {error}"),
        })
    })?;
    Ok(found.into_iter().map(|part| part as u32).collect())
}
