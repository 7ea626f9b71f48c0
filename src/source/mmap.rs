//! Maps files into memory, or reads files that cannot be mapped, such as pipes.
//!
//! A mapping needs no additional memory, while a copy of a text takes more memory than the matrix in it.
//! Copying a file of 33 MB takes 2.2 ms on two threads, and reading the matrix from it 82 ms.

#[cfg(target_os = "linux")]
mod faults;

use super::inflate::{Metered, read_all};
use crate::error::{Error, Result};
use crate::observe::Meter;
use memmap2::Mmap;
use std::fs::{File, Metadata};
use std::path::Path;
use std::time::SystemTime;

/// The length of a file and the time of its last modification, by which a change of the file is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    length: u64,
    /// `None` if the system has no such times.
    modified: Option<SystemTime>,
}

impl Version {
    pub(super) fn of(path: &Path) -> std::io::Result<Version> {
        std::fs::metadata(path).map(|about| Version::in_metadata(&about))
    }

    fn in_metadata(about: &Metadata) -> Version {
        Version { length: about.len(), modified: about.modified().ok() }
    }
}

/// Returns the error for a file that has changed since its reading began.
pub(super) fn changed(path: &Path) -> Error {
    let source = std::io::Error::other("it was modified while it was read; read it again");
    Error::Io { action: "read", path: path.to_owned(), source }
}

/// Calls `read` with the bytes of the file at `path`. It is an error if the file is modified meanwhile. If it
/// becomes shorter, systems other than Linux end the process.
pub(super) fn with<T>(path: &Path, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    with_metered(path, None, read)
}

/// Calls `read` with the bytes of the file at `path`, as [`with`] does; the meter counts the bytes of a file
/// that cannot be mapped.
pub(super) fn with_metered<T>(
    path: &Path,
    meter: Option<&Meter>,
    read: impl FnOnce(&[u8]) -> Result<T>,
) -> Result<T> {
    let fail = |source| Error::Io { action: "read", path: path.to_owned(), source };
    let file = File::open(path).map_err(fail)?;
    let about = file.metadata().map_err(fail)?;
    if !about.is_file() || about.len() == 0 {
        return read(&collect(path, file, meter)?);
    }
    let map = map(&file).map_err(fail)?;
    #[cfg(target_os = "linux")]
    let watch = faults::Watch::new(&map);
    let outcome = read(&map);
    // The mapped bytes may contain zeros that the file does not. A file that becomes shorter within its last
    // page loses no page, so no fault occurs and only its length shows the change.
    let shorter = file.metadata().is_ok_and(|now| now.len() < map.len() as u64);
    #[cfg(target_os = "linux")]
    let shorter = shorter || watch.has_faulted();
    if shorter {
        let reason = "it became shorter while it was read, or its disk failed";
        return Err(fail(std::io::Error::other(reason)));
    }
    // The matrix would be neither that of the old file nor that of the new one.
    match file.metadata() {
        Ok(now) if Version::in_metadata(&now) != Version::in_metadata(&about) => Err(changed(path)),
        _ => outcome,
    }
}

/// Reads standard input to its end; `path` is its name in error messages.
pub(super) fn stdin(path: &Path, meter: Option<&Meter>) -> Result<Vec<u8>> {
    collect(path, std::io::stdin().lock(), meter)
}

/// Reads to the end of a stream of unknown length.
fn collect(path: &Path, from: impl std::io::Read, meter: Option<&Meter>) -> Result<Vec<u8>> {
    if let Some(meter) = meter {
        meter.begin("reading", 0);
    }
    read_all(path, "read", Metered { from, meter }, 0)
}

fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is read-only and lives as long as the slice made of it, and no code in this process
    // writes to the file. No program can rule out that another process does. If another process shortens the
    // file, `faults` replaces the lost pages by zeros, and the outcome is an error. If it changes bytes under
    // the slice, the parser stays within bounds: it checks every index on the pass that stores it and every
    // access is bounds-checked, so such a file gives an error, or other numbers if its time of modification
    // stays the same, and never an access out of bounds.
    unsafe { Mmap::map(file) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    const LENGTH: u64 = 1 << 20;

    fn sum(bytes: &[u8]) -> u64 {
        bytes.iter().map(|byte| u64::from(*byte)).sum()
    }

    #[test]
    fn a_file_that_becomes_shorter_while_it_is_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("cut"), folder.path().join("intact"));
        [&path, &other].iter().for_each(|path| std::fs::write(path, vec![1; LENGTH as usize]).unwrap());
        for left in [LENGTH / 2 + 1, 0] {
            std::fs::write(&path, vec![1; LENGTH as usize]).unwrap();
            let intact = with(&other, |intact| {
                let cut = with(&path, |bytes| {
                    File::options().write(true).open(&path).unwrap().set_len(left).unwrap();
                    // Two threads read; one of them begins in the middle of the lost pages.
                    let (front, back) = bytes.split_at(bytes.len() * 3 / 4);
                    std::thread::scope(|scope| {
                        let back = scope.spawn(|| sum(back));
                        assert_eq!(sum(front) + back.join().unwrap(), left, "lost pages read as zeros");
                    });
                    Ok(())
                });
                let error = cut.unwrap_err().to_string();
                assert!(error.contains("cut: it became shorter while it was read"), "{error}");
                Ok(sum(intact))
            });
            assert_eq!(intact.unwrap(), LENGTH, "other mapped files are unaffected");
        }
    }

    #[test]
    fn a_file_that_becomes_shorter_within_its_last_page_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small");
        std::fs::write(&path, vec![1; 3328]).unwrap();
        let cut = with(&path, |bytes| {
            File::options().write(true).open(&path).unwrap().set_len(2000).unwrap();
            Ok(sum(bytes))
        });
        let error = cut.unwrap_err().to_string();
        assert!(error.contains("it became shorter while it was read"), "{error}");
    }

    #[test]
    fn a_file_that_is_modified_while_it_is_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rewritten");
        for change in [b"3 3 1\n1 1 5\n", b"4 4 2\n1 1 5\n4 4 1\n" as &[u8]] {
            std::fs::write(&path, "3 3 1\n2 2 5\n").unwrap();
            // Times of files are as coarse as the clock of the system.
            std::thread::sleep(std::time::Duration::from_millis(20));
            let read = with(&path, |bytes| {
                std::fs::write(&path, change).unwrap();
                Ok(sum(bytes))
            });
            let error = read.unwrap_err().to_string();
            assert!(error.contains("rewritten: it was modified while it was read; read it again"), "{error}");
        }
    }

    #[test]
    fn an_unchanged_file_is_read_without_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for length in [0, 1, LENGTH] {
            std::fs::write(&path, vec![1; length as usize]).unwrap();
            assert_eq!(with(&path, |bytes| Ok(sum(bytes))).unwrap(), length);
        }
    }
}
