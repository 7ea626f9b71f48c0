//! Where NVIDIA's libraries are looked for: by the system's loader, in toolkits, and among the pip wheels of a Python.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// A library of NVIDIA's, and those that it needs from other folders.
pub struct Wanted {
    /// The file's name without a version, `libcublas.so`.
    pub file: &'static str,
    /// Tried by name, newest first.
    pub names: &'static [&'static str],
    /// The folder of its wheel for CUDA 12, below `site-packages/nvidia`.
    pub wheel: &'static str,
    /// Libraries that it finds only if they are loaded already: file and wheel.
    pub needs: &'static [(&'static str, &'static str)],
}

impl Wanted {
    /// Loads it for good, from the first place where it works. The error is what was tried.
    pub fn load(&self) -> Result<(Library, PathBuf), String> {
        for name in self.names {
            match open(Path::new(name)) {
                Ok(library) => return Ok((library, PathBuf::from(name))),
                Err(reason) => log::debug!("{reason}"),
            }
        }
        for file in found(self.file, self.wheel) {
            for (needed, wheel) in self.needs {
                // Beside it, or in a wheel of its own.
                let beside = file.parent().and_then(|folder| library_in(folder, needed));
                let first = beside.or_else(|| found(needed, wheel).into_iter().next());
                if let Some(Ok(library)) = first.map(|needed| open(&needed)) {
                    std::mem::forget(library);
                }
            }
            match open(&file) {
                Ok(library) => return Ok((library, file)),
                Err(reason) => log::debug!("{reason}"),
            }
        }
        Err(format!("{} by name, in toolkits, and among the pip wheels of Python", self.names.join(", ")))
    }
}

fn open(path: &Path) -> Result<Library, String> {
    // SAFETY: opening runs the library's initialisers, which in NVIDIA's libraries have no demands on their caller; that a
    // file of this name is one of them is the trust that any search of a loader puts into its folders.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        std::error::Error::source(&error).map_or_else(|| error.to_string(), |e| e.to_string())
    })
}

/// An environment variable; set to nothing counts as not set.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The newest file of that name in each folder that has one, best folder first.
fn found(file: &str, wheel: &str) -> Vec<PathBuf> {
    let folders = folders(variable, Path::new("/usr/local"), wheel);
    folders.iter().filter_map(|folder| library_in(folder, file)).collect()
}

/// The newest file in a folder that is called `file`, perhaps with a version behind it.
pub(super) fn library_in(folder: &Path, file: &str) -> Option<PathBuf> {
    names_in(folder)
        .into_iter()
        .filter_map(|name| Some((library_version(&name, file)?, folder.join(name))))
        .filter(|(_, path)| path.is_file())
        .max()
        .map(|(_, path)| path)
}

/// The numbers after the name of a library; `None` for any other file.
fn library_version(name: &str, file: &str) -> Option<Vec<u32>> {
    match name.strip_prefix(file)? {
        "" => Some(Vec::new()),
        rest => rest.strip_prefix('.')?.split('.').map(|part| part.parse().ok()).collect(),
    }
}

/// The names in a folder as far as they are text, sorted; none where it cannot be read.
pub(super) fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// The folders to look into, best first, whether or not they exist.
pub(super) fn folders(
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
    let mut add = |lib: &Path, packages: &str| {
        for python in versions_in(lib, "python3") {
            let wheels = python.join(packages).join("nvidia");
            folders.extend([wheels.join("cu13/lib"), wheels.join(wheel).join("lib")]);
        }
    };
    let conda = variable("CONDA_PREFIX").map(|python| Path::new(&python).join("lib"));
    if let Some(python) = variable("VIRTUAL_ENV") {
        add(&Path::new(&python).join("lib"), "site-packages");
    }
    if let Some(lib) = &conda {
        add(lib, "site-packages");
    }
    for prefix in pythons(&variable("PATH").unwrap_or_default()) {
        add(&prefix.join("lib"), "site-packages");
        add(&prefix.join("lib"), "dist-packages");
    }
    folders.extend(conda);
    folders
}

/// Where the `python3` of a search path is installed: the folder above the one that it lies in, and likewise for what it
/// links to, as in virtual environments.
fn pythons(path: &OsString) -> Vec<PathBuf> {
    let files = std::env::split_paths(path).map(|folder| folder.join("python3"));
    let Some(mut file) = files.into_iter().find(|file| file.is_file()) else { return Vec::new() };
    let mut prefixes = Vec::new();
    // A chain of links that is longer is none that a person made.
    for _ in 0..8 {
        prefixes.extend(file.parent().and_then(Path::parent).map(Path::to_owned));
        match std::fs::read_link(&file) {
            // A relative link counts from its folder.
            Ok(to) => file = file.parent().map_or(to.clone(), |folder| folder.join(&to)),
            Err(_) => break,
        }
    }
    prefixes.dedup();
    prefixes
}

/// The entries of `parent` whose names begin with `prefix`: the bare prefix first, for that is the link to the one
/// that was chosen on this machine, then by the numbers that follow, highest first.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_of_the_python_on_the_path_and_of_the_one_it_links_to_are_looked_into() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["venv/bin", "venv/lib/python3.12/site-packages", "usr/bin", "usr/lib/python3.12"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("usr/bin/python3"), "").unwrap();
        std::os::unix::fs::symlink(at("usr/bin/python3"), at("venv/bin/python3")).unwrap();
        let path = std::env::join_paths([at("none"), at("venv/bin"), at("usr/bin")]).unwrap();
        assert_eq!(pythons(&path), [at("venv"), at("usr")]);
        let variable = |name: &str| (name == "PATH").then(|| path.clone());
        let folders = folders(variable, &at("local"), "cusparse");
        assert_eq!(folders[0], at("venv/lib/python3.12/site-packages/nvidia/cu13/lib"));
        assert_eq!(folders[1], at("venv/lib/python3.12/site-packages/nvidia/cusparse/lib"));
        assert!(folders.contains(&at("usr/lib/python3.12/dist-packages/nvidia/cusparse/lib")));
    }

    #[test]
    fn a_library_that_is_nowhere_is_named_with_what_was_tried() {
        let wanted =
            Wanted { file: "libnone.so", names: &["libnone.so.7", "libnone.so"], wheel: "none", needs: &[] };
        let tried = wanted.load().map(|(_, path)| path).unwrap_err();
        assert!(tried.contains("libnone.so.7, libnone.so"), "{tried}");
    }
}
