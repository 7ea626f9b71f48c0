//! The connected components of the pattern as an undirected graph: rows are nodes, and each entry off
//! the diagonal is an edge.
//!
//! A union-find forest that several threads update without locks: one compare-and-swap attaches a root to a
//! smaller root, so that parents are smaller than their children and no cycle can form. The parents depend on
//! the order of the updates; the sets of nodes with a common root do not.

use crate::error::Result;
use crate::format::Csr;
use crate::parallel::{room, zeros};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The components of the undirected pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Components {
    /// Number of components, including isolated rows.
    pub count: usize,
    /// Number of rows in the largest component.
    pub largest: usize,
    /// Number of rows without an edge to another row.
    pub isolated: usize,
}

/// Returns the component of each row of a square matrix, counted from 0 in the order of their first rows, and
/// the number of components.
pub(crate) fn component_of_each_row(matrix: &Csr) -> Result<(Vec<u32>, usize)> {
    let parents = Parents::new(matrix.rows())?;
    let rows = (0..matrix.rows()).into_par_iter().with_min_len(4096);
    rows.for_each(|row| parents.join(row as u32, matrix.row_columns(row)));
    let (mut of, mut count): (Vec<u32>, u32) = (room(matrix.rows())?, 0);
    for (node, parent) in parents.0.into_iter().map(AtomicU32::into_inner).enumerate() {
        // The parent is smaller than the node, so its component is known.
        let own = if parent as usize == node { count } else { of[parent as usize] };
        count += u32::from(parent as usize == node);
        of.push(own);
    }
    Ok((of, count as usize))
}

/// The parent of each node; a root is its own parent.
pub(super) struct Parents(Vec<AtomicU32>);

impl Parents {
    /// Creates a forest of `n` roots. Nodes are rows of a square matrix, and fit 32 bits as
    /// its column indices do.
    pub(crate) fn new(n: usize) -> Result<Parents> {
        let mut parents = room(n)?;
        parents.extend((0..n as u32).map(AtomicU32::new));
        Ok(Parents(parents))
    }

    fn parent(&self, node: u32) -> u32 {
        self.0[node as usize].load(Relaxed)
    }

    /// Returns the root of a node, and attaches nodes on the path to their grandparents (path halving).
    fn root(&self, mut node: u32) -> u32 {
        loop {
            let parent = self.parent(node);
            if parent == node {
                return node;
            }
            let above = self.parent(parent);
            if above != parent {
                self.0[node as usize].store(above, Relaxed);
            }
            node = parent;
        }
    }

    /// Joins a row with its columns.
    pub(crate) fn join(&self, row: u32, columns: &[u32]) {
        let mut root = self.root(row);
        for &col in columns {
            if self.parent(col) != root {
                root = self.join_two(root, col);
            }
        }
    }

    /// Joins two nodes, and returns the root of both.
    fn join_two(&self, a: u32, b: u32) -> u32 {
        loop {
            let (a, b) = (self.root(a), self.root(b));
            let (low, high) = (a.min(b), a.max(b));
            if low == high || self.0[high as usize].compare_exchange(high, low, Relaxed, Relaxed).is_ok() {
                return low;
            }
        }
    }

    /// Counts the components, once all rows are joined.
    pub(crate) fn components(self) -> Result<Components> {
        let mut roots: Vec<u32> = self.0.into_iter().map(AtomicU32::into_inner).collect();
        let mut sizes = zeros::<u32>(roots.len())?;
        for node in 0..roots.len() {
            // The parent is smaller than the node, so its entry is its root already.
            roots[node] = roots[roots[node] as usize];
            sizes[roots[node] as usize] += 1;
        }
        Ok(Components {
            count: sizes.iter().filter(|&&size| size > 0).count(),
            largest: sizes.iter().copied().max().unwrap_or(0) as usize,
            isolated: sizes.iter().filter(|&&size| size == 1).count(),
        })
    }
}
