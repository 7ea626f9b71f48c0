//! Files compressed with gzip, known by their first two bytes and unpacked into memory.

use super::inflate::{bounded, read_all};
use crate::error::Result;
use crate::observe::Meter;
use flate2::bufread::MultiGzDecoder;
use std::io::{BufRead, Read};
use std::path::Path;

/// Whether the bytes begin as every gzip file does.
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Unpacks all members of a gzip file; `path` is for the error message.
pub(super) fn decompress(path: &Path, bytes: &[u8], meter: Option<&Meter>) -> Result<Vec<u8>> {
    // A file ends in the size of its last member, modulo 2^32: mostly that of all. It is a hint and no more.
    let claimed = bytes.last_chunk::<4>().map_or(0, |end| u64::from(u32::from_le_bytes(*end)));
    // One byte more, so that the end is seen without asking for more room.
    let hint = bounded(claimed, bytes.len()) + 1;
    if let Some(meter) = meter {
        meter.begin("decompressing", bytes.len() as u64);
    }
    read_all(path, "decompress", MultiGzDecoder::new(Metered { bytes, meter }), hint)
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
