//! Doubly compressed sparse rows: only the rows that have entries are stored, beside which rows they are.
//!
//! It is a CSR matrix of the rows that are left, and so all that knows CSR serves it: row `k` of [`Dcsr::stored_rows`]
//! is row `row_indices[k]` of the matrix. Rows that are not stored are zero, so that a product has to clear y, or scale
//! it, there. Columns may come several times in a row, as in CSR.

use super::pieces::narrow;
use super::{Csr, Offset, Offsets, Pattern};
use crate::error::{Error, FormatFault, Result};
use crate::parallel::room;
use std::sync::Arc;

/// A validated matrix in doubly compressed sparse rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Dcsr {
    rows: usize,
    row_indices: Vec<u32>,
    stored: Csr,
}

impl Dcsr {
    /// Checks which rows are stored and takes them over.
    pub fn new(rows: usize, row_indices: Vec<u32>, stored: Csr) -> Result<Dcsr> {
        let matrix = Dcsr { rows, row_indices, stored };
        matrix.check().map_err(|fault| Error::InvalidFormat { format: "DCSR", fault })?;
        Ok(matrix)
    }

    fn check(&self) -> std::result::Result<(), FormatFault> {
        let (got, expected) = (self.row_indices.len(), self.stored.rows() as u128);
        if got as u128 != expected {
            return Err(FormatFault::Length { array: "row_indices", got, expected });
        }
        for (place, &row) in self.row_indices.iter().enumerate() {
            if row as usize >= self.rows {
                return Err(FormatFault::RowRange { place, row, rows: self.rows });
            }
            if let Some(&next) = self.row_indices.get(place + 1).filter(|&&next| next <= row) {
                return Err(FormatFault::RowOrder { place, row, next });
            }
            if self.stored.row_range(place).is_empty() {
                return Err(FormatFault::EmptyRow { place, row });
            }
        }
        Ok(())
    }

    /// The same matrix without its empty rows. Columns and values are moved; columns are copied where another matrix
    /// shares them.
    pub fn from_csr(matrix: Csr) -> Result<Dcsr> {
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
        let pattern = Pattern::made(count, cols, offsets, col_indices, repeats);
        Ok(Dcsr { rows, row_indices, stored: Csr::with_pattern(Arc::new(pattern), values)? })
    }

    /// Compressed rows again, empty ones included: the very matrix that it was made from.
    pub fn to_csr(&self) -> Result<Csr> {
        self.clone().into_csr()
    }

    /// Likewise; columns and values are moved.
    pub fn into_csr(self) -> Result<Csr> {
        let (pattern, values) = self.stored.into_parts();
        let offsets = match &pattern.row_offsets {
            Offsets::U32(offsets) => spread(offsets, &self.row_indices, self.rows)?,
            Offsets::U64(offsets) => spread(offsets, &self.row_indices, self.rows)?,
        };
        let cols = pattern.cols;
        let Pattern { col_indices, repeats, .. } = Pattern::unshared(pattern)?;
        Csr::with_pattern(Arc::new(Pattern::made(self.rows, cols, offsets, col_indices, repeats)), values)
    }

    /// Number of rows, empty ones included.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.stored.cols()
    }

    /// Number of entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.stored.nnz()
    }

    /// The row of the matrix that each stored row is.
    pub fn row_indices(&self) -> &[u32] {
        &self.row_indices
    }

    /// The rows that have entries, one below the other.
    pub fn stored_rows(&self) -> &Csr {
        &self.stored
    }

    /// Bytes of the arrays: row indices, offsets, column indices and values.
    pub fn storage_bytes(&self) -> u64 {
        self.row_indices.len() as u64 * 4 + self.stored.storage_bytes()
    }
}

/// Offsets without those of empty rows.
fn squeeze<O: Offset>(offsets: &[O], count: usize) -> Result<Offsets> {
    let mut kept: Vec<O> = room(count + 1)?;
    kept.push(offsets[0]);
    kept.extend(offsets.windows(2).filter(|w| w[0].at() < w[1].at()).map(|w| w[1]));
    Ok(O::wrap(kept))
}

/// Offsets with those of empty rows.
fn spread<O: Offset>(offsets: &[O], row_indices: &[u32], rows: usize) -> Result<Offsets> {
    let size =
        rows.checked_add(1).ok_or(Error::OutOfMemory { bytes: rows as u128 * size_of::<O>() as u128 })?;
    let mut spread: Vec<O> = room(size)?;
    for (&row, &offset) in row_indices.iter().zip(offsets) {
        spread.resize(row as usize + 1, offset);
    }
    spread.resize(size, offsets[row_indices.len()]);
    Ok(O::wrap(spread))
}
