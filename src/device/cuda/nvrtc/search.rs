//! Where NVRTC is looked for, and how it is opened once found.
//!
//! NVRTC opens a second library, its builtins, by bare name on the first compile. Where the first lies outside the
//! folders of the system's loader, as in a pip wheel, that fails unless the second is loaded already, so the builtins
//! beside it are always loaded by full path.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::super::libraries::{self, names_in, variable};
use super::{LIBRARY, Nvrtc};
use crate::error::{Error, GpuError, Result};

/// The variable that names the library or its folder.
const VARIABLE: &str = "SOLVER_NVRTC";
/// Tried by name, newest first.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
const TRIED: &str = "libnvrtc.so.13, libnvrtc.so.12 and libnvrtc.so by name, in /usr/local/cuda*/lib64, in lib64 of \
                     $CUDA_HOME and $CUDA_PATH, and among the pip wheels of $VIRTUAL_ENV, $CONDA_PREFIX and \
                     python3";
const HINT: &str = "`pip install nvidia-cuda-nvrtc` brings it: set SOLVER_NVRTC to the folder that then holds \
                    libnvrtc.so.* (site-packages/nvidia/cu13/lib)";
const HINT_PLACE: &str = "name a file libnvrtc.so.*, or the folder that holds it (with `pip install \
                          nvidia-cuda-nvrtc`, set SOLVER_NVRTC to site-packages/nvidia/cu13/lib)";

/// See [`Nvrtc::load`].
pub(super) fn load(at: Option<&Path>) -> Result<Nvrtc> {
    if let Some(place) = at {
        return load_place(place, "");
    }
    match variable(VARIABLE) {
        Some(place) => load_place(Path::new(&place), "SOLVER_NVRTC="),
        None => load_found(),
    }
}

/// Loads what somebody asked for: no other place is tried.
fn load_place(place: &Path, from: &str) -> Result<Nvrtc> {
    let missing = |why: &str| {
        Error::Gpu(GpuError::LibraryMissing {
            library: LIBRARY,
            tried: format!("{from}{}: {why}", place.display()),
            hint: HINT_PLACE,
        })
    };
    if place.is_dir() {
        let file = library_in(place).ok_or_else(|| missing("the folder holds no libnvrtc.so*"))?;
        load_file(&file)
    } else if place.is_file() {
        load_file(place)
    } else if place.exists() {
        Err(missing("neither a file nor a folder"))
    } else {
        Err(missing("no such file or folder"))
    }
}

/// Goes through the usual places. A library that does not work is passed over, and reported if no other one does.
fn load_found() -> Result<Nvrtc> {
    let mut broken = None;
    for name in NAMES {
        match load_name(name) {
            Ok(Some(nvrtc)) => return Ok(nvrtc),
            Ok(None) => {}
            Err(error) => note(&mut broken, error),
        }
    }
    for folder in folders(variable, Path::new("/usr/local")) {
        match library_in(&folder).map(|file| load_file(&file)) {
            Some(Ok(nvrtc)) => return Ok(nvrtc),
            None => {}
            Some(Err(error)) => note(&mut broken, error),
        }
    }
    Err(broken.unwrap_or_else(|| {
        Error::Gpu(GpuError::LibraryMissing { library: LIBRARY, tried: TRIED.to_owned(), hint: HINT })
    }))
}

/// Keeps the first error and logs each.
fn note(first: &mut Option<Error>, error: Error) {
    log::debug!("{error}");
    first.get_or_insert(error);
}

fn unusable(path: &Path, reason: String) -> Error {
    let reason = format!(
        "{reason}; set SOLVER_NVRTC to the folder of another (pip install nvidia-cuda-nvrtc brings one), reinstall this \
         one, or use --device cpu"
    );
    Error::Gpu(GpuError::LibraryUnusable { library: LIBRARY, path: path.to_owned(), reason })
}

/// Opens the way dlopen does; a name without a slash goes through the system's loader.
fn open(path: &OsStr) -> std::result::Result<Library, String> {
    // Binding everything at once makes an unfit library fail here, with a message, and not at some later call.
    // SAFETY: opening runs the library's initialisers. NVIDIA's compiler libraries have no demands on their caller;
    // that a file of this name is one of them is the trust that any search of a loader puts into its folders.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        // What the loader said is one level down.
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
    })
}

/// `None` where the loader knows no such name.
fn load_name(name: &'static str) -> Result<Option<Nvrtc>> {
    let library = match open(OsStr::new(name)) {
        Ok(library) => library,
        // The loader speaks of the missing file first: of this one, or of one that this one needs.
        Err(reason) if reason.starts_with(name) && reason.contains("No such file") => return Ok(None),
        Err(reason) => return Err(unusable(Path::new(name), reason)),
    };
    let mut nvrtc =
        Nvrtc::bind(library, PathBuf::from(name)).map_err(|reason| unusable(Path::new(name), reason))?;
    // The host process may have loaded it from anywhere before, as Python packages do: find where it lies.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if let Some(file) = mapped_file(&maps, nvrtc.functions.address()) {
        load_builtins_beside(&file);
        nvrtc.path = file;
    }
    Ok(Some(nvrtc))
}

/// Loads a file that exists, its builtins first.
fn load_file(file: &Path) -> Result<Nvrtc> {
    // With a slash in it, so that dlopen takes this file and no other of its name.
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    load_builtins_beside(&file);
    let library = open(file.as_os_str()).map_err(|reason| unusable(&file, reason))?;
    Nvrtc::bind(library, file.clone()).map_err(|reason| unusable(&file, reason))
}

/// Loads the builtins in the folder of `file`, and in that of the file it links to. They stay loaded for good.
fn load_builtins_beside(file: &Path) {
    let real = file.canonicalize().ok();
    let folders = [Some(file), real.as_deref()].map(|file| file.and_then(Path::parent));
    for folder in folders.into_iter().flatten() {
        for name in names_in(folder).into_iter().filter(|name| is_builtins(name)) {
            match open(folder.join(&name).as_os_str()) {
                Ok(library) => std::mem::forget(library),
                // Not fatal: NVRTC may still find others, and its own message comes with the first compile.
                Err(reason) => log::debug!("NVRTC's builtins: {reason}"),
            }
        }
    }
}

/// The `.alt` files belong to an alternative build of NVRTC that is not used here.
fn is_builtins(name: &str) -> bool {
    name.starts_with("libnvrtc-builtins.so.") && !name.contains(".alt")
}

/// The newest `libnvrtc.so*` in a folder.
fn library_in(folder: &Path) -> Option<PathBuf> {
    libraries::library_in(folder, "libnvrtc.so")
}

/// The folders to look into, best first, whether or not they exist.
fn folders(variable: impl Fn(&str) -> Option<OsString>, usr_local: &Path) -> Vec<PathBuf> {
    libraries::folders(variable, usr_local, "cuda_nvrtc")
}

/// The file that is mapped at `address`, from the text of `/proc/self/maps`.
fn mapped_file(maps: &str, address: usize) -> Option<PathBuf> {
    let line = maps.lines().find(|line| {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let bound = |text| usize::from_str_radix(text, 16).ok();
        let bounds = range.and_then(|(from, to)| Some((bound(from)?, bound(to)?)));
        bounds.is_some_and(|(from, to)| (from..to).contains(&address))
    })?;
    // Five columns stand before the path, none of which has a slash besides it.
    let path = PathBuf::from(&line[line.find('/')?..]);
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[test]
    fn the_newest_library_of_a_folder_is_taken_and_others_of_similar_name_are_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(library_in(folder.path()), None);
        for name in
            ["libnvrtc.so", "libnvrtc.so.9", "libnvrtc.so.12", "libnvrtc.alt.so.13", "libnvrtc.so.13.bak"]
        {
            touch(&folder.path().join(name));
        }
        touch(&folder.path().join("libnvrtc.so.14/a-folder"));
        assert_eq!(library_in(folder.path()), Some(folder.path().join("libnvrtc.so.12")));
    }

    #[test]
    fn only_builtins_of_the_usual_build_are_preloaded() {
        assert!(is_builtins("libnvrtc-builtins.so.13.0"));
        assert!(!is_builtins("libnvrtc-builtins.alt.so.13.0"));
        assert!(!is_builtins("libnvrtc.so.13"));
    }

    #[test]
    fn folders_come_in_order_toolkits_before_wheels_and_the_chosen_toolkit_first() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for path in ["cuda-9.2/x", "cuda/x", "cuda-13.0/x", "env/lib/python3.9/x", "env/lib/python3.11/x"] {
            touch(&at(path));
        }
        let variable = |name: &str| match name {
            "CUDA_HOME" => Some(at("home").into_os_string()),
            "VIRTUAL_ENV" => Some(at("env").into_os_string()),
            _ => None,
        };
        let expected = [
            "cuda/lib64",
            "cuda-13.0/lib64",
            "cuda-9.2/lib64",
            "home/lib64",
            "env/lib/python3.11/site-packages/nvidia/cu13/lib",
            "env/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib",
            "env/lib/python3.9/site-packages/nvidia/cu13/lib",
            "env/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib",
        ];
        assert_eq!(folders(variable, root.path()), expected.map(at));
    }

    #[test]
    fn the_file_behind_an_address_is_read_from_the_memory_map() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a library.so");
        touch(&file);
        let maps = format!(
            "00400000-00500000 r-xp 00000000 08:01 7 /none/such\n7f00-7fff r-xp 0 00:00 0 \n\
             7f0000001000-7f0000002000 r-xp 00001000 08:01 99    {}\n",
            file.display()
        );
        assert_eq!(mapped_file(&maps, 0x7f00_0000_1000), Some(file));
        assert_eq!(mapped_file(&maps, 0x7f00_0000_2000), None);
        assert_eq!(mapped_file(&maps, 0x7f10), None);
        assert_eq!(mapped_file(&maps, 0x40_0010), None, "a file that is gone");
    }
}
