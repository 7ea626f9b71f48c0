//! The folders that are searched for libraries, and the libraries in a folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The places that are searched in addition to the system's loader, for error messages.
pub(crate) const PLACES: &str = "in /usr/local/cuda*/lib64, in lib64 of $CUDA_HOME and $CUDA_PATH, in lib of $CONDA_PREFIX, and among the pip \
     wheels of $VIRTUAL_ENV, $CONDA_PREFIX, python3, /usr/local, pyenv and the user (~/.local)";

/// Returns an environment variable; an empty one counts as not set.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The folder of the wheels for CUDA 13, below `site-packages/nvidia`.
pub(crate) const FOR_13: &str = "cu13/lib";

/// Returns the files in a folder that are named `file`, with or without a version at the end, newest first.
pub(crate) fn libraries_in(folder: &Path, file: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = names_in(folder)
        .into_iter()
        .filter_map(|name| Some((library_version(&name, file)?, folder.join(name))))
        .filter(|(_, path)| path.is_file())
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Returns the numbers after the name of a library; `None` for any other file.
fn library_version(name: &str, file: &str) -> Option<Vec<u32>> {
    match name.strip_prefix(file)? {
        "" => Some(Vec::new()),
        rest => rest.strip_prefix('.')?.split('.').map(|part| part.parse().ok()).collect(),
    }
}

/// Returns the names in a folder that are valid text, sorted; none if the folder cannot be read.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// Returns the folders to search, best first, whether or not they exist.
pub(crate) fn folders(
    variable: impl Fn(&str) -> Option<OsString>,
    usr_local: &Path,
    wheel: &str,
) -> Vec<PathBuf> {
    let mut folders: Vec<_> =
        versions_in(usr_local, "cuda").into_iter().map(|cuda| cuda.join("lib64")).collect();
    folders.extend(["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(|name| {
        let toolkit = variable(name)?;
        Some(Path::new(&toolkit).join("lib64"))
    }));
    for wheels in prefixes(&variable, usr_local).iter().flat_map(|prefix| wheels_in(prefix)) {
        folders.extend([wheels.join(FOR_13), wheels.join(wheel).join("lib")]);
    }
    folders.extend(variable("CONDA_PREFIX").map(|conda| Path::new(&conda).join("lib")));
    folders
}

/// Returns the prefixes of Python installations in the order of the search, whether or not they
/// exist: $VIRTUAL_ENV, $CONDA_PREFIX, the `python3` on $PATH and the file that it links to,
/// `usr_local` (where pip installs as root on Debian and Fedora), the versions of pyenv, and the
/// folder where pip installs for one user.
fn prefixes(variable: impl Fn(&str) -> Option<OsString>, usr_local: &Path) -> Vec<PathBuf> {
    let active =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(|name| variable(name).map(PathBuf::from));
    let mut prefixes: Vec<_> = active.collect();
    prefixes.extend(pythons(&variable("PATH").unwrap_or_default()));
    prefixes.push(usr_local.to_owned());
    let or_at_home = |name: &str, folder: &str| {
        variable(name).map(PathBuf::from).or_else(|| Some(Path::new(&variable("HOME")?).join(folder)))
    };
    if let Some(root) = or_at_home("PYENV_ROOT", ".pyenv") {
        let chosen = variable("PYENV_VERSION").and_then(|chosen| chosen.into_string().ok());
        prefixes.extend(versions_of_pyenv(&root, chosen));
    }
    prefixes.extend(or_at_home("PYTHONUSERBASE", ".local"));
    prefixes
}

/// Returns the Python installations of pyenv, of which the search path shows only a script: first those
/// chosen for this shell or this user, then the newest.
fn versions_of_pyenv(root: &Path, chosen: Option<String>) -> Vec<PathBuf> {
    let chosen = chosen.or_else(|| std::fs::read_to_string(root.join("version")).ok()).unwrap_or_default();
    let is_chosen = |version: &Path| {
        version.file_name().is_some_and(|name| chosen.split([':', '\n']).any(|chosen| name == chosen))
    };
    let mut versions = versions_in(&root.join("versions"), "");
    versions.sort_by_key(|version| !is_chosen(version));
    versions
}

/// Returns the folders of NVIDIA's wheels below a prefix.
fn wheels_in(prefix: &Path) -> Vec<PathBuf> {
    let pythons = ["lib", "lib64"].iter().flat_map(|lib| versions_in(&prefix.join(lib), "python3"));
    let wheels = pythons.flat_map(|python| {
        ["site-packages", "dist-packages"].map(|packages| python.join(packages).join("nvidia"))
    });
    wheels.filter(|wheels| wheels.is_dir()).collect()
}

/// Returns the prefix of the `python3` of a search path, which is the parent of the file's folder, and the
/// prefixes of the files that it links to, as in virtual environments. A relative entry names another folder
/// in each working directory, which another user may have filled: it is skipped.
fn pythons(path: &OsString) -> Vec<PathBuf> {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let files = folders.map(|folder| folder.join("python3"));
    let Some(mut file) = files.into_iter().find(|file| file.is_file()) else { return Vec::new() };
    let mut prefixes = Vec::new();
    // No person makes a longer chain of links.
    for _ in 0..8 {
        prefixes.extend(file.parent().and_then(Path::parent).map(Path::to_owned));
        match std::fs::read_link(&file) {
            // A relative link is relative to its folder.
            Ok(to) => file = file.parent().map_or(to.clone(), |folder| folder.join(&to)),
            Err(_) => break,
        }
    }
    prefixes.dedup();
    prefixes
}

/// Returns the entries of `parent` whose names begin with `prefix`: first the bare prefix, because it is the
/// link to the version that was chosen on this machine, then by the numbers that follow, highest first.
fn versions_in(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<(bool, Vec<u32>, String)> = names_in(parent)
        .into_iter()
        .filter_map(|name| {
            let rest = name.strip_prefix(prefix)?;
            let numbers = rest.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
            Some((rest.is_empty(), numbers, name))
        })
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, _, name)| parent.join(name)).collect()
}

/// Creates an empty file, and the folders above it.
#[cfg(test)]
pub(crate) fn touch(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "").unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_entry_of_the_path_is_not_searched_for_a_python() {
        let root = tempfile::tempdir().unwrap();
        touch(&root.path().join("bin/python3"));
        let absolute = root.path().join("bin");
        // The same folder, relative to the working directory.
        let up: PathBuf = std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect();
        let relative = up.join(absolute.strip_prefix("/").unwrap());
        assert!(relative.join("python3").is_file());
        assert_eq!(pythons(&absolute.into_os_string()), [root.path()]);
        assert!(pythons(&relative.into_os_string()).is_empty());
        assert!(pythons(&OsString::from(":bin:.")).is_empty());
    }

    #[test]
    fn wheels_of_the_python_on_the_path_and_of_the_one_it_links_to_are_searched() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for packages in ["venv/lib/python3.12/site-packages", "usr/lib/python3.12/dist-packages"] {
            std::fs::create_dir_all(at(packages).join("nvidia")).unwrap();
        }
        touch(&at("usr/bin/python3"));
        std::fs::create_dir_all(at("venv/bin")).unwrap();
        std::os::unix::fs::symlink(at("usr/bin/python3"), at("venv/bin/python3")).unwrap();
        let path = std::env::join_paths([at("none"), at("venv/bin"), at("usr/bin")]).unwrap();
        assert_eq!(pythons(&path), [at("venv"), at("usr")]);
        let variable = |name: &str| (name == "PATH").then(|| path.clone());
        let expected = [
            "venv/lib/python3.12/site-packages/nvidia/cu13/lib",
            "venv/lib/python3.12/site-packages/nvidia/cusparse/lib",
            "usr/lib/python3.12/dist-packages/nvidia/cu13/lib",
            "usr/lib/python3.12/dist-packages/nvidia/cusparse/lib",
        ];
        assert_eq!(folders(variable, &at("local"), "cusparse"), expected.map(at));
    }

    /// Creates wheels in each of these folders of packages, and returns those that are found with these
    /// variables, whose values are folders too.
    fn wheels_found(packages: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for packages in packages {
            std::fs::create_dir_all(root.path().join(packages).join("nvidia")).unwrap();
        }
        std::fs::create_dir_all(root.path().join("home/.pyenv")).unwrap();
        std::fs::write(root.path().join("home/.pyenv/version"), "3.9.18\n").unwrap();
        let variable = |name: &str| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            let text = name == "PYENV_VERSION";
            Some(if text { OsString::from(value) } else { root.path().join(value).into_os_string() })
        };
        let folders = folders(variable, &root.path().join("usr/local"), "cusparse");
        let below = folders.iter().filter(|folder| folder.ends_with(FOR_13)).map(|folder| {
            let packages = folder.ancestors().nth(3).unwrap();
            packages.strip_prefix(root.path()).unwrap().to_str().unwrap().to_owned()
        });
        below.collect()
    }

    #[test]
    fn wheels_of_root_of_pyenv_and_of_the_user_come_after_those_of_the_active_python() {
        let places = [
            "env/lib64/python3.13/site-packages",
            "usr/local/lib/python3.12/dist-packages",
            "home/.pyenv/versions/3.9.18/lib/python3.9/site-packages",
            "home/.pyenv/versions/3.12.1/lib/python3.12/site-packages",
            "home/.pyenv/versions/3.10.13/lib/python3.10/site-packages",
            "home/.local/lib/python3.12/site-packages",
        ];
        let variables = [("VIRTUAL_ENV", "env"), ("HOME", "home")];
        assert_eq!(wheels_found(&places, &variables), places, "3.9.18 is what pyenv's file names");
        let chosen = [&variables[..], &[("PYENV_VERSION", "3.10.13")]].concat();
        let found = wheels_found(&places, &chosen);
        assert_eq!(found[2], places[4], "{found:?}");
    }

    #[test]
    fn variables_set_the_folders_of_pyenv_and_of_a_users_packages() {
        let places =
            ["py/versions/3.11.7/lib/python3.11/site-packages", "mine/lib64/python3.11/site-packages"];
        let variables = [("PYENV_ROOT", "py"), ("PYTHONUSERBASE", "mine")];
        assert_eq!(wheels_found(&places, &variables), places);
        assert!(wheels_found(&places, &[("HOME", "home")]).is_empty());
    }
}
