//! Some rows of the transpose of a matrix: the entries in a range of its columns, sorted by
//! column (`assemble.rs`).

use super::assemble::{Entries, Rows, by_row};
use super::finish::{Width, narrow};
use super::pieces::cut;
use super::values::{from_bits, value_bits};
use super::{Csr, Pattern, Values};
use crate::error::Result;
use std::ops::Range;
use std::sync::Arc;

impl Csr {
    /// Returns the rows `columns` of the transpose.
    pub(crate) fn transposed_columns(&self, columns: Range<usize>) -> Result<Csr> {
        transpose(self, &InColumns { matrix: self, columns: columns.start as u32..columns.end as u32 })
    }
}

/// Builds a transpose, or a part of it, from its entries; the values are those of `value_bits`.
fn transpose<E: Entries>(matrix: &Csr, entries: &E) -> Result<Csr> {
    match narrow(entries.most(), false) {
        true => build::<u32, E>(matrix, entries),
        false => build::<u64, E>(matrix, entries),
    }
}

fn build<W: Width, E: Entries>(matrix: &Csr, entries: &E) -> Result<Csr> {
    let Rows { offsets, columns, values } = by_row::<W, E>(entries, None)?;
    let (rows, cols) = entries.shape();
    let pattern = Pattern::trusted(rows, cols, W::offsets(offsets), columns, matrix.pattern().has_repeats());
    Csr::with_pattern(Arc::new(pattern), from_bits(matrix.values(), values)?)
}

/// The entries in some columns of a matrix, as those of the transpose. Its rows are counted from
/// the first of these columns.
struct InColumns<'a> {
    matrix: &'a Csr,
    columns: Range<u32>,
}

impl InColumns<'_> {
    /// Calls `visit` with row, column and number of each entry of these rows of the matrix. The columns
    /// within a row are sorted.
    #[inline(always)]
    fn each(&self, rows: &Range<usize>, mut visit: impl FnMut(u32, u32, usize)) {
        let Range { start, end } = self.columns;
        for row in rows.clone() {
            let range = self.matrix.row_range(row);
            let columns = &self.matrix.col_indices()[range.clone()];
            let before = if start == 0 { 0 } else { columns.partition_point(|&column| column < start) };
            let inside = columns[before..].iter().take_while(|column| **column < end);
            inside
                .zip(range.start + before..)
                .for_each(|(column, entry)| visit(column - start, row as u32, entry));
        }
    }
}

impl Entries for InColumns<'_> {
    type Piece = Range<usize>;

    fn shape(&self) -> (usize, usize) {
        (self.columns.len(), self.matrix.rows())
    }

    fn valued(&self) -> bool {
        !matches!(self.matrix.values(), Values::Ones)
    }

    fn most(&self) -> usize {
        self.matrix.nnz()
    }

    fn cut(&self, pieces: usize) -> Result<Vec<Range<usize>>> {
        let before = |row: usize| self.matrix.row_offsets().get(row).saturating_add(row);
        Ok(cut(self.matrix.rows(), pieces, before))
    }

    fn rows(&self, piece: &Range<usize>, mut visit: impl FnMut(u32)) -> Result<u64> {
        self.places(piece, |row, _| visit(row))
    }

    fn places(&self, piece: &Range<usize>, mut visit: impl FnMut(u32, u32)) -> Result<u64> {
        let mut count = 0;
        self.each(piece, |row, column, _| {
            count += 1;
            visit(row, column);
        });
        Ok(count)
    }

    fn entries(&self, piece: &Range<usize>, mut visit: impl FnMut(u32, u32, f64)) -> Result<u64> {
        let (values, mut count) = (self.matrix.values(), 0);
        self.each(piece, |row, column, entry| {
            count += 1;
            visit(row, column, value_bits(values, entry));
        });
        Ok(count)
    }

    fn check(&self, _: u64) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::source::load;

    #[test]
    fn rows_of_a_transpose_are_those_of_the_whole_transpose() {
        let graph = load("rmat:scale=15,edges=600000").unwrap().matrix;
        let grid = load("poisson2d:70x90").unwrap().matrix;
        let narrow = grid.to_f32();
        let rectangle = grid.row_band(100..150).unwrap();
        let empty = grid.row_band(0..0).unwrap();
        for matrix in [graph, grid, narrow, rectangle, empty] {
            let (whole, n) = (matrix.transposed().unwrap(), matrix.cols());
            for columns in [0..n, 0..n / 3, n / 3..n, n / 2..n / 2, n / 4..n / 2 + 1, n..n] {
                let part = matrix.transposed_columns(columns.clone()).unwrap();
                assert!(part == whole.row_band(columns.clone()).unwrap(), "{columns:?} of {n}");
            }
        }
    }
}
