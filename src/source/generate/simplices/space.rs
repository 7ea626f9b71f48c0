//! Meshes of tetrahedra: a lattice of boxes with displaced nodes, each divided at random.
//!
//! Every node has a random rank. A box is divided from its node of least rank: that node and the triangles of
//! the three faces without it are six tetrahedra. A face is divided by the diagonal from its own node of
//! least rank, so that both boxes at a face divide it in the same way, and the number of neighbours differs
//! from node to node. Then all nodes are displaced. Where a tetrahedron would lose most of its volume, the
//! displacements of its nodes are halved until it does not.

use super::assembly::{Simplices, determinant, space_gradients};
use super::plane::graded;
use super::{most_nodes, recipe, word};
use crate::error::Result;
use crate::parallel::collected;
use crate::source::generate::random::Random;
use crate::source::generate::{Recipe, Spec};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// How far a node may be from its place on the lattice along each axis, in steps of the lattice.
const JITTER: f64 = 0.35;
/// The least share of its volume on the lattice that a tetrahedron keeps.
const LEAST_VOLUME: f64 = 0.2;
/// Keeps the random ranks apart from the displacements.
const RANKS: u64 = 0x7261_6e6b;

/// A lattice of boxes in a body whose longest side is 1.
#[derive(Clone, Copy)]
struct Lattice {
    /// The length of each side of the body, and the boxes along it.
    lengths: [f64; 3],
    boxes: [usize; 3],
    /// Whether the distances along each side grow from the corner at the origin.
    graded: bool,
    seed: u64,
}

pub(in super::super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    let lengths = match word(spec, "shape") {
        "plate" => [1.0, 1.0, 1.0 / 50.0],
        "beam" => [1.0, 1.0 / 20.0, 1.0 / 20.0],
        _ => [1.0; 3],
    };
    let boxes = Lattice::boxes(lengths, most_nodes(spec)?);
    let lattice =
        Lattice { lengths, boxes, graded: word(spec, "points") == "graded", seed: spec.whole("seed") };
    let neighbours = 15;
    recipe(spec, [lattice.nodes(), neighbours], move |problem, order| {
        problem.assemble(&lattice.mesh().numbered(order)?, space_gradients)
    })
}

impl Lattice {
    /// Returns the most boxes along each side with at most `n` nodes, each box about a cube. There is one at
    /// least.
    fn boxes(lengths: [f64; 3], n: usize) -> [usize; 3] {
        let boxes = |along: usize| lengths.map(|length| ((along as f64 * length).round() as usize).max(1));
        let fits = |&along: &usize| boxes(along).iter().map(|boxes| boxes + 1).product::<usize>() <= n;
        // The number of nodes is at least that along the longest side, four times.
        boxes((1..=n / 4).take_while(fits).last().unwrap_or(1))
    }

    /// Returns the number of nodes.
    fn nodes(&self) -> usize {
        self.boxes.iter().map(|boxes| boxes + 1).product()
    }

    /// Returns the place of a node, in steps of the lattice.
    fn place(&self, node: usize) -> [usize; 3] {
        let [x, y, _] = self.boxes.map(|boxes| boxes + 1);
        [node % x, node / x % y, node / x / y]
    }

    /// Returns the position of a node whose displacement is multiplied by a share.
    fn position(&self, node: usize, share: f64) -> [f64; 3] {
        let (place, mut random) = (self.place(node), Random::at(self.seed, node as u64));
        std::array::from_fn(|axis| {
            let step = JITTER * share * (2.0 * random.unit() - 1.0);
            let at_side = place[axis] == 0 || place[axis] == self.boxes[axis];
            let moved = if at_side { 0.0 } else { step };
            let at = (place[axis] as f64 + moved) / self.boxes[axis] as f64;
            self.lengths[axis] * if self.graded { graded(at) } else { at }
        })
    }

    fn mesh(&self) -> Simplices<3, 4> {
        let boxes = self.boxes.iter().product();
        let cells: Vec<[u32; 4]> = collected(boxes, |number| self.divided(number)).into_flattened();
        let nodes = self.nodes();
        let regular = collected(nodes, |node| self.position(node, 0.0));
        let volume =
            |points: &[[f64; 3]], cell: &[u32; 4]| determinant(cell.map(|node| points[node as usize]));
        let mut shares = vec![1.0; nodes];
        loop {
            let points = collected(nodes, |node| self.position(node, shares[node]));
            let crushed: Vec<AtomicBool> = (0..nodes).map(|_| AtomicBool::new(false)).collect();
            cells.par_iter().with_min_len(4096).for_each(|cell| {
                if volume(&points, cell) / volume(&regular, cell) < LEAST_VOLUME {
                    cell.iter().for_each(|&node| crushed[node as usize].store(true, Ordering::Relaxed));
                }
            });
            let mut valid = true;
            for (share, crushed) in shares.iter_mut().zip(crushed) {
                if crushed.into_inner() {
                    (*share, valid) = (*share / 2.0, false);
                }
            }
            if valid {
                return Simplices { points, cells };
            }
        }
    }

    /// Returns the tetrahedra of a box.
    fn divided(&self, number: usize) -> [[u32; 4]; 6] {
        let [x, y, _] = self.boxes;
        let low = [number % x, number / x % y, number / x / y];
        // The bits of the number of a corner are its place in the box.
        let corners: [u32; 8] = std::array::from_fn(|corner| {
            let [x, y, z] = std::array::from_fn(|axis| low[axis] + (corner >> axis & 1));
            ((z * (self.boxes[1] + 1) + y) * (self.boxes[0] + 1) + x) as u32
        });
        let ranks = corners.map(|node| (Random::at(self.seed ^ RANKS, u64::from(node)).bits(), node));
        let first = (0..8).min_by_key(|&corner| ranks[corner]).unwrap_or(0);
        let face = |axis: usize| {
            let (u, v) = (1 << ((axis + 1) % 3), 1 << ((axis + 2) % 3));
            let opposite = !first & 1 << axis;
            let around = [opposite, opposite | u, opposite | u | v, opposite | v];
            let start = (0..4).min_by_key(|&i| ranks[around[i]]).unwrap_or(0);
            let corner = |i: usize| corners[around[(start + i) % 4]];
            [[1, 2], [2, 3]].map(|[i, j]| [corners[first], corner(0), corner(i), corner(j)])
        };
        let [a, b, c] = [0, 1, 2].map(face);
        [a[0], a[1], b[0], b[1], c[0], c[1]]
    }
}
