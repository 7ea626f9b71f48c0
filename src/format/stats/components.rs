//! The components of the pattern as an undirected graph: rows are nodes, and an entry off the diagonal joins two.
//!
//! A forest of parents that several threads grow at once, without locks: a root is hung below a smaller root by one
//! compare-and-swap, so that parents are smaller than their children and no cycle can come about. Which parents there
//! are depends on who came first; which nodes share a root in the end does not.

use crate::error::Result;
use crate::parallel::{room, zeros};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The components of the undirected pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Components {
    /// How many there are, isolated rows included.
    pub count: usize,
    /// Rows in the largest.
    pub largest: usize,
    /// Rows that no entry joins to another.
    pub isolated: usize,
}

/// The forest.
pub(super) struct Parents(Vec<AtomicU32>);

impl Parents {
    /// `n` nodes apart. Nodes are rows of a square matrix, so that 32 bits hold them as they hold columns.
    pub fn new(n: usize) -> Result<Parents> {
        let mut parents = room(n)?;
        parents.extend((0..n as u32).map(AtomicU32::new));
        Ok(Parents(parents))
    }

    fn parent(&self, node: u32) -> u32 {
        self.0[node as usize].load(Relaxed)
    }

    /// The root above a node. Nodes on the way are hung two steps higher.
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
    pub fn join(&self, row: u32, columns: &[u32]) {
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

    /// Counts, when all is joined.
    pub fn components(self) -> Result<Components> {
        let mut roots: Vec<u32> = self.0.into_iter().map(AtomicU32::into_inner).collect();
        let mut sizes = zeros::<u32>(roots.len())?;
        for node in 0..roots.len() {
            // Parents are smaller, so that theirs is a root already.
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
