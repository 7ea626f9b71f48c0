//! Files compressed with gzip, known by their first two bytes and unpacked into memory, at once or in portions.

use super::inflate::{bounded, read_all};
use super::text::Text;
use crate::error::{Error, Result};
use crate::observe::Meter;
use crate::parallel::grow;
use flate2::bufread::MultiGzDecoder;
use memchr::memrchr;
use std::io::{BufRead, Read};
use std::path::Path;

/// Bytes of a portion, lines that are cut through aside: enough work that starting it costs nothing, and so little that it
/// stays in the caches. Where a text is in memory, it is as many for each thread at least. Fuzzing has short texts.
pub(super) const PORTION: usize = if cfg!(fuzzing) { 1 << 11 } else { 1 << 18 };

/// What is being done, for errors.
const ACTION: &str = "decompress";

/// Whether the bytes begin as every gzip file does.
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Unpacks all members of a gzip file, but no more than `most` bytes.
pub(super) fn decompress(file: Text, most: u64) -> Result<Vec<u8>> {
    let Text { path, bytes, meter } = file;
    // A file ends in the size of its last member, modulo 2^32: mostly that of all. It is a hint and no more.
    let claimed = bytes.last_chunk::<4>().map_or(0, |end| u64::from(u32::from_le_bytes(*end)));
    // One byte more, so that the end is seen without asking for more room.
    let hint = bounded(claimed, bytes.len()).saturating_add(1).min(most);
    if let Some(meter) = meter {
        meter.begin("decompressing", bytes.len() as u64);
    }
    read_all(path, ACTION, MultiGzDecoder::new(Metered { bytes, meter }).take(most), hint)
}

/// The first bytes of what a gzip file holds, `size` of them or all.
pub(super) fn head(file: Text, size: usize) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let came = MultiGzDecoder::new(file.bytes).take(size as u64).read_to_end(&mut head);
    came.map_err(fail(file.path)).map(|_| head)
}

/// The first lines of what a gzip file holds; none where there is no more than a portion of it.
pub(super) fn first_lines(file: Text) -> Result<Option<Vec<u8>>> {
    let mut lines = head(file, PORTION)?;
    let end = memrchr(b'\n', &lines).filter(|_| lines.len() == PORTION);
    Ok(end.map(|newline| {
        lines.truncate(newline + 1);
        lines
    }))
}

/// A gzip file that is unpacked bit by bit, all its members one after the other.
pub(super) struct Unpacking<'a> {
    path: &'a Path,
    from: MultiGzDecoder<Metered<'a>>,
    /// Whether all of it is unpacked.
    pub ended: bool,
}

impl<'a> Unpacking<'a> {
    pub fn new(file: Text<'a>) -> Unpacking<'a> {
        let Text { path, bytes, meter } = file;
        Unpacking { path, from: MultiGzDecoder::new(Metered { bytes, meter }), ended: false }
    }

    /// Fills the portion with what was cut off the one before it and what comes next; returns where its last whole
    /// line ends, or its end where nothing follows. A portion has one line at least, however long.
    pub fn fill(&mut self, portion: &mut Vec<u8>, cut: &[u8]) -> Result<usize> {
        portion.clear();
        grow(portion, cut.len() + PORTION)?;
        portion.extend_from_slice(cut);
        loop {
            grow(portion, PORTION)?;
            let before = portion.len();
            let came = self.from.by_ref().take(PORTION as u64).read_to_end(portion);
            if came.map_err(fail(self.path))? < PORTION {
                self.ended = true;
                return Ok(portion.len());
            }
            if let Some(newline) = memrchr(b'\n', &portion[before..]) {
                return Ok(before + newline + 1);
            }
        }
    }

    /// Unpacks the rest for its checksums alone.
    pub fn check(&mut self) -> Result<()> {
        std::io::copy(&mut self.from, &mut std::io::sink()).map(drop).map_err(fail(self.path))
    }
}

fn fail(path: &Path) -> impl Fn(std::io::Error) -> Error {
    |source| Error::Io { action: ACTION, path: path.to_owned(), source }
}

/// Bytes that are counted as they are taken, a piece at a time.
struct Metered<'a> {
    bytes: &'a [u8],
    meter: Option<&'a Meter>,
}

/// Bytes that are handed out at once.
const PIECE: usize = 1 << 20;

impl Read for Metered<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let came = self.fill_buf()?.read(to)?;
        self.consume(came);
        Ok(came)
    }
}

impl BufRead for Metered<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        Ok(&self.bytes[..self.bytes.len().min(PIECE)])
    }

    fn consume(&mut self, count: usize) {
        self.bytes = &self.bytes[count..];
        if let Some(meter) = self.meter {
            meter.add(count as u64);
        }
    }
}
