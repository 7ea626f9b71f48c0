//! Replaces a file so that readers see the old content or the new one, and a result that was computed is not lost.
//!
//! # Steps
//! 1. Symbolic links are followed: their target is replaced, and they stay. The target need not exist.
//! 2. The target's folder is created if it does not exist. The content is written to a temporary file there. If the target
//!    exists, the temporary file takes over its mode, and its owner and group as far as the system permits. A new file has the
//!    mode that the umask gives.
//! 3. The temporary file is renamed over the target. Of several writers, the last one wins.
//! 4. A rename can fail although the target can be written to: the target is a mount point, or belongs to another user and
//!    lies in a folder with the sticky bit. A result is then copied into the target. The temporary file stays until the copy
//!    is complete.
//! 5. If the copy fails too, the temporary file stays, and the error names it.

use super::{folder_of, temporary};
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

/// Symbolic links that are followed from one path; Linux has the same limit.
const MOST_LINKS: usize = 40;
/// Bytes of a file name's ending that the name of a kept file repeats.
const LONGEST_ENDING: usize = 16;

/// What a file holds, which decides what happens to a complete file that cannot be given its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// What the user asked for: it is kept, under another name if need be. A pipe or device is written to as it is.
    Result,
    /// What can be computed again: the temporary file is removed.
    Cache,
}

/// The error of a file that is complete but could not be given its name.
#[derive(Debug, thiserror::Error)]
#[error("{error}; the complete file is {path}: move it by hand", path = path.display())]
struct Unplaced {
    error: io::Error,
    path: PathBuf,
}

/// The complete file that [`replace`] kept when it failed with this error.
pub(crate) fn kept(error: &io::Error) -> Option<&Path> {
    error.get_ref()?.downcast_ref::<Unplaced>().map(|unplaced| unplaced.path.as_path())
}

/// Replaces a file, as described above. With `sync` the new file survives a power failure, its name included.
pub(crate) fn replace(
    path: &Path,
    content: Content,
    sync: bool,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let special = fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
    if special && content == Content::Result {
        return write_buffered(&File::create(path)?, write);
    }
    let target = follow(path)?;
    let old = fs::metadata(&target).ok().filter(Metadata::is_file);
    fs::create_dir_all(folder_of(&target))?;
    let (temporary, file) = temporary::create(folder_of(&target), old.is_some())?;
    let written = write_buffered(&file, write).and_then(|()| {
        old.iter().for_each(|old| take_over(&file, old));
        if sync { file.sync_all() } else { Ok(()) }
    });
    if let Err(error) = written {
        // If this fails, the next process that writes in the folder removes the file.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    place(&temporary, &file, &target, content, sync)?;
    if sync {
        sync_folder(folder_of(&target));
    }
    Ok(())
}

fn write_buffered(
    file: &File,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(1 << 20, file);
    write(&mut buffered).and_then(|()| buffered.flush())
}

/// Gives a complete temporary file its name, or its content to the file that has the name.
fn place(temporary: &Path, file: &File, target: &Path, content: Content, sync: bool) -> io::Result<()> {
    let Err(refused) = fs::rename(temporary, target) else { return Ok(()) };
    if content == Content::Cache {
        let _ = fs::remove_file(temporary);
        return Err(refused);
    }
    // A kill during the copy must leave a file that is not removed as a leftover.
    let kept = keep(temporary, target);
    let error = match open_existing(target) {
        Err(_) => refused,
        Ok(to) => match copy(file, to, sync) {
            Err(error) => error,
            Ok(()) => {
                log::debug!("{} was written in place: {refused}", target.display());
                let _ = fs::remove_file(kept);
                return Ok(());
            }
        },
    };
    Err(io::Error::new(error.kind(), Unplaced { error, path: kept }))
}

/// Gives a complete temporary file a name that is not removed as a leftover, with the ending of the target.
fn keep(temporary: &Path, target: &Path) -> PathBuf {
    let number = temporary.file_stem().unwrap_or_default().to_string_lossy();
    let mut name = OsString::from(format!("kept-{}", number.trim_start_matches('.')));
    if let Some(ending) = target.extension().filter(|ending| ending.len() <= LONGEST_ENDING) {
        name.push(".");
        name.push(ending);
    }
    let kept = temporary.with_file_name(name);
    if fs::rename(temporary, &kept).is_ok() { kept } else { temporary.to_owned() }
}

fn open_existing(target: &Path) -> io::Result<File> {
    if !target.is_file() {
        // To open a pipe would wait for a reader.
        return Err(io::ErrorKind::NotFound.into());
    }
    File::options().write(true).open(target)
}

fn copy(mut from: &File, mut to: File, sync: bool) -> io::Result<()> {
    from.rewind()?;
    let length = io::copy(&mut from, &mut to)?;
    to.set_len(length)?;
    if sync { to.sync_all() } else { Ok(()) }
}

/// The file that a path names once all symbolic links are followed. The file need not exist.
pub(crate) fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            // A relative link starts from the folder that it lies in.
            Ok(next) => target = folder_of(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links lead from one to the next"))
}

/// Gives a new file the mode, owner and group of an old one, as far as the system permits.
#[cfg(unix)]
fn take_over(file: &File, old: &Metadata) {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let mut mode = old.mode() & 0o777;
    // Only root may give a file away, but every user may choose among their own groups.
    let same_group =
        fchown(file, Some(old.uid()), Some(old.gid())).is_ok() || fchown(file, None, Some(old.gid())).is_ok();
    if !same_group {
        // What the old group was permitted, another group is permitted only if all users are.
        mode = mode & !0o070 | mode & (mode << 3) & 0o070;
    }
    // Some filesystems have no modes.
    let _ = file.set_permissions(fs::Permissions::from_mode(mode));
}

#[cfg(not(unix))]
fn take_over(_: &File, _: &Metadata) {}

/// Makes sure that names given in a folder survive a power failure, if its filesystem can.
fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder) {
        // The file has its name in any case, and some filesystems synchronise no folders.
        let _ = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = folder;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(folder: &tempfile::TempDir) -> usize {
        fs::read_dir(folder.path()).unwrap().count()
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        replace(&path, Content::Result, true, |file| file.write_all(b"old")).unwrap();
        let failed = replace(&path, Content::Result, true, |file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(count(&folder), 1);
    }

    /// Replaces a file whose name becomes that of a folder while the content is written.
    fn replace_what_becomes_a_folder(folder: &tempfile::TempDir, content: Content) -> io::Error {
        let path = folder.path().join("x.npy");
        let written = replace(&path, content, false, |file| {
            fs::create_dir(&path)?;
            file.write_all(b"whole")
        });
        written.unwrap_err()
    }

    #[test]
    fn a_result_that_cannot_be_given_its_name_is_kept_and_the_error_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = replace_what_becomes_a_folder(&folder, Content::Result);
        let kept = kept(&error).unwrap();
        assert_eq!((fs::read(kept).unwrap(), kept.extension()), (b"whole".to_vec(), Some("npy".as_ref())));
        assert!(
            error.to_string().contains(&format!("the complete file is {}: move", kept.display())),
            "{error}"
        );
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
        File::options().write(true).open(kept).unwrap().set_modified(old).unwrap();
        temporary::remove_leftovers(folder.path());
        assert!(kept.exists(), "it is not removed as a leftover");
    }

    #[test]
    fn a_cache_that_cannot_be_given_its_name_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let error = replace_what_becomes_a_folder(&folder, Content::Cache);
        assert!(kept(&error).is_none());
        assert_eq!(count(&folder), 1, "the folder that was in the way");
    }

    #[cfg(unix)]
    #[test]
    fn while_a_private_file_is_replaced_the_new_content_is_private_too() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let during = || fs::read_dir(folder.path()).unwrap().map(|entry| mode(&entry.unwrap().path()));
        replace(&path, Content::Result, false, |_| {
            let mut modes: Vec<u32> = during().collect();
            modes.sort_unstable();
            assert_eq!(modes, [0o600, 0o640]);
            Ok(())
        })
        .unwrap();
        assert_eq!(mode(&path), 0o640);
    }
}
