//! The matrix of linear elements on a mesh of triangles or tetrahedra.
//!
//! # Method
//! The gradients g of the shape functions are constant in a cell. The entries of nodes a and b are the
//! cell's volume times <g_a, g_b>, or times lambda g_a g_b' + mu (g_b g_a' + <g_a, g_b> I). Every row adds
//! the cells at its node in ascending order, so that both halves are equal to the last bit.

use crate::error::Result;
use crate::format::{Coordinates, Csr};
use crate::parallel::{collected, room, zeros};
use crate::source::Loaded;
use crate::source::generate::assemble::{Shape, pattern, valued};
use crate::source::generate::random::Random;
use rayon::prelude::*;
use std::sync::Arc;

const POISSON_RATIO: f64 = 0.3;
/// The patches of one coefficient along a side of length 1.
const PATCHES: f64 = 8.0;
/// Keeps the random numbers of patches apart from those of points.
const STIFF: u64 = 0x0073_7469_6666;
/// The number of a node that is fixed.
const FIXED: u32 = u32::MAX;

/// Points in D dimensions, and cells of C = D + 1 of them.
pub(super) struct Simplices<const D: usize, const C: usize> {
    pub(super) points: Vec<[f64; D]>,
    pub(super) cells: Vec<[u32; C]>,
}

/// The equation.
#[derive(Clone, Copy)]
pub(super) struct Problem {
    /// Unknowns of a node: one, or one for each dimension.
    pub(super) unknowns: usize,
    /// Whether the side x = 0 is fixed.
    pub(super) fixed: bool,
    /// The factor of the coefficient in some patches.
    pub(super) jumps: f64,
    pub(super) seed: u64,
}

/// Returns the gradients of the shape functions of a cell, and its volume.
type Gradients<const D: usize, const C: usize> = fn([[f64; D]; C]) -> ([[f64; D]; C], f64);

fn minus<const D: usize>(a: [f64; D], b: [f64; D]) -> [f64; D] {
    std::array::from_fn(|d| a[d] - b[d])
}

fn dot<const D: usize>(a: &[f64; D], b: &[f64; D]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Returns six times the volume of a tetrahedron, with the sign of its orientation.
pub(super) fn determinant([origin, a, b, c]: [[f64; 3]; 4]) -> f64 {
    dot(&minus(a, origin), &cross(minus(b, origin), minus(c, origin)))
}

pub(super) fn plane_gradients([origin, a, b]: [[f64; 2]; 3]) -> ([[f64; 2]; 3], f64) {
    let (a, b) = (minus(a, origin), minus(b, origin));
    let twice = a[0] * b[1] - a[1] * b[0];
    let (of_a, of_b) = ([b[1] / twice, -b[0] / twice], [-a[1] / twice, a[0] / twice]);
    let of_origin = std::array::from_fn(|d| -(of_a[d] + of_b[d]));
    ([of_origin, of_a, of_b], twice.abs() / 2.0)
}

pub(super) fn space_gradients(corners @ [origin, a, b, c]: [[f64; 3]; 4]) -> ([[f64; 3]; 4], f64) {
    let (a, b, c, six) = (minus(a, origin), minus(b, origin), minus(c, origin), determinant(corners));
    let [of_a, of_b, of_c] = [cross(b, c), cross(c, a), cross(a, b)].map(|normal| normal.map(|x| x / six));
    let of_origin = std::array::from_fn(|d| -(of_a[d] + of_b[d] + of_c[d]));
    ([of_origin, of_a, of_b, of_c], six.abs() / 6.0)
}

impl<const D: usize, const C: usize> Simplices<D, C> {
    /// Numbers the nodes anew: node `order[i]` becomes node i. The nodes of each cell and the cells are
    /// sorted, so that they do not depend on how the mesh was made.
    pub(super) fn renumbered(self, order: &[u32]) -> Result<Simplices<D, C>> {
        let mut numbers: Vec<u32> = zeros(order.len())?;
        order.iter().zip(0..).for_each(|(&node, number)| numbers[node as usize] = number);
        let points = collected(order.len(), |i| self.points[order[i] as usize]);
        let mut cells = self.cells;
        cells.par_iter_mut().with_min_len(4096).for_each(|cell| {
            *cell = cell.map(|node| numbers[node as usize]);
            cell.sort_unstable();
        });
        cells.par_sort_unstable();
        Ok(Simplices { points, cells })
    }

    /// Returns a matrix of ones in which each node is connected with itself and its neighbours.
    pub(super) fn graph(&self) -> Result<Csr> {
        let n = self.points.len();
        let numbers: Vec<u32> = (0..n as u32).collect();
        Touching::new(self)?.pattern(self, &numbers, &numbers, 1)
    }
}

/// The cells at each node, in ascending order.
struct Touching {
    /// Where the cells of each node begin; the last entry is the end of those of the last node.
    starts: Vec<u32>,
    cells: Vec<u32>,
}

impl Touching {
    fn new<const D: usize, const C: usize>(mesh: &Simplices<D, C>) -> Result<Touching> {
        let mut starts: Vec<u32> = zeros(mesh.points.len() + 1)?;
        mesh.cells.iter().flatten().for_each(|&node| starts[node as usize] += 1);
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        let mut cells: Vec<u32> = zeros(C * mesh.cells.len())?;
        for (number, cell) in mesh.cells.iter().enumerate().rev() {
            for &node in cell {
                let place = &mut starts[node as usize];
                *place -= 1;
                cells[*place as usize] = number as u32;
            }
        }
        Ok(Touching { starts, cells })
    }

    /// Returns the cells at a node.
    fn of(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.cells[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// Returns a matrix of ones with the entries of all pairs of free nodes that share a cell, in blocks of
    /// `unknowns` rows and columns. `numbers` has the number of each node among the free ones.
    fn pattern<const D: usize, const C: usize>(
        &self,
        mesh: &Simplices<D, C>,
        free: &[u32],
        numbers: &[u32],
        unknowns: usize,
    ) -> Result<Csr> {
        let near = |row: usize| {
            let cells = self.of(free[row / unknowns]).iter();
            let nodes = cells.flat_map(|&cell| mesh.cells[cell as usize]);
            let mut near: Vec<u32> =
                nodes.map(|node| numbers[node as usize]).filter(|&number| number != FIXED).collect();
            near.sort_unstable();
            near.dedup();
            near
        };
        let n = free.len() * unknowns;
        pattern(
            // A node has 7 neighbours in the plane and 15 in space, itself included.
            Shape::square(n, (8 * D - 9) * unknowns),
            |row| near(row).len() * unknowns,
            |row, columns| {
                for (block, node) in columns.chunks_exact_mut(unknowns).zip(near(row)) {
                    block.iter_mut().zip(node * unknowns as u32..).for_each(|(slot, column)| *slot = column);
                }
            },
        )
    }
}

impl Problem {
    /// Assembles the matrix, with the coordinates of its nodes.
    pub(super) fn assemble<const D: usize, const C: usize>(
        &self,
        mesh: &Simplices<D, C>,
        gradients: Gradients<D, C>,
    ) -> Result<Loaded> {
        let mut numbers: Vec<u32> = zeros(mesh.points.len())?;
        let mut free: Vec<u32> = room(mesh.points.len())?;
        for (node, point) in mesh.points.iter().enumerate() {
            let is_fixed = self.fixed && point[0] == 0.0;
            numbers[node] = if is_fixed { FIXED } else { free.len() as u32 };
            (!is_fixed).then(|| free.push(node as u32));
        }
        let touching = Touching::new(mesh)?;
        let blocks = touching.pattern(mesh, &free, &numbers, self.unknowns)?;
        let unknowns = self.unknowns;
        let matrix = valued(&blocks, |row, columns, values| {
            let (node, along) = (free[row / unknowns], row % unknowns);
            for &number in touching.of(node) {
                let cell = mesh.cells[number as usize];
                let corners = cell.map(|node| mesh.points[node as usize]);
                let (gradients, volume) = gradients(corners);
                let weight = volume * self.coefficient(&corners);
                let own = cell.iter().position(|&other| other == node).unwrap_or(0);
                for (other, &of_other) in cell.iter().zip(&gradients) {
                    let number = numbers[*other as usize];
                    if number == FIXED {
                        continue;
                    }
                    let first = columns.partition_point(|&column| column < number * unknowns as u32);
                    let entries = &mut values[first..first + unknowns];
                    entries.iter_mut().enumerate().for_each(|(s, entry)| {
                        *entry += weight * self.stiffness(&gradients[own], &of_other, along, s);
                    });
                }
            }
        })?;
        let values: Vec<f64> = collected(free.len(), |i| mesh.points[free[i] as usize]).into_flattened();
        Ok(Loaded { coordinates: Some(Arc::new(Coordinates::new(D, values)?)), ..Loaded::symmetric(matrix) })
    }

    /// Returns an entry of two nodes for a cell of volume 1: the force along `r` on the first for a
    /// displacement along `s` of the second.
    fn stiffness<const D: usize>(&self, a: &[f64; D], b: &[f64; D], r: usize, s: usize) -> f64 {
        if self.unknowns == 1 {
            return dot(a, b);
        }
        let nu = POISSON_RATIO;
        let (lambda, mu) = (nu / ((1.0 + nu) * (1.0 - 2.0 * nu)), 0.5 / (1.0 + nu));
        let shear = a[s] * b[r] + if r == s { dot(a, b) } else { 0.0 };
        lambda * (a[r] * b[s]) + mu * shear
    }

    /// Returns the coefficient of a cell: that of the patch with its centre.
    fn coefficient<const D: usize, const C: usize>(&self, corners: &[[f64; D]; C]) -> f64 {
        if self.jumps == 1.0 {
            return 1.0;
        }
        let patch = (0..D).fold(0, |patch, axis| {
            let centre = corners.iter().map(|corner| corner[axis]).sum::<f64>() / C as f64;
            patch * PATCHES as u64 + (centre * PATCHES) as u64
        });
        if Random::at(self.seed ^ STIFF, patch).bits() & 1 == 1 { self.jumps } else { 1.0 }
    }
}
