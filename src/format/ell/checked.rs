//! Conversions with the usual limit of padding and back to compressed rows. Only tests need them: backends
//! have limits of their own.

use super::Ell;
use crate::error::Result;
use crate::format::Csr;
use crate::format::rows::build_rows;
use crate::format::values::for_stored;

impl Ell {
    /// Largest number of slots per entry that [`Ell::from_csr`] accepts. A slot holds an entry or padding.
    /// Above this limit another format takes less memory.
    pub(crate) const MAX_SLOTS_PER_ENTRY: usize = 4;

    /// Converts a matrix. Fails if the padded matrix has more than
    /// [`Ell::MAX_SLOTS_PER_ENTRY`] slots per entry.
    pub(crate) fn from_csr(matrix: &Csr) -> Result<Ell> {
        Ell::with_limit(matrix, Ell::MAX_SLOTS_PER_ENTRY)
    }

    /// Converts to compressed rows, bit for bit those that the matrix was built from.
    pub(crate) fn to_csr(&self) -> Result<Csr> {
        for_stored!(&self.values, self.col_indices.len(), |values| {
            build_rows((self.rows, self.cols), &self.row_lengths, false, |row, columns_out, values_out| {
                let slots = (row..).step_by(self.rows);
                for ((slot, col), value) in slots.zip(columns_out).zip(values_out) {
                    (*col, *value) = (self.col_indices[slot], values[slot]);
                }
            })
        })
    }

    /// Returns the number of entries, including explicit zeros but not padding.
    pub(crate) fn nnz(&self) -> usize {
        self.entries
    }

    /// Returns the number of slots without an entry.
    pub(crate) fn padding(&self) -> usize {
        self.col_indices.len() - self.entries
    }

    /// Returns the bytes of the arrays: row lengths, column indices and values.
    pub(crate) fn storage_bytes(&self) -> u64 {
        (self.row_lengths.len() * 4 + self.col_indices.len() * (4 + self.values.width())) as u64
    }
}
