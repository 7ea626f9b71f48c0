//! The head of a file: as much of what it holds as tells its kind, unpacked where it is compressed.

use super::gzip;
use super::text::{Text, without_mark};
use super::tokens::ListTokens;
use crate::error::Result;
use std::borrow::Cow;

/// Bytes from the first content on that tell the kind of a file.
pub(super) const HEAD: usize = 64 << 10;
/// Bytes of a head in which there must be some content.
pub(super) const MOST: usize = 16 << 20;
/// What a line of comments begins with, in any kind of file that is text.
const COMMENTS: &[u8] = b"#%";

/// The first bytes of what a file holds.
pub(super) struct Head<'a> {
    bytes: Cow<'a, [u8]>,
    /// Whether the file holds no more.
    pub whole: bool,
}

impl<'a> Head<'a> {
    /// The first `size` bytes; of a compressed file no more than that is unpacked.
    pub fn of(file: Text<'a>, size: usize) -> Result<Head<'a>> {
        if gzip::is_gzip(file.bytes) {
            let bytes = gzip::head(file, size)?;
            let whole = bytes.len() < size;
            return Ok(Head { bytes: Cow::Owned(bytes), whole });
        }
        let end = size.min(file.bytes.len());
        Ok(Head { bytes: Cow::Borrowed(&file.bytes[..end]), whole: end == file.bytes.len() })
    }

    pub fn bytes(&self) -> &[u8] {
        without_mark(&self.bytes)
    }

    /// Bytes from the first line on that is neither blank nor a comment.
    pub fn content(&self) -> usize {
        let mut words = ListTokens::new(self.bytes(), 0);
        words.seek_line(COMMENTS);
        self.bytes().len() - words.at
    }
}
