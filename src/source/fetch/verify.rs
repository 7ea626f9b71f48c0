//! Checks that a downloaded archive is what the catalog describes.

use crate::error::{Error, Result};
use crate::source::catalog::Entry;
use crate::source::pinned::digits;
use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

const PORTION: usize = 256 << 10;
/// Limit for the comments before the size line; no file of the collection has more.
const LONGEST_HEAD: u64 = 16 << 20;

/// A difference between an archive and its description.
pub(super) struct Mismatch {
    pub what: &'static str,
    pub expected: String,
    pub got: String,
}

impl Mismatch {
    pub(crate) fn new(what: &'static str, expected: impl Into<String>, got: impl Into<String>) -> Mismatch {
        Mismatch { what, expected: expected.into(), got: got.into() }
    }
}

/// Computes the SHA-256 of a file in hexadecimal digits.
pub(super) fn sha256(path: &Path) -> Result<String> {
    let fail = |source| Error::Io { action: "read", path: path.to_owned(), source };
    let mut reader = Hashing { inner: File::open(path).map_err(fail)?, hash: Sha256::new() };
    drain(&mut reader).map_err(fail)?;
    Ok(reader.digits())
}

/// Decompresses an archive and compares its matrix file with the catalog; returns `None` if they agree.
pub(super) fn content(path: &Path, entry: &Entry) -> Result<Option<Mismatch>> {
    let file =
        File::open(path).map_err(|source| Error::Io { action: "read", path: path.to_owned(), source })?;
    // `download_limit` bounds the size of the text and of a few vectors, uncompressed.
    let most = entry.download_limit().saturating_mul(2);
    let unpacked = MultiGzDecoder::new(BufReader::with_capacity(PORTION, file)).take(most);
    let mut unpacked = BufReader::with_capacity(PORTION, unpacked);
    let checked = members(&mut unpacked, entry).and_then(|mismatch| {
        // Reads to the end, where gzip stores its checksum.
        drain(&mut unpacked)?;
        Ok(mismatch)
    });
    if unpacked.get_ref().limit() == 0 {
        return Ok(Some(Mismatch::new("size when unpacked", format!("less than {most} bytes"), "more")));
    }
    Ok(checked
        .unwrap_or_else(|e| Some(Mismatch::new("content", "a complete archive", format!("invalid: {e}")))))
}

/// Finds the matrix file: the whole decompressed content, or one file of a tar archive.
fn members(unpacked: &mut impl BufRead, entry: &Entry) -> io::Result<Option<Mismatch>> {
    if unpacked.fill_buf()?.starts_with(b"%%MatrixMarket") {
        return matrix(unpacked, entry);
    }
    let name = format!("{}.mtx", entry.name);
    let mut archive = tar::Archive::new(unpacked);
    for member in archive.entries()? {
        let member = member?;
        if member.path()?.file_name().is_some_and(|file| file == name.as_str()) {
            return matrix(member, entry);
        }
    }
    Ok(Some(Mismatch::new("content", format!("an archive with {name}"), "an archive without it")))
}

fn matrix(file: impl Read, entry: &Entry) -> io::Result<Option<Mismatch>> {
    let mut file = BufReader::with_capacity(PORTION, Hashing { inner: file, hash: Sha256::new() });
    let mut sizes = String::new();
    let mut head = (&mut file).take(LONGEST_HEAD);
    loop {
        let mut line = Vec::new();
        if head.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        if !line.starts_with('%') && !line.trim().is_empty() {
            sizes = line.split_whitespace().collect::<Vec<_>>().join(" ");
            break;
        }
    }
    let expected = format!("{} {} {}", entry.rows, entry.cols, entry.stored);
    if sizes != expected {
        return Ok(Some(Mismatch::new("line of rows, columns and entries", expected, format!("'{sizes}'"))));
    }
    drain(&mut file)?;
    let sum = file.into_inner().digits();
    Ok(match &entry.mtx_sha256 {
        Some(expected) if *expected != sum => Some(Mismatch::new("matrix file's SHA-256", expected, sum)),
        _ => None,
    })
}

fn drain(reader: &mut impl Read) -> io::Result<()> {
    let mut portion = vec![0; PORTION];
    while reader.read(&mut portion)? > 0 {}
    Ok(())
}

/// A reader that computes the SHA-256 of the bytes it passes on.
struct Hashing<R> {
    inner: R,
    hash: Sha256,
}

impl<R> Hashing<R> {
    fn digits(self) -> String {
        digits(self.hash.finalize())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, portion: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(portion)?;
        self.hash.update(&portion[..count]);
        Ok(count)
    }
}
