//! What kind of file it is, found from its content and never from its name.

use super::text::Text;
use super::{Loaded, Options, gzip, market, mmap};
use crate::error::Result;
use std::path::Path;

/// A kind of file that holds a matrix.
struct Kind {
    /// Whether a file with this content is one.
    recognises: fn(&[u8]) -> bool,
    /// Reads it.
    read: fn(Text, &Options) -> Result<Loaded>,
}

/// The first that recognises a file reads it; the last takes what nothing else wants, and says what is wrong with it.
const KINDS: &[Kind] = &[Kind { recognises: |_| true, read: market::read_text }];

/// Reads the file at `path`.
///
/// The file must not be shortened by others during the call: it is mapped, and the system ends programs that read
/// mapped pages which are no longer there.
pub(super) fn read(path: &Path, options: &Options) -> Result<Loaded> {
    let bytes = mmap::open(path)?;
    parse(path, &bytes, options)
}

/// Reads what is already in memory; `path` is for error messages.
pub(super) fn parse(path: &Path, bytes: &[u8], options: &Options) -> Result<Loaded> {
    if gzip::is_gzip(bytes) {
        let unpacked = gzip::decompress(path, bytes)?;
        return parse(path, &unpacked, options);
    }
    let kind = KINDS.iter().find(|kind| (kind.recognises)(bytes)).unwrap_or(&KINDS[KINDS.len() - 1]);
    (kind.read)(Text { path, bytes }, options)
}
