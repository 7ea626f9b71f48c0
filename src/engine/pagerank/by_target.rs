//! The links of a graph, sorted by target.

use super::ranks::{GraphFacts, loops_and_repeats};
use super::{Repeated, SelfLoops, Settings};
use crate::device::Kept;
use crate::engine::device::{DeviceHandle, Opened};
use crate::engine::graph::Names;
use crate::engine::matrix::Matrix;
use crate::engine::ranks::RankGraph;
use crate::engine::transpose::transposed_there;
use crate::error::{ChainError, Error, Result};
use crate::format::{Values, partition};
use crate::solve::pagerank::links::Links;
use std::sync::Arc;

/// The links of a graph by target, and facts about the graph.
pub(super) struct ByTarget {
    pub links: Links,
    pub graph_facts: GraphFacts,
    /// Keeps a copy of the links on the device until the operator and the certificate use it.
    pub kept: Option<Kept>,
}

impl ByTarget {
    /// Sorts the links, on the device if it is faster. Leaves memory for `vectors` vectors there. `pulls` is
    /// whether the backend will be `pull`, if the graph has no weights.
    pub(crate) fn of(
        graph: Matrix,
        settings: &Settings,
        device: &DeviceHandle,
        (vectors, pulls): (usize, bool),
    ) -> Result<ByTarget> {
        let graph = graph.without_ones();
        let [loops, repeats] = keeps(settings);
        let csr = if loops && repeats {
            Arc::clone(&graph.csr)
        } else {
            Arc::new(graph.csr.simplified(0, loops, repeats)?)
        };
        // On a GPU, iterations are too fast for reordering to pay, unless there are many.
        let reorder = is_cpu(device) || settings.may_take_long();
        // Backends other than `pull` read the transpose on the host, and `pull` does so for columns near the
        // diagonal. With weights, the host has the transpose in any case.
        let host_reads = !(pulls && Links::are_scattered(&csr));
        // A GPU counts the loops of the graph that it transposes. The host does the rest meanwhile, but not
        // during the copy of the graph, whose bandwidth it would take.
        let counts_there = Arc::ptr_eq(&csr, &graph.csr) && !csr.pattern().has_repeats();
        let (mut out, mut graph_facts) = (None, None);
        let mut meanwhile = || {
            out = Some(Links::weights_out(&csr));
            graph_facts = (!counts_there).then(|| GraphFacts::of(&graph, None));
        };
        let there = match reorder {
            true => None,
            false => transposed_there(device, &csr, (vectors, host_reads), &mut meanwhile)?,
        };
        let loops = there.as_ref().filter(|_| counts_there).map(|there| there.loops);
        let graph_facts = graph_facts.unwrap_or_else(|| GraphFacts::of(&graph, loops));
        drop(graph);
        let kept = there.as_ref().map(|there| Arc::clone(&there.kept));
        let links = match there {
            Some(there) => {
                let out = out.unwrap_or_else(|| Links::weights_out(&csr));
                out.map(|out| Links::with_transpose(there.matrix, out))
            }
            None if reorder => Links::in_best_order(csr),
            None => Links::new(&csr),
        };
        let links = links.map_err(|error| named(&graph_facts.names, error))?;
        Ok(ByTarget { links, graph_facts, kept })
    }

    /// Sorts the links of a graph that is distributed over ranks: each rank gets the links into a range of
    /// vertices. All ranks call this together.
    pub(crate) fn over_ranks(
        graph: RankGraph,
        settings: &Settings,
        device: &DeviceHandle,
    ) -> Result<ByTarget> {
        let first = graph.vertices().start;
        let RankGraph { ranks, starts, links, whole, names } = graph;
        let (self_loops, duplicates) = loops_and_repeats(&links, first);
        let [self_loops, duplicates] = [self_loops, duplicates].map(|mine| ranks.total(mine));
        // As in one process, iterations of links that all weigh 1 move fewer bytes without weights.
        // All ranks then store none.
        let weighted = ranks.any(!links.values().are_ones());
        let links = if weighted { links } else { Arc::new(links.without_values()) };
        let [loops, repeats] = keeps(settings);
        // The whole graph has the links that the settings leave out, and its values.
        let whole =
            whole.filter(|whole| loops && repeats && weighted != matches!(whole.values(), Values::Ones));
        let outgoing = match loops && repeats {
            true => links,
            false => Arc::new(ranks.agreed(links.simplified(first, loops, repeats))?),
        };
        let work = ranks.fold(row_work(device) as f64, f64::max) as usize;
        // As in one process, iterations of GPUs are too fast for reordering to pay, unless there are many.
        let reorder = ranks.any(is_cpu(device)) || settings.may_take_long();
        let links = Links::of_ranks(&ranks, &starts, (&*outgoing, whole.as_deref()), work, reorder);
        let links = links.map_err(|error| named(&names, error))?;
        Ok(ByTarget { links, graph_facts: GraphFacts { names, self_loops, duplicates }, kept: None })
    }
}

/// Returns whether links of a vertex to itself are kept, and whether repeated links are.
fn keeps(settings: &Settings) -> [bool; 2] {
    [settings.self_loops == SelfLoops::Keep, settings.duplicates == Repeated::Keep]
}

fn is_cpu(device: &DeviceHandle) -> bool {
    matches!(device.0, Opened::Cpu(_))
}

/// Returns the links that a vertex counts as when the vertices are cut into parts: a GPU takes about 7.5 ps
/// for a link, and 17 ps for the 72 bytes of a vertex.
fn row_work(device: &DeviceHandle) -> usize {
    if is_cpu(device) { partition::ROW } else { 2 }
}

/// Replaces row numbers in an error by the labels or ids of vertices.
fn named(names: &Names, error: Error) -> Error {
    match error {
        Error::Chain(ChainError::LinkWeights { vertex, to, reason }) => {
            let (vertex, to) = (names.name(vertex as usize), to.map(|to| names.name(to as usize)));
            ChainError::NamedWeights { vertex, to, reason }.into()
        }
        other => other,
    }
}
