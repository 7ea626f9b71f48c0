//! A graph as PageRank needs it: its links by the vertex that they lead to, and what each vertex has to give.
//!
//! A vertex gathers from all that link to it, wherever they stand. Where most links come from few vertices, as they do in
//! networks of people, and those stand anywhere, vertices can be numbered anew by falling number of links: what is read
//! most then shares lines of the cache and stays in it, and of vertices with equally many links those stand together that
//! are linked to equally often, so that the processor guesses the ends of their lists. Graphs that keep neighbours
//! together, as crawls of the web do, keep their order. Nothing outside this folder sees the other numbers.

use crate::error::{ChainError, Error, Result};
use crate::format::{Csr, Values};
use crate::solve::rounding::sum;
use rayon::slice::ParallelSliceMut;
use std::cmp::Reverse;
use std::sync::Arc;

/// Vertices whose ranks a second-level cache holds.
const CACHED: usize = 1 << 17;
/// Vertices from which on an order is looked for.
const MANY: usize = 1 << 18;
/// The share of all links that the vertices in the cache must have.
const SHARE: f64 = 0.5;
/// Neighbours in a list of links that lie so near each other are likely to share a line, or to be fetched ahead.
const NEAR: u32 = 64;

/// What the weights of the links out of a vertex may sum to.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-280..=1e280;

/// Links between vertices. A surfer at j goes to i with the weight of the link (j, i) over the sum of all links out of
/// j; a vertex without links, or whose links weigh nothing, is a *sink*.
#[derive(Clone, Debug)]
pub struct Links {
    /// Entry (i, j) is the link from j to i: ones that are not stored, or weights.
    incoming: Arc<Csr>,
    /// The sum of the weights of the links out of each vertex.
    out: Vec<f64>,
    /// The vertex of the graph that each number here stands for, where they differ.
    order: Option<Vec<u32>>,
}

impl Links {
    /// The links of a graph whose entry (i, j) is the link from i to j.
    pub fn new(graph: &Csr) -> Result<Links> {
        check(graph)?;
        let out = given(graph)?;
        Ok(Links { incoming: Arc::new(graph.transposed()?), out, order: None })
    }

    /// The same in the order that gathers fastest. On CPUs finding it takes as long as some ten iterations gain. The graph is
    /// given up on the way, so that no more than two of its size are in memory at once where it is not shared.
    pub fn in_best_order(graph: impl Into<Arc<Csr>>) -> Result<Links> {
        let graph = graph.into();
        check(&graph)?;
        match order(&graph)? {
            Some(order) => Links::ordered(graph, order),
            None => Links::new(&graph),
        }
    }

    fn ordered(graph: Arc<Csr>, order: Vec<u32>) -> Result<Links> {
        let out = given(&graph)?;
        let out = order.iter().map(|&vertex| out[vertex as usize]).collect();
        // Sources get their new numbers in the transposition, which sorts by them, and targets after it.
        let incoming = graph.transposed_in_order(&order)?;
        drop(graph);
        Ok(Links { incoming: Arc::new(incoming.rows_in_order(&order)?), out, order: Some(order) })
    }

    /// The links by the vertex that they lead to, under the numbers of this folder: what an operator must multiply by.
    pub fn incoming(&self) -> &Arc<Csr> {
        &self.incoming
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.out.len()
    }

    /// Number of vertices without links.
    pub fn count_sinks(&self) -> usize {
        self.sinks().count()
    }

    /// Whether vertices have been numbered anew.
    pub fn are_reordered(&self) -> bool {
        self.order.is_some()
    }

    /// The sum of the weights of the links out of each vertex; 0 for a sink.
    pub(super) fn out(&self) -> &[f64] {
        &self.out
    }

    /// The vertices without links.
    pub(super) fn sinks(&self) -> impl Iterator<Item = usize> + '_ {
        self.out.iter().enumerate().filter(|(_, out)| **out == 0.0).map(|(vertex, _)| vertex)
    }

    /// Numbers of the vertices of the graph, under the numbers of this folder.
    pub(super) fn taken_in(&self, values: &[f64]) -> Vec<f64> {
        match &self.order {
            None => values.to_vec(),
            Some(order) => order.iter().map(|&vertex| values[vertex as usize]).collect(),
        }
    }

    /// And back.
    pub(super) fn handed_out(&self, values: Vec<f64>) -> Vec<f64> {
        let Some(order) = &self.order else { return values };
        let mut out = vec![0.0; values.len()];
        order.iter().zip(values).for_each(|(&vertex, value)| out[vertex as usize] = value);
        out
    }
}

/// The sum of the weights of the links out of each vertex.
fn given(graph: &Csr) -> Result<Vec<f64>> {
    let out = match graph.values() {
        Values::Ones => graph.map_rows(|i| graph.row_range(i).len() as f64),
        _ => graph.map_rows(|i| sum(graph.row(i).map(|(_, weight)| weight))),
    };
    // Shares of a rank must keep all their digits.
    let far = |sum: &f64| *sum != 0.0 && !WEIGHTS.contains(sum);
    let Some(vertex) = out.iter().position(far) else { return Ok(out) };
    let reason = format!("their weights sum to {:e}; scale them to between 1e-280 and 1e280", out[vertex]);
    Err(ChainError::LinkWeights { vertex: vertex as u64, to: None, reason }.into())
}

fn check(graph: &Csr) -> Result<()> {
    if !graph.is_square() {
        return Err(Error::NotSquare { rows: graph.rows(), cols: graph.cols(), solver: "pagerank" });
    }
    if matches!(graph.values(), Values::Ones) {
        return Ok(());
    }
    // Weights are shares of a surfer: finite, and not negative.
    let fault = |i: usize| graph.row(i).find(|(_, weight)| !(*weight >= 0.0 && weight.is_finite()));
    let faults = graph.map_rows(|i| fault(i).is_some());
    let Some(vertex) = faults.iter().position(|&fault| fault) else { return Ok(()) };
    let (to, weight) = fault(vertex).unwrap_or_default();
    let reason = format!("its weight is {weight}, and must be finite and not negative");
    Err(ChainError::LinkWeights { vertex: vertex as u64, to: Some(to as u64), reason }.into())
}

/// The vertices by falling number of links out of them, and of equal ones by that of links into them, where that pays.
fn order(graph: &Csr) -> Result<Option<Vec<u32>>> {
    let n = graph.rows();
    if n < MANY || !is_scattered(graph) {
        return Ok(None);
    }
    // Then the lower number first, so that the order follows from the graph alone.
    let key = |(i, came): (usize, u32)| (Reverse(graph.row_range(i).len()), Reverse(came), i as u32);
    let came = graph.column_lengths()?;
    let mut keys: Vec<_> = came.into_iter().enumerate().map(key).collect();
    keys.par_sort_unstable();
    let cached: usize = keys[..CACHED].iter().map(|(Reverse(given), ..)| given).sum();
    let pays = cached as f64 >= SHARE * graph.nnz() as f64;
    Ok(pays.then(|| keys.into_iter().map(|(.., i)| i).collect()))
}

/// Whether the vertices that a vertex links to lie apart, by a sample.
fn is_scattered(graph: &Csr) -> bool {
    const ROWS: usize = 4096;
    // Long lists leave no room for gaps, and one of them would outweigh all others of the sample.
    const LONG: usize = 256;
    // An odd step: numbers that are multiples of powers of two are special in some graphs.
    let step = (graph.rows() / ROWS) | 1;
    let (mut near, mut all) = (0, 0);
    for row in (0..graph.rows()).step_by(step) {
        let columns = graph.row_columns(row);
        if columns.len() > LONG {
            continue;
        }
        near += columns.windows(2).filter(|w| w[1] - w[0] <= NEAR).count();
        all += columns.len().saturating_sub(1);
    }
    2 * near < all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::load;

    #[test]
    fn what_is_numbered_anew_are_the_same_links() {
        let graph = load("rmat:scale=9,edges=4000").unwrap().matrix;
        let mut order: Vec<u32> = (0..512).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(graph.row_range(i as usize).len()));
        let links = Links::ordered(Arc::new(graph.clone()), order.clone()).unwrap();
        let place = |vertex: usize| order.iter().position(|&v| v as usize == vertex).unwrap();
        for i in 0..512 {
            let mut own: Vec<u32> =
                links.incoming().row_columns(place(i)).iter().map(|&j| order[j as usize]).collect();
            own.sort_unstable();
            assert_eq!(own, graph.transposed().unwrap().row_columns(i));
            assert_eq!(links.out()[place(i)], graph.row_range(i).len() as f64);
        }
        let values: Vec<f64> = (0..512).map(f64::from).collect();
        assert_eq!(links.handed_out(links.taken_in(&values)), values);
    }

    #[test]
    fn scattered_graphs_of_few_givers_are_ordered_and_others_stay() {
        let ordered = |what: &str| {
            let graph = load(what).unwrap().matrix;
            let graph = Csr::with_pattern(Arc::clone(graph.pattern()), Values::Ones).unwrap();
            Links::in_best_order(graph).unwrap().are_reordered()
        };
        assert!(ordered("rmat:scale=18,edges=2000000"));
        assert!(!ordered("rmat:scale=12,edges=20000"), "all fit the cache");
        assert!(!ordered("uniform:n=300000,row=5"), "all give alike");
        assert!(!ordered("poisson2d:600x600"), "neighbours are near");
    }
}
