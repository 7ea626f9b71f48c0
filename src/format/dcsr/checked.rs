//! The way back to compressed rows, which only tests need: they check with it what a conversion makes.

use super::Dcsr;
use crate::error::{Error, Result};
use crate::format::{Csr, Offset, Offsets, Pattern};
use crate::parallel::room;
use std::sync::Arc;

impl Dcsr {
    /// Converts to compressed rows, including empty ones: bit for bit those that the matrix was built from.
    pub(crate) fn to_csr(&self) -> Result<Csr> {
        self.clone().into_csr()
    }

    /// Converts to compressed rows as [`to_csr`](Dcsr::to_csr) does, but moves column indices and values.
    pub(crate) fn into_csr(self) -> Result<Csr> {
        let (pattern, values) = self.stored.into_parts();
        let offsets = match &pattern.row_offsets {
            Offsets::U32(offsets) => spread(offsets, &self.row_indices, self.rows)?,
            Offsets::U64(offsets) => spread(offsets, &self.row_indices, self.rows)?,
        };
        let cols = pattern.cols;
        let Pattern { col_indices, repeats, .. } = Pattern::unshared(pattern)?;
        Csr::with_pattern(Arc::new(Pattern::trusted(self.rows, cols, offsets, col_indices, repeats)), values)
    }

    /// Returns the bytes of the arrays: row indices, offsets, column indices and values.
    pub(crate) fn storage_bytes(&self) -> u64 {
        self.row_indices.len() as u64 * 4 + self.stored.storage_bytes()
    }
}

/// Inserts the offsets of empty rows.
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
