//! Compiled kernels on disk, so that only the first run on a machine waits for the compiler.
//!
//! One file holds one image with the text that it was compiled from. That text is compared when the file is
//! read, so neither two keys with the same file name nor a foreign file can put a wrong kernel on the GPU.
//! The cache never makes a solve fail: an entry that cannot be read is compiled again, and an entry that
//! cannot be written is not kept.

mod entry;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::nvrtc::Image;
use crate::error::Result;
use crate::files::{self, NoCache};
use crate::trust::create_folder;
use entry::Key;

/// The folder of kernels in a cache folder.
const FOLDER: &str = "kernels";
/// The largest file that is read. No image comes near this size, so a larger file is not an
/// entry of this cache.
const LARGEST_FILE: u64 = 1 << 30;

/// A folder of compiled kernels. Any number of threads and processes may use one folder at the same time.
#[derive(Clone, Debug)]
pub(crate) struct KernelCache {
    folder: Option<PathBuf>,
}

/// The size of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Files of compiled kernels.
    pub entries: u64,
    /// Their sizes together.
    pub bytes: u64,
}

impl KernelCache {
    /// Opens the cache of this user: `$SOLVER_CACHE/kernels` if that variable is set, otherwise
    /// `solver/kernels` in the user's cache folder (`$XDG_CACHE_HOME`, or `~/.cache`). Without a home folder,
    /// or if other users can write to the cache folder, no kernel is kept.
    pub(crate) fn open() -> KernelCache {
        match files::cache_folder(FOLDER) {
            Ok(folder) => KernelCache::at(folder.join(FOLDER)),
            Err(none) => {
                let why = match none {
                    NoCache::NoHome => "there is no home folder".to_owned(),
                    NoCache::Unsafe(reason) => reason,
                };
                warn_once(format_args!(
                    "no cache folder: {why}; kernels are compiled anew in each run, unless SOLVER_CACHE names another \
                     folder"
                ));
                KernelCache { folder: None }
            }
        }
    }

    /// Makes a cache in `folder`, which is created when the first kernel is stored.
    pub(crate) fn at(folder: impl Into<PathBuf>) -> KernelCache {
        KernelCache { folder: Some(folder.into()) }
    }

    /// Returns the folder of the files; `None` if no kernel is kept.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Counts the files and their bytes; returns zeros if the folder cannot be read.
    pub(crate) fn usage(&self) -> Usage {
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

    /// Returns the image of this kernel: from the disk, or else from `compile`, whose result is then stored.
    ///
    /// The only errors are those of `compile`.
    pub(crate) fn get_or_compile(
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

/// Logs the first failure of the cache as a warning, and later ones at debug level: otherwise each kernel
/// would repeat the warning.
fn warn_once(message: std::fmt::Arguments) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if WARNED.swap(true, Ordering::Relaxed) {
        log::debug!("{message}");
    } else {
        log::warn!("{message}");
    }
}

/// Reads an entry: `None` if there is none, and the reason as an error if the entry is invalid.
fn load(path: &Path, key: &Key) -> std::result::Result<Option<Image>, String> {
    match read(path) {
        Ok(bytes) => key.image(&bytes).map(Some),
        // If the folder is a file, storing the image fails and warns.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(format!("cannot be read ({error})")),
    }
}

/// Reads a regular file of at most [`LARGEST_FILE`] bytes. Other kinds of files are refused: opening a pipe
/// would wait for a writer that never comes.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() > LARGEST_FILE {
        return Err(io::Error::new(ErrorKind::InvalidData, "not a file of this cache"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes an entry. The file is not synced: the checksum detects damage from a power failure.
fn store(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_folder(folder)?;
    files::replace(path, files::Content::Cache, false, |file| file.write_all(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_home_folder_kernels_compile_and_are_not_kept() {
        let cache = KernelCache { folder: None };
        let image = || Ok(Image::Cubin(vec![1]));
        assert_eq!(cache.get_or_compile((13, 0), "k", "", &[], 90, image).unwrap(), Image::Cubin(vec![1]));
        assert_eq!(cache.usage(), Usage::default());
    }
}
