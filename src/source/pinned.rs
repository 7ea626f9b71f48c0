//! The checksum of an archive of the catalog, compared each time the archive is parsed: the SHA-256 of the catalog, or that of
//! the first download, which `NAME.tar.gz.sha256` records in the form that `sha256sum -c` reads.

use super::catalog::Entry;
use crate::error::{Error, FetchError, Result};
use sha2::digest::Output;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The file that records the checksum of the first download.
pub(super) fn record(archive: &Path) -> PathBuf {
    let mut name = archive.to_owned().into_os_string();
    name.push(".sha256");
    PathBuf::from(name)
}

/// The checksum in such a file.
pub(super) fn recorded(record: &Path) -> Option<String> {
    let text = fs::read_to_string(record).ok()?;
    text.split_whitespace().next().map(str::to_owned)
}

/// Refuses an archive that is not the one that was fetched: its bytes must have the SHA-256 of the catalog, or else that
/// of the first download. Where neither is known, it passes.
pub(super) fn check(archive: &Path, bytes: &[u8], entry: &Entry) -> Result<()> {
    let record = record(archive);
    let Some(expected) = entry.sha256.clone().or_else(|| recorded(&record)) else { return Ok(()) };
    match digits(Sha256::digest(bytes)) {
        got if got == expected => Ok(()),
        got => Err(Error::Fetch(FetchError::Changed { path: archive.to_owned(), expected, got, record })),
    }
}

/// A checksum in hexadecimal digits.
pub(super) fn digits(sum: Output<Sha256>) -> String {
    let mut digits = String::new();
    for byte in sum {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
