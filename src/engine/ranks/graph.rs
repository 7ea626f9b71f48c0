//! Graphs that are distributed over ranks, by the vertices that links lead out of.

use super::{RankSource, scatter, starts_from_first};
use crate::backend::distributed::ColumnCounts;
use crate::device::Ranks;
use crate::engine::graph::Names;
use crate::engine::matrix::Matrix;
use crate::error::{Error, Result};
use crate::format::{Csr, partition};
use crate::source;
use rayon::prelude::*;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The links out of the vertices of a rank, of a graph that is distributed over ranks. Clones
/// share the arrays.
#[derive(Clone)]
pub struct RankGraph {
    pub(in crate::engine) ranks: Ranks,
    /// The first vertex of each rank, and the number of vertices.
    pub(in crate::engine) starts: Vec<usize>,
    /// A row for each vertex of this rank; the columns are all vertices.
    pub(in crate::engine) links: Arc<Csr>,
    /// The links of all vertices, if every rank sees them.
    pub(in crate::engine) whole: Option<Arc<Csr>>,
    /// On the first rank with the labels and ids of the vertices.
    pub(in crate::engine) names: Names,
}

impl RankGraph {
    /// Distributes a graph that the first rank has; the other ranks pass none. All ranks call this together.
    pub fn distribute(ranks: &Ranks, graph: Option<&Matrix>) -> Result<RankGraph> {
        RankGraph::cut(ranks, graph, |starts| scatter(ranks, graph.map(|graph| &*graph.csr), starts))
    }

    /// Distributes a graph that every rank has, as threads of one process do. Each rank copies its links.
    pub(in crate::engine) fn of_shared(ranks: &Ranks, graph: &Matrix) -> Result<RankGraph> {
        let first = Some(graph).filter(|_| ranks.is_first());
        let of_rank = RankGraph::cut(ranks, first, |starts| {
            graph.csr.row_band(starts[ranks.rank()]..starts[ranks.rank() + 1])
        })?;
        Ok(RankGraph { whole: Some(Arc::clone(&graph.csr)), ..of_rank })
    }

    /// Distributes a graph that the first rank has. `links` returns the rows of this rank.
    fn cut(
        ranks: &Ranks,
        graph: Option<&Matrix>,
        links: impl FnOnce(&[usize]) -> Result<Csr>,
    ) -> Result<RankGraph> {
        let starts = graph.map(|graph| match graph.csr.is_square() {
            true => Ok(partition::by_entries(&graph.csr, ranks.size(), 1)),
            false => Err(Error::NotSquare { rows: graph.rows(), cols: graph.cols(), solver: "pagerank" }),
        });
        let starts = ranks.agreed(starts.transpose())?.unwrap_or_default();
        let starts = starts_from_first(ranks, starts)?;
        let links = ranks.agreed(links(&starts))?;
        Ok(RankGraph::of_rows(ranks, (starts, links), |vertices| {
            graph.map_or_else(|| Names::on_first_rank(vertices), Matrix::names)
        }))
    }

    /// Combines the first vertex of each rank, and the links of this rank, with the names of all vertices.
    pub(super) fn of_rows(
        ranks: &Ranks,
        (starts, links): (Vec<usize>, Csr),
        names: impl FnOnce(usize) -> Names,
    ) -> RankGraph {
        let names = names(starts[ranks.size()]);
        RankGraph { ranks: ranks.clone(), starts, links: Arc::new(links), whole: None, names }
    }

    /// Makes the links of each rank of a generated graph that consists of draws; `None` for any other graph.
    /// Each rank makes its share of the draws, and sends each link to the rank that has its source. All
    /// ranks call this together.
    pub fn generate(ranks: &Ranks, what: &OsStr) -> Result<Option<RankGraph>> {
        let named = RankSource::from(what);
        let names = |vertices| Names::counted_from(0, vertices, named.origin());
        Ok(drawn(ranks, what)?.map(|rows| RankGraph::of_rows(ranks, rows, names)))
    }

    /// Adds the labels from a file with one label per line, which the first rank reads; see
    /// [`Matrix::read_labels`].
    pub fn read_labels(mut self, path: impl AsRef<Path>) -> Result<RankGraph> {
        if self.ranks.is_first() {
            let read = self.names.clone().read_labels(path.as_ref());
            self.names = self.ranks.agreed(read)?;
        } else {
            self.ranks.agreed(Ok(()))?;
        }
        Ok(self)
    }

    /// Rewrites the notes of the reader.
    pub(crate) fn map_notes(mut self, note: impl Fn(&str) -> String) -> RankGraph {
        self.names.map_notes(note);
        self
    }

    /// Returns the ranks.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Returns the vertices whose outgoing links this rank has.
    pub fn vertices(&self) -> Range<usize> {
        self.starts[self.ranks.rank()]..self.starts[self.ranks.rank() + 1]
    }

    /// Returns the number of vertices of all ranks.
    pub(in crate::engine) fn total_vertices(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Returns the links out of the vertices of this rank: a row for each, with the columns of
    /// the whole graph.
    pub fn links(&self) -> &Csr {
        &self.links
    }
}

/// Makes the rows of each rank of a generator that consists of draws, which are cut by their
/// entries; `None` for any other matrix. Each rank makes its share of the draws, and sends each
/// entry to the rank that has its row.
pub(super) fn drawn(ranks: &Ranks, what: &OsStr) -> Result<Option<(Vec<usize>, Csr)>> {
    let Some(draws) = ranks.agreed(source::draws(what))? else { return Ok(None) };
    let share = |rank: usize| (u128::from(draws.count()) * rank as u128 / ranks.size() as u128) as u64;
    let keys = ranks.agreed(draws.keys(share(ranks.rank())..share(ranks.rank() + 1)))?;
    let row = |key: u64| (key >> 32) as usize;
    let counts = ColumnCounts::of(ranks, draws.rows(), keys.par_iter().map(|key| row(*key) as u32));
    let starts = counts.cut(ranks.size(), partition::ROW);
    // The keys are sorted, so those of a rank are neighbours.
    let before = |start: usize| keys.partition_point(|key| row(*key) < start);
    let sent: Vec<Vec<u64>> =
        starts.windows(2).map(|ends| keys[before(ends[0])..before(ends[1])].to_vec()).collect();
    drop(keys);
    let keys = ranks.swap(&sent)?;
    drop(sent);
    let rows = starts[ranks.rank()]..starts[ranks.rank() + 1];
    let links = ranks.agreed(draws.make_rows(rows, keys.concat()))?;
    Ok(Some((starts, links)))
}
