//! The pattern of trilinear hexahedral elements: every node couples with itself and up to 26 neighbours, in
//! dense blocks of `dof` x `dof`. Values are a fixed hash of row and column. The diagonal makes every row
//! strictly dominant, so the matrix is positive definite. The pattern resembles structural matrices (F1:
//! `hex27:48x48x50,dof=3`).

use super::assemble::{Shape, pattern_from, valued_from};
use super::grid::Grid;
use super::spec::VOLUME;
use super::{Loaded, Mesh, Recipe, Spec};
use crate::error::Result;
use crate::format::Csr;
use crate::params::{Kind, Param};
use std::ops::Range;

/// Returns the off-diagonal value at a position, the same on both sides of the diagonal.
fn value(row: usize, col: usize) -> f64 {
    let (low, high) = (row.min(col) as u64, row.max(col) as u64);
    let hash = low.wrapping_mul(2_654_435_761).wrapping_add(high * 40_503) % 1000;
    -(hash as f64 / 1000.0 + 0.05)
}

pub(super) const PARAMS: &[Param] =
    &[VOLUME, Param::new("dof", Kind::Whole(1, 64), "unknowns at each point").or("1")];

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    let [nx, ny, nz] = spec.extents()?;
    let dof = spec.whole("dof") as usize;
    let n = spec.rows(&[nx, ny, nz, dof])?;
    let grid = Grid::new([nx, ny, nz], 3);
    let entries = grid.entries() * (dof * dof) as u64;
    let bytes = Shape::square(n, grid.points() * dof).bytes();
    let of_mesh = grid.clone();
    let mesh = Mesh::new(n, dof, grid.clone(), move |rows| elements(rows, &of_mesh, n, dof));
    let whole = move || elements(0..n, &grid, n, dof).map(Loaded::symmetric);
    Ok(Recipe::new(bytes, whole).sized(n, entries).by_rows(mesh))
}

/// Makes some of the `n` rows.
fn elements(rows: Range<usize>, grid: &Grid, n: usize, dof: usize) -> Result<Csr> {
    let blocks = node_blocks(rows.clone(), grid, n, dof)?;
    valued_from(rows.start, &blocks, |i, columns, values| {
        let mut degree = 0.0;
        let mut diagonal = 0;
        for (position, (&j, slot)) in columns.iter().zip(values.iter_mut()).enumerate() {
            if j as usize == i {
                diagonal = position;
                continue;
            }
            *slot = value(i, j as usize);
            degree -= *slot;
        }
        values[diagonal] = degree * 1.0001 + 1e-3;
    })
}

/// Returns some rows of a matrix of ones with the pattern in which each node couples with itself and its
/// neighbours by blocks of `dof` x `dof`. `n` is the number of all rows: the number of nodes times `dof`.
pub(super) fn node_blocks(rows: Range<usize>, grid: &Grid, n: usize, dof: usize) -> Result<Csr> {
    pattern_from(
        rows.start,
        Shape::rows_of_square(&rows, n, grid.points() * dof),
        |i| grid.neighbours(i / dof).count() * dof,
        |i, columns| {
            for (block, node) in columns.chunks_exact_mut(dof).zip(grid.neighbours(i / dof)) {
                block.iter_mut().enumerate().for_each(|(d, slot)| *slot = (node * dof + d) as u32);
            }
        },
    )
}
