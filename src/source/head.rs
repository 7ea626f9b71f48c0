//! The head of a file: enough of its content to detect its kind, decompressed if necessary.

use super::gzip;
use super::text::{Text, without_mark};
use super::tokens::ListTokens;
use crate::error::Result;
use std::borrow::Cow;

/// Bytes after blank lines and comments that suffice to detect the kind of a file.
pub(super) const HEAD: usize = 64 << 10;
/// Maximum bytes of a head: a file with longer leading blank lines and comments is refused.
pub(super) const MAX_HEAD: usize = 16 << 20;
/// Characters that begin a comment line in any kind of text file.
const COMMENTS: &[u8] = b"#%";

/// The first bytes of a file's content.
pub(super) struct Head<'a> {
    bytes: Cow<'a, [u8]>,
    /// Whether the head is the complete content.
    pub complete: bool,
}

impl<'a> Head<'a> {
    /// Returns the first `size` bytes; decompresses no more of a compressed file.
    pub(crate) fn of(file: Text<'a>, size: usize) -> Result<Head<'a>> {
        if gzip::is_gzip(file.bytes) {
            let bytes = gzip::head(file, size)?;
            let complete = bytes.len() < size;
            return Ok(Head { bytes: Cow::Owned(bytes), complete });
        }
        let end = size.min(file.bytes.len());
        Ok(Head { bytes: Cow::Borrowed(&file.bytes[..end]), complete: end == file.bytes.len() })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        without_mark(&self.bytes)
    }

    /// Returns the number of bytes after leading blank lines and comments.
    pub(crate) fn content(&self) -> usize {
        let mut words = ListTokens::new(self.bytes(), 0);
        words.seek_line(COMMENTS);
        self.bytes().len() - words.at
    }
}
