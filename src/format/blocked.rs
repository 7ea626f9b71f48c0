//! Matrices in blocks of the size that moves the fewest bytes.

use super::narrow::narrowest;
use super::stats::{Block, Blocks};
use super::{Bsr, Csr, Values};
use crate::error::Result;
use std::sync::Arc;

/// Bytes of a value as the matrix has it; ones are stored in double precision.
pub(crate) fn stored_bytes(matrix: &Csr) -> f64 {
    if matches!(matrix.values(), Values::F32(_)) { 4.0 } else { 8.0 }
}

/// The blocks that move the fewest bytes in a sample of the rows, where a value takes `value` bytes; and their bytes.
pub(crate) fn cheapest(matrix: &Csr, value: f64) -> Option<(Block, f64)> {
    // The statistics count values in double precision.
    let bytes = |block: &Block| {
        block.bytes as f64 - block.blocks as f64 * (block.size[0] * block.size[1]) as f64 * (8.0 - value)
    };
    let all = Blocks::sampled(matrix).all.into_iter().map(|block| (block, bytes(&block)));
    all.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The matrix in blocks, with values in single precision where that holds them exactly.
pub(crate) fn blocked(matrix: &Arc<Csr>, block: (usize, usize)) -> Result<Bsr> {
    match matrix.values() {
        Values::Ones => {
            let ones = Values::F32(vec![1.0; matrix.nnz()]);
            Bsr::from_csr(&Csr::with_pattern(Arc::clone(matrix.pattern()), ones)?, block)
        }
        _ => Bsr::from_csr(&narrowest(matrix), block),
    }
}
