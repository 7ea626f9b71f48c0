//! The files of real matrices, which a study names without their folder: a record then names
//! no folder of a machine.

use std::path::{Path, PathBuf};

/// The variable that names the folder of these files.
const VARIABLE: &str = "SOLVER_REAL_DATA";

/// Returns what to open for a matrix of a study: the file of this name in the folder of real matrices, or
/// else the name itself. A file that the name leads to from the working folder comes first.
pub(super) fn located(name: &str) -> PathBuf {
    within(folder().as_deref(), name)
}

/// Removes the folder of real matrices from a text, such as an error about one of its files.
pub(super) fn without_folder(text: &str) -> String {
    match folder() {
        Some(folder) => text.replace(&format!("{}/", folder.display()), ""),
        None => text.to_owned(),
    }
}

/// Returns the folder that the variable names, without a slash at its end.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty())?;
    Some(Path::new(&named).components().collect())
}

fn within(folder: Option<&Path>, name: &str) -> PathBuf {
    let here = PathBuf::from(name);
    let inside = folder.map(|folder| folder.join(name)).filter(|path| path.is_file());
    if here.exists() { here } else { inside.unwrap_or(here) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_folder_is_found_by_its_name_and_other_names_stay() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("small.mtx"), "").unwrap();
        let of = |name: &str| within(Some(folder.path()), name);
        assert_eq!(of("small.mtx"), folder.path().join("small.mtx"));
        assert_eq!(within(None, "small.mtx"), Path::new("small.mtx"));
        for name in ["large.mtx", "poisson2d:3x3", "Cargo.toml"] {
            assert_eq!(of(name), Path::new(name));
        }
        // A file of the working folder comes first.
        std::fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        assert_eq!(of("Cargo.toml"), Path::new("Cargo.toml"));
    }
}
