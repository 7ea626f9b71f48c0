//! A graph in the form that PageRank needs: its links by target vertex, and the outgoing
//! weight of each vertex.
//!
//! A vertex gathers the ranks of all vertices that link to it. In social networks, most links come from few
//! vertices, which are scattered over the vertex numbers. Sorting vertices by decreasing number of links then
//! keeps the entries that are read most in the same cache lines, and in the cache. Vertices with equally many
//! outgoing links are sorted by their number of incoming links, so that the branch predictor predicts the
//! ends of their lists. Graphs that keep neighbours close together, such as web crawls, keep their order. The
//! new numbers are private to this folder.

mod over_ranks;

use crate::backend::distributed::RankRows;
use crate::device::Ranks;
use crate::device::distributed::Halo;
use crate::error::{ChainError, Error, Result};
use crate::format::{Csr, Values};
use crate::operator::Inflow;
use crate::parallel::{lock, run_all, split_front, tabulate, zeros};
use crate::solve::part::Part;
use crate::solve::rounding::sum;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Number of vertices whose ranks fit a second-level cache.
const CACHED: usize = 1 << 17;
/// Number of vertices from which on reordering is considered.
const MANY: usize = 1 << 18;
/// The fraction of all links that the cached vertices must have.
const SHARE: f64 = 0.5;
/// Neighbours at most this far apart in a list of links are likely to share a cache line, or
/// to be prefetched.
const NEAR: u32 = 64;

/// The valid range for the sum of the weights of the links out of a vertex.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-280..=1e280;

/// Links between vertices. A surfer at j goes to i with the weight of the link (j, i) over the sum of all
/// links out of j; a vertex without links, or with links of weight 0 only, is a *sink*.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    /// Entry (i, j) is the link from j to i: ones that are not stored, or weights. Over ranks, the rows of
    /// this rank, with the columns of a complete vector.
    incoming: Arc<Csr>,
    /// The exchange between ranks.
    of_rank: Option<Arc<RankRows>>,
    /// The sum of the weights of the links out of each vertex.
    out: Vec<f64>,
    /// The vertex of the graph for each number used here, if they differ; over ranks, both counted
    /// from the first of this rank.
    order: Option<Vec<u32>>,
    /// Computes sums over the links on a device.
    there: Option<There>,
}

#[derive(Clone)]
struct There(Arc<Mutex<Box<dyn Inflow>>>);

impl There {
    fn run<R>(&self, compute: impl FnOnce(&mut dyn Inflow) -> Result<R>) -> Option<R> {
        let done = compute(&mut **lock(&self.0));
        done.inspect_err(|error| log::warn!("the host computes the certificate, which takes longer: {error}"))
            .ok()
    }
}

impl fmt::Debug for There {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("on a device")
    }
}

impl Links {
    /// Builds the links of a graph in which entry (i, j) is the link from i to j.
    pub(crate) fn new(graph: &Csr) -> Result<Links> {
        let out = Links::weights_out(graph)?;
        Ok(Links::with_transpose(Arc::new(graph.transposed()?), out))
    }

    /// Builds the links of a graph from its transpose and the result of [`weights_out`](Links::weights_out).
    pub(crate) fn with_transpose(transpose: Arc<Csr>, out: Vec<f64>) -> Links {
        Links { incoming: transpose, of_rank: None, out, order: None, there: None }
    }

    /// Checks a graph, and returns the sum of the weights of the links out of each vertex.
    pub(crate) fn weights_out(graph: &Csr) -> Result<Vec<f64>> {
        check_square(graph)?;
        checked_weights(graph, 0)
    }

    /// Returns whether the neighbours of a vertex of a graph have distant numbers, estimated from a sample.
    pub(crate) fn are_scattered(graph: &Csr) -> bool {
        let [near, all] = near_neighbours(graph);
        2 * near < all
    }

    /// Lets a device compute the sums of certificates.
    pub(crate) fn compute_on_device(&mut self, inflow: Box<dyn Inflow>) {
        self.there = Some(There(Arc::new(Mutex::new(inflow))));
    }

    /// Computes the sum of the contributions of the vertices that link to each vertex on the device;
    /// none if the host must do it.
    pub(super) fn inflow_there(&self, contributions: &[f64]) -> Option<Vec<f64>> {
        // With all vertices in this process, the device has tried to compute the whole certificate.
        let there = self.there.as_ref().filter(|_| self.of_rank.is_some())?;
        let mut inflow = zeros(self.rows()).ok()?;
        there.run(|there| there.compute(contributions, &mut inflow))?;
        Some(inflow)
    }

    /// Lets the device that has all links compute; none if no device has them, or if it fails.
    pub(super) fn on_device<R>(&self, compute: impl FnOnce(&mut dyn Inflow) -> Result<R>) -> Option<R> {
        self.there.as_ref().filter(|_| self.of_rank.is_none())?.run(compute)
    }

    /// Builds the links in the order with the fastest gathers. On CPUs the reordering takes about as long as
    /// it saves in ten iterations. Two copies of the graph are in memory at once, and a copy of one bucket
    /// of links for each thread.
    pub(crate) fn in_best_order(graph: impl Into<Arc<Csr>>) -> Result<Links> {
        let graph = graph.into();
        check_square(&graph)?;
        match order(&graph)? {
            Some(order) => Links::ordered(graph, order),
            None => Links::new(&graph),
        }
    }

    fn ordered(graph: Arc<Csr>, order: Vec<u32>) -> Result<Links> {
        let out = checked_weights(&graph, 0)?;
        let out = tabulate(order.len(), |number| out[order[number] as usize])?;
        let incoming = Arc::new(graph.transposed_in_order(&order)?);
        Ok(Links { incoming, of_rank: None, out, order: Some(order), there: None })
    }

    /// Returns the links by target vertex, in the vertex order of this folder: the matrix that
    /// an operator must multiply.
    pub(crate) fn incoming(&self) -> &Arc<Csr> {
        &self.incoming
    }

    /// Joins the links into the vertices of each rank: its rows, the sum of the weights of the links out of
    /// each of its vertices, and their order.
    pub(crate) fn over_ranks(rows: Arc<RankRows>, out: Vec<f64>, order: Option<Vec<u32>>) -> Links {
        Links { incoming: Arc::clone(rows.matrix()), of_rank: Some(rows), out, order, there: None }
    }

    /// Returns the number of vertices.
    pub(crate) fn vertices(&self) -> usize {
        self.part().total(self.rows())
    }

    /// Returns the number of vertices of this process.
    pub(crate) fn rows(&self) -> usize {
        self.out.len()
    }

    /// Returns the exchange between ranks, if the vertices are distributed over ranks.
    pub(crate) fn halo(&self) -> Option<&Halo> {
        self.of_rank.as_ref().map(|rows| rows.halo())
    }

    /// Returns the ranks, if the vertices are distributed over ranks.
    pub(crate) fn ranks(&self) -> Option<&Ranks> {
        self.halo().map(Halo::ranks)
    }

    /// Returns the part of the vertices that this process has.
    pub(crate) fn part(&self) -> Part<'_> {
        self.halo().map_or_else(Part::default, Part::of_rank)
    }

    /// Returns the rows of this rank, if the vertices are distributed over ranks.
    pub(crate) fn rank_rows(&self) -> Option<&Arc<RankRows>> {
        self.of_rank.as_ref()
    }

    /// Returns the number of vertices of this process without links.
    pub(crate) fn count_sinks(&self) -> usize {
        let count = |out: &[f64]| out.iter().filter(|&&out| out == 0.0).count();
        self.out.par_chunks(1 << 16).map(count).sum()
    }

    /// Returns whether vertices have been reordered.
    pub(crate) fn are_reordered(&self) -> bool {
        self.order.is_some()
    }

    /// Returns the sum of the weights of the links out of each vertex; 0 for a sink.
    pub(super) fn out(&self) -> &[f64] {
        &self.out
    }

    /// Returns the vertices without links.
    pub(super) fn sinks(&self) -> impl Iterator<Item = usize> + '_ {
        self.out.iter().enumerate().filter(|(_, out)| **out == 0.0).map(|(vertex, _)| vertex)
    }

    /// Returns the number that each vertex of the graph has here, if they differ.
    pub(super) fn internal_numbers(&self) -> Option<Vec<u32>> {
        let order = self.order.as_ref()?;
        let mut numbers = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&vertex, number)| numbers[vertex as usize] = number);
        Some(numbers)
    }

    /// Permutes values from the graph's vertex order to that of this folder.
    pub(super) fn to_internal_order(&self, values: &[f64]) -> Vec<f64> {
        match &self.order {
            None => values.to_vec(),
            Some(order) => order.iter().map(|&vertex| values[vertex as usize]).collect(),
        }
    }

    /// Permutes values from the vertex order of this folder to the graph's.
    pub(super) fn to_graph_order(&self, values: Vec<f64>) -> Vec<f64> {
        let Some(order) = &self.order else { return values };
        let mut out = vec![0.0; values.len()];
        order.iter().zip(values).for_each(|(&vertex, value)| out[vertex as usize] = value);
        out
    }
}

/// Checks the weights, and computes the sum of the weights of the links out of each vertex. The rows
/// begin with vertex `first`.
fn checked_weights(graph: &Csr, first: usize) -> Result<Vec<f64>> {
    if matches!(graph.values(), Values::Ones) {
        return Ok(graph.map_rows(|i| graph.row_range(i).len() as f64));
    }
    let valid = |weight: f64| weight >= 0.0 && weight.is_finite();
    // The sum of the weights; NaN if one of them is not valid.
    let out = graph.map_rows(|i| {
        let mut all_valid = true;
        let sum = sum(graph.row(i).map(|(_, weight)| weight).inspect(|weight| all_valid &= valid(*weight)));
        if all_valid { sum } else { f64::NAN }
    });
    // Outside this range, the fractions of a rank would lose digits.
    let far = |sum: &f64| *sum != 0.0 && !WEIGHTS.contains(sum);
    let Some(i) = out.par_iter().position_first(far) else { return Ok(out) };
    let (to, reason) = match graph.row(i).find(|(_, weight)| !valid(*weight)) {
        Some((to, weight)) => {
            (Some(to as u64), format!("its weight is {weight}, and must be finite and not negative"))
        }
        None => {
            // A sum beyond the largest number is NaN.
            let sum = if out[i].is_nan() { "more than 1e308".to_owned() } else { format!("{:e}", out[i]) };
            (None, format!("their weights sum to {sum}; scale them to between 1e-280 and 1e280"))
        }
    };
    Err(ChainError::LinkWeights { vertex: (first + i) as u64, to, reason }.into())
}

fn check_square(graph: &Csr) -> Result<()> {
    match graph.is_square() {
        true => Ok(()),
        false => Err(Error::NotSquare { rows: graph.rows(), cols: graph.cols(), solver: "pagerank" }),
    }
}

/// Returns the vertices by decreasing number of outgoing links, then by decreasing number of incoming links,
/// if this order is beneficial.
fn order(graph: &Csr) -> Result<Option<Vec<u32>>> {
    let n = graph.rows();
    if n < MANY || !Links::are_scattered(graph) {
        return Ok(None);
    }
    let outgoing = tabulate(n, |vertex| graph.row_range(vertex).len() as u32)?;
    let vertices = by_links(&outgoing, &graph.column_lengths()?)?;
    let cached: usize = vertices[..CACHED].iter().map(|&vertex| outgoing[vertex as usize] as usize).sum();
    let pays = cached as f64 >= SHARE * graph.nnz() as f64;
    Ok(pays.then_some(vertices))
}

/// Sorts the vertices by decreasing number of outgoing links, then by decreasing number of incoming links.
/// Vertices with equal numbers keep their order.
fn by_links(outgoing: &[u32], incoming: &[u32]) -> Result<Vec<u32>> {
    let all: Vec<u32> = (0..outgoing.len() as u32).collect();
    let (mut vertices, ends) = by_decreasing(&all, outgoing)?;
    drop(all);
    // The vertices of a class are read in increasing order, which is faster than sorting all of them
    // by incoming links first.
    let mut rest = &mut vertices[..];
    let mut begin = 0;
    let mut classes = Vec::new();
    for end in ends {
        let class = split_front(&mut rest, end as usize - std::mem::replace(&mut begin, end as usize));
        if class.len() > 1 {
            classes.push(class);
        }
    }
    run_all(classes, |class: &mut [u32]| {
        let largest = class.iter().map(|&vertex| incoming[vertex as usize]).max().unwrap_or(0) as usize;
        // A counting sort passes over all keys up to the largest.
        if largest > 4 * class.len() {
            class.sort_by_key(|&vertex| Reverse(incoming[vertex as usize]));
        } else {
            class.copy_from_slice(&by_decreasing(class, incoming)?.0);
        }
        Ok(())
    })
    .into_iter()
    .collect::<Result<()>>()?;
    Ok(vertices)
}

/// Sorts vertices by decreasing key. Vertices with the same key keep their order. Returns them, and where the
/// vertices of each key end. A counting sort: the keys are at most the number of links.
fn by_decreasing(vertices: &[u32], keys: &[u32]) -> Result<(Vec<u32>, Vec<u32>)> {
    let key = |vertex: u32| keys[vertex as usize] as usize;
    let largest = vertices.iter().map(|&vertex| key(vertex)).max().unwrap_or(0);
    // The place of the next vertex with each key, from the largest key on.
    let mut places: Vec<u32> = zeros(largest + 2)?;
    vertices.iter().for_each(|&vertex| places[largest - key(vertex) + 1] += 1);
    (0..=largest).for_each(|at| places[at + 1] += places[at]);
    let mut sorted: Vec<u32> = zeros(vertices.len())?;
    for &vertex in vertices {
        let place = &mut places[largest - key(vertex)];
        sorted[*place as usize] = vertex;
        *place += 1;
    }
    places.truncate(largest + 1);
    Ok((sorted, places))
}

/// Counts the near neighbours in the lists of links of a sample of vertices, and all neighbours.
fn near_neighbours(graph: &Csr) -> [usize; 2] {
    const ROWS: usize = 4096;
    // Long lists have small gaps in any case, and one of them would outweigh the rest of the sample.
    const LONG: usize = 256;
    // An odd step, because vertices at multiples of powers of two are atypical in some graphs.
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
    [near, all]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::load;

    #[test]
    fn reordered_links_are_those_of_the_graph() {
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
        assert_eq!(links.to_graph_order(links.to_internal_order(&values)), values);
    }

    #[test]
    fn vertices_are_sorted_by_both_numbers_of_links_and_else_keep_their_order() {
        for (n, most) in [(0, 1), (1, 1), (1000, 1), (1000, 7), (1000, 100_000)] {
            let numbers = |factor: u32| (1..=n).map(|i| factor.wrapping_mul(i) % most).collect::<Vec<u32>>();
            let (outgoing, incoming) = (numbers(2_654_435_761), numbers(40_503));
            let (few, several) = (vec![3; n as usize], outgoing.iter().map(|links| links % 5).collect());
            for outgoing in [outgoing, few, several] {
                let mut expected: Vec<u32> = (0..n).collect();
                expected.sort_by_key(|&v| Reverse((outgoing[v as usize], incoming[v as usize])));
                assert_eq!(by_links(&outgoing, &incoming).unwrap(), expected, "{n} vertices, {most} numbers");
            }
        }
    }

    #[test]
    fn only_scattered_graphs_with_few_dominant_sources_are_reordered() {
        let ordered = |what: &str| {
            let graph = load(what).unwrap().matrix;
            let graph = Csr::with_pattern(Arc::clone(graph.pattern()), Values::Ones).unwrap();
            Links::in_best_order(graph).unwrap().are_reordered()
        };
        assert!(ordered("rmat:scale=18,edges=2000000"));
        assert!(!ordered("rmat:scale=12,edges=20000"), "all ranks fit the cache");
        assert!(!ordered("uniform:n=300000,row=5"), "all vertices have equally many links");
        assert!(!ordered("poisson2d:600x600"), "neighbours are near");
    }
}
