//! The search for NVIDIA's libraries: by the system's loader, in toolkits, and among the pip wheels
//! of Python installations.

mod places;

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::driver::driver_version;
use crate::error::{Error, GpuError};
use places::FOR_13;
#[cfg(test)]
pub(super) use places::touch;
pub(super) use places::{PLACES, folders, libraries_in, names_in, variable};

/// Advice that names a pip wheel: wheels for CUDA 12 end in `-cu12`, later ones have no suffix.
pub(crate) struct Hint {
    /// For a driver of CUDA 12.
    pub cuda12: &'static str,
    /// For a newer one.
    pub later: &'static str,
    /// For a machine without a driver.
    pub either: &'static str,
}

/// Makes a [`Hint`] from the text before the wheel, the wheel's name for CUDA 13, and the text after it.
macro_rules! hint {
    ($before:literal, $wheel:literal, $after:literal) => {
        $crate::device::cuda::libraries::Hint {
            cuda12: concat!($before, $wheel, "-cu12", $after),
            later: concat!($before, $wheel, $after),
            either: concat!($before, $wheel, " (", $wheel, "-cu12 for drivers of CUDA 12)", $after),
        }
    };
}
pub(crate) use hint;

impl Hint {
    /// Returns the hint for the driver of this machine.
    pub(crate) fn here(&self) -> &'static str {
        self.for_driver(driver_version().ok())
    }

    fn for_driver(&self, version: Option<(i32, i32)>) -> &'static str {
        match version {
            None => self.either,
            Some((..=12, _)) => self.cuda12,
            Some(_) => self.later,
        }
    }
}

/// A library of NVIDIA's, with the libraries that it needs from other folders.
pub(crate) struct Wanted {
    /// The library's name.
    pub name: &'static str,
    /// The file's name without a version, `libcublas.so`.
    pub file: &'static str,
    /// Tried by name, newest first.
    pub names: &'static [&'static str],
    /// The folder of its wheel for CUDA 12, below `site-packages/nvidia`.
    pub wheel: &'static str,
    /// Libraries that it finds only if they are loaded already: file and wheel.
    pub needs: &'static [(&'static str, &'static str)],
    /// How to install it.
    pub hint: Hint,
}

impl Wanted {
    /// Loads the library permanently, from the first place where it works. The error lists what was tried.
    pub(crate) fn load(&self) -> Result<(Library, PathBuf), String> {
        for name in self.names {
            match open(Path::new(name)) {
                Ok(library) => return Ok((library, PathBuf::from(name))),
                Err(reason) => log::debug!("{reason}"),
            }
        }
        for file in found(self.file, self.wheel) {
            for (needed, wheel) in self.needs {
                // In the same folder, or in another wheel.
                let sibling = file.parent().and_then(|folder| library_in(folder, needed));
                let first = sibling.or_else(|| found(needed, wheel).into_iter().next());
                if let Some(Ok(library)) = first.map(|needed| open(&needed)) {
                    std::mem::forget(library);
                }
            }
            match open(&file) {
                Ok(library) => return Ok((library, file)),
                Err(reason) => log::debug!("{reason}"),
            }
        }
        Err(format!("{} by name, {PLACES}", self.names.join(", ")))
    }

    /// Loads the library on the first call, and returns its functions, which `bind` finds. The errors say how
    /// to install it; `reinstall` is the advice for one without the functions.
    pub(crate) fn functions<F>(
        &self,
        loaded: &'static OnceLock<F>,
        bind: impl FnOnce(&Library) -> Result<F, libloading::Error>,
        reinstall: &Hint,
    ) -> Result<&'static F, Error> {
        if let Some(functions) = loaded.get() {
            return Ok(functions);
        }
        let (library, path) = self.load().map_err(|tried| self.missing(tried))?;
        let functions = bind(&library);
        std::mem::forget(library);
        log::debug!("{} loaded from {}", self.name, path.display());
        match functions {
            Ok(functions) => Ok(loaded.get_or_init(|| functions)),
            Err(e) => {
                let reason = format!("{e}; {}", reinstall.here());
                Err(GpuError::LibraryUnusable { library: self.name, path, reason }.into())
            }
        }
    }

    /// Returns the error for a library that is in none of the places that were tried.
    pub(crate) fn missing(&self, tried: String) -> Error {
        GpuError::LibraryMissing { library: self.name, tried, hint: self.hint.here() }.into()
    }

    /// Adds a description of the library and the most frequent cause to the error of its first call.
    pub(crate) fn would_not_start(&self, error: Error, description: &str) -> Error {
        let Error::Gpu(GpuError::Cuda { call, message }) = error else { return error };
        let supported =
            driver_version().map(|(a, b)| format!(", which supports CUDA {a}.{b}")).unwrap_or_default();
        let library = self.name;
        let message = format!(
            "{message}; this is {library} {description}; it may be newer than the driver{supported}; for this driver, {}",
            self.hint.here()
        );
        GpuError::Cuda { call, message }.into()
    }
}

/// `cublasGetProperty` and `cusparseGetProperty`: 0, 1 and 2 select the numbers of the version.
pub(crate) type GetProperty = unsafe extern "C" fn(c_int, *mut c_int) -> c_int;

/// Returns the version and the file of a library in words; this needs no GPU.
///
/// # Safety
///
/// `property` must be such a function, of a library that stays loaded.
pub(crate) unsafe fn describe(property: GetProperty) -> String {
    let number = |which| {
        let mut number = 0;
        // SAFETY: the caller guarantees the function; the integer may be written.
        (unsafe { property(which, &mut number) } == 0).then(|| number.to_string())
    };
    let numbers: Option<Vec<String>> = (0..3).map(number).collect();
    let version = numbers.map_or("of unknown version".to_owned(), |numbers| numbers.join("."));
    match file_at(property as usize) {
        Some(file) => format!("{version}, from {}", file.display()),
        None => version,
    }
}

/// Returns the file whose code is at `address` of this process: a name alone does not show where
/// the loader found the file.
pub(super) fn file_at(address: usize) -> Option<PathBuf> {
    mapped_file(&std::fs::read_to_string("/proc/self/maps").ok()?, address)
}

/// Returns the file that is mapped at `address`, from the text of `/proc/self/maps`.
fn mapped_file(maps: &str, address: usize) -> Option<PathBuf> {
    let line = maps.lines().find(|line| {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let bound = |text| usize::from_str_radix(text, 16).ok();
        let bounds = range.and_then(|(from, to)| Some((bound(from)?, bound(to)?)));
        bounds.is_some_and(|(from, to)| (from..to).contains(&address))
    })?;
    // Five columns come before the path, and none of them contains a slash.
    let path = PathBuf::from(&line[line.find('/')?..]);
    path.is_file().then_some(path)
}

fn open(path: &Path) -> Result<Library, String> {
    // SAFETY: opening runs the library's initialisers, which in NVIDIA's libraries have no
    // requirements on their caller. Like any search of a loader, this trusts its folders: a file of
    // this name is one of these libraries.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        std::error::Error::source(&error).map_or_else(|| error.to_string(), |e| e.to_string())
    })
}

/// Returns the newest file of that name in each folder that has one, best folder first.
fn found(file: &str, wheel: &str) -> Vec<PathBuf> {
    let mut folders = folders(variable, Path::new("/usr/local"), wheel);
    // A driver of CUDA 12 is too old for the wheels for CUDA 13.
    if matches!(driver_version(), Ok((..=12, _))) {
        folders.sort_by_key(|folder| folder.ends_with(FOR_13));
    }
    folders.iter().filter_map(|folder| library_in(folder, file)).collect()
}

/// Returns the newest file of that name in a folder.
fn library_in(folder: &Path, file: &str) -> Option<PathBuf> {
    libraries_in(folder, file).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Wanted = Wanted {
        name: "NONE",
        file: "libnone.so",
        names: &["libnone.so.7", "libnone.so"],
        wheel: "none",
        needs: &[],
        hint: hint!("pip install ", "nvidia-none", " brings it"),
    };

    #[test]
    fn a_missing_library_is_reported_with_the_places_that_were_tried() {
        let tried = NONE.load().map(|(_, path)| path).unwrap_err();
        let message = NONE.missing(tried).to_string();
        for text in ["libnone.so.7, libnone.so", "/usr/local/cuda*/lib64", "pyenv", "pip install nvidia-none"]
        {
            assert!(message.contains(text), "{text} in {message}");
        }
    }

    #[test]
    fn hints_name_the_wheel_for_the_driver() {
        assert_eq!(NONE.hint.for_driver(Some((12, 8))), "pip install nvidia-none-cu12 brings it");
        assert_eq!(NONE.hint.for_driver(Some((13, 0))), "pip install nvidia-none brings it");
        assert_eq!(
            NONE.hint.for_driver(None),
            "pip install nvidia-none (nvidia-none-cu12 for drivers of CUDA 12) brings it"
        );
    }

    #[test]
    fn a_library_that_does_not_start_is_described_and_other_errors_do_not_change() {
        let failed = || GpuError::Cuda { call: "noneCreate", message: "it says 1".to_owned() }.into();
        let message = NONE.would_not_start(failed(), "13.1.0, from /lib/libnone.so").to_string();
        for text in ["noneCreate failed: it says 1", "NONE 13.1.0", "newer than the driver", "nvidia-none"] {
            assert!(message.contains(text), "{text} in {message}");
        }
        let other = || NONE.missing("here".to_owned());
        assert_eq!(NONE.would_not_start(other(), "x").to_string(), other().to_string());
    }

    #[test]
    fn the_file_behind_an_address_is_read_from_the_memory_map() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a library.so");
        std::fs::write(&file, "").unwrap();
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
