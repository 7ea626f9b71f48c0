//! Fetches matrices of the catalog into the cache folder.
//!
//! What is kept is the archive as it came: it is the smallest form, its checksum can be compared at any time, and what
//! it holds beside the matrix stays with it. Reading it again is fast all the same, for its matrix is kept beside it in
//! the binary format once it has been read. A download grows in `NAME.tar.gz.part` and takes its name only when it is
//! complete and has been checked, so one that was cut or killed is never taken for the matrix, and goes on where it
//! stopped. Processes that fetch the same matrix take turns by a lock; the second finds it there.
//!
//! # Checks
//! The archive must decompress (which compares gzip's own checksum), hold the matrix file, and that file must have the
//! size and the number of entries of the catalog. Its SHA-256 must be the catalog's where that has one; where it has
//! none, it must be that of the first download, which is recorded in a file next to it: it is pinned on first use. The archive is
//! compared with that again whenever it is parsed. A download that is longer than the text of the matrix can be ends.

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

/// Between two looks at a lock or at the flag that stops.
const POLL: Duration = Duration::from_millis(100);

/// The server to use in place of the collection's: `SOLVER_MIRROR`.
pub fn default_mirror() -> Option<String> {
    std::env::var("SOLVER_MIRROR").ok().filter(|mirror| !mirror.is_empty())
}

/// Whether `SOLVER_OFFLINE` forbids downloads.
pub fn is_forbidden() -> bool {
    std::env::var_os("SOLVER_OFFLINE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// The error for a matrix that is not here where downloads are forbidden.
pub fn offline(entry: &Entry) -> Error {
    FetchError::Offline { source: Box::new(not_fetched(entry)) }.into()
}

/// Fetches a matrix by `fetch` that is used for the first time. An error names the stand-in, where there is one.
pub fn on_first_use(entry: &Entry, fetch: impl FnOnce() -> Result<Fetched>) -> Result<Fetched> {
    fetch().map_err(|error| match (&error, &entry.stand_in) {
        (Error::Fetch(FetchError::DownloadStopped { .. }), _) | (_, None) => error,
        (_, Some(stand_in)) => {
            FetchError::Unavailable { source: Box::new(error), stand_in: stand_in.clone() }.into()
        }
    })
}

/// Where from, where to, and when to stop.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cache folder.
    pub folder: PathBuf,
    /// A base URL to use in place of the collection's.
    pub mirror: Option<String>,
    /// The pause before a second attempt; it doubles for each further one.
    pub pause: Duration,
    /// Set by who wants the download to stop.
    pub stop: Arc<AtomicBool>,
}

impl Settings {
    /// Into the cache folder `folder`, or that of this user, from [`default_mirror`] where there is one.
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

    /// Waits, unless told to stop.
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

/// A matrix that is here now.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The archive.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Whether it had been fetched before.
    pub was_there: bool,
    /// The SHA-256 that later downloads and readings are compared with because the catalog has none.
    pub pinned: Option<String>,
}

/// The files of one download.
struct Place {
    /// The archive.
    archive: PathBuf,
    /// What there is of it so far.
    part: PathBuf,
    /// What the server said of it.
    about: PathBuf,
    /// The checksum of the first download.
    record: PathBuf,
    lock: PathBuf,
}

impl Place {
    fn new(folder: &Path, entry: &Entry) -> Place {
        let archive = folder.join(entry.file());
        let with = |ending: &str| {
            let mut name = archive.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        let (part, about, lock) = (with(".part"), with(".part.json"), with(".lock"));
        Place { part, about, record: pinned::record(&archive), lock, archive }
    }

    fn recorded(&self) -> Option<String> {
        pinned::recorded(&self.record)
    }

    /// In the form that `sha256sum -c` reads.
    fn write_record(&self, sum: &str) -> Result<()> {
        let name = self.archive.file_name().unwrap_or_default().to_string_lossy();
        files::replace(&self.record, files::Content::Cache, true, |file| writeln!(file, "{sum}  {name}"))
            .map_err(|source| Error::Io { action: "write", path: self.record.clone(), source })
    }

    fn remove_part(&self) {
        for path in [&self.part, &self.about] {
            // Where this fails, the next attempt meets the file again and says so.
            let _ = fs::remove_file(path);
        }
    }
}

/// Fetches a matrix unless it is here already. `progress` hears of the bytes that are here, and how many there will be.
pub fn fetch(
    entry: &Entry,
    settings: &Settings,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<Fetched> {
    let place = Place::new(&settings.folder, entry);
    let folder = place.archive.parent().unwrap_or(&settings.folder);
    create_folder(folder).map_err(|source| Error::Io {
        action: "create",
        path: folder.to_owned(),
        source,
    })?;
    let _lock = lock(&place, entry, settings)?;
    files::remove_leftovers(&place.archive);
    let pinned = |sum: String| Some(sum).filter(|_| entry.sha256.is_none());
    if let Some((bytes, sum)) = already_here(&place, entry)? {
        return Ok(Fetched { path: place.archive, bytes, was_there: true, pinned: pinned(sum) });
    }
    let url = entry.url(settings.mirror.as_deref());
    download::complete(&url, entry, &place, settings, progress)?;
    match check(&place.part, entry, &place)? {
        Err((mismatch, source_of_truth)) => {
            place.remove_part();
            let Mismatch { what, expected, got } = mismatch;
            Err(Error::Fetch(FetchError::NotAsExpected { url, what, expected, got, source_of_truth }))
        }
        Ok(sum) => {
            place.write_record(&sum)?;
            let bytes = install(&place).map_err(|source| Error::Io {
                action: "write",
                path: place.archive.clone(),
                source,
            })?;
            Ok(Fetched { path: place.archive, bytes, was_there: false, pinned: pinned(sum) })
        }
    }
}

/// Gives the finished download its name, for good.
fn install(place: &Place) -> std::io::Result<u64> {
    let file = File::open(&place.part)?;
    file.sync_all()?;
    fs::rename(&place.part, &place.archive)?;
    if let Some(folder) = place.archive.parent() {
        // The name is safe once its folder is; not every file system can sync one.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    let _ = fs::remove_file(&place.about);
    Ok(file.metadata()?.len())
}

/// Size and SHA-256 of the archive where it is here and as it was when it was fetched.
fn already_here(place: &Place, entry: &Entry) -> Result<Option<(u64, String)>> {
    let Ok(about) = fs::metadata(&place.archive) else { return Ok(None) };
    match check(&place.archive, entry, place)? {
        Ok(sum) => {
            if place.recorded().is_none() {
                place.write_record(&sum)?;
            }
            Ok(Some((about.len(), sum)))
        }
        Err((mismatch, source)) => {
            let Mismatch { what, expected, got } = mismatch;
            log::warn!(
                "{} is fetched again: its {what} is {got}, expected {expected} ({source})",
                place.archive.display()
            );
            fs::remove_file(&place.archive).map_err(|source| Error::Io {
                action: "remove",
                path: place.archive.clone(),
                source,
            })?;
            Ok(None)
        }
    }
}

/// Checks a file against all that is known; returns its SHA-256, or what is wrong and who says so.
fn check(
    path: &Path,
    entry: &Entry,
    place: &Place,
) -> Result<std::result::Result<String, (Mismatch, String)>> {
    let catalog = || "says the catalog".to_owned();
    let sum = verify::sha256(path)?;
    let differs = |expected: &String| (*expected != sum).then(|| Mismatch::new("SHA-256", expected, &sum));
    if let Some(mismatch) = entry.sha256.as_ref().and_then(differs) {
        return Ok(Err((mismatch, catalog())));
    }
    let recorded = place.recorded().filter(|_| entry.sha256.is_none());
    if let Some(mismatch) = recorded.as_ref().and_then(differs) {
        let record = place.record.display();
        return Ok(Err((
            mismatch,
            format!("pinned on first use in {record}; if the collection has a new version, remove that file"),
        )));
    }
    if recorded.is_some() {
        // The same bytes have been checked before.
        return Ok(Ok(sum));
    }
    Ok(match verify::content(path, entry)? {
        Some(mismatch) => Err((mismatch, catalog())),
        None => Ok(sum),
    })
}

/// Waits until no other process fetches the same matrix. The lock ends with the file that holds it.
fn lock(place: &Place, entry: &Entry, settings: &Settings) -> Result<File> {
    let fail = |source| Error::Io { action: "lock", path: place.lock.clone(), source };
    let file = File::options().create(true).append(true).open(&place.lock).map_err(fail)?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                if !told {
                    log::warn!("another process is fetching {}; waiting for it", entry.name);
                    told = true;
                }
                settings.wait(POLL);
                if settings.stopped() {
                    return Err(stopped_at(place, entry));
                }
            }
            // Some network file systems have no locks.
            Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => return Ok(file),
            Err(TryLockError::Error(source)) => return Err(fail(source)),
        }
    }
}

/// That a download was stopped, and how much of it is kept.
pub fn stopped(entry: &Entry, settings: &Settings) -> Error {
    stopped_at(&Place::new(&settings.folder, entry), entry)
}

fn stopped_at(place: &Place, entry: &Entry) -> Error {
    let kept = fs::metadata(&place.part).map_or(0, |about| about.len());
    Error::Fetch(FetchError::DownloadStopped { name: entry.name.clone(), kept, path: place.part.clone() })
}
