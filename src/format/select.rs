//! Selections from the entries of a matrix: a triangle, a submatrix, a range of rows or columns.

use super::pieces::{each_row, narrow, narrow_length};
use super::rows::build_rows;
use super::values::for_stored;
use super::{Csr, Pattern};
use crate::error::Result;
use std::ops::Range;
use std::sync::Arc;

/// Sorts the entries of a row by column. Repeated entries stay in their order.
fn sort_row<T: Copy>(columns: &mut [u32], values: &mut [T]) {
    let mut entries: Vec<(u32, T)> = columns.iter().copied().zip(values.iter().copied()).collect();
    entries.sort_by_key(|(column, _)| *column);
    for (at, entry) in entries.into_iter().enumerate() {
        (columns[at], values[at]) = entry;
    }
}

impl Csr {
    /// Returns the entries on and below the diagonal.
    pub fn lower_triangle(&self) -> Result<Csr> {
        let kept = |row: usize| self.row_columns(row).partition_point(|&col| col as usize <= row);
        let lengths = each_row(self.rows(), 4 * self.nnz(), |row| narrow_length(kept(row)))?;
        let repeats =
            |row: usize| self.row_columns(row)[..lengths[row] as usize].windows(2).any(|w| w[0] == w[1]);
        let repeats = self.pattern().repeats && (0..self.rows()).any(repeats);
        for_stored!(self.values(), self.nnz(), |values| {
            build_rows((self.rows(), self.cols()), &lengths, repeats, |row, columns_out, values_out| {
                let range = self.row_range(row).start..self.row_range(row).start + columns_out.len();
                columns_out.copy_from_slice(&self.col_indices()[range.clone()]);
                values_out.copy_from_slice(&values[range]);
            })
        })
    }

    /// Returns the submatrix of the rows and columns in `kept`, whose indices must increase. Rows and columns
    /// of the result are numbered by their position in `kept`.
    pub(crate) fn submatrix(&self, kept: &[u32]) -> Result<Csr> {
        const NONE: u32 = u32::MAX;
        let mut new_index = vec![NONE; self.rows().max(self.cols())];
        for (number, &index) in kept.iter().enumerate() {
            new_index[index as usize] = narrow(number, "a row index", "32-bit row indices")?;
        }
        let inside = |row: usize| {
            let range = self.row_range(kept[row] as usize);
            range.filter(|&at| new_index[self.col_indices()[at] as usize] != NONE)
        };
        let lengths = each_row(kept.len(), 4 * self.nnz(), |row| narrow_length(inside(row).count()))?;
        for_stored!(self.values(), self.nnz(), |values| {
            let size = (kept.len(), kept.len());
            build_rows(size, &lengths, self.pattern().repeats, |row, columns_out, values_out| {
                for (to, from) in inside(row).enumerate() {
                    columns_out[to] = new_index[self.col_indices()[from] as usize];
                    values_out[to] = values[from];
                }
            })
        })
    }

    /// Returns the rows in a range, with all columns.
    pub(crate) fn row_band(&self, rows: Range<usize>) -> Result<Csr> {
        let first = rows.start;
        let from = |row: usize| self.row_range(first + row);
        let lengths = each_row(rows.len(), 4 * rows.len(), |row| narrow_length(from(row).len()))?;
        let size = (rows.len(), self.cols());
        for_stored!(self.values(), self.nnz(), |values| {
            build_rows(size, &lengths, self.pattern().repeats, |row, columns_out, values_out| {
                columns_out.copy_from_slice(&self.col_indices()[from(row)]);
                values_out.copy_from_slice(&values[from(row)]);
            })
        })
    }

    /// Returns the entries in a range of columns, which are numbered from the start of the range.
    pub(crate) fn column_range(&self, columns: Range<usize>) -> Result<Csr> {
        let kept = |row: usize| {
            let (all, start) = (self.row_columns(row), self.row_range(row).start);
            let before = |end: usize| start + all.partition_point(|column| (*column as usize) < end);
            before(columns.start)..before(columns.end)
        };
        let lengths = each_row(self.rows(), 4 * self.nnz(), |row| narrow_length(kept(row).len()))?;
        let size = (self.rows(), columns.len());
        for_stored!(self.values(), self.nnz(), |values| {
            build_rows(size, &lengths, self.pattern().repeats, |row, columns_out, values_out| {
                let from = kept(row);
                let shifted = self.col_indices()[from.clone()].iter().map(|c| c - columns.start as u32);
                columns_out.iter_mut().zip(shifted).for_each(|(to, column)| *to = column);
                values_out.copy_from_slice(&values[from]);
            })
        })
    }

    /// Returns the matrix with other numbers of columns, `cols` in all. `number` must increase
    /// with the column.
    pub(crate) fn with_columns(self, cols: usize, number: impl Fn(u32) -> u32) -> Result<Csr> {
        let rows = self.rows();
        let (pattern, values) = self.into_parts();
        let Pattern { row_offsets, col_indices, repeats, .. } = Pattern::unshared(pattern)?;
        let mut columns = col_indices.into_vec();
        columns.iter_mut().for_each(|column| *column = number(*column));
        let pattern = match repeats {
            true => Pattern::with_repeats(rows, cols, row_offsets, columns)?,
            false => Pattern::new(rows, cols, row_offsets, columns)?,
        };
        Csr::with_pattern(Arc::new(pattern), values)
    }

    /// Returns the rows in another order, with other numbers of columns, `cols` in all. Repeated
    /// entries stay in their order.
    pub fn renumbered(
        &self,
        order: &[u32],
        cols: usize,
        number: impl Fn(u32) -> u32 + Send + Sync,
    ) -> Result<Csr> {
        let from = |row: usize| self.row_range(order[row] as usize);
        let lengths = each_row(order.len(), 4 * self.nnz(), |row| narrow_length(from(row).len()))?;
        for_stored!(self.values(), self.nnz(), |values| {
            build_rows(
                (order.len(), cols),
                &lengths,
                self.pattern().repeats,
                |row, columns_out, values_out| {
                    let (mut before, mut in_order) = (0, true);
                    for (to, column) in columns_out.iter_mut().zip(&self.col_indices()[from(row)]) {
                        *to = number(*column);
                        in_order &= before <= *to;
                        before = *to;
                    }
                    values_out.copy_from_slice(&values[from(row)]);
                    if !in_order {
                        sort_row(columns_out, values_out);
                    }
                },
            )
        })
    }

    /// Returns the matrix without its diagonal unless `diagonal`, and with only the first of repeated entries
    /// unless `repeats`. The first row is row `first` of a larger matrix.
    pub(crate) fn simplified(&self, first: usize, diagonal: bool, repeats: bool) -> Result<Csr> {
        let kept = |row: usize| {
            let (columns, start) = (self.row_columns(row), self.row_range(row).start);
            let is_first = move |at: usize| at == 0 || columns[at - 1] != columns[at];
            let stays = move |at: &usize| {
                (diagonal || columns[*at] as usize != first + row) && (repeats || is_first(*at))
            };
            (0..columns.len()).filter(stays).map(move |at| start + at)
        };
        let lengths = each_row(self.rows(), 4 * self.nnz(), |row| narrow_length(kept(row).count()))?;
        let repeats = self.pattern().repeats && repeats;
        for_stored!(self.values(), self.nnz(), |values| {
            build_rows((self.rows(), self.cols()), &lengths, repeats, |row, columns_out, values_out| {
                for (to, from) in kept(row).enumerate() {
                    (columns_out[to], values_out[to]) = (self.col_indices()[from], values[from]);
                }
            })
        })
    }
}
