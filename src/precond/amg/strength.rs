//! The strong connections of a matrix, by which its unknowns are aggregated.
//!
//! A vertex is a node: `block` consecutive unknowns. The weight of a connection is
//! ||A_ij|| / sqrt(||A_ii|| ||A_jj||) in the Frobenius norm, and a connection is strong if its weight is at
//! least a limit.

use crate::error::Result;
use crate::format::Csr;
use crate::format::product::{Rows, made_by_rows};
use crate::parallel::collected;
use rayon::prelude::*;
use std::borrow::Cow;

/// Weights below this are no connections.
const LEAST: f64 = 1e-10;
/// The relative limit where the absolute one leaves most vertices alone.
const RELATIVE: f64 = 0.25;

/// The norms of the blocks of a matrix, and what scales them to weights.
pub(super) struct Norms<'a> {
    /// One entry for each block that is not zero; of single unknowns the matrix itself.
    norms: Cow<'a, Csr>,
    /// 1 / sqrt of the norm of the diagonal block.
    scale: Vec<f64>,
}

impl<'a> Norms<'a> {
    pub(crate) fn of(matrix: &'a Csr, block: usize) -> Result<Norms<'a>> {
        let nodes = matrix.rows() / block;
        let rows = |node: usize| node * block..(node + 1) * block;
        let norms = match block {
            1 => Cow::Borrowed(matrix),
            _ => Cow::Owned(made_by_rows(
                (nodes, nodes),
                |node| rows(node).map(|row| matrix.row_range(row).len()).sum(),
                |node, sum| {
                    for (j, value) in rows(node).flat_map(|row| Rows::of(matrix).row(row)) {
                        sum.add((j / block) as u32, value * value);
                    }
                    sum.each(f64::sqrt);
                },
            )?),
        };
        let diagonal = norms.diagonal();
        let scale = diagonal.into_iter().map(|norm| 1.0 / norm.max(f64::MIN_POSITIVE).sqrt()).collect();
        Ok(Norms { norms, scale })
    }

    /// Returns the connections of a vertex to others with their weights.
    fn connections(&self, vertex: usize) -> impl Iterator<Item = (usize, f64)> {
        let own = self.scale[vertex];
        let others = Rows::of(&self.norms).row(vertex).filter(move |(other, _)| *other != vertex);
        others.map(move |(other, norm)| (other, norm.abs() * (own * self.scale[other])))
    }

    /// Returns the connections whose weight is at least `limit`.
    pub(crate) fn strong(&self, limit: f64) -> Result<Csr> {
        self.kept(|_, _, weight| weight >= limit.max(LEAST))
    }

    /// Returns the connections whose weight is at least a quarter of the largest weight of both vertices.
    pub(crate) fn relatively_strong(&self) -> Result<Csr> {
        let largest = |vertex: usize| self.connections(vertex).map(|(_, weight)| weight).fold(0.0, f64::max);
        let largest = collected(self.norms.rows(), largest);
        self.kept(|i, j, weight| weight >= (RELATIVE * largest[i].min(largest[j])).max(LEAST))
    }

    fn kept(&self, keeps: impl Fn(usize, usize, f64) -> bool + Sync) -> Result<Csr> {
        let n = self.norms.rows();
        made_by_rows(
            (n, n),
            |row| self.norms.row_range(row).len(),
            |row, sum| {
                let kept = self.connections(row).filter(|(other, weight)| keeps(row, *other, *weight));
                kept.for_each(|(other, weight)| sum.push(other as u32, weight));
            },
        )
    }

    /// Writes the connections of a vertex with its entries' magnitudes in relation to their row, by which a
    /// vertex without strong connections joins an aggregate.
    pub(crate) fn entries(&self, vertex: usize, to: &mut Vec<(u32, f64)>) {
        to.clear();
        let own = self.connections(vertex).filter(|(_, weight)| *weight >= LEAST);
        to.extend(own.map(|(other, weight)| (other as u32, weight / self.scale[other])));
    }
}

/// Returns whether most vertices have no connection.
pub(super) fn leaves_most_alone(strong: &Csr) -> bool {
    let alone = (0..strong.rows()).into_par_iter().with_min_len(4096);
    2 * alone.filter(|&row| strong.row_range(row).is_empty()).count() > strong.rows()
}
