//! Files that the program keeps for itself: where they lie, and how they are replaced so that no reader ever meets half
//! of one.

mod temporary;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use etcetera::BaseStrategy;
pub(crate) use temporary::remove_leftovers;

static CACHE_FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Keeps caches in this folder from now on; the first call counts.
pub(crate) fn set_cache_folder(folder: PathBuf) {
    let _ = CACHE_FOLDER.set(folder);
}

/// The folder of this user's caches: the one that was set here, `$SOLVER_CACHE` where that variable is set, otherwise
/// `solver` in the user's cache folder (`$XDG_CACHE_HOME`, or `~/.cache`). None without a home folder.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    if let Some(folder) = CACHE_FOLDER.get() {
        return Some(folder.clone());
    }
    let user = etcetera::choose_base_strategy().ok().map(|folders| folders.cache_dir());
    choose_cache_folder(std::env::var_os("SOLVER_CACHE"), user)
}

/// Likewise, from the variable's value and the user's cache folder. A relative folder would be another one in each
/// working directory: nobody who has no home meant that, but who sets the variable may.
pub(crate) fn choose_cache_folder(variable: Option<OsString>, user: Option<PathBuf>) -> Option<PathBuf> {
    match variable {
        Some(folder) if !folder.is_empty() => Some(PathBuf::from(folder)),
        _ => user.filter(|folder| folder.is_absolute()).map(|folder| folder.join("solver")),
    }
}

/// Makes sure that names given in a folder survive a power failure, where its file system can.
fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder) {
        // The file has its name in any case, and some file systems synchronise no folders.
        let _ = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = folder;
}

/// The folder that a path lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether files can be made in a folder and removed from it; otherwise what stands against it.
pub(crate) fn probe(folder: &Path) -> std::result::Result<(), String> {
    let (path, _locked) =
        temporary::create(folder).map_err(|e| format!("no file can be made in {}: {e}", folder.display()))?;
    fs::remove_file(path).map_err(|e| format!("no file can be removed from {}: {e}", folder.display()))
}

/// Writes a new file beside `path` and renames it there: a reader meets the old file or the new one, and the last of
/// several writers wins. With `sync` the new one survives a power failure, its name included.
pub(crate) fn replace(
    path: &Path,
    sync: bool,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let (temporary, file) = temporary::create(folder_of(path))?;
    let mut buffered = BufWriter::with_capacity(1 << 20, &file);
    let written = write(&mut buffered).and_then(|()| buffered.flush());
    drop(buffered);
    let done = written
        .and_then(|()| if sync { file.sync_all() } else { Ok(()) })
        .and_then(|()| fs::rename(&temporary, path));
    if done.is_ok() && sync {
        sync_folder(folder_of(path));
    }
    if done.is_err() {
        // Nothing is left to do if this fails too: the file has a name that no reader opens.
        let _ = fs::remove_file(&temporary);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_over_the_users_cache_folder_and_an_empty_one_counts_as_unset() {
        let user = || Some(PathBuf::from("/home/u/.cache"));
        assert_eq!(choose_cache_folder(Some("/big".into()), user()), Some(PathBuf::from("/big")));
        assert_eq!(
            choose_cache_folder(Some("".into()), user()),
            Some(PathBuf::from("/home/u/.cache/solver"))
        );
        assert_eq!(choose_cache_folder(None, user()), Some(PathBuf::from("/home/u/.cache/solver")));
    }

    #[test]
    fn without_a_home_folder_there_is_no_cache() {
        assert_eq!(choose_cache_folder(None, None), None);
        assert_eq!(choose_cache_folder(None, Some(PathBuf::from(".cache"))), None);
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        replace(&path, true, |file| file.write_all(b"old")).unwrap();
        let failed = replace(&path, true, |file| {
            file.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
