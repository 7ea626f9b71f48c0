//! The bytes of a file, mapped into memory if the file allows it.
//!
//! A map costs no memory of its own; a copy of a text takes more than the matrix in it. To copy a file of 33 MB takes 2.2 ms
//! on two threads, and to read the matrix from it 82 ms.

#[cfg(target_os = "linux")]
mod faults;

use super::inflate::{Metered, read_all};
use crate::error::{Error, Result};
use crate::observe::Meter;
use memmap2::Mmap;
use std::fs::File;
use std::path::Path;

/// Calls `read` with the bytes of the file at `path`. On Linux it is an error if the file becomes shorter meanwhile; on other
/// systems that ends the process.
pub(super) fn with<T>(path: &Path, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    with_metered(path, None, read)
}

/// The same with a meter, which counts the bytes of a file that cannot be mapped.
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
    // Whatever was read may contain zeros that are not in the file. Of its last page none is lost: they are only zeros then.
    let shorter = file.metadata().is_ok_and(|now| now.len() < map.len() as u64);
    #[cfg(target_os = "linux")]
    let shorter = shorter || watch.has_faulted();
    if shorter {
        let reason = "it became shorter while it was read, or its disk failed";
        return Err(fail(std::io::Error::other(reason)));
    }
    outcome
}

/// Reads standard input to its end; `path` is its name in error messages.
pub(super) fn stdin(path: &Path, meter: Option<&Meter>) -> Result<Vec<u8>> {
    collect(path, std::io::stdin().lock(), meter)
}

/// Reads all that comes, without knowing how much it will be.
fn collect(path: &Path, from: impl std::io::Read, meter: Option<&Meter>) -> Result<Vec<u8>> {
    if let Some(meter) = meter {
        meter.begin("reading", 0);
    }
    read_all(path, "read", Metered { from, meter }, 0)
}

fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is read-only and lives as long as the slice made of it, and nothing in this process writes to the
    // file. No program can rule out that another one does. If that one shortens the file, `faults` replaces the lost pages by
    // zeros, and the outcome is an error. If it changes bytes under the slice, the parser holds up: it checks every index
    // on the pass that stores it and every access is bounds-checked, so such a file gives an error or other numbers,
    // never an access out of bounds.
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
        let (path, other) = (folder.path().join("cut"), folder.path().join("whole"));
        [&path, &other].iter().for_each(|path| std::fs::write(path, vec![1; LENGTH as usize]).unwrap());
        for left in [LENGTH / 2 + 1, 0] {
            std::fs::write(&path, vec![1; LENGTH as usize]).unwrap();
            let whole = with(&other, |whole| {
                let cut = with(&path, |bytes| {
                    File::options().write(true).open(&path).unwrap().set_len(left).unwrap();
                    // From two threads, of which one meets the lost pages from their middle on.
                    let (front, back) = bytes.split_at(bytes.len() * 3 / 4);
                    std::thread::scope(|scope| {
                        let back = scope.spawn(|| sum(back));
                        assert_eq!(
                            sum(front) + back.join().unwrap(),
                            left,
                            "zeros in the place of what is lost"
                        );
                    });
                    Ok(())
                });
                let error = cut.unwrap_err().to_string();
                assert!(error.contains("cut: it became shorter while it was read"), "{error}");
                Ok(sum(whole))
            });
            assert_eq!(whole.unwrap(), LENGTH, "other files are read on");
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
    fn a_file_that_stays_as_it_is_is_read_without_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for length in [0, 1, LENGTH] {
            std::fs::write(&path, vec![1; length as usize]).unwrap();
            assert_eq!(with(&path, |bytes| Ok(sum(bytes))).unwrap(), length);
        }
    }
}
