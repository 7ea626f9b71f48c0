//! Doubly compressed sparse rows: only the rows that have entries are stored, with their row indices.
//!
//! The stored rows are a CSR matrix, so that all code for CSR applies to them: row `k` of
//! [`Dcsr::stored_rows`] is row `row_indices[k]` of the matrix. All other rows are zero; a product has to
//! clear or scale y there. Column indices may be repeated within a row, as in CSR.

#[cfg(test)]
mod checked;

use super::pieces::narrow;
use super::{Csr, Offset, Offsets, Pattern};
use crate::error::{Error, FormatFault, Result};
use crate::parallel::room;
use std::sync::Arc;

/// A validated matrix in doubly compressed sparse rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dcsr {
    rows: usize,
    row_indices: Vec<u32>,
    stored: Csr,
}

impl Dcsr {
    /// Checks the row indices against the stored rows, and takes ownership of both.
    pub(crate) fn new(rows: usize, row_indices: Vec<u32>, stored: Csr) -> Result<Dcsr> {
        let matrix = Dcsr { rows, row_indices, stored };
        matrix.check().map_err(|fault| Error::InvalidFormat { format: "DCSR", fault })?;
        Ok(matrix)
    }

    fn check(&self) -> std::result::Result<(), FormatFault> {
        let (got, expected) = (self.row_indices.len(), self.stored.rows() as u128);
        if got as u128 != expected {
            return Err(FormatFault::Length { array: "row_indices", got, expected });
        }
        for (index, &row) in self.row_indices.iter().enumerate() {
            if row as usize >= self.rows {
                return Err(FormatFault::RowRange { index, row, rows: self.rows });
            }
            if let Some(&next) = self.row_indices.get(index + 1).filter(|&&next| next <= row) {
                return Err(FormatFault::RowOrder { index, row, next });
            }
            if self.stored.row_range(index).is_empty() {
                return Err(FormatFault::EmptyRow { index, row });
            }
        }
        Ok(())
    }

    /// Converts a matrix by removing its empty rows. Column indices and values are moved; column indices that
    /// another matrix shares are copied.
    pub(crate) fn from_csr(matrix: Csr) -> Result<Dcsr> {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let kept = |row: &usize| !matrix.row_range(*row).is_empty();
        let count = (0..rows).filter(kept).count();
        let mut row_indices = room(count)?;
        for row in (0..rows).filter(kept) {
            row_indices.push(narrow(row, "a row index", "32-bit row indices")?);
        }
        let (pattern, values) = matrix.into_parts();
        let offsets = match &pattern.row_offsets {
            Offsets::U32(offsets) => squeeze(offsets, count)?,
            Offsets::U64(offsets) => squeeze(offsets, count)?,
        };
        let Pattern { col_indices, repeats, .. } = Pattern::unshared(pattern)?;
        let pattern = Pattern::trusted(count, cols, offsets, col_indices, repeats);
        Ok(Dcsr { rows, row_indices, stored: Csr::with_pattern(Arc::new(pattern), values)? })
    }

    /// Returns the number of rows, including empty ones.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub(crate) fn cols(&self) -> usize {
        self.stored.cols()
    }

    /// Returns the number of entries, including explicit zeros.
    pub(crate) fn nnz(&self) -> usize {
        self.stored.nnz()
    }

    /// Returns the row index of each stored row.
    pub(crate) fn row_indices(&self) -> &[u32] {
        &self.row_indices
    }

    /// Returns the rows that have entries, as a CSR matrix.
    pub(crate) fn stored_rows(&self) -> &Csr {
        &self.stored
    }
}

/// Removes the offsets of empty rows.
fn squeeze<O: Offset>(offsets: &[O], count: usize) -> Result<Offsets> {
    let mut kept: Vec<O> = room(count + 1)?;
    kept.push(offsets[0]);
    kept.extend(offsets.windows(2).filter(|w| w[0].at() < w[1].at()).map(|w| w[1]));
    Ok(O::wrap(kept))
}
