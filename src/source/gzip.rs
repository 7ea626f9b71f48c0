//! Files compressed with gzip, recognised by their first two bytes and decompressed into
//! memory, at once or in portions.

use super::inflate::{bounded, read_all};
use super::text::Text;
use crate::error::{Error, Result};
use crate::observe::Meter;
use crate::parallel::grow;
use flate2::bufread::MultiGzDecoder;
use memchr::memrchr;
use std::io::{BufRead, Read};
use std::path::Path;

/// Bytes of a portion, before it is extended to a line end: large enough to hide the cost of starting a task,
/// small enough to stay in the CPU's caches. A portion of a text in memory has at least this size for each
/// thread. Fuzzing uses short texts.
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
    // A gzip file ends with the size of its last member modulo 2^32, mostly its only member.
    // The size is only a hint.
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
    file: Text<'a>,
    from: MultiGzDecoder<Metered<'a>>,
    /// Bytes that the text may have in addition to those that are decompressed.
    left: u64,
    /// Whether all members are decompressed.
    pub ended: bool,
}

impl<'a> Unpacking<'a> {
    /// Starts at the beginning of a file whose text has at most `most` bytes; a longer text is an
    /// error as soon as that shows.
    pub(crate) fn new(file: Text<'a>, most: u64) -> Unpacking<'a> {
        let Text { bytes, meter, .. } = file;
        Unpacking { file, from: MultiGzDecoder::new(Metered { bytes, meter }), left: most, ended: false }
    }

    /// Fills the portion with `cut`, the incomplete line at the end of the previous portion, and with the
    /// text that follows. Returns the end of the portion's last complete line, or the portion's end at the
    /// end of the text. A portion has at least one line, however long.
    pub(crate) fn fill(&mut self, portion: &mut Vec<u8>, cut: &[u8]) -> Result<usize> {
        portion.clear();
        grow(portion, cut.len() + PORTION)?;
        portion.extend_from_slice(cut);
        loop {
            grow(portion, PORTION)?;
            let before = portion.len();
            let read = self.from.by_ref().take(PORTION as u64).read_to_end(portion);
            let read = read.map_err(fail(self.file.path))?;
            self.count(read as u64)?;
            if read < PORTION {
                self.ended = true;
                return Ok(portion.len());
            }
            if let Some(newline) = memrchr(b'\n', &portion[before..]) {
                return Ok(before + newline + 1);
            }
        }
    }

    /// Decompresses the rest only to verify its checksums and its length.
    pub(crate) fn check(&mut self) -> Result<()> {
        let mut rest = self.from.by_ref().take(self.left.saturating_add(1));
        let read = std::io::copy(&mut rest, &mut std::io::sink()).map_err(fail(self.file.path))?;
        self.count(read)
    }

    /// Counts bytes of the text. Fails if it has become too long.
    fn count(&mut self, bytes: u64) -> Result<()> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| unpacks_to_more(self.file))?;
        Ok(())
    }
}

/// Returns the error for a compressed file that is far longer than its size line allows.
pub(super) fn unpacks_to_more(file: Text) -> Error {
    file.unsupported("a file that unpacks to far more than its size line announces", "download it again")
}

fn fail(path: &Path) -> impl Fn(std::io::Error) -> Error {
    |source| Error::Io { action: ACTION, path: path.to_owned(), source }
}

/// A slice whose consumption advances a meter, one portion at a time.
struct Metered<'a> {
    bytes: &'a [u8],
    meter: Option<&'a Meter>,
}

/// Most bytes of such a portion.
const METERED: usize = 1 << 20;

impl Read for Metered<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let count = self.fill_buf()?.read(to)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Metered<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        Ok(&self.bytes[..self.bytes.len().min(METERED)])
    }

    fn consume(&mut self, count: usize) {
        self.bytes = &self.bytes[count..];
        if let Some(meter) = self.meter {
            meter.add(count as u64);
        }
    }
}
