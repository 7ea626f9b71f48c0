//! Files compressed with gzip, known by their first two bytes and unpacked into memory.

use super::inflate::{bounded, read_all};
use crate::error::Result;
use flate2::bufread::MultiGzDecoder;
use std::path::Path;

/// Whether the bytes begin as every gzip file does.
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Unpacks all members of a gzip file; `path` is for the error message.
pub(super) fn decompress(path: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
    // A file ends in the size of its last member, modulo 2^32: mostly that of all. It is a hint and no more.
    let claimed = bytes.last_chunk::<4>().map_or(0, |end| u64::from(u32::from_le_bytes(*end)));
    // One byte more, so that the end is seen without asking for more room.
    let hint = bounded(claimed, bytes.len()) + 1;
    read_all(path, "decompress", MultiGzDecoder::new(bytes), hint)
}
