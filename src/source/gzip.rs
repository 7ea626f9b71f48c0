//! Files compressed with gzip, recognised by their first two bytes and decompressed into memory, at once or in portions.

use super::inflate::{bounded, read_all};
use super::text::Text;
use crate::error::{Error, Result};
use crate::observe::Meter;
use crate::parallel::grow;
use flate2::bufread::MultiGzDecoder;
use memchr::memrchr;
use std::io::{BufRead, Read};
use std::path::Path;

/// Bytes of a portion, before it is extended to a line end: large enough to hide the cost of starting a task, small enough
/// to stay in the CPU's caches. A portion of a text in memory has at least this size for each thread. Fuzzing uses short
/// texts.
pub(super) const PORTION: usize = if cfg!(fuzzing) { 1 << 11 } else { 1 << 18 };

/// The action that error messages name.
const ACTION: &str = "decompress";

/// Checks for the magic number of gzip files.
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Decompresses all members of a gzip file, up to `most` bytes.
pub(super) fn decompress(file: Text, most: u64) -> Result<Vec<u8>> {
    let Text { path, bytes, meter, .. } = file;
    // A gzip file ends with the size of its last member modulo 2^32, mostly its only member. The size is only a hint.
    let claimed = bytes.last_chunk::<4>().map_or(0, |end| u64::from(u32::from_le_bytes(*end)));
    // One byte more, so that the end of file is reached without growing the buffer.
    let hint = bounded(claimed, bytes.len()).saturating_add(1).min(most);
    if let Some(meter) = meter {
        meter.begin("decompressing", bytes.len() as u64);
    }
    read_all(path, ACTION, MultiGzDecoder::new(Metered { bytes, meter }).take(most), hint)
}

/// Decompresses the first `size` bytes of a gzip file, or all if there are fewer.
pub(super) fn head(file: Text, size: usize) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = MultiGzDecoder::new(file.bytes).take(size as u64).read_to_end(&mut head);
    read.map_err(fail(file.path)).map(|_| head)
}

/// Decompresses the first lines of a gzip file; returns `None` if its text is shorter than a portion.
pub(super) fn first_lines(file: Text) -> Result<Option<Vec<u8>>> {
    let mut lines = head(file, PORTION)?;
    let end = memrchr(b'\n', &lines).filter(|_| lines.len() == PORTION);
    Ok(end.map(|newline| {
        lines.truncate(newline + 1);
        lines
    }))
}

/// A gzip file that is decompressed in portions, one member after the other.
pub(super) struct Unpacking<'a> {
    path: &'a Path,
    from: MultiGzDecoder<Metered<'a>>,
    /// Whether all members are decompressed.
    pub ended: bool,
}

impl<'a> Unpacking<'a> {
    pub fn new(file: Text<'a>) -> Unpacking<'a> {
        let Text { path, bytes, meter, .. } = file;
        Unpacking { path, from: MultiGzDecoder::new(Metered { bytes, meter }), ended: false }
    }

    /// Fills the portion with `cut`, the incomplete line at the end of the previous portion, and with the text that follows.
    /// Returns the end of the portion's last complete line, or the portion's end at the end of the text. A portion has at
    /// least one line, however long.
    pub fn fill(&mut self, portion: &mut Vec<u8>, cut: &[u8]) -> Result<usize> {
        portion.clear();
        grow(portion, cut.len() + PORTION)?;
        portion.extend_from_slice(cut);
        loop {
            grow(portion, PORTION)?;
            let before = portion.len();
            let read = self.from.by_ref().take(PORTION as u64).read_to_end(portion);
            if read.map_err(fail(self.path))? < PORTION {
                self.ended = true;
                return Ok(portion.len());
            }
            if let Some(newline) = memrchr(b'\n', &portion[before..]) {
                return Ok(before + newline + 1);
            }
        }
    }

    /// Decompresses the rest only to verify its checksums.
    pub fn check(&mut self) -> Result<()> {
        std::io::copy(&mut self.from, &mut std::io::sink()).map(drop).map_err(fail(self.path))
    }
}

/// Returns the error for a compressed file that is far longer than its size line allows.
pub(super) fn unpacks_to_more(file: Text) -> Error {
    file.unsupported("a file that unpacks to far more than its size line announces", "download it again")
}

fn fail(path: &Path) -> impl Fn(std::io::Error) -> Error {
    |source| Error::Io { action: ACTION, path: path.to_owned(), source }
}

/// A slice whose consumption advances a meter, one piece at a time.
struct Metered<'a> {
    bytes: &'a [u8],
    meter: Option<&'a Meter>,
}

/// Maximum number of bytes per piece.
const PIECE: usize = 1 << 20;

impl Read for Metered<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let count = self.fill_buf()?.read(to)?;
        self.consume(count);
        Ok(count)
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
