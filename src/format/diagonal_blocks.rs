//! Square blocks along the diagonal of a matrix that has no other entries.

use super::{Csr, Offsets, Values};
use crate::error::Result;
use crate::parallel::room;

/// A matrix of square blocks along its diagonal. The last block has the rows that are left.
pub struct DiagonalBlocks {
    /// Rows of the matrix.
    pub rows: usize,
    /// Rows of a block.
    pub block: usize,
    /// The elements of the blocks, block by block, each row by row.
    pub values: Vec<f64>,
}

impl DiagonalBlocks {
    /// Converts the blocks to compressed rows.
    pub(crate) fn into_csr(self) -> Result<Csr> {
        let DiagonalBlocks { rows, block, values } = self;
        let height = |first: usize| block.min(rows - first);
        let mut columns = room::<u32>(values.len())?;
        let mut offsets = room::<u64>(rows + 1)?;
        offsets.push(0);
        for first in (0..rows).step_by(block) {
            for _ in 0..height(first) {
                columns.extend(first as u32..(first + height(first)) as u32);
                offsets.push(columns.len() as u64);
            }
        }
        Csr::new(rows, rows, Offsets::narrowest(offsets), columns, Values::F64(values))
    }
}
