//! Verifies the checksum of a downloaded archive each time it is parsed. The expected value is the
//! catalog's SHA-256, or else that of the first download, recorded in `NAME.tar.gz.sha256` in the
//! format of `sha256sum -c`.

use super::catalog::Entry;
use crate::error::{Error, FetchError, Result};
use sha2::digest::Output;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the path of the file that records the checksum of the first download.
pub(super) fn record(archive: &Path) -> PathBuf {
    let mut name = archive.to_owned().into_os_string();
    name.push(".sha256");
    PathBuf::from(name)
}

/// Reads the checksum from such a file.
pub(super) fn recorded(record: &Path) -> Option<String> {
    let text = fs::read_to_string(record).ok()?;
    text.split_whitespace().next().map(str::to_owned)
}

/// Refuses an archive that differs from the fetched one: its SHA-256 must be that of the catalog, or else
/// that of the first download. If neither is known, the archive passes.
pub(super) fn check(archive: &Path, bytes: &[u8], entry: &Entry) -> Result<()> {
    let record = record(archive);
    let Some(expected) = entry.sha256.clone().or_else(|| recorded(&record)) else { return Ok(()) };
    match digits(Sha256::digest(bytes)) {
        got if got == expected => Ok(()),
        got => Err(Error::Fetch(FetchError::Changed { path: archive.to_owned(), expected, got, record })),
    }
}

/// Formats a checksum in hexadecimal digits.
pub(super) fn digits(sum: Output<Sha256>) -> String {
    let mut digits = String::new();
    for byte in sum {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
