//! The density of the parts of a matrix: a grid of cells, each with its number of entries.

use super::super::Csr;
use rayon::prelude::*;

/// Smallest length of the shorter side relative to the longer one, so that it stays visible.
const NARROWEST: f64 = 0.125;

/// Numbers of entries in the cells of a grid over a matrix. All cells have the same size
/// except the last ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Density {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Rows of the matrix in a cell.
    pub rows_per_cell: usize,
    /// Columns of the matrix in a cell.
    pub cols_per_cell: usize,
    /// Number of cells from top to bottom.
    pub down: usize,
    /// Number of cells from left to right.
    pub across: usize,
    /// Number of entries in each cell, row-major.
    pub counts: Vec<u64>,
}

impl Density {
    /// Counts the entries in the cells of a grid, in one parallel pass. The longer side has at
    /// most `most` cells.
    pub fn of(matrix: &Csr, most: usize) -> Density {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let (height, width) = Density::sides(rows, cols);
        let per_cell = |extent: usize, side: f64| {
            let cells = ((most as f64 * side).round() as usize).max(1);
            extent.div_ceil(cells).max(1)
        };
        let (rows_per_cell, cols_per_cell) = (per_cell(rows, height), per_cell(cols, width));
        let (down, across) = (rows.div_ceil(rows_per_cell), cols.div_ceil(cols_per_cell));
        let mut counts = vec![0u64; down * across];
        if !counts.is_empty() {
            counts.par_chunks_mut(across).enumerate().for_each(|(cell_row, counts)| {
                let first = cell_row * rows_per_cell;
                for row in first..(first + rows_per_cell).min(rows) {
                    for &col in &matrix.col_indices()[matrix.row_range(row)] {
                        counts[col as usize / cols_per_cell] += 1;
                    }
                }
            });
        }
        Density { rows, cols, rows_per_cell, cols_per_cell, down, across, counts }
    }

    /// Returns height and width of a picture of `rows` x `cols`, scaled so that the longer side is 1.
    pub(crate) fn sides(rows: usize, cols: usize) -> (f64, f64) {
        let (rows, cols) = (rows.max(1) as f64, cols.max(1) as f64);
        let longer = rows.max(cols);
        ((rows / longer).max(NARROWEST), (cols / longer).max(NARROWEST))
    }

    /// Returns the number of entries of the matrix.
    pub fn nnz(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns whether each cell is one position of the matrix.
    pub(crate) fn is_exact(&self) -> bool {
        self.rows_per_cell == 1 && self.cols_per_cell == 1
    }

    /// Returns the share of a cell's positions that are filled.
    pub fn share(&self, down: usize, across: usize) -> f64 {
        let extent = |cell: usize, per_cell: usize, all: usize| per_cell.min(all - cell * per_cell) as f64;
        let positions =
            extent(down, self.rows_per_cell, self.rows) * extent(across, self.cols_per_cell, self.cols);
        self.counts[down * self.across + across] as f64 / positions
    }
}
