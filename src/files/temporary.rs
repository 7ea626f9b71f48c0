//! Temporary files: content is written to a temporary file, which is renamed when it is complete.
//!
//! # Leftovers
//! A killed process leaves its temporary file behind. [`remove_leftovers`] removes such files, and must never
//! remove the file of a live process, on this machine or on another one. Three rules ensure this:
//!
//! - The creator holds an exclusive lock on its file until the file has its final name. A remover takes the
//!   lock first, and holds it while it removes the file.
//! - The creator cannot create and lock a file in one step. Once it has the lock, it therefore checks that
//!   the file still has its name. From then on the lock protects the file. If the name is gone, or a remover
//!   holds the lock, the creator makes another file.
//! - Some network filesystems have no locks, or locks that other machines do not see. Without locks, no
//!   file is removed. For the second case, a file that was written to within the last hour is never
//!   removed. The hour is counted by the clock that sets the times of files in this folder, because the
//!   clocks of two machines may differ.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Age from which an unlocked file is a leftover.
const OLD: Duration = Duration::from_secs(3600);
/// Number of names that are tried in a folder.
const ATTEMPTS: u32 = 16;

/// Creates a file in `folder` that no other process writes to or removes while the handle is open. Other
/// users cannot read a `private` file.
pub(super) fn create(folder: &Path, private: bool) -> io::Result<(PathBuf, File)> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    let mut last = io::Error::from(ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let path = folder.join(new_name());
        match options.open(&path) {
            Ok(file) if claim(&path, &file) => return Ok((path, file)),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Returns a new name. The process number alone is not unique: two containers may share a
/// folder, and numbers are reused.
fn new_name() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!(".{:x}-{now:x}-{count:x}.tmp", std::process::id())
}

/// Checks whether a name has the form that [`new_name`] gives.
fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let parts = name.and_then(|name| name.strip_prefix('.')?.strip_suffix(".tmp"));
    parts.is_some_and(|parts| {
        let hexadecimal = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_hexdigit());
        parts.split('-').count() == 3 && parts.split('-').all(hexadecimal)
    })
}

/// Locks a new file; returns false if a remover has removed the file or is about to.
fn claim(path: &Path, file: &File) -> bool {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => false,
        // Without locks no remover removes the file, but a remover with a lock on another
        // machine may have done so.
        Ok(()) | Err(TryLockError::Error(_)) => fs::symlink_metadata(path).is_ok(),
    }
}

/// Removes the temporary files of killed processes from a folder.
pub(super) fn remove_leftovers(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let found: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_temporary(path)).collect();
    if found.is_empty() {
        return;
    }
    let Ok(now) = time_in(folder) else { return };
    found.iter().filter(|path| is_old(path, now)).for_each(|path| remove_unlocked(path));
}

/// Returns the time by the clock that sets the times of files in this folder.
fn time_in(folder: &Path) -> io::Result<SystemTime> {
    let (path, file) = create(folder, true)?;
    let now = file.metadata().and_then(|metadata| metadata.modified());
    fs::remove_file(path)?;
    now
}

fn is_old(path: &Path, now: SystemTime) -> bool {
    let written = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| now.duration_since(written).is_ok_and(|age| age > OLD))
}

/// Removes a file unless another process holds its lock.
fn remove_unlocked(path: &Path) {
    // NFS grants exclusive locks only on files that are open for writing.
    let Ok(file) = File::options().read(true).write(true).open(path) else { return };
    if file.try_lock().is_ok() {
        // The lock is still held here. A failure means that another remover was faster, or that
        // the file cannot be removed.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the temporary file of a process that was killed two hours ago.
    fn leave(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        let file = File::create_new(&path).unwrap();
        file.set_modified(SystemTime::now() - 2 * OLD).unwrap();
        path
    }

    #[test]
    fn only_files_of_dead_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (own, file) = create(folder.path(), false).unwrap();
        file.set_modified(SystemTime::now() - 2 * OLD).unwrap();
        let names = [
            ".1a2b-17c0ffee-0.tmp",
            ".1a2b-17c0ffee.tmp",
            ".a-b-g.tmp",
            "1a2b-17c0ffee-0.tmp",
            ".a-b-c-d.tmp",
        ];
        let paths = names.map(|name| leave(folder.path(), name));
        remove_leftovers(folder.path());
        let left: Vec<bool> = paths.iter().map(|path| path.exists()).collect();
        assert_eq!((own.exists(), &left[..]), (true, &[false, true, true, true, true][..]));
        drop(file);
        remove_leftovers(folder.path());
        assert!(!own.exists(), "its lock is released");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "the remover leaves no additional file");
    }

    #[test]
    fn an_unlocked_new_file_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".1a2b-17c0ffee-0.tmp");
        let file = File::create_new(&path).unwrap();
        remove_leftovers(folder.path());
        assert!(claim(&path, &file), "removed between creation and lock");
        remove_leftovers(folder.path());
        assert!(path.exists());
    }

    #[test]
    fn a_creator_suspended_before_the_lock_notices_that_its_file_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = leave(folder.path(), ".1a2b-17c0ffee-0.tmp");
        let file = File::options().write(true).open(&path).unwrap();
        remove_leftovers(folder.path());
        assert!(!path.exists());
        assert!(!claim(&path, &file));
    }

    #[test]
    fn a_creator_cannot_claim_a_file_while_a_remover_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = leave(folder.path(), ".1a2b-17c0ffee-0.tmp");
        let remover = File::open(&path).unwrap();
        remover.try_lock().unwrap();
        assert!(!claim(&path, &File::options().write(true).open(&path).unwrap()));
    }
}
