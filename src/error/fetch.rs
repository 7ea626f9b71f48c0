//! What goes wrong where matrices are fetched.

use super::{Error, in_words};
use std::path::PathBuf;

/// What a build without downloads adds.
const WITHOUT: &str = if cfg!(feature = "fetch") {
    ""
} else {
    ". This build of the library cannot download: its Cargo feature fetch is off"
};

/// A matrix of the catalog cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// A matrix of the catalog that is not on this machine.
    #[error(
        "matrix {name} ({rows} rows, {entries} entries) has not been fetched; the download has about {size}{}{}{WITHOUT}",
        stand_in.as_ref().map_or(String::new(), |stand_in| format!("; the stand-in {stand_in} needs none")),
        ignored.as_ref().map_or(String::new(), |reason| format!(". Matrices that have been fetched are not used: {reason}")),
        size = in_words(*bytes)
    )]
    NotFetched {
        /// Its name.
        name: String,
        /// Its rows.
        rows: u64,
        /// Its entries.
        entries: u64,
        /// About the size of the download.
        bytes: u64,
        /// The generator that imitates it, where there is one.
        stand_in: Option<String>,
        /// Why the cache folder is not used, where it is not.
        ignored: Option<String>,
    },
    /// A matrix that is not on this machine, where downloads are forbidden.
    #[error("{source}. Downloads are forbidden")]
    Offline {
        /// That it has not been fetched.
        source: Box<Error>,
    },
    /// A matrix that has a stand-in could not be fetched.
    #[error("{source}. The stand-in {stand_in} needs no network")]
    Unavailable {
        /// What went wrong.
        source: Box<Error>,
        /// The generator that imitates it.
        stand_in: String,
    },
    /// A download that was in order once cannot be read.
    #[error("{source}. Where the download is damaged, fetching {name} again repairs it")]
    Unreadable {
        /// The matrix.
        name: String,
        /// What is wrong.
        source: Box<Error>,
    },
    /// There is no place for downloads.
    #[error("there is no home folder, and so no cache folder; name one with SOLVER_CACHE")]
    NoCacheFolder,
    /// Other users can write to the place for downloads.
    #[error(
        "the cache folder is not used: {reason}. Matrices are read and kernels are run from there; or name another folder \
         with SOLVER_CACHE"
    )]
    UnsafeCacheFolder {
        /// Who can write where, and what to do.
        reason: String,
    },
    /// A server does not have what was asked for.
    #[error("{url}: the server answers {status}; {hint}")]
    HttpStatus {
        /// What was asked for.
        url: String,
        /// The answer.
        status: u16,
        /// What to do.
        hint: &'static str,
    },
    /// A download could not be completed.
    #[error("{url}: {reason}{}", match kept {
        0 => String::new(),
        kept => format!("; {kept} bytes are kept, and fetching again goes on from there"),
    })]
    Download {
        /// What was asked for.
        url: String,
        /// What happened.
        reason: String,
        /// Bytes that need not be fetched again.
        kept: u64,
    },
    /// A server sends more than the matrix can be; what came has been removed.
    #[error(
        "{url}: the file has {}more than {most} bytes, the most that this matrix can take; what came of it was removed. \
         Another server may have the matrix", total.map_or(String::new(), |total| format!("{total} bytes, "))
    )]
    TooLong {
        /// What was asked for.
        url: String,
        /// The limit.
        most: u64,
        /// How many bytes the server announces.
        total: Option<u64>,
    },
    /// An archive is not the one that was fetched.
    #[error(
        "{path}: the SHA-256 is {got}, and was {expected} when the matrix was fetched: pinned on first use in {record}",
        path = path.display(), record = record.display()
    )]
    Changed {
        /// The archive.
        path: PathBuf,
        /// The checksum of the first download.
        expected: String,
        /// What it is.
        got: String,
        /// The file that holds the checksum.
        record: PathBuf,
    },
    /// The user stopped a download.
    #[error("stopped; {kept} bytes are kept in {path}; fetching {name} again goes on from there", path = path.display())]
    DownloadStopped {
        /// The matrix.
        name: String,
        /// Bytes that need not be fetched again.
        kept: u64,
        /// Where they are.
        path: PathBuf,
    },
    /// The file system is full.
    #[error(
        "no room to write {path} after {written} bytes: {source}. The file is kept, and fetching again goes on from there. \
         Make room, or name a folder on another file system with SOLVER_CACHE",
        path = path.display()
    )]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// Its size when writing failed.
        written: u64,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A download is not what it should be; it has been removed.
    #[error(
        "the download from {url} was removed: its {what} is {got}, expected {expected} ({source_of_truth})"
    )]
    NotAsExpected {
        /// Where it came from.
        url: String,
        /// What was compared.
        what: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        got: String,
        /// Who says so, and what to do where that is no longer right.
        source_of_truth: String,
    },
}
