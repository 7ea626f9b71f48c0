//! Files compressed with gzip, known by their first two bytes and unpacked into memory.

use crate::error::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::io::Read;
use std::path::Path;

/// Whether the bytes begin as every gzip file does.
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Unpacks all members of a gzip file; `path` is for the error message.
pub(super) fn decompress(path: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    match MultiGzDecoder::new(bytes).read_to_end(&mut text) {
        Ok(_) => Ok(text),
        Err(source) => Err(Error::Io { action: "decompress", path: path.to_owned(), source }),
    }
}
