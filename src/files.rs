//! Files that the program writes: where caches lie, and how files are replaced.

mod check;
mod replace;
mod temporary;

use crate::trust;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub(crate) use check::check_writable;
use etcetera::BaseStrategy;
pub(crate) use replace::{Content, follow, kept, replace};

/// Removes the temporary files that killed processes have left where this file is written.
pub(crate) fn remove_leftovers(path: &Path) {
    if let Ok(target) = follow(path) {
        temporary::remove_leftovers(folder_of(&target));
    }
}

static CACHE_FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Sets the folder of the caches of this process: fetched matrices, parsed matrices and compiled kernels. The first call counts.
pub fn set_cache_folder(folder: PathBuf) {
    let _ = CACHE_FOLDER.set(folder);
}

/// The folder of this user's caches: the one that was set here, `$SOLVER_CACHE` where that variable is set, otherwise
/// `solver` in the user's cache folder (`$XDG_CACHE_HOME`, or `~/.cache`). It is used for the folder `part` in it, and
/// only where no other user can put files there: kernels from it are run, and matrices from it are not checked again.
pub(crate) fn cache_folder(part: &str) -> std::result::Result<PathBuf, NoCache> {
    let folder = CACHE_FOLDER.get().cloned().or_else(|| {
        let user = etcetera::choose_base_strategy().ok().map(|folders| folders.cache_dir());
        choose_cache_folder(std::env::var_os("SOLVER_CACHE"), user)
    });
    let folder = folder.ok_or(NoCache::NoHome)?;
    match trust::others_can_write(&folder.join(part)) {
        Some(reason) => Err(NoCache::Unsafe(reason)),
        None => Ok(folder),
    }
}

/// Why there is no cache folder.
#[derive(Debug)]
pub(crate) enum NoCache {
    /// There is no home folder.
    NoHome,
    /// Other users can put files there, in words.
    Unsafe(String),
}

/// Likewise, from the variable's value and the user's cache folder. A relative folder would be another one in each
/// working directory: nobody who has no home meant that, but who sets the variable may.
pub(crate) fn choose_cache_folder(variable: Option<OsString>, user: Option<PathBuf>) -> Option<PathBuf> {
    match variable {
        Some(folder) if !folder.is_empty() => Some(PathBuf::from(folder)),
        _ => user.filter(|folder| folder.is_absolute()).map(|folder| folder.join("solver")),
    }
}

/// The folder that a path lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The entry of a table whose ending the name of a file has; the error says which endings there are.
pub(crate) fn by_ending<W: Copy>(path: &Path, table: &[(&str, W)]) -> Result<W, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let found = table.iter().find(|(ending, _)| name.ends_with(ending));
    found.map(|(_, entry)| *entry).ok_or_else(|| {
        let endings: Vec<_> = table.iter().map(|(ending, _)| *ending).collect();
        format!("its ending must be one of {}", endings.join(", "))
    })
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
}
