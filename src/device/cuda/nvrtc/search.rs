//! The search for NVRTC, and the way the library is opened.
//!
//! On the first compilation NVRTC opens a second library, its builtins, by bare name. If NVRTC is outside the
//! folders of the system's loader, as in a pip wheel, this fails unless the builtins are loaded already. So
//! the builtins in NVRTC's folder are always loaded by full path.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::super::driver::{can_load, driver_version};
use super::super::libraries::{self, Hint, hint, names_in, variable};
use super::{LIBRARY, Nvrtc};
use crate::error::{Error, GpuError, Result};
use crate::observe::profile::{self, Phase};
use crate::parallel::lock;

/// The variable that names the library or its folder.
const VARIABLE: &str = "SOLVER_NVRTC";
/// Tried by name, newest first.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
const HINT: Hint = hint!(
    "pip install ",
    "nvidia-cuda-nvrtc",
    " brings it; if it is still not found, set SOLVER_NVRTC to the folder below site-packages/nvidia that holds \
     libnvrtc.so.*"
);
const HINT_PLACE: Hint = hint!(
    "name a file libnvrtc.so.*, or the folder that holds it; pip install ",
    "nvidia-cuda-nvrtc",
    " brings one: set SOLVER_NVRTC to the folder below site-packages/nvidia that it is in"
);
const HINT_OTHER: Hint = hint!(
    "set SOLVER_NVRTC to the folder of another (pip install ",
    "nvidia-cuda-nvrtc",
    " brings one), reinstall this one, or use the CPU"
);

impl Nvrtc {
    /// Returns the compiler of this process, which is loaded on the first call. A failure is not kept:
    /// the next call tries again.
    pub(crate) fn get() -> Result<&'static Nvrtc> {
        static LOADED: OnceLock<Nvrtc> = OnceLock::new();
        // Only one thread searches at a time. The lock guards no data, so a panic of another thread
        // leaves nothing inconsistent.
        static SEARCHING: Mutex<()> = Mutex::new(());
        if let Some(nvrtc) = LOADED.get() {
            return Ok(nvrtc);
        }
        let _searching = lock(&SEARCHING);
        match LOADED.get() {
            Some(nvrtc) => Ok(nvrtc),
            None => {
                let _span = profile::begin(Phase::Compile);
                let nvrtc = Nvrtc::load(None)?;
                Ok(LOADED.get_or_init(|| nvrtc))
            }
        }
    }

    /// Loads NVRTC from `at`, a library file or a folder that holds `libnvrtc.so*`.
    ///
    /// Without `at`, takes the first library that works, and that the driver is not too old for, of:
    /// 1. `SOLVER_NVRTC`, also a file or a folder; if it is set, no other place is tried,
    /// 2. `libnvrtc.so.13`, `libnvrtc.so.12` and `libnvrtc.so` as the system's loader finds them,
    /// 3. `/usr/local/cuda*/lib64`, then `lib64` of `$CUDA_HOME` and `$CUDA_PATH`,
    /// 4. the pip wheels in `$VIRTUAL_ENV`, `$CONDA_PREFIX`, the folder where `python3` is installed,
    ///    `/usr/local`, pyenv and the user's folder, and `$CONDA_PREFIX/lib`.
    ///
    /// If all libraries that work are too new for the driver, takes the first of them.
    pub(crate) fn load(at: Option<&Path>) -> Result<Nvrtc> {
        let nvrtc = load(at)?;
        let (major, minor) = nvrtc.version;
        log::debug!("NVRTC {major}.{minor} loaded from {}", nvrtc.path.display());
        Ok(nvrtc)
    }
}

/// See [`Nvrtc::load`].
fn load(at: Option<&Path>) -> Result<Nvrtc> {
    if let Some(place) = at {
        return load_place(place, "");
    }
    match variable(VARIABLE) {
        Some(place) => load_place(Path::new(&place), "SOLVER_NVRTC="),
        None => load_found(),
    }
}

/// Loads from a place that the caller or the user named: no other place is tried.
fn load_place(place: &Path, from: &str) -> Result<Nvrtc> {
    let missing = |why: &str| {
        Error::Gpu(GpuError::LibraryMissing {
            library: LIBRARY,
            tried: format!("{from}{}: {why}", place.display()),
            hint: HINT_PLACE.here(),
        })
    };
    if place.is_dir() {
        let files = libraries_in(place);
        choose(files.iter().map(|file| load_file(file)), suits_driver())
            .unwrap_or_else(|| Err(missing("the folder holds no libnvrtc.so*")))
    } else if place.is_file() {
        load_file(place)
    } else if place.exists() {
        Err(missing("neither a file nor a folder"))
    } else {
        Err(missing("no such file or folder"))
    }
}

/// Searches the usual places.
fn load_found() -> Result<Nvrtc> {
    let by_name = NAMES.into_iter().filter_map(|name| load_name(name).transpose());
    let folders = folders(variable, Path::new("/usr/local"));
    let files = folders.iter().flat_map(|folder| libraries_in(folder)).map(|file| load_file(&file));
    choose(by_name.chain(files), suits_driver()).unwrap_or_else(|| {
        let tried = format!("{} by name, {}", NAMES.join(", "), libraries::PLACES);
        Err(Error::Gpu(GpuError::LibraryMissing { library: LIBRARY, tried, hint: HINT.here() }))
    })
}

/// Returns whether the driver can load the code of a compiler; without a driver every compiler suits.
fn suits_driver() -> impl Fn(&Nvrtc) -> bool {
    let driver = driver_version().ok();
    move |nvrtc| driver.is_none_or(|driver| can_load(driver, nvrtc.version))
}

/// Prefers the first compatible library, then the first that loads, then the first error.
fn choose<T>(found: impl Iterator<Item = Result<T>>, suits: impl Fn(&T) -> bool) -> Option<Result<T>> {
    let (mut unsuited, mut broken) = (None, None);
    for library in found {
        match library {
            Ok(library) if suits(&library) => return Some(Ok(library)),
            Ok(library) => {
                unsuited.get_or_insert(library);
            }
            Err(error) => note(&mut broken, error),
        }
    }
    unsuited.map(Ok).or(broken.map(Err))
}

/// Logs an error, and keeps the first one.
fn note(first: &mut Option<Error>, error: Error) {
    log::debug!("{error}");
    first.get_or_insert(error);
}

fn unusable(path: &Path, reason: String) -> Error {
    let reason = format!("{reason}; {}", HINT_OTHER.here());
    Error::Gpu(GpuError::LibraryUnusable { library: LIBRARY, path: path.to_owned(), reason })
}

/// Opens a library as dlopen does: a name without a slash goes through the system's loader.
fn open(path: &OsStr) -> std::result::Result<Library, String> {
    // Binding all symbols at once makes an unsuitable library fail here with a message, and
    // not at a later call.
    // SAFETY: opening runs the library's initialisers. NVIDIA's compiler libraries have no
    // requirements on their caller. Like any search of a loader, this trusts its folders: a file of
    // this name is one of these libraries.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        // The loader's message is the source of this error.
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
    })
}

/// Loads by bare name; `None` if the loader finds no such file.
fn load_name(name: &'static str) -> Result<Option<Nvrtc>> {
    let library = match open(OsStr::new(name)) {
        Ok(library) => library,
        // The loader's message begins with the missing file: this library, or one that it needs.
        Err(reason) if reason.starts_with(name) && reason.contains("No such file") => return Ok(None),
        Err(reason) => return Err(unusable(Path::new(name), reason)),
    };
    let mut nvrtc =
        Nvrtc::bind(library, PathBuf::from(name)).map_err(|reason| unusable(Path::new(name), reason))?;
    // The process may have loaded the library from any folder before, as Python packages do: find its file.
    if let Some(file) = libraries::file_at(nvrtc.functions.address()) {
        load_builtins_in_folder_of(&file);
        nvrtc.path = file;
    }
    Ok(Some(nvrtc))
}

/// Loads an existing file, after its builtins.
fn load_file(file: &Path) -> Result<Nvrtc> {
    // An absolute path, so that dlopen takes this file and not another one of the same name.
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    load_builtins_in_folder_of(&file);
    let library = open(file.as_os_str()).map_err(|reason| unusable(&file, reason))?;
    Nvrtc::bind(library, file.clone()).map_err(|reason| unusable(&file, reason))
}

/// Loads the builtins in the folder of `file`, and in that of the file it links to. They are never unloaded.
fn load_builtins_in_folder_of(file: &Path) {
    let real = file.canonicalize().ok();
    let folders = [Some(file), real.as_deref()].map(|file| file.and_then(Path::parent));
    for folder in folders.into_iter().flatten() {
        for name in names_in(folder).into_iter().filter(|name| is_builtins(name)) {
            match open(folder.join(&name).as_os_str()) {
                Ok(library) => std::mem::forget(library),
                // Not fatal: NVRTC may still find other builtins, and otherwise reports an error
                // on the first compilation.
                Err(reason) => log::debug!("NVRTC's builtins: {reason}"),
            }
        }
    }
}

/// Returns whether a file is NVRTC's builtins. The `.alt` files belong to an alternative build of
/// NVRTC that is not used here.
fn is_builtins(name: &str) -> bool {
    name.starts_with("libnvrtc-builtins.so.") && !name.contains(".alt")
}

/// Returns every `libnvrtc.so*` in a folder, newest first.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    libraries::libraries_in(folder, "libnvrtc.so")
}

/// Returns the folders to search, best first, whether or not they exist.
fn folders(variable: impl Fn(&str) -> Option<OsString>, usr_local: &Path) -> Vec<PathBuf> {
    libraries::folders(variable, usr_local, "cuda_nvrtc")
}

#[cfg(test)]
mod tests {
    use super::libraries::touch;
    use super::*;

    #[test]
    fn libraries_of_a_folder_are_listed_newest_first_without_files_of_similar_names() {
        let folder = tempfile::tempdir().unwrap();
        assert!(libraries_in(folder.path()).is_empty());
        for name in
            ["libnvrtc.so", "libnvrtc.so.9", "libnvrtc.so.12", "libnvrtc.alt.so.13", "libnvrtc.so.13.bak"]
        {
            touch(&folder.path().join(name));
        }
        touch(&folder.path().join("libnvrtc.so.14/a-folder"));
        let expected =
            ["libnvrtc.so.12", "libnvrtc.so.9", "libnvrtc.so"].map(|name| folder.path().join(name));
        assert_eq!(libraries_in(folder.path()), expected);
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
        for path in ["cuda-9.2/x", "cuda/x", "cuda-13.0/x"] {
            touch(&at(path));
        }
        for python in ["env/lib/python3.9", "env/lib/python3.11"] {
            touch(&at(python).join("site-packages/nvidia/x"));
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
    fn a_compiler_too_new_for_the_driver_is_skipped_if_another_one_suits() {
        let broken = || Err(unusable(Path::new("libnvrtc.so.11"), "it is broken".to_owned()));
        let chosen = |found: Vec<Result<i32>>| choose(found.into_iter(), |&major| major <= 12);
        assert_eq!(chosen(vec![Ok(13), broken(), Ok(12), Ok(11)]).unwrap().unwrap(), 12);
        assert_eq!(chosen(vec![broken(), Ok(14), Ok(13)]).unwrap().unwrap(), 14, "its error says what to do");
        assert!(chosen(vec![broken()]).unwrap().is_err());
        assert!(chosen(vec![]).is_none());
    }
}
