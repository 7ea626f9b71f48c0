//! Laplacians on grids: the 5-point stencil in two dimensions, the stencils of 7 and of 27 points in three.
//!
//! With Dirichlet boundaries, the diagonal is one less than the number of stencil points everywhere, and each neighbour has the
//! entry -1. The matrix is positive definite; the stencil of 27 points is that of the HPCG benchmark. With Neumann boundaries,
//! the diagonal counts the neighbours: the matrix is singular, and constants are in the null space.

use super::assemble::{Shape, pattern, valued};
use super::grid::Grid;
use super::{Loaded, Recipe, Spec};
use crate::error::Result;

pub(super) fn make_2d(spec: &Spec<'_>) -> Result<Recipe> {
    spec.allow(&["n", "boundary"])?;
    let [nx, ny] = spec.extents()?;
    make(spec, [nx, ny, 1], 1, 5)
}

pub(super) fn make_3d(spec: &Spec<'_>) -> Result<Recipe> {
    spec.allow(&["n", "points", "boundary"])?;
    let extents = spec.extents()?;
    match spec.choice("points", &["7", "27"])? {
        "7" => make(spec, extents, 1, 7),
        _ => make(spec, extents, 3, 27),
    }
}

fn make(spec: &Spec<'_>, extents: [usize; 3], apart: usize, points: usize) -> Result<Recipe> {
    let neumann = spec.choice("boundary", &["dirichlet", "neumann"])? == "neumann";
    let n = spec.rows(&extents)?;
    let grid = Grid::new(extents, apart);
    let (shape, entries) = (Shape::square(n, grid.points()), grid.entries());
    Ok(Recipe::new(shape.bytes(), move || laplacian(shape, &grid, neumann, points))?.sized(n, entries))
}

fn laplacian(shape: Shape, grid: &Grid, neumann: bool, points: usize) -> Result<Loaded> {
    let stencil = pattern(
        shape,
        |i| grid.neighbours(i).count(),
        |i, columns| columns.iter_mut().zip(grid.neighbours(i)).for_each(|(slot, j)| *slot = j as u32),
    )?;
    let matrix = valued(&stencil, |i, columns, values| {
        let diagonal = if neumann { columns.len() } else { points } as f64 - 1.0;
        for (&j, value) in columns.iter().zip(values) {
            *value = if j as usize == i { diagonal } else { -1.0 };
        }
    })?;
    let stored = matrix.nnz() as u64;
    Ok(Loaded::new(matrix, stored, true))
}
