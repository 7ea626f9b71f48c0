//! Matrix Market files: the coordinate and the array format with real, integer or pattern entries, or complex
//! entries with imaginary parts of 0, plain or gzip-compressed.
//!
//! The file is mapped into memory and cut at line ends into pieces, which the threads of rayon's current
//! pool parse in parallel. A file whose entries are ordered by rows is parsed directly into compressed
//! rows. Any other file is parsed twice: once to count the entries of each row, and once to write them.
//! Neither way allocates an additional array as large as the matrix. Duplicates are summed or kept in the
//! order of the file, so the matrix is the same, bit for bit, for any number of threads. No memory is
//! allocated based on the header alone. Compressed files are decompressed into memory first, which takes
//! additional memory for the text.
//!
//! The format's description leaves some cases open, and some existing files deviate from it. Zeros of an
//! array are not stored; zeros of the coordinate format are. A symmetric file may store either triangle, but
//! not entries of both, which would count twice. Accepted are a banner with one percent sign, line ends of
//! any system, blank lines, and comments on separate lines or after the last word of a line. Numbers that are
//! not finite are refused. Integers beyond 2^53 are rounded, with a warning.

mod assemble;
mod header;
mod judge;
mod lines;
mod notes;
mod ordered;
pub(super) mod stream;
mod usual;
mod vector;
mod write;

use super::text::{Text, in_file, without_mark};
use super::{Loaded, Options, gzip, mmap};
use crate::error::Result;
use assemble::locate;
use header::{Header, Symmetry};
use memchr::memchr2;
use std::borrow::Cow;
use std::path::Path;
pub use vector::{parse_vector, read_vector};
pub(super) use vector::{pass_columns, read_columns};
pub(crate) use write::write_as_found;
pub(super) use write::write_vectors;
pub(in crate::source) use write::{push_value, write_packed};
pub use write::{write_columns, write_matrix, write_matrix_metered, write_vector};

/// Checks whether the first non-blank line is the banner, or so similar that a fault in the
/// banner is the best report.
pub(super) fn recognises(text: Text) -> bool {
    let bytes = text.bytes.trim_ascii_start();
    let head = &bytes[..bytes.len().min(64)];
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or(b"");
    let named = memchr::memmem::find(&line.to_ascii_lowercase(), b"matrixmarket").is_some();
    // A comment of another format may contain the name, but does not begin like this.
    let banner = matches!(line, [b'%', b'%', next, ..] if !next.is_ascii_whitespace() && *next != b'%');
    banner || (named && line.first() != Some(&b'#'))
}

/// Reads the Matrix Market file at `path`.
pub fn read(path: &Path) -> Result<Loaded> {
    mmap::with(path, |bytes| parse(path, bytes)).map_err(in_file(path))
}

/// Reads a Matrix Market file that is already in memory, gzip-compressed or not; `path` is for
/// error messages.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Loaded> {
    let file = Text { path, bytes, meter: None, lines: 0 };
    if gzip::is_gzip(bytes) {
        let unpacked = gzip::decompress(file, u64::MAX).map_err(in_file(path))?;
        return read_text(Text { bytes: &unpacked, ..file }, &Options::default());
    }
    read_text(file, &Options::default())
}

/// Reads a text that is in memory.
pub(super) fn read_text(text: Text, options: &Options) -> Result<Loaded> {
    let bytes = with_newlines(without_mark(text.bytes));
    let text = Text { bytes: &bytes, ..text };
    let header = header::read(text)?;
    let mirror = if options.as_stored { None } else { header.symmetry.mirror() };
    let matrix = assemble::read(text, &header, mirror, options.duplicates).map_err(in_file(text.path))?;
    let symmetric = header.symmetry == Symmetry::Symmetric && mirror.is_some();
    Ok(Loaded::new(matrix, header.entries, symmetric))
}

/// Returns the numbers of rows and columns in the size line.
pub(super) fn size(text: Text) -> Result<(usize, usize)> {
    let bytes = with_newlines(text.bytes);
    let header = header::read(Text { bytes: &bytes, ..text })?;
    Ok((header.rows, header.cols))
}

/// Returns the numbers of rows and entries of the coordinate file that begins with this text; none
/// if it is no such file. Entries off the diagonal of a symmetric matrix have mirror images, so here
/// all entries count twice.
pub(super) fn announced(head: Text) -> Option<(u64, u64)> {
    let bytes = with_newlines(head.bytes);
    let header = header::read(Text { bytes: &bytes, ..head }).ok()?;
    if header.format != header::Format::Coordinate {
        return None;
    }
    let images = if header.symmetry.mirror().is_some() { 2 } else { 1 };
    Some((header.rows as u64, header.entries.saturating_mul(images)))
}

/// Returns an upper bound for the length of a file that begins with these bytes: the size line limits the
/// entries, and each line is short. `None` if the bytes contain no size line.
pub(super) fn most(head: &[u8]) -> Option<u64> {
    let bytes = with_newlines(head);
    let header = header::read(Text { path: Path::new(""), bytes: &bytes, meter: None, lines: 0 }).ok()?;
    Some(most_bytes(&header))
}

/// Returns an upper bound for the length of a file with this header.
fn most_bytes(header: &Header) -> u64 {
    /// Bound for the bytes of an entry's line, and for all comments and blank lines among the entries.
    const LINE: u64 = 512;
    const REST: u64 = 16 << 20;
    header.entries.saturating_mul(LINE).saturating_add(header.body as u64 + REST)
}

/// Returns whether the first line ends in a carriage return alone: the text is from an old Macintosh.
fn old_line_ends(bytes: &[u8]) -> bool {
    let first = memchr2(b'\r', b'\n', bytes);
    first.is_some_and(|at| bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'))
}

/// Returns the text with newlines as line ends: those of an old Macintosh are replaced.
fn with_newlines(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !old_line_ends(bytes) {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(bytes.iter().map(|&byte| if byte == b'\r' { b'\n' } else { byte }).collect())
}
