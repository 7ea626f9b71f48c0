//! The strong connections of a matrix, by which its unknowns are aggregated.
//!
//! A vertex is a node: `block` consecutive unknowns. The weight of a connection is
//! ||A_ij|| / sqrt(||A_ii|| ||A_jj||) in the Frobenius norm, and a connection is strong if its weight is at
//! least a limit.

use crate::error::Result;
use crate::format::Csr;
use crate::format::product::{Rows, Workspace};
use crate::parallel::{collected, run_all, split_front, zeros};
use std::borrow::Cow;
use std::ops::Range;

/// Weights below this are no connections.
const LEAST: f64 = 1e-10;
/// The relative limit where the absolute one leaves most vertices alone.
const RELATIVE: f64 = 0.25;
/// The vertices of a task.
const TASK: usize = 1 << 14;

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
                |node, sum| {
                    for (j, value) in rows(node).flat_map(|row| Rows::of(matrix).row(row)) {
                        sum.add((j / block) as u32, value * value);
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
    pub(crate) fn strong(&self, limit: f64) -> Result<Strong<'_>> {
        self.kept(|_, _, weight| weight >= limit.max(LEAST))
    }

    /// Returns the connections whose weight is at least a quarter of the largest weight of both vertices.
    pub(crate) fn relatively_strong(&self) -> Result<Strong<'_>> {
        let largest = |vertex: usize| self.weights(vertex).map(|(_, weight)| weight).fold(0.0, f64::max);
        let largest = collected(self.norms.rows(), largest);
        self.kept(|i, j, weight| weight >= (RELATIVE * largest[i].min(largest[j])).max(LEAST))
    }

    fn kept(&self, keeps: impl Fn(usize, usize, f64) -> bool + Sync) -> Result<Strong<'_>> {
        let n = self.norms.rows();
        let (mut kept, mut connected): (Vec<u8>, Vec<u8>) = (zeros(self.norms.nnz())?, zeros(n)?);
        let (mut kept_left, mut connected_left) = (&mut kept[..], &mut connected[..]);
        let tasks = (0..n).step_by(TASK).map(|first| {
            let vertices = first..(first + TASK).min(n);
            let entries = self.norms.row_range(vertices.end - 1).end - self.norms.row_range(first).start;
            let connected = split_front(&mut connected_left, vertices.len());
            (vertices, split_front(&mut kept_left, entries), connected)
        });
        // Returns whether all entries but those of the diagonal are kept.
        let mark = |(vertices, kept, connected): (Range<usize>, &mut [u8], &mut [u8])| {
            let (mut kept, mut all) = (kept.iter_mut(), true);
            for (vertex, connected) in vertices.zip(connected) {
                for ((other, weight), kept) in self.weights(vertex).zip(&mut kept) {
                    *kept = u8::from(keeps(vertex, other, weight));
                    *connected |= *kept;
                    all &= *kept == 1 || other == vertex;
                }
            }
            all
        };
        let all = run_all(tasks.collect(), mark).into_iter().all(|all| all);
        Ok(Strong { norms: self, kept: (!all).then_some(kept), connected })
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
    /// For each entry 1 if it is a strong connection, else 0. None if all entries but those of the diagonal
    /// are strong.
    kept: Option<Vec<u8>>,
    /// For each vertex 1 if it has a strong connection, else 0.
    connected: Vec<u8>,
}

impl Strong<'_> {
    /// Returns the number of vertices.
    pub(crate) fn vertices(&self) -> usize {
        self.connected.len()
    }

    /// Returns whether a vertex has a strong connection.
    pub(crate) fn is_connected(&self, vertex: u32) -> bool {
        self.connected[vertex as usize] == 1
    }

    /// Returns for each entry whether it is strong, or none if all but those of the diagonal are.
    pub(crate) fn kept(&self) -> Option<&[u8]> {
        self.kept.as_deref()
    }

    /// Returns the vertices that a vertex is strongly connected with.
    #[inline(always)]
    pub(crate) fn neighbours(&self, vertex: u32) -> impl Iterator<Item = u32> {
        let range = self.norms.norms.row_range(vertex as usize);
        let kept = self.kept.as_ref().map(|kept| &kept[range.clone()]);
        let columns = self.norms.norms.col_indices()[range].iter().copied().enumerate();
        let is_strong = move |&(at, other): &(usize, u32)| match kept {
            Some(kept) => kept[at] == 1,
            None => other != vertex,
        };
        columns.filter(is_strong).map(|(_, other)| other)
    }

    /// Returns the largest of `of` at a vertex and its neighbours.
    #[inline(always)]
    pub(crate) fn largest(&self, vertex: u32, of: impl Fn(u32) -> u64) -> u64 {
        let range = self.norms.norms.row_range(vertex as usize);
        let columns = &self.norms.norms.col_indices()[range.clone()];
        let own = of(vertex);
        match &self.kept {
            None => columns.iter().fold(own, |largest, other| largest.max(of(*other))),
            Some(kept) => columns.iter().zip(&kept[range]).fold(own, |largest, (other, kept)| match kept {
                1 => largest.max(of(*other)),
                _ => largest,
            }),
        }
    }

    /// Writes the strong connections of a vertex with their weights.
    pub(crate) fn connections(&self, vertex: u32, to: &mut Vec<(u32, f64)>) {
        to.clear();
        let range = self.norms.norms.row_range(vertex as usize);
        let kept = self.kept.as_ref().map(|kept| &kept[range]);
        let weights = self.norms.weights(vertex as usize).enumerate();
        let is_strong = |at: usize, other: usize| match kept {
            Some(kept) => kept[at] == 1,
            None => other != vertex as usize,
        };
        let strong = weights.filter(|&(at, (other, _))| is_strong(at, other));
        to.extend(strong.map(|(_, (other, weight))| (other as u32, weight)));
    }

    /// Returns whether most vertices have no connection.
    pub(crate) fn leaves_most_alone(&self) -> bool {
        let connected: usize = self.connected.iter().map(|connected| usize::from(*connected)).sum();
        2 * connected < self.vertices()
    }
}
