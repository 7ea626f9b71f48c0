//! Choice of the block size with the least memory traffic, and conversion to blocks.

use super::narrow::narrows;
use super::stats::{Block, Blocks};
use super::{Bsr, Csr, Values};
use crate::error::Result;

/// Returns the bytes of a value in blocks; ones are stored in double precision.
pub(crate) fn stored_bytes(matrix: &Csr) -> f64 {
    if matches!(matrix.values(), Values::F32(_)) { 4.0 } else { 8.0 }
}

/// Returns the block size with the fewest bytes, and those bytes, estimated from a sample of the rows. A
/// value has `value` bytes.
pub(crate) fn cheapest(matrix: &Csr, value: f64) -> Option<(Block, f64)> {
    // The statistics count values in double precision.
    let bytes = |block: &Block| {
        block.bytes as f64 - block.blocks as f64 * (block.size[0] * block.size[1]) as f64 * (8.0 - value)
    };
    let all = Blocks::sampled(matrix).all.into_iter().map(|block| (block, bytes(&block)));
    all.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Converts a matrix to blocks, with values in single precision if this is exact.
pub(crate) fn blocked(matrix: &Csr, block: (usize, usize)) -> Result<Bsr> {
    Bsr::convert(matrix, block, narrows(matrix))
}
