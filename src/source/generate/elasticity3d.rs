//! Linear elasticity in three dimensions, the problem of structural analysis, with a stiffness that may jump
//! from element to element.
//!
//! A box of unit cubes: trilinear hexahedral elements with eight Gauss points, Poisson's ratio 0.3, and
//! Young's modulus 1 times the element's factor. The factor is `contrast` to a random power between 0 and 1.
//! The face x = 0 is clamped and its nodes are eliminated. `NXxNYxNZ` counts the free nodes: there are NX x
//! (NY - 1) x (NZ - 1) elements. Each node has three unknowns, in blocks of 3x3; nodes are numbered along z
//! first and x last. Symmetric and positive definite.
//!
//! Attached: `b`, the load by gravity along -z with unit density, and the coordinates of each free node.

use super::assemble::{Shape, valued_from};
use super::grid::Grid;
use super::hex27::node_blocks;
use super::random::Random;
use super::spec::{SEED, VOLUME, from_to};
use super::{Loaded, Mesh, Recipe, Spec};
use crate::error::Result;
use crate::format::{Coordinates, Csr, Dense};
use crate::parallel::zeros;
use crate::params::Param;
use crate::source::Attached;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

const POISSON_RATIO: f64 = 0.3;

/// The stiffness between the corners of an element: `stiffness[a][b][r][s]` is the force along `r` on
/// corner `a` for a displacement along `s` of corner `b`. The bits of a corner's number are its
/// coordinates, z in the lowest.
type Stiffness = [[[[f64; 3]; 3]; 8]; 8];

fn corner(a: usize) -> [usize; 3] {
    [a >> 2 & 1, a >> 1 & 1, a & 1]
}

/// Returns the gradients of the eight shape functions at a point of the unit cube.
fn gradients(point: [f64; 3]) -> [[f64; 3]; 8] {
    std::array::from_fn(|a| {
        let side = corner(a);
        let shape = |d: usize| if side[d] == 1 { point[d] } else { 1.0 - point[d] };
        let slope = |d: usize| if side[d] == 1 { 1.0 } else { -1.0 };
        [slope(0) * shape(1) * shape(2), shape(0) * slope(1) * shape(2), shape(0) * shape(1) * slope(2)]
    })
}

/// Computes the stiffness of the unit cube with Young's modulus 1: the integral of
/// lambda g_a g_b' + mu (g_b g_a' + <g_a, g_b> I) over the gradients g. Symmetric to the last bit.
fn unit_stiffness() -> Stiffness {
    let nu = POISSON_RATIO;
    let (lambda, mu) = (nu / ((1.0 + nu) * (1.0 - 2.0 * nu)), 0.5 / (1.0 + nu));
    let mut stiffness = [[[[0.0; 3]; 3]; 8]; 8];
    for point in 0..8 {
        let gauss = corner(point).map(|side| 0.5 + (side as f64 - 0.5) / 3f64.sqrt());
        let g = gradients(gauss);
        for (a, row) in stiffness.iter_mut().enumerate() {
            for (b, block) in row.iter_mut().enumerate() {
                let dot: f64 = (0..3).map(|d| g[a][d] * g[b][d]).sum();
                for r in 0..3 {
                    for s in 0..3 {
                        let shear = g[a][s] * g[b][r] + if r == s { dot } else { 0.0 };
                        block[r][s] += (lambda * (g[a][r] * g[b][s]) + mu * shear) / 8.0;
                    }
                }
            }
        }
    }
    stiffness
}

/// The box: free nodes in each direction, and the elements' factors, numbered along z first and x last.
struct Body {
    free: [usize; 3],
    elements: [usize; 3],
    factors: Vec<f64>,
    stiffness: Stiffness,
}

/// An element that contains a node, and the number of the node among the element's corners.
struct AdjacentElement {
    element: [usize; 3],
    corner: usize,
}

pub(super) const PARAMS: &[Param] = &[
    VOLUME,
    Param::new("contrast", from_to(1.0, 1e12), "the ratio of the largest and the least stiffness").or("1"),
    SEED,
];

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    let free @ [nx, ny, nz] = spec.extents()?;
    if ny < 2 || nz < 2 {
        return Err(spec.fault("elements need two nodes or more along y and z"));
    }
    let contrast = spec.real("contrast");
    let seed = spec.whole("seed");
    let n = spec.rows(&[nx, ny, nz, 3])?;
    let grid = Grid::new([nz, ny, nx], 3);
    let (entries, bytes) = (grid.entries() * 9, Shape::square(n, grid.points() * 3).bytes());
    let of_mesh = grid.clone();
    let mesh = Mesh::new(n, 3, grid.clone(), move |rows| {
        stiffness(rows, &of_mesh, n, &Body::new(free, contrast, seed)?)
    });
    let whole = move || system(&grid, n, &Body::new(free, contrast, seed)?);
    Ok(Recipe::new(bytes, whole).sized(n, entries).by_rows(mesh))
}

/// Makes some of the `n` rows.
fn stiffness(rows: Range<usize>, grid: &Grid, n: usize, body: &Body) -> Result<Csr> {
    let blocks = node_blocks(rows.clone(), grid, n, 3)?;
    let row = |i: usize, _: &[u32], values: &mut [f64]| body.row(body.coordinates(i / 3), i % 3, values);
    valued_from(rows.start, &blocks, row)
}

fn system(grid: &Grid, n: usize, body: &Body) -> Result<Loaded> {
    let matrix = stiffness(0..n, grid, n, body)?;
    let (mut gravity, mut coordinates): (Vec<f64>, Vec<f64>) = (zeros(n)?, zeros(n)?);
    gravity.par_chunks_mut(3).zip(coordinates.par_chunks_mut(3)).enumerate().with_min_len(4096).for_each(
        |(node, (force, position))| {
            let at @ [x, y, z] = body.coordinates(node);
            force[2] = body.adjacent(at).count() as f64 / -8.0;
            position.copy_from_slice(&[(x + 1) as f64, y as f64, z as f64]);
        },
    );
    let stored = matrix.nnz() as u64;
    let mut loaded = Loaded::new(matrix, stored, true);
    loaded.attached.push(Attached { name: "b".to_owned(), values: Dense::new(n, 1, gravity)? });
    loaded.coordinates = Some(Arc::new(Coordinates::new(3, coordinates)?));
    Ok(loaded)
}

impl Body {
    fn new(free: [usize; 3], contrast: f64, seed: u64) -> Result<Body> {
        let elements = [free[0], free[1] - 1, free[2] - 1];
        let mut factors: Vec<f64> = zeros(elements.iter().product())?;
        factors.par_iter_mut().enumerate().with_min_len(4096).for_each(|(element, factor)| {
            *factor = contrast.powf(Random::at(seed, element as u64).unit());
        });
        Ok(Body { free, elements, factors, stiffness: unit_stiffness() })
    }

    /// Returns the coordinates of a free node, with x = 0 on the first free face.
    fn coordinates(&self, node: usize) -> [usize; 3] {
        let [_, ny, nz] = self.free;
        [node / nz / ny, node / nz % ny, node % nz]
    }

    /// Returns the elements that contain a free node, in ascending order. Element (x, y, z) has the free
    /// nodes with x as its far side in x, and those with y and z as its near side.
    fn adjacent(&self, [x, y, z]: [usize; 3]) -> impl Iterator<Item = AdjacentElement> + '_ {
        (0..8).filter_map(move |toward| {
            let [tx, ty, tz] = corner(toward);
            // Below zero the subtraction wraps to a number beyond every extent.
            let element = [x + tx, (y + ty).wrapping_sub(1), (z + tz).wrapping_sub(1)];
            let inside = element.iter().zip(self.elements).all(|(&e, extent)| e < extent);
            inside.then_some(AdjacentElement { element, corner: 7 - toward })
        })
    }

    /// Writes one of a node's three rows: the sum over the elements that contain the node, each with the
    /// blocks of its free corners. Both rows of a symmetric pair add the elements in ascending order, so the
    /// matrix is symmetric to the last bit.
    fn row(&self, [x, y, z]: [usize; 3], along: usize, values: &mut [f64]) {
        let [_, ny, nz] = self.free;
        let first = [x.saturating_sub(1), y.saturating_sub(1), z.saturating_sub(1)];
        let (rows_y, rows_z) = ((y + 2).min(ny) - first[1], (z + 2).min(nz) - first[2]);
        for AdjacentElement { element, corner: own } in self.adjacent([x, y, z]) {
            let factor =
                self.factors[(element[0] * self.elements[1] + element[1]) * self.elements[2] + element[2]];
            for (other, block) in self.stiffness[own].iter().enumerate() {
                let side = corner(other);
                if element[0] + side[0] == 0 {
                    continue; // The corner is clamped.
                }
                let far = [
                    element[0] + side[0] - 1 - first[0],
                    element[1] + side[1] - first[1],
                    element[2] + side[2] - first[2],
                ];
                let start = 3 * ((far[0] * rows_y + far[1]) * rows_z + far[2]);
                for (value, stiffness) in values[start..start + 3].iter_mut().zip(block[along]) {
                    *value += factor * stiffness;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the stiffness as a matrix of 24 x 24.
    fn dense() -> Vec<Vec<f64>> {
        let stiffness = unit_stiffness();
        let entry = |i: usize, j: usize| stiffness[i / 3][j / 3][i % 3][j % 3];
        (0..24).map(|i| (0..24).map(|j| entry(i, j)).collect()).collect()
    }

    /// Returns three translations and three rotations of the corners.
    fn rigid_motions() -> Vec<Vec<f64>> {
        let motion = |displacement: &dyn Fn([f64; 3]) -> [f64; 3]| {
            (0..8).flat_map(|a| displacement(corner(a).map(|c| c as f64 - 0.5))).collect::<Vec<f64>>()
        };
        vec![
            motion(&|_| [1.0, 0.0, 0.0]),
            motion(&|_| [0.0, 1.0, 0.0]),
            motion(&|_| [0.0, 0.0, 1.0]),
            motion(&|[_, y, z]| [0.0, -z, y]),
            motion(&|[x, _, z]| [z, 0.0, -x]),
            motion(&|[x, y, _]| [-y, x, 0.0]),
        ]
    }

    #[test]
    fn the_null_space_of_the_stiffness_is_the_six_rigid_motions() {
        let mut k = dense();
        for (i, row) in k.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                assert_eq!(value.to_bits(), k[j][i].to_bits(), "({i}, {j})");
            }
        }
        for motion in rigid_motions() {
            for row in &k {
                let force: f64 = row.iter().zip(&motion).map(|(k, u)| k * u).sum();
                assert!(force.abs() < 1e-14, "{force}");
            }
        }
        // Adding the six motions leaves no null space: they span the whole of it.
        for motion in rigid_motions() {
            for i in 0..24 {
                (0..24).for_each(|j| k[i][j] += motion[i] * motion[j]);
            }
        }
        for pivot in 0..24 {
            let diagonal = k[pivot][pivot];
            assert!(diagonal > 1e-3, "pivot {pivot}: {diagonal}");
            for i in pivot + 1..24 {
                let by = k[i][pivot] / diagonal;
                (pivot..24).for_each(|j| k[i][j] -= by * k[pivot][j]);
            }
        }
    }

    #[test]
    fn a_stretched_element_obeys_hookes_law() {
        // Strain along x alone: stress lambda + 2 mu along x, on a unit face shared by four corners.
        let nu = POISSON_RATIO;
        let stress = (1.0 - nu) / ((1.0 + nu) * (1.0 - 2.0 * nu));
        let stretch: Vec<f64> = (0..8).flat_map(|a| [corner(a)[0] as f64, 0.0, 0.0]).collect();
        for (i, row) in dense().iter().enumerate().filter(|(i, _)| i % 3 == 0) {
            let force: f64 = row.iter().zip(&stretch).map(|(k, u)| k * u).sum();
            let side = if corner(i / 3)[0] == 1 { 1.0 } else { -1.0 };
            assert!((force - side * stress / 4.0).abs() < 1e-14, "{i}: {force}");
        }
    }
}
