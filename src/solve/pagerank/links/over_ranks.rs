//! The links of a graph whose vertices are distributed over ranks.
//!
//! Each rank gets the links into a range of vertices. The ranges have about equal work. As in one process, a
//! rank sorts its vertices by decreasing number of links if that makes gathers faster: the vertices of a rank
//! that are read most are then neighbours in the complete vectors of all ranks.

use super::{CACHED, Links, MANY, SHARE, by_links, checked_weights, near_neighbours};
use crate::backend::distributed::{ColumnCounts, RankRows, transposed};
use crate::device::Ranks;
use crate::error::Result;
use crate::format::Csr;
use crate::parallel::tabulate;
use rayon::prelude::*;
use std::sync::Arc;

impl Links {
    /// Builds the links of a graph of which each rank has the links out of the vertices
    /// `starts[rank]..starts[rank + 1]`. Each rank gets the links into a part of the vertices, which are cut
    /// into parts of about equal work: a vertex counts as `work` links in addition to its own. With
    /// `reorder`, the vertices of a rank may get the order with the fastest gathers. If all ranks see the
    /// whole graph and pass it, no links are exchanged. All ranks call this together.
    pub(crate) fn of_ranks(
        ranks: &Ranks,
        starts: &[usize],
        (graph, whole): (&Csr, Option<&Csr>),
        work: usize,
        reorder: bool,
    ) -> Result<Links> {
        let n = starts[ranks.size()];
        let weights = ranks.agreed(checked_weights(graph, starts[ranks.rank()]))?;
        let [near, all] = if reorder { near_neighbours(graph) } else { [0, 0] };
        let scattered = 2 * sum(ranks, near) < sum(ranks, all);
        let counts = ColumnCounts::of(ranks, n, graph.col_indices().par_iter().copied());
        let to = counts.cut(ranks.size(), work);
        let own = to[ranks.rank()]..to[ranks.rank() + 1];
        let incoming = match whole {
            Some(whole) => ranks.agreed(whole.transposed_columns(own.clone()))?,
            None => transposed(ranks, starts, graph, &to)?,
        };
        let degrees: Vec<u32> = (0..graph.rows()).map(|row| graph.row_range(row).len() as u32).collect();
        // The sums of vertices are moved to the ranks that get the links into them.
        let move_to = |part: usize| {
            let first = starts[ranks.rank()];
            let clamp = |row: usize| row.clamp(first, first + weights.len()) - first;
            clamp(to[part])..clamp(to[part + 1])
        };
        let moved: Vec<Vec<f64>> = (0..ranks.size()).map(|part| weights[move_to(part)].to_vec()).collect();
        let out = ranks.swap(&moved)?.concat();
        let moved: Vec<Vec<u32>> = (0..ranks.size()).map(|part| degrees[move_to(part)].to_vec()).collect();
        let degrees = ranks.swap(&moved)?.concat();
        let order = if n >= MANY && scattered { order(ranks, &incoming, &degrees)? } else { None };
        let Some(order) = order else {
            return Ok(Links::over_ranks(Arc::new(RankRows::new(ranks, &to, incoming)?), out, None));
        };
        let incoming = in_order(ranks, &to, own.start, incoming, &order)?;
        let out = order.iter().map(|&vertex| out[vertex as usize]).collect();
        let rows = RankRows::new(ranks, &to, incoming)?;
        Ok(Links::over_ranks(Arc::new(rows), out, Some(order)))
    }
}

/// Adds whole numbers of all ranks.
fn sum(ranks: &Ranks, mine: usize) -> usize {
    ranks.total(mine as u64) as usize
}

/// Returns the vertices of this rank by decreasing number of outgoing links, then by decreasing number of
/// incoming links, if this order is beneficial on all ranks together.
fn order(ranks: &Ranks, incoming: &Csr, degrees: &[u32]) -> Result<Option<Vec<u32>>> {
    let lengths = tabulate(incoming.rows(), |vertex| incoming.row_range(vertex).len() as u32);
    let vertices = ranks.agreed(lengths.and_then(|lengths| by_links(degrees, &lengths)))?;
    let cached = vertices.iter().take(CACHED / ranks.size()).map(|&vertex| degrees[vertex as usize] as usize);
    let pays = sum(ranks, cached.sum()) as f64 >= SHARE * sum(ranks, incoming.nnz()) as f64;
    Ok(pays.then_some(vertices))
}

/// Renumbers the vertices within the range of each rank.
fn in_order(ranks: &Ranks, starts: &[usize], first: usize, incoming: Csr, order: &[u32]) -> Result<Csr> {
    let mut numbers = vec![0.0; order.len()];
    order.iter().zip(0..).for_each(|(&vertex, number)| numbers[vertex as usize] = (first + number) as f64);
    let (rows, n) = (RankRows::new(ranks, starts, incoming)?, starts[ranks.size()]);
    let mut complete = Vec::new();
    rows.halo().complete(&numbers, &mut complete);
    let rows = rows.matrix();
    ranks.agreed(rows.renumbered(order, n, |column| complete[column as usize] as u32))
}
