//! Laplacians on grids: the 5-point stencil in two dimensions, the stencils of 7 and of 27 points in three.
//!
//! With Dirichlet boundaries, the diagonal is one less than the number of stencil points everywhere, and each
//! neighbour has the entry -1. The matrix is positive definite; the stencil of 27 points is that of the HPCG
//! benchmark. With Neumann boundaries, the diagonal counts the neighbours: the matrix is singular, and
//! constants are in the null space.

use super::assemble::{Shape, pattern_from, valued_from};
use super::grid::Grid;
use super::spec::{PLANE, VOLUME};
use super::{Loaded, Mesh, Recipe, Spec};
use crate::error::Result;
use crate::format::Csr;
use crate::params::Param;
use std::ops::Range;

const BOUNDARY: Param = Param::word("boundary", &["dirichlet", "neumann"], "the condition at the boundary");
const POINTS: Param = Param::word("points", &["7", "27"], "the points of the stencil");
pub(super) const PARAMS_2D: &[Param] = &[PLANE, BOUNDARY];
pub(super) const PARAMS_3D: &[Param] = &[VOLUME, POINTS, BOUNDARY];

pub(super) fn make_2d(spec: &Spec<'_>) -> Result<Recipe> {
    let [nx, ny] = spec.extents()?;
    make(spec, [nx, ny, 1], 1, 5)
}

pub(super) fn make_3d(spec: &Spec<'_>) -> Result<Recipe> {
    let extents = spec.extents()?;
    match spec.word(POINTS.name) {
        Some("7") => make(spec, extents, 1, 7),
        _ => make(spec, extents, 3, 27),
    }
}

fn make(spec: &Spec<'_>, extents: [usize; 3], apart: usize, points: usize) -> Result<Recipe> {
    let neumann = spec.word(BOUNDARY.name) == Some("neumann");
    let n = spec.rows(&extents)?;
    let grid = Grid::new(extents, apart);
    let (shape, entries) = (Shape::square(n, grid.points()), grid.entries());
    let of_mesh = grid.clone();
    let mesh = Mesh::new(n, 1, grid.clone(), move |rows| laplacian(rows, n, &of_mesh, neumann, points));
    let mesh = if points == 5 { mesh.in_the_plane() } else { mesh };
    let whole = move || laplacian(0..n, n, &grid, neumann, points).map(Loaded::symmetric);
    Ok(Recipe::new(shape.bytes(), whole).sized(n, entries).by_rows(mesh))
}

/// Makes some of the `n` rows.
fn laplacian(rows: Range<usize>, n: usize, grid: &Grid, neumann: bool, points: usize) -> Result<Csr> {
    let stencil = pattern_from(
        rows.start,
        Shape::rows_of_square(&rows, n, grid.points()),
        |i| grid.neighbours(i).count(),
        |i, columns| columns.iter_mut().zip(grid.neighbours(i)).for_each(|(slot, j)| *slot = j as u32),
    )?;
    valued_from(rows.start, &stencil, |i, columns, values| {
        let diagonal = if neumann { columns.len() } else { points } as f64 - 1.0;
        for (&j, value) in columns.iter().zip(values) {
            *value = if j as usize == i { diagonal } else { -1.0 };
        }
    })
}
