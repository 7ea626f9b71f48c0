//! A graph as PageRank needs it: its links by the vertex that they lead to, and what each vertex has to give.

use crate::error::{Error, Result};
use crate::format::{Csr, Values};
use std::sync::Arc;

/// Links between vertices. A surfer at j goes to i with the weight of the link (j, i) over the sum of all links out of
/// j; a vertex without links, or whose links weigh nothing, is a *sink*.
#[derive(Clone, Debug)]
pub struct Links {
    /// Entry (i, j) is the link from j to i: ones that are not stored, or weights.
    incoming: Arc<Csr>,
    /// The sum of the weights of the links out of each vertex.
    out: Vec<f64>,
}

impl Links {
    /// The links of a graph whose entry (i, j) is the link from i to j.
    pub fn new(graph: &Csr) -> Result<Links> {
        if !graph.is_square() {
            return Err(Error::NotSquare { rows: graph.rows(), cols: graph.cols(), solver: "pagerank" });
        }
        let out = match graph.values() {
            Values::Ones => graph.map_rows(|i| graph.row_range(i).len() as f64),
            _ => {
                check_weights(graph)?;
                graph.map_rows(|i| sum(graph.row(i).map(|(_, weight)| weight)))
            }
        };
        if let Some(vertex) = out.iter().position(|sum| !sum.is_finite()) {
            return Err(Error::LinkWeights {
                vertex,
                reason: "their sum leaves the range of f64".to_owned(),
            });
        }
        Ok(Links { incoming: Arc::new(graph.transposed()?), out })
    }

    /// The links by the vertex that they lead to.
    pub fn incoming(&self) -> &Arc<Csr> {
        &self.incoming
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.out.len()
    }

    /// The sum of the weights of the links out of each vertex; 0 for a sink.
    pub fn out(&self) -> &[f64] {
        &self.out
    }

    /// The vertices without links.
    pub fn sinks(&self) -> impl Iterator<Item = usize> + '_ {
        self.out.iter().enumerate().filter(|(_, out)| **out == 0.0).map(|(vertex, _)| vertex)
    }
}

/// Weights are shares of a surfer: finite, and not negative.
fn check_weights(graph: &Csr) -> Result<()> {
    let fault = |i: usize| graph.row(i).find(|(_, weight)| !(*weight >= 0.0 && weight.is_finite()));
    let faults = graph.map_rows(|i| fault(i).is_some());
    let Some(vertex) = faults.iter().position(|&fault| fault) else { return Ok(()) };
    let (to, weight) = fault(vertex).unwrap_or_default();
    let reason = format!(
        "the one to vertex {to} has weight {weight}, and must have one that is finite and not negative"
    );
    Err(Error::LinkWeights { vertex, reason })
}

/// A sum that is rounded about once, however many terms it has (A. Neumaier, ZAMM 54, 1974).
pub(super) fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for term in terms {
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    sum + lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_keeps_what_rounding_would_lose() {
        assert_eq!(sum([1e16, 1.0, 1.0, -1e16].into_iter()), 2.0);
        assert_eq!(sum(std::iter::repeat_n(0.1, 10)), 1.0);
        assert_eq!(sum(std::iter::empty()), 0.0);
    }
}
