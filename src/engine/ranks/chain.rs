//! Markov chains that are distributed over ranks, by the states that steps lead out of.

use super::file::read_graph;
use super::graph::drawn;
use super::text::GraphRows;
use super::{RankGraph, RankSource};
use crate::device::Ranks;
use crate::engine::matrix::Matrix;
use crate::error::Result;
use crate::format::{Csr, Duplicates, partition};
use crate::source;
use std::ffi::OsStr;
use std::path::Path;

/// A Markov chain over ranks: each rank has the steps out of a range of states, or the first rank has all.
/// Clones share the arrays.
#[derive(Clone)]
pub struct RankChain {
    pub(in crate::engine) ranks: Ranks,
    pub(in crate::engine) steps: Steps,
}

/// The steps that this rank has.
#[derive(Clone)]
pub(in crate::engine) enum Steps {
    /// All of them on the first rank, and nothing on the others.
    OnFirst(Option<Matrix>),
    /// Those out of a range of states, as the links of a graph, and whether errors name states by ids or
    /// labels.
    ByRows(RankGraph, bool),
}

impl RankChain {
    /// Distributes a chain that the first rank has; the other ranks pass none. The first rank keeps
    /// it, and finds its classes.
    pub fn distribute(ranks: &Ranks, chain: Option<&Matrix>) -> RankChain {
        RankChain { ranks: ranks.clone(), steps: Steps::OnFirst(chain.cloned()) }
    }

    /// Makes or reads the rows of each rank, so that no rank has the whole chain; `None` for a chain that the
    /// first rank must read and [`distribute`](RankChain::distribute). All ranks call this together.
    ///
    /// The ranks make or read rows of `blockband` without `symmetric`, `uniform` and `rmat`, of binary matrix
    /// files, graphs in the format of WebGraph, Matrix Market files in the coordinate format, and lists and
    /// tables of edges between ids. The first rank must read other formats and other generators, tables of
    /// names, compressed tables, compressed lists that are short or whose first id exceeds their number of
    /// edges, lists with very large ids, and lists with a fault.
    pub fn open<'a>(ranks: &Ranks, what: impl Into<RankSource<'a>>) -> Result<Option<RankChain>> {
        let source = what.into();
        let found = match made(ranks, source.what)? {
            Some(made) => Some(GraphRows::of(made)),
            None => read_graph(ranks, &source, ("markov", Duplicates::Sum))?,
        };
        Ok(found.map(|found| {
            // A list names its states as a graph names its vertices.
            let is_list = found.is_list;
            let steps = Steps::ByRows(found.named(ranks, &source, is_list), is_list);
            RankChain { ranks: ranks.clone(), steps }
        }))
    }

    /// Adds the labels from a file with one label per line, which the first rank reads; see
    /// [`Matrix::read_labels`].
    pub fn read_labels(self, path: impl AsRef<Path>) -> Result<RankChain> {
        let RankChain { ranks, steps } = self;
        let path = path.as_ref();
        let steps = match steps {
            Steps::OnFirst(chain) => {
                Steps::OnFirst(ranks.agreed(chain.map(|chain| chain.read_labels(path)).transpose())?)
            }
            Steps::ByRows(steps, _) => Steps::ByRows(steps.read_labels(path)?, true),
        };
        Ok(RankChain { ranks, steps })
    }

    /// Rewrites the notes of the reader.
    pub(crate) fn map_notes(mut self, note: impl Fn(&str) -> String) -> RankChain {
        if let Steps::ByRows(steps, _) = &mut self.steps {
            steps.names.map_notes(note);
        }
        self
    }

    /// Returns the ranks.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Returns whether each rank has some of the rows only.
    pub fn is_by_rows(&self) -> bool {
        matches!(self.steps, Steps::ByRows(..))
    }
}

/// Makes the rows of each rank of a generator whose rows can be made separately, or that consists of draws.
fn made(ranks: &Ranks, what: &OsStr) -> Result<Option<(Vec<usize>, Csr)>> {
    let Some(equal) = ranks.agreed(source::equal_rows(what))? else { return drawn(ranks, what) };
    let entries = |row: usize| row * equal.entries;
    let starts = partition::cut((equal.rows, partition::ROW), entries, ranks.size(), 1);
    let rows = ranks.agreed(equal.make(starts[ranks.rank()]..starts[ranks.rank() + 1]))?;
    Ok(Some((starts, rows)))
}
