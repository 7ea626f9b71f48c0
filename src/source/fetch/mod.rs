//! Fetches matrices of the catalog into the cache folder.
//!
//! The cache keeps the archive as downloaded: it is the smallest form, its checksum can be compared at any
//! time, and the files stored with the matrix stay available. Repeated reads are still fast, because the
//! matrix is also kept next to the archive in the binary format after the first read. A download grows in
//! `NAME.tar.gz.part` and is renamed only after it is complete and has been checked. An interrupted download
//! is therefore never mistaken for the matrix, and the next one resumes where it stopped. A lock serializes
//! processes that fetch the same matrix; the second one finds the archive in the cache.
//!
//! # Checks
//! The archive must decompress (which verifies gzip's checksum) and contain the matrix file, and that file
//! must have the dimensions and the number of entries of the catalog. The archive's SHA-256 must be the
//! catalog's if the catalog has one. Otherwise it is pinned on first use: it is recorded in a file next to
//! the archive, and later downloads must have the same. The archive is compared with the record again
//! whenever it is parsed. A download is aborted if it grows longer than the text of the matrix can be.

mod download;
mod verify;

use super::catalog::Entry;
use crate::error::{Error, FetchError, Result};
use crate::files::{self, NoCache};
use crate::source::{catalog, not_fetched, pinned};
use crate::trust::create_folder;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use verify::Mismatch;

/// Interval between two checks of a lock or of the stop flag.
const POLL: Duration = Duration::from_millis(100);

/// Returns the server to use in place of the collection's: the value of `SOLVER_MIRROR`.
pub(crate) fn default_mirror() -> Option<String> {
    std::env::var("SOLVER_MIRROR").ok().filter(|mirror| !mirror.is_empty())
}

/// Checks whether `SOLVER_OFFLINE` forbids downloads.
pub(crate) fn is_forbidden() -> bool {
    std::env::var_os("SOLVER_OFFLINE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Returns the error for a matrix that is not in the cache while downloads are forbidden.
pub(crate) fn offline(entry: &Entry) -> Error {
    FetchError::Offline { source: Box::new(not_fetched(entry)) }.into()
}

/// Calls `fetch` for a matrix that is used for the first time. An error names the stand-in, if there is one.
pub(crate) fn on_first_use(entry: &Entry, fetch: impl FnOnce() -> Result<Fetched>) -> Result<Fetched> {
    fetch().map_err(|error| match (&error, &entry.stand_in) {
        (Error::Fetch(FetchError::DownloadStopped { .. }), _) | (_, None) => error,
        (_, Some(stand_in)) => {
            FetchError::Unavailable { source: Box::new(error), stand_in: stand_in.clone() }.into()
        }
    })
}

/// Folder, server, timing and stop flag of downloads.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cache folder.
    pub folder: PathBuf,
    /// A base URL to use in place of the collection's.
    pub mirror: Option<String>,
    /// The pause before the second attempt; it doubles for each further one.
    pub pause: Duration,
    /// Set to true to stop the download.
    pub stop: Arc<AtomicBool>,
}

impl Settings {
    /// Uses the cache folder `folder` or this user's, and the server `default_mirror` if it is set.
    pub fn new(folder: Option<PathBuf>) -> Result<Settings> {
        Ok(Settings {
            folder: folder.map_or_else(default_folder, Ok)?,
            mirror: default_mirror(),
            pause: Duration::from_millis(250),
            stop: Arc::default(),
        })
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits for `time`, or until the stop flag is set.
    fn wait(&self, time: Duration) {
        let mut left = time;
        while !left.is_zero() && !self.stopped() {
            let step = left.min(POLL);
            std::thread::sleep(step);
            left -= step;
        }
    }
}

fn default_folder() -> Result<PathBuf> {
    files::cache_folder(catalog::FOLDER).map_err(|none| {
        Error::Fetch(match none {
            NoCache::NoHome => FetchError::NoCacheFolder,
            NoCache::Unsafe(reason) => FetchError::UnsafeCacheFolder { reason },
        })
    })
}

/// A matrix that is in the cache folder.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The path of the archive.
    pub path: PathBuf,
    /// The size of the archive in bytes.
    pub bytes: u64,
    /// Whether the matrix had been fetched before.
    pub was_cached: bool,
    /// The SHA-256 that later downloads and reads are compared with, if the catalog has none.
    pub pinned: Option<String>,
}

/// The paths of the files of one download.
struct Paths {
    /// The archive.
    archive: PathBuf,
    /// The incomplete download.
    part: PathBuf,
    /// What the server said about the file.
    info: PathBuf,
    /// The checksum of the first download.
    record: PathBuf,
    lock: PathBuf,
}

impl Paths {
    fn new(folder: &Path, entry: &Entry) -> Paths {
        let archive = folder.join(entry.file());
        let with = |ending: &str| {
            let mut name = archive.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        let (part, info, lock) = (with(".part"), with(".part.json"), with(".lock"));
        Paths { part, info, record: pinned::record(&archive), lock, archive }
    }

    fn recorded(&self) -> Option<String> {
        pinned::recorded(&self.record)
    }

    /// Writes the checksum in the format that `sha256sum -c` reads.
    fn write_record(&self, sum: &str) -> Result<()> {
        let name = self.archive.file_name().unwrap_or_default().to_string_lossy();
        files::replace(&self.record, files::Content::Cache, true, |file| writeln!(file, "{sum}  {name}"))
            .map_err(|source| Error::Io { action: "write", path: self.record.clone(), source })
    }

    fn remove_part(&self) {
        for path in [&self.part, &self.info] {
            // If this fails, the next attempt meets the file again and reports it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Fetches a matrix unless it is in the cache. `progress` receives the number of bytes present
/// and the expected total.
pub fn fetch(
    entry: &Entry,
    settings: &Settings,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<Fetched> {
    let paths = Paths::new(&settings.folder, entry);
    let folder = paths.archive.parent().unwrap_or(&settings.folder);
    create_folder(folder).map_err(|source| Error::Io {
        action: "create",
        path: folder.to_owned(),
        source,
    })?;
    let _lock = lock(&paths, entry, settings)?;
    files::remove_leftovers(&paths.archive);
    let pinned = |sum: String| Some(sum).filter(|_| entry.sha256.is_none());
    if let Some((bytes, sum)) = already_here(&paths, entry)? {
        return Ok(Fetched { path: paths.archive, bytes, was_cached: true, pinned: pinned(sum) });
    }
    let url = entry.url(settings.mirror.as_deref());
    download::complete(&url, entry, &paths, settings, progress)?;
    match check(&paths.part, entry, &paths)? {
        Err((mismatch, source_of_truth)) => {
            paths.remove_part();
            let Mismatch { what, expected, got } = mismatch;
            Err(Error::Fetch(FetchError::NotAsExpected { url, what, expected, got, source_of_truth }))
        }
        Ok(sum) => {
            paths.write_record(&sum)?;
            let bytes = install(&paths).map_err(|source| Error::Io {
                action: "write",
                path: paths.archive.clone(),
                source,
            })?;
            Ok(Fetched { path: paths.archive, bytes, was_cached: false, pinned: pinned(sum) })
        }
    }
}

/// Syncs the finished download, renames it to the archive's name and syncs the folder.
fn install(paths: &Paths) -> std::io::Result<u64> {
    let file = File::open(&paths.part)?;
    file.sync_all()?;
    fs::rename(&paths.part, &paths.archive)?;
    if let Some(folder) = paths.archive.parent() {
        // The rename is durable once the folder is synced; not every file system can sync a folder.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    let _ = fs::remove_file(&paths.info);
    Ok(file.metadata()?.len())
}

/// Returns the size and SHA-256 of the archive if it is in the cache and its content is as expected.
fn already_here(paths: &Paths, entry: &Entry) -> Result<Option<(u64, String)>> {
    let Ok(info) = fs::metadata(&paths.archive) else { return Ok(None) };
    match check(&paths.archive, entry, paths)? {
        Ok(sum) => {
            if paths.recorded().is_none() {
                paths.write_record(&sum)?;
            }
            Ok(Some((info.len(), sum)))
        }
        Err((mismatch, source)) => {
            let Mismatch { what, expected, got } = mismatch;
            log::warn!(
                "fetching {} again: its {what} is {got}, expected {expected} ({source})",
                paths.archive.display()
            );
            fs::remove_file(&paths.archive).map_err(|source| Error::Io {
                action: "remove",
                path: paths.archive.clone(),
                source,
            })?;
            Ok(None)
        }
    }
}

/// Checks a file against the catalog and the record; returns its SHA-256, or the mismatch and the
/// source of the expectation.
fn check(
    path: &Path,
    entry: &Entry,
    paths: &Paths,
) -> Result<std::result::Result<String, (Mismatch, String)>> {
    let catalog = || "according to the catalog".to_owned();
    let sum = verify::sha256(path)?;
    let differs = |expected: &String| (*expected != sum).then(|| Mismatch::new("SHA-256", expected, &sum));
    if let Some(mismatch) = entry.sha256.as_ref().and_then(differs) {
        return Ok(Err((mismatch, catalog())));
    }
    let recorded = paths.recorded().filter(|_| entry.sha256.is_none());
    if let Some(mismatch) = recorded.as_ref().and_then(differs) {
        let record = paths.record.display();
        return Ok(Err((
            mismatch,
            format!("pinned on first use in {record}; if the collection has a new version, remove that file"),
        )));
    }
    if recorded.is_some() {
        // The same bytes were checked before.
        return Ok(Ok(sum));
    }
    Ok(match verify::content(path, entry)? {
        Some(mismatch) => Err((mismatch, catalog())),
        None => Ok(sum),
    })
}

/// Waits until no other process fetches the same matrix. Closing the returned file releases the lock.
fn lock(paths: &Paths, entry: &Entry, settings: &Settings) -> Result<File> {
    let fail = |source| Error::Io { action: "lock", path: paths.lock.clone(), source };
    let file = File::options().create(true).append(true).open(&paths.lock).map_err(fail)?;
    let mut warned = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                if !warned {
                    log::warn!("another process is fetching {}; waiting for it", entry.name);
                    warned = true;
                }
                settings.wait(POLL);
                if settings.stopped() {
                    return Err(stopped_at(paths, entry));
                }
            }
            // Some network file systems do not support locks.
            Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => return Ok(file),
            Err(TryLockError::Error(source)) => return Err(fail(source)),
        }
    }
}

/// Returns the error for a stopped download, with the number of bytes kept.
pub(crate) fn stopped(entry: &Entry, settings: &Settings) -> Error {
    stopped_at(&Paths::new(&settings.folder, entry), entry)
}

fn stopped_at(paths: &Paths, entry: &Entry) -> Error {
    let kept = fs::metadata(&paths.part).map_or(0, |info| info.len());
    Error::Fetch(FetchError::DownloadStopped { name: entry.name.clone(), kept, path: paths.part.clone() })
}
