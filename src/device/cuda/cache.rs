//! Compiled kernels on disk, so that only the first run on a machine waits for the compiler.
//!
//! One file holds one image together with everything that it was compiled from. That text is compared when the file is
//! read, so neither two keys of one file name nor a file from elsewhere can put a wrong kernel on the GPU. The cache
//! never makes a solve fail: what cannot be read is compiled again, what cannot be written is not kept.

mod entry;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use etcetera::BaseStrategy;

use super::nvrtc::Image;
use crate::error::Result;
use entry::Key;

/// No image comes near this, so a larger file is not ours and is not read into memory.
const LARGEST_FILE: u64 = 1 << 30;

/// A folder of compiled kernels. Any number of threads and processes may use one folder at the same time.
#[derive(Clone, Debug)]
pub struct KernelCache {
    folder: Option<PathBuf>,
}

/// How much a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Files of compiled kernels.
    pub entries: u64,
    /// Their sizes together.
    pub bytes: u64,
}

impl KernelCache {
    /// The cache of this user: `$SOLVER_CACHE/kernels` where that variable is set, otherwise `solver/kernels` in the
    /// user's cache folder (`$XDG_CACHE_HOME`, or `~/.cache`). Without a home folder nothing is kept.
    pub fn open() -> KernelCache {
        let user = etcetera::choose_base_strategy().ok().map(|folders| folders.cache_dir());
        let folder = default_folder(std::env::var_os("SOLVER_CACHE"), user);
        if folder.is_none() {
            warn_once(format_args!(
                "no cache folder: there is no home folder, so kernels are compiled anew in each run; set SOLVER_CACHE"
            ));
        }
        KernelCache { folder }
    }

    /// A cache in `folder`, which is made when the first kernel is stored.
    pub fn at(folder: impl Into<PathBuf>) -> KernelCache {
        KernelCache { folder: Some(folder.into()) }
    }

    /// Where the files lie; `None` where nothing is kept.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Counts the files and their bytes; nothing where the folder cannot be read.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        let Some(Ok(entries)) = self.folder.as_ref().map(fs::read_dir) else { return usage };
        for entry in entries.flatten() {
            let counts = entry.path().extension().is_some_and(|extension| extension == "bin");
            match entry.metadata() {
                Ok(metadata) if counts && metadata.is_file() => {
                    usage.entries += 1;
                    usage.bytes += metadata.len();
                }
                _ => {}
            }
        }
        usage
    }

    /// The image of this kernel: from the disk, or else from `compile`, whose result is then stored.
    ///
    /// The only errors are those of `compile`.
    pub fn get_or_compile(
        &self,
        nvrtc_version: (i32, i32),
        name: &str,
        source: &str,
        options: &[String],
        arch: u32,
        compile: impl FnOnce() -> Result<Image>,
    ) -> Result<Image> {
        let Some(folder) = &self.folder else { return compile() };
        let key = Key::new(nvrtc_version, name, source, options, arch);
        let path = folder.join(key.file_name());
        match load(&path, &key) {
            Ok(Some(image)) => return Ok(image),
            Ok(None) => {}
            Err(reason) => {
                log::warn!("compiling kernel {name} again: {} {reason}", path.display());
            }
        }
        let image = compile()?;
        if let Err(error) = store(folder, &path, &key.entry(&image)) {
            warn_once(format_args!(
                "compiled kernels cannot be kept in {} ({error}), so each run compiles them anew; set SOLVER_CACHE to \
                 a folder that can be written",
                folder.display()
            ));
        }
        Ok(image)
    }
}

/// Where [`KernelCache::open`] goes, from the variable's value and the user's cache folder. A relative folder would be
/// another one in each working directory: nobody who has no home meant that, but who sets the variable may.
fn default_folder(variable: Option<OsString>, user: Option<PathBuf>) -> Option<PathBuf> {
    match variable {
        Some(folder) if !folder.is_empty() => Some(Path::new(&folder).join("kernels")),
        _ => user.filter(|folder| folder.is_absolute()).map(|folder| folder.join("solver/kernels")),
    }
}

/// Warns on the first trouble with the whole cache; the same again for each kernel would only be noise.
fn warn_once(message: std::fmt::Arguments) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if WARNED.swap(true, Ordering::Relaxed) {
        log::debug!("{message}");
    } else {
        log::warn!("{message}");
    }
}

/// Reads an entry: `None` where there is none, and the reason as an error where there is one that is no good.
fn load(path: &Path, key: &Key) -> std::result::Result<Option<Image>, String> {
    match read(path) {
        Ok(bytes) => key.image(&bytes).map(Some),
        // A folder that is a file shows itself again, with a warning, when the image is stored.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(format!("cannot be read ({error})")),
    }
}

/// Reads a whole regular file of bearable size: opening a pipe would wait for a writer that never comes.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() > LARGEST_FILE {
        return Err(io::Error::new(ErrorKind::InvalidData, "no file of this cache"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes `bytes` to a new file beside `path` and renames it there, so that no reader ever meets half an entry and the
/// last of several writers wins. It is not synced: what a power failure leaves behind, the checksum finds.
fn store(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let (temporary, mut file) = create_unique(folder)?;
    let written = file.write_all(bytes);
    drop(file);
    let done = written.and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        // Nothing is left to do if this fails too: the file has a name that no reader opens.
        let _ = fs::remove_file(&temporary);
    }
    done
}

/// A file that no one else writes. The process number alone would not do: on a shared file system, processes of two
/// containers may have the same one, and a killed process may have left its file behind.
fn create_unique(folder: &Path) -> io::Result<(PathBuf, File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    const ATTEMPTS: u32 = 16;
    let mut last = io::Error::from(ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".{:x}-{now:x}-{count:x}.tmp", std::process::id()));
        match File::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_over_the_users_cache_folder_and_an_empty_one_counts_as_unset() {
        let user = || Some(PathBuf::from("/home/u/.cache"));
        assert_eq!(default_folder(Some("/big".into()), user()), Some(PathBuf::from("/big/kernels")));
        assert_eq!(
            default_folder(Some("".into()), user()),
            Some(PathBuf::from("/home/u/.cache/solver/kernels"))
        );
        assert_eq!(default_folder(None, user()), Some(PathBuf::from("/home/u/.cache/solver/kernels")));
    }

    #[test]
    fn without_a_home_folder_nothing_is_kept_and_kernels_compile_all_the_same() {
        assert_eq!(default_folder(None, None), None);
        assert_eq!(default_folder(None, Some(PathBuf::from(".cache"))), None);
        let cache = KernelCache { folder: None };
        let image = || Ok(Image::Cubin(vec![1]));
        assert_eq!(cache.get_or_compile((13, 0), "k", "", &[], 90, image).unwrap(), Image::Cubin(vec![1]));
        assert_eq!(cache.usage(), Usage::default());
    }
}
