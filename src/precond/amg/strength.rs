//! The strong connections of a matrix, by which its unknowns are aggregated.
//!
//! A vertex is a node: `block` consecutive unknowns. The weight of a connection is
//! ||A_ij|| / sqrt(||A_ii|| ||A_jj||) in the Frobenius norm, and a connection is strong if its weight is at
//! least a limit.

use crate::error::Result;
use crate::format::Csr;
use crate::format::product::{RowSum, Rows, Workspace};
use crate::parallel::collected;
use rayon::prelude::*;
use std::borrow::Cow;

/// Weights below this are no connections.
const LEAST: f64 = 1e-10;
/// The relative limit where the absolute one leaves most vertices alone.
const RELATIVE: f64 = 0.25;
/// Vertices that a thread processes as one task.
const TASK: usize = 4096;

/// The norms of the blocks of a matrix, and what scales them to weights.
pub(super) struct Norms<'a> {
    /// One entry for each block that is not zero; of single unknowns the matrix itself.
    norms: Cow<'a, Csr>,
    /// 1 / sqrt of the norm of the diagonal block.
    scale: Vec<f64>,
}

impl<'a> Norms<'a> {
    /// Computes the norms of a matrix with this diagonal.
    pub(crate) fn of(
        (matrix, diagonal): (&'a Csr, &[f64]),
        block: usize,
        space: &Workspace,
    ) -> Result<Norms<'a>> {
        let nodes = matrix.rows() / block;
        let rows = |node: usize| node * block..(node + 1) * block;
        let norms = match block {
            1 => Cow::Borrowed(matrix),
            _ => Cow::Owned(space.made_by_rows(
                (nodes, nodes),
                |node| rows(node).map(|row| matrix.row_range(row).len()).sum(),
                |node, sum: &mut RowSum<'_>| {
                    for (j, value) in rows(node).flat_map(|row| Rows::of(matrix).row(row)) {
                        sum.add((j / block) as u32, [value * value]);
                    }
                    sum.each(f64::sqrt);
                },
            )?),
        };
        let of_blocks = (block > 1).then(|| norms.diagonal());
        let diagonal = of_blocks.as_deref().unwrap_or(diagonal);
        let scale = collected(nodes, |node| 1.0 / diagonal[node].max(f64::MIN_POSITIVE).sqrt());
        Ok(Norms { norms, scale })
    }

    /// Returns the entries of a vertex and their weights; that of the diagonal is 0.
    #[inline(always)]
    fn weights(&self, vertex: usize) -> impl Iterator<Item = (usize, f64)> {
        let own = self.scale[vertex];
        Rows::of(&self.norms).row(vertex).map(move |(other, norm)| {
            let weight = norm.abs() * (own * self.scale[other]);
            (other, if other == vertex { 0.0 } else { weight })
        })
    }

    /// Returns the connections whose weight is at least `limit`.
    pub(crate) fn strong(&self, limit: f64, space: &Workspace) -> Result<Strong<'_>> {
        self.kept(|_, _, weight| weight >= limit.max(LEAST), space)
    }

    /// Returns the connections whose weight is at least a quarter of the largest weight of both vertices.
    pub(crate) fn relatively_strong(&self, space: &Workspace) -> Result<Strong<'_>> {
        let largest = |vertex: usize| self.weights(vertex).map(|(_, weight)| weight).fold(0.0, f64::max);
        let largest = collected(self.norms.rows(), largest);
        self.kept(|i, j, weight| weight >= (RELATIVE * largest[i].min(largest[j])).max(LEAST), space)
    }

    fn kept(
        &self,
        keeps: impl Fn(usize, usize, f64) -> bool + Sync,
        space: &Workspace,
    ) -> Result<Strong<'_>> {
        let n = self.norms.rows();
        let is_whole = |i: usize| self.weights(i).all(|(j, weight)| j == i || keeps(i, j, weight));
        if (0..n).into_par_iter().with_min_len(TASK).all(is_whole) {
            return Ok(Strong { norms: self, some: None });
        }
        let some = space.made_by_rows(
            (n, n),
            |row| self.norms.row_range(row).len(),
            |i, sum: &mut RowSum<'_>| {
                let kept = self.weights(i).filter(|&(j, weight)| j != i && keeps(i, j, weight));
                kept.for_each(|(j, weight)| sum.push(j as u32, [weight]));
            },
        )?;
        Ok(Strong { norms: self, some: Some(some) })
    }

    /// Writes the connections of a vertex with its entries' magnitudes in relation to their row, by which a
    /// vertex without strong connections joins an aggregate.
    pub(crate) fn entries(&self, vertex: usize, to: &mut Vec<(u32, f64)>) {
        to.clear();
        let own = self.weights(vertex).filter(|(_, weight)| *weight >= LEAST);
        to.extend(own.map(|(other, weight)| (other as u32, weight / self.scale[other])));
    }
}

/// The strong connections of all vertices.
pub(super) struct Strong<'a> {
    pub norms: &'a Norms<'a>,
    /// The weights of the strong connections; none if all entries but those of the diagonal are strong.
    some: Option<Csr>,
}

impl Strong<'_> {
    /// Returns the number of vertices.
    pub(crate) fn vertices(&self) -> usize {
        self.norms.norms.rows()
    }

    /// Returns a matrix with an entry for each strong connection, if not all connections are strong.
    pub(crate) fn some(&self) -> Option<&Csr> {
        self.some.as_ref()
    }

    /// Returns the columns of a vertex: those of its strong connections, and that of its diagonal entry if
    /// all connections are strong.
    #[inline(always)]
    fn columns(&self, vertex: u32) -> &[u32] {
        self.some.as_ref().unwrap_or(&self.norms.norms).row_columns(vertex as usize)
    }

    /// Returns whether a vertex has a strong connection.
    pub(crate) fn is_connected(&self, vertex: u32) -> bool {
        self.columns(vertex).iter().any(|other| *other != vertex)
    }

    /// Returns the vertices that a vertex is strongly connected with.
    #[inline(always)]
    pub(crate) fn neighbours(&self, vertex: u32) -> impl Iterator<Item = u32> {
        self.columns(vertex).iter().copied().filter(move |other| *other != vertex)
    }

    /// Returns the largest of `of` at a vertex and its neighbours.
    #[inline(always)]
    pub(crate) fn largest(&self, vertex: u32, of: impl Fn(u32) -> u64) -> u64 {
        self.columns(vertex).iter().fold(of(vertex), |largest, other| largest.max(of(*other)))
    }

    /// Writes the strong connections of a vertex with their weights.
    pub(crate) fn connections(&self, vertex: u32, to: &mut Vec<(u32, f64)>) {
        to.clear();
        match &self.some {
            Some(some) => {
                let row = Rows::of(some).row(vertex as usize);
                to.extend(row.map(|(other, weight)| (other as u32, weight)));
            }
            None => {
                let weights = self.norms.weights(vertex as usize);
                let others = weights.filter(|(other, _)| *other != vertex as usize);
                to.extend(others.map(|(other, weight)| (other as u32, weight)));
            }
        }
    }

    /// Returns whether most vertices have no connection.
    pub(crate) fn leaves_most_alone(&self) -> bool {
        let vertices = (0..self.vertices() as u32).into_par_iter().with_min_len(TASK);
        2 * vertices.filter(|vertex| !self.is_connected(*vertex)).count() > self.vertices()
    }
}
