//! Errors of downloads.

use super::{Error, in_words};
use std::path::PathBuf;

/// The end of the message in a build without downloads.
const NO_DOWNLOADS: &str = if cfg!(feature = "fetch") {
    ""
} else {
    ". This build of the library cannot download: its Cargo feature fetch is off"
};

/// A matrix of the catalog cannot be downloaded or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// A matrix of the catalog is not on this machine.
    #[error(
        "matrix {name} ({rows} rows, {entries} entries) is not on this machine; the download has about {size}{}{}{NO_DOWNLOADS}",
        stand_in.as_ref().map_or(String::new(), |stand_in| format!("; the stand-in {stand_in} needs no download")),
        ignored.as_ref().map_or(String::new(), |reason| format!(". Downloaded matrices are not used: {reason}")),
        size = in_words(*bytes)
    )]
    NotFetched {
        /// Its name.
        name: String,
        /// Its rows.
        rows: u64,
        /// Its entries.
        entries: u64,
        /// Approximate size of the download.
        bytes: u64,
        /// The generator of a stand-in, if there is one.
        stand_in: Option<String>,
        /// Why the cache folder is not used, if it is not.
        ignored: Option<String>,
    },
    /// A matrix is not on this machine, and downloads are forbidden.
    #[error("{source}. Downloads are forbidden")]
    Offline {
        /// The error that the matrix is not on this machine.
        source: Box<Error>,
    },
    /// A matrix with a stand-in could not be downloaded.
    #[error("{source}. The stand-in {stand_in} needs no network")]
    Unavailable {
        /// The error of the download.
        source: Box<Error>,
        /// The generator of the stand-in.
        stand_in: String,
    },
    /// A download that was verified earlier cannot be read.
    #[error("{source}. If the download is damaged, fetch {name} again")]
    Unreadable {
        /// The matrix.
        name: String,
        /// What is wrong.
        source: Box<Error>,
    },
    /// There is no folder for downloads.
    #[error("there is no home folder, so there is no cache folder; name one with SOLVER_CACHE")]
    NoCacheFolder,
    /// The folder for downloads is no folder, or other users can write to it.
    #[error(
        "the cache folder is not used: {reason}. Matrices and kernels are loaded from it, so other users must not write \
         to it; name another folder with SOLVER_CACHE"
    )]
    UnsafeCacheFolder {
        /// Who can write where, and what to do.
        reason: String,
    },
    /// A server answers with an error status.
    #[error("{url}: the server answered with status {status}; {hint}")]
    HttpStatus {
        /// The requested URL.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What to do.
        hint: &'static str,
    },
    /// A download is incomplete.
    #[error("{url}: {reason}{}", match kept {
        0 => String::new(),
        kept => format!("; {kept} bytes are kept, and fetching again continues from there"),
    })]
    Download {
        /// The requested URL.
        url: String,
        /// The reason.
        reason: String,
        /// Bytes that are kept for the next download.
        kept: u64,
    },
    /// A server sends more than the matrix can take; the download was removed.
    #[error(
        "{url}: the file has {}more than {most} bytes, the maximum for this matrix; the download was removed. \
         Another server may have the matrix", total.map_or(String::new(), |total| format!("{total} bytes, "))
    )]
    TooLong {
        /// The requested URL.
        url: String,
        /// The maximum.
        most: u64,
        /// The size that the server announces.
        total: Option<u64>,
    },
    /// An archive differs from the one downloaded first.
    #[error(
        "{path}: the SHA-256 is {got}, but it was {expected} for the first download: pinned on first use in {record}",
        path = path.display(), record = record.display()
    )]
    Changed {
        /// The archive.
        path: PathBuf,
        /// The checksum of the first download.
        expected: String,
        /// The checksum of the archive.
        got: String,
        /// The file that records the checksum.
        record: PathBuf,
    },
    /// The user interrupted a download.
    #[error("stopped; {kept} bytes are kept in {path}; fetching {name} again continues from there", path = path.display())]
    DownloadStopped {
        /// The matrix.
        name: String,
        /// Bytes that are kept for the next download.
        kept: u64,
        /// The file with these bytes.
        path: PathBuf,
    },
    /// The file system is full.
    #[error(
        "no space left to write {path} after {written} bytes: {source}. The file is kept, and fetching again continues from \
         there. Free some space, or name a folder on another file system with SOLVER_CACHE",
        path = path.display()
    )]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// Its size when writing failed.
        written: u64,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A download failed verification and was removed.
    #[error(
        "the download from {url} was removed: its {what} is {got}, expected {expected} ({source_of_truth})"
    )]
    NotAsExpected {
        /// The URL of the download.
        url: String,
        /// The compared quantity.
        what: &'static str,
        /// The expected value.
        expected: String,
        /// The value of the download.
        got: String,
        /// The source of the expected value, and what to do if it is outdated.
        source_of_truth: String,
    },
}
