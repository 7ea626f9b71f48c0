//! Compressed rows as files hold them: columns in any order, and the same one more than once.

use crate::error::{Error, Result};
use crate::format::{Coo, Csr, Duplicates, Offsets, Values, assemble};
use crate::parallel::room;

/// Rows whose offsets never decrease and whose columns are in range, as the reader that made them has checked.
pub(super) struct Compressed {
    pub rows: usize,
    pub cols: usize,
    pub offsets: Vec<u64>,
    pub indices: Vec<u32>,
    /// Empty where every entry is 1.
    pub values: Vec<f64>,
}

impl Compressed {
    /// The matrix, columns sorted and duplicates summed or kept in their order.
    pub fn into_csr(self, duplicates: Duplicates) -> Result<Csr> {
        if self.is_sorted() {
            let values = if self.values.is_empty() { Values::Ones } else { Values::F64(self.values) };
            return Csr::new(self.rows, self.cols, Offsets::narrowest(self.offsets), self.indices, values);
        }
        self.into_triplets(None, duplicates)
    }

    /// The matrix whose columns these rows are.
    pub fn into_transposed(self, duplicates: Duplicates) -> Result<Csr> {
        let rows = self.into_csr(duplicates).map_err(|error| match error {
            Error::DuplicateOverflow { row, col } => Error::DuplicateOverflow { row: col, col: row },
            other => other,
        });
        rows?.transposed()
    }

    /// The matrix of which these rows, or columns, are one triangle; an entry takes `sign` across the diagonal.
    pub fn into_mirrored(self, sign: f64, duplicates: Duplicates) -> Result<Csr> {
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
