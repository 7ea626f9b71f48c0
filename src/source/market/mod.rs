//! Matrix Market files: the coordinate format with real, integer or pattern entries, plain or gzip-compressed.
//!
//! The file is mapped into memory and cut at line ends into chunks that the threads of rayon's current pool parse at
//! the same time, straight into arrays of triplets; the triplets then become compressed rows. Duplicates are summed in
//! the order of the file, so the matrix is the same, bit for bit, for any number of threads. Nothing is allocated on
//! the word of the header alone.

mod assemble;
mod body;
mod header;
mod write;

use super::text::Text;
use super::{Loaded, Options, gzip, mmap};
use crate::error::Result;
use header::Symmetry;
use std::path::Path;
pub use write::write_vector;

/// Reads the Matrix Market file at `path`.
///
/// The file must not be shortened by others during the call: it is mapped, and the system ends programs that read
/// mapped pages which are no longer there.
pub fn read(path: &Path) -> Result<Loaded> {
    let bytes = mmap::open(path)?;
    parse(path, &bytes)
}

/// Reads a Matrix Market file that is already in memory, gzip-compressed or not; `path` is for error messages.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Loaded> {
    if gzip::is_gzip(bytes) {
        let unpacked = gzip::decompress(path, bytes)?;
        return read_text(Text { path, bytes: &unpacked }, &Options::default());
    }
    read_text(Text { path, bytes }, &Options::default())
}

/// Reads a text that is in memory.
pub(super) fn read_text(text: Text, options: &Options) -> Result<Loaded> {
    let mut header = header::read(text)?;
    if options.as_stored {
        header.symmetry = Symmetry::General;
    }
    let (matrix, stored) = assemble::read(text, &header)?;
    Ok(Loaded::new(matrix, stored, header.symmetry == Symmetry::Symmetric))
}
