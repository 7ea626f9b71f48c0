//! Matrices of grids, whose rows can be made separately.

use super::grid::Grid;
use crate::error::Result;
use crate::format::{Coordinates, Csr};
use crate::parallel::zeros;
use rayon::prelude::*;
use std::ops::Range;

/// A symmetric matrix of a mesh, whose rows can be made separately.
pub(crate) struct Mesh {
    rows: usize,
    unknowns: usize,
    grid: Grid,
    /// Dimensions of the space that the grid fills.
    dimensions: usize,
    make: Box<dyn Fn(Range<usize>) -> Result<Csr>>,
}

impl Mesh {
    /// Describes a matrix with `unknowns` rows for each node of a grid.
    pub(super) fn new(
        rows: usize,
        unknowns: usize,
        grid: Grid,
        make: impl Fn(Range<usize>) -> Result<Csr> + 'static,
    ) -> Mesh {
        Mesh { rows, unknowns, grid, dimensions: 3, make: Box::new(make) }
    }

    /// Places the nodes in the plane.
    pub(super) fn in_the_plane(self) -> Mesh {
        Mesh { dimensions: 2, ..self }
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of rows of each node.
    pub(crate) fn unknowns(&self) -> usize {
        self.unknowns
    }

    /// Returns the number of entries of a row.
    pub(crate) fn entries(&self, row: usize) -> usize {
        self.grid.neighbours(row / self.unknowns).count() * self.unknowns
    }

    /// Returns the coordinates of the node of a row, in steps of the grid.
    pub(crate) fn coordinates(&self, row: usize) -> [f64; 3] {
        self.grid.coordinates(row / self.unknowns).map(|coordinate| coordinate as f64)
    }

    /// Returns the coordinates of all nodes, in steps of the grid.
    pub(super) fn points(&self) -> Result<Coordinates> {
        let mut values: Vec<f64> = zeros(self.rows / self.unknowns * self.dimensions)?;
        let (grid, dimensions) = (&self.grid, self.dimensions);
        values.par_chunks_mut(dimensions).with_min_len(4096).enumerate().for_each(|(node, point)| {
            let position = grid.coordinates(node).map(|coordinate| coordinate as f64);
            point.copy_from_slice(&position[..dimensions]);
        });
        Coordinates::new(dimensions, values)
    }

    /// Makes some rows; their columns are those of the whole matrix.
    pub(crate) fn make(&self, rows: Range<usize>) -> Result<Csr> {
        (self.make)(rows)
    }
}
