//! What goes wrong where matrices are fetched.

use super::{Error, in_words};
use std::path::PathBuf;

/// A matrix of the catalog cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// A matrix of the catalog that is not on this machine.
    #[error(
        "matrix {name} ({rows} rows, {entries} entries) has not been fetched; the download has about {size}. Fetch it \
         with: solver fetch {name}{hint}", size = in_words(*bytes)
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
        /// The stand-in, where there is one, and why the cache folder is not used, where it is not.
        hint: String,
    },
    /// A matrix that is not on this machine, where downloads are forbidden.
    #[error("{source}. --offline or SOLVER_OFFLINE forbids downloads")]
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
    #[error("{source}. Where the download is damaged, solver fetch {name} notices and fetches it again")]
    Unreadable {
        /// The matrix.
        name: String,
        /// What is wrong.
        source: Box<Error>,
    },
    /// There is no place for downloads.
    #[error("there is no home folder, and so no cache folder; name one with --cache or SOLVER_CACHE")]
    NoCacheFolder,
    /// Other users can write to the place for downloads.
    #[error(
        "the cache folder is not used: {reason}. Matrices are read and kernels are run from there; or name another folder \
         with --cache or SOLVER_CACHE"
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
        kept => format!("; {kept} bytes are kept, and running the same command again goes on from there"),
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
         Another server can be named with --mirror or SOLVER_MIRROR", total.map_or(String::new(), |total| format!("{total} bytes, "))
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
    #[error("stopped; {kept} bytes are kept in {path}: solver fetch {name} goes on from there", path = path.display())]
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
        "no room to write {path} after {written} bytes: {source}. Make room, or name a folder on another file system \
         with --cache or SOLVER_CACHE; what is there is kept, and running the same command again goes on from there",
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
