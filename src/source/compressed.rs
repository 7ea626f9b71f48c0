//! Compressed rows as files store them: column indices in any order, possibly with duplicates.

use crate::error::{Error, Result};
use crate::format::{Coo, Csr, Duplicates, Offsets, Values, assemble};
use crate::parallel::room;

/// Compressed rows. The reader that builds them guarantees that offsets never decrease and
/// column indices are in range.
pub(super) struct Compressed {
    pub rows: usize,
    pub cols: usize,
    pub offsets: Vec<u64>,
    pub indices: Vec<u32>,
    /// Empty if every entry is 1.
    pub values: Vec<f64>,
}

impl Compressed {
    /// Converts to CSR: sorts the column indices and sums the duplicates, or keeps them in their order.
    pub(crate) fn into_csr(self, duplicates: Duplicates) -> Result<Csr> {
        if self.is_sorted() {
            let values = if self.values.is_empty() { Values::Ones } else { Values::F64(self.values) };
            return Csr::new(self.rows, self.cols, Offsets::narrowest(self.offsets), self.indices, values);
        }
        self.into_triplets(None, duplicates)
    }

    /// Converts to the CSR matrix whose columns are these rows.
    pub(crate) fn into_transposed(self, duplicates: Duplicates) -> Result<Csr> {
        let rows = self.into_csr(duplicates).map_err(|error| match error {
            Error::DuplicateOverflow { row, col } => Error::DuplicateOverflow { row: col, col: row },
            other => other,
        });
        rows?.transposed()
    }

    /// Converts one triangle, stored by rows or by columns, to the full matrix. An entry's mirror image
    /// across the diagonal is `sign` times the entry.
    pub(crate) fn into_mirrored(self, sign: f64, duplicates: Duplicates) -> Result<Csr> {
        self.into_triplets(Some(sign), duplicates)
    }

    fn is_sorted(&self) -> bool {
        self.offsets.windows(2).all(|row| {
            self.indices
                .get(row[0] as usize..row[1] as usize)
                .is_some_and(|row| row.is_sorted_by(|a, b| a < b))
        })
    }

    fn into_triplets(self, mirror: Option<f64>, duplicates: Duplicates) -> Result<Csr> {
        let mut row_indices = room::<u32>(self.indices.len())?;
        for (row, range) in self.offsets.windows(2).enumerate() {
            row_indices.resize(range[1] as usize, row as u32);
        }
        let triplets = Coo::new(self.rows, self.cols, row_indices, self.indices, self.values)?;
        assemble::assemble(&triplets, mirror, duplicates)
    }
}
