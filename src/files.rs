//! Files that the program writes: where caches lie, and how files are replaced.

mod check;
mod replace;
mod temporary;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub(crate) use check::check_writable;
use etcetera::BaseStrategy;
pub(crate) use replace::{Content, follow, kept, replace};

/// Removes the temporary files that killed processes have left where this file is written.
pub(crate) fn remove_leftovers(path: &Path) {
    if let Ok(target) = replace::follow(path) {
        temporary::remove_leftovers(folder_of(&target));
    }
}

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

/// The folder that a path lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
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
