//! Binary matrix files: the arrays of a matrix as they are in memory, so that reading is limited
//! by memory bandwidth only.
//!
//! # Layout
//! All integers are little-endian.
//! - The header: a magic of eight bytes, the version, sizes, the key of the source file, the names and shapes
//!   of the dense arrays stored with the matrix, the names of those in the source file that are not stored
//!   here, a checksum for each block of the arrays, and a checksum of the header itself.
//! - The arrays, each starting at a multiple of 64 bytes: row offsets, column indices, values (none if all
//!   are 1), and the dense arrays that came with the matrix.
//!
//! Arrays are cut into blocks of 1 MiB with a checksum (XXH3, 64 bits) each. Threads copy a block and check
//! it while it is in their cache. The checksums detect accidental damage. Everything else in a file is
//! checked as well: all sizes against the length of the file before memory is allocated, and the arrays like
//! those of any other matrix. The symmetry flag of a square matrix is trusted without a check: symmetry is
//! verified when the file is written.

mod array;
mod header;
mod rows;

use super::text::in_file;
use super::{Content, Loaded, Options, mmap};
use crate::error::{Error, Result};
use crate::files;
use crate::format::stats::first_unpaired;
use crate::format::{Csr, Dense, Offsets, Values};
use crate::observe::{Meter, write_file_with};
use array::Element;
use header::{Header, Kind};
use std::io::{self, Write};
use std::path::Path;

pub(super) use header::Key;
pub(super) use rows::FileRows;

/// Checks whether a file with this content is a binary matrix, damaged or not.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(header::MAGIC)
}

/// Reads the file at `path`, including the dense arrays stored with the matrix.
pub fn read(path: &Path) -> Result<Loaded> {
    mmap::with(path, |bytes| read_bytes(path, bytes)).map_err(in_file(path))
}

/// Reads a file that is already in memory; `path` is for error messages.
pub fn read_bytes(path: &Path, bytes: &[u8]) -> Result<Loaded> {
    read_with(path, bytes, &Options { attached: true, ..Options::default() }).map_err(in_file(path))
}

/// Reads a file that is already in memory, with options.
pub(super) fn read_with(path: &Path, bytes: &[u8], options: &Options) -> Result<Loaded> {
    read_keyed(path, bytes, None, options)
}

/// Returns the numbers of rows and entries; none if the header is invalid.
pub(super) fn size(bytes: &[u8]) -> Option<(u64, u64)> {
    Header::decode(bytes).ok().map(|header| (header.rows as u64, header.entries as u64))
}

/// Checks that the file lists no unread arrays of its source. A file with an invalid header
/// counts as complete.
pub(super) fn is_complete(bytes: &[u8]) -> bool {
    Header::decode(bytes).map_or(true, |header| header.unread.is_empty())
}

/// Checks whether the matrix was made from exactly the source that `key` describes.
pub(super) fn is_made_from(bytes: &[u8], key: &Key) -> bool {
    Header::decode(bytes).is_ok_and(|header| header.key == *key)
}

/// Reads a file that is already in memory. With a key, the source must match it and every
/// attached array must be valid.
pub(super) fn read_keyed(path: &Path, bytes: &[u8], key: Option<&Key>, options: &Options) -> Result<Loaded> {
    let fault = |reason: String| Error::Binary { path: path.to_owned(), reason };
    let header = Header::decode(bytes).map_err(fault)?;
    if key.is_some_and(|key| *key != header.key) {
        return Err(fault("it was made from another file, or with other options".to_owned()));
    }
    let meter = options.meter.as_deref();
    if let Some(meter) = meter {
        let skipped = if options.attached { 0 } else { header.attached.len() };
        let wanted = &header.arrays()[..header.arrays().len() - skipped];
        meter.begin("reading", wanted.iter().map(|span| span.length as u64).sum());
    }
    let mut arrays = Arrays { path, bytes, header: &header, array: 0, block: 0, meter };
    let offsets = match header.offset_width {
        4 => Offsets::U32(arrays.next()?),
        _ => Offsets::U64(arrays.next()?),
    };
    let columns = arrays.next()?;
    let values = match header.values {
        Kind::Ones => Values::Ones,
        Kind::F32 => Values::F32(arrays.next()?),
        Kind::F64 => Values::F64(arrays.next()?),
    };
    let matrix = Csr::new(header.rows, header.cols, offsets, columns, values).map_err(|e| match e {
        Error::InvalidCsr(e) => fault(e.to_string()),
        other => other,
    })?;
    if header.symmetric && header.rows != header.cols {
        return Err(fault("it marks a matrix as symmetric that is not square".to_owned()));
    }
    let mut loaded = Loaded::new(matrix, header.stored, header.symmetric);
    loaded.stand_in = header.stand_in;
    loaded.kind = key.and(header.kind);
    loaded.attached_unread = header.unread.clone();
    for attached in &header.attached {
        let name = attached.name.clone();
        if !options.attached {
            loaded.attached_unread.push(name);
            continue;
        }
        let values = arrays.next().and_then(|values| Dense::new(attached.rows, attached.cols, values));
        match values.and_then(|values| loaded.attach(name.clone(), values)) {
            Ok(()) => {}
            Err(error) if key.is_some() => return Err(error),
            Err(error) => loaded.skip_attached(path, vec![name], error),
        }
    }
    Ok(loaded)
}

/// An iterator over the arrays of a file, in the order in which they are stored.
struct Arrays<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    header: &'a Header,
    array: usize,
    block: usize,
    meter: Option<&'a Meter>,
}

impl Arrays<'_> {
    fn next<T: Element>(&mut self) -> Result<Vec<T>> {
        let span = &self.header.arrays()[self.array];
        // The header has been checked against the length of the file, so these ranges are within bounds.
        let blocks = header::blocks(span.length);
        let sums = &self.header.checksums[self.block..self.block + blocks];
        let bytes = &self.bytes[span.start..span.start + span.length];
        (self.array, self.block) = (self.array + 1, self.block + blocks);
        array::read(bytes, sums, self.meter)?.map_err(|block| Error::Binary {
            path: self.path.to_owned(),
            reason: format!("it is damaged: the checksum of block {block} of its {} is wrong", span.name),
        })
    }
}

/// Writes the matrix to `path`. An existing file is replaced in one step, after the new one is complete.
pub fn write(path: &Path, loaded: &Loaded) -> Result<()> {
    write_metered(path, loaded, None)
}

/// Writes the matrix to `path` and reports progress to a meter.
pub fn write_metered(path: &Path, loaded: &Loaded, meter: Option<&Meter>) -> Result<()> {
    write_content(path, &loaded.into(), meter)
}

/// Writes a borrowed matrix to `path`.
pub(super) fn write_content(path: &Path, content: &Content<'_>, meter: Option<&Meter>) -> Result<()> {
    let unwritable = |reason: &str| Error::Unwritable { path: path.to_owned(), reason: reason.to_owned() };
    content.matrix.pattern().refuse_repeats().map_err(|error| unwritable(&error.to_string()))?;
    // Readers trust the symmetry flag, so it must be correct.
    let square = content.matrix.rows() == content.matrix.cols();
    if content.symmetric && !(square && first_unpaired(content.matrix).is_none()) {
        let reason = "the matrix is marked as symmetric, but an entry has no equal entry across the diagonal";
        return Err(unwritable(reason));
    }
    write_file_with(path, files::Content::Result, |file| write_to(file, content, &Key::default(), meter))
}

/// Writes the matrix to a cache file, with the key of its source.
pub(super) fn write_keyed(path: &Path, loaded: &Loaded, key: &Key, meter: Option<&Meter>) -> io::Result<()> {
    files::replace(path, files::Content::Cache, false, |file| write_to(file, &loaded.into(), key, meter))
}

fn write_to(out: &mut impl Write, content: &Content<'_>, key: &Key, meter: Option<&Meter>) -> io::Result<()> {
    let matrix = content.matrix;
    if let Some(meter) = meter {
        let attached = content.arrays().map(|(_, values)| values.storage_bytes());
        // Every byte passes twice: for the checksums and for writing.
        meter.begin("writing", 2 * (matrix.storage_bytes() + attached.sum::<u64>()));
    }
    let mut checksums = Vec::new();
    match matrix.row_offsets() {
        Offsets::U32(offsets) => array::checksums(offsets, &mut checksums, meter),
        Offsets::U64(offsets) => array::checksums(offsets, &mut checksums, meter),
    }
    array::checksums(matrix.col_indices(), &mut checksums, meter);
    match matrix.values() {
        Values::Ones => {}
        Values::F32(values) => array::checksums(values, &mut checksums, meter),
        Values::F64(values) => array::checksums(values, &mut checksums, meter),
    }
    for (_, values) in content.arrays() {
        array::checksums(values.values(), &mut checksums, meter);
    }
    let header = Header::of(content, key, checksums).encode();
    out.write_all(&header)?;
    let mut out = array::Aligned { out, written: header.len(), meter };
    match matrix.row_offsets() {
        Offsets::U32(offsets) => out.write(offsets)?,
        Offsets::U64(offsets) => out.write(offsets)?,
    }
    out.write(matrix.col_indices())?;
    match matrix.values() {
        Values::Ones => {}
        Values::F32(values) => out.write(values)?,
        Values::F64(values) => out.write(values)?,
    }
    for (_, values) in content.arrays() {
        out.write(values.values())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
