//! Cache folders, and the replacement of files that the program writes.

mod check;
mod output;
mod replace;
#[cfg(feature = "cli")]
mod reserve;
mod temporary;

use crate::trust;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub(crate) use check::check_writable;
use etcetera::BaseStrategy;
pub(crate) use output::Output;
pub(crate) use replace::{Content, follow, kept, replace};
#[cfg(feature = "cli")]
pub(crate) use reserve::{Reserved, reserve};

/// Removes temporary files left by killed processes from the folder in which this file is written.
pub(crate) fn remove_leftovers(path: &Path) {
    if let Ok(target) = follow(path) {
        temporary::remove_leftovers(folder_of(&target));
    }
}

/// The most bytes of a file with an answer, besides its numbers and names.
pub(crate) const HEADER: u64 = 1 << 10;

static CACHE_FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Sets the cache folder of this process, for fetched matrices, parsed matrices and compiled kernels. Only
/// the first call has an effect.
pub fn set_cache_folder(folder: PathBuf) {
    let _ = CACHE_FOLDER.set(folder);
}

/// Returns the cache folder: the one set by [`set_cache_folder`], else `$SOLVER_CACHE`, else `solver` in the
/// user's cache folder (`$XDG_CACHE_HOME`, or `~/.cache`). Fails if other users can put files into its
/// subfolder `part`, because kernels from the cache are executed, and matrices from it are not checked again.
pub(crate) fn cache_folder(part: &str) -> std::result::Result<PathBuf, NoCache> {
    let folder = named_cache_folder().ok_or(NoCache::NoHome)?;
    match trust::others_can_write(&folder.join(part)) {
        Some(reason) => Err(NoCache::Unsafe(reason)),
        None => Ok(folder),
    }
}

/// Returns whether the cache folder has this subfolder, with a single question to the system.
pub(crate) fn cache_has(part: &str) -> bool {
    named_cache_folder().is_some_and(|folder| folder.join(part).is_dir())
}

fn named_cache_folder() -> Option<PathBuf> {
    CACHE_FOLDER.get().cloned().or_else(|| {
        let user = etcetera::choose_base_strategy().ok().map(|folders| folders.cache_dir());
        choose_cache_folder(std::env::var_os("SOLVER_CACHE"), user)
    })
}

/// The reason why there is no cache folder.
#[derive(Debug)]
pub(crate) enum NoCache {
    /// There is no home folder.
    NoHome,
    /// It is no folder, or other users can write to it; the text describes how.
    Unsafe(String),
}

/// Chooses the cache folder by the variable's value and the user's cache folder. A relative path means a
/// different folder in each working directory: it is accepted only from the variable.
pub(crate) fn choose_cache_folder(variable: Option<OsString>, user: Option<PathBuf>) -> Option<PathBuf> {
    match variable {
        Some(folder) if !folder.is_empty() => Some(PathBuf::from(folder)),
        _ => user.filter(|folder| folder.is_absolute()).map(|folder| folder.join("solver")),
    }
}

/// Returns the folder that contains a path.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Returns the table's entry for the ending of a file name; the error lists the endings.
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
    fn the_variable_overrides_the_users_cache_folder_unless_it_is_empty() {
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
