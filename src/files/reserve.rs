//! Reserves disk space for a result before it is computed, so that a full disk is noticed before hours of
//! work, and other programs do not take the space meanwhile.

use super::check::existing_folder;
use super::replace::follow;
use super::{folder_of, temporary};
use std::fs::{self, File};
use std::path::Path;

/// Disk space that stays reserved until this value is dropped, or the process ends in any way. It belongs to
/// a file without a name, so nothing is left behind.
#[derive(Debug)]
pub(crate) struct Reserved {
    _space: Option<File>,
}

/// Reserves `bytes` in the folder of a result, if the system can; the error says how much space there is.
pub(crate) fn reserve(path: &Path, bytes: u64) -> Result<Reserved, String> {
    let none = Ok(Reserved { _space: None });
    if fs::metadata(path).is_ok_and(|existing| !existing.is_file()) {
        // Pipes and devices take no space.
        return none;
    }
    let target = follow(path).map_err(|e| e.to_string())?;
    let folder = existing_folder(folder_of(&target))?;
    let Ok((name, file)) = temporary::create(folder, true) else { return none };
    // From here on the file has no name; the system frees its space when it is closed.
    let removed = fs::remove_file(&name);
    if removed.is_err() || bytes == 0 {
        return none;
    }
    allocate(&file, bytes, folder)?;
    Ok(Reserved { _space: Some(file) })
}

/// Allocates space for a file. A system or a file system that cannot do so reserves nothing.
#[cfg(target_os = "linux")]
fn allocate(file: &File, bytes: u64, folder: &Path) -> Result<(), String> {
    use crate::text::thousands;
    use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
    use rustix::io::Errno;
    use rustix::process::{Resource, getrlimit};
    let needed = format!("its file needs up to {} bytes", thousands(bytes));
    let largest = getrlimit(Resource::Fsize).current;
    if let Some(largest) = largest.filter(|largest| *largest < bytes) {
        let largest = thousands(largest);
        return Err(format!("{needed}, and this process may write files of at most {largest} (ulimit -f)"));
    }
    let remedy = "free some space, or name a file in another folder";
    let refused = match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => return Ok(()),
        Err(refused) => refused,
    };
    match refused {
        Errno::NOSPC => {
            let free = fstatvfs(file).map_or(0, |about| about.f_bavail.saturating_mul(about.f_frsize));
            let folder = folder.display();
            Err(format!("{needed}, and the disk of {folder} has {} available; {remedy}", thousands(free)))
        }
        Errno::DQUOT | Errno::FBIG => {
            Err(format!("{needed}, which {} refuses: {refused}; {remedy}", folder.display()))
        }
        _ => {
            log::debug!("no space is reserved in {}: {refused}", folder.display());
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_: &File, _: u64, _: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_space_leaves_no_file_and_missing_folders_are_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let count = || fs::read_dir(folder.path()).unwrap().count();
        for path in ["x.npy", "new/folder/x.npy"] {
            let reserved = reserve(&folder.path().join(path), 1 << 20).unwrap();
            assert_eq!(count(), 0, "{path}: the space has no name");
            drop(reserved);
            assert_eq!(count(), 0, "{path}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn more_space_than_there_is_is_refused_with_both_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("probe")).unwrap();
        if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 1).is_err() {
            return; // The file system reserves nothing.
        }
        let reason = reserve(&folder.path().join("x.npy"), 1 << 60).unwrap_err();
        assert!(reason.contains("its file needs up to 1,152,921,504,606,846,976 bytes"), "{reason}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the probe");
    }
}
