//! Replaces a file so that readers see either the old or the new content, and a computed answer is not lost.
//!
//! # Steps
//! 1. Symbolic links are followed: their target is replaced, and they stay. The target need not exist.
//! 2. The target's folder is created if it does not exist. The content is written to a temporary file there.
//!    If the target exists, the temporary file takes over its mode, and its owner and group as far as the
//!    system permits. A new file has the mode that the umask gives.
//! 3. The temporary file is renamed over the target. Of several writers, the last one wins.
//! 4. A rename can fail although the target can be written to: the target is a mount point, or belongs to
//!    another user and lies in a folder with the sticky bit. A result is then copied into the target. The
//!    temporary file stays until the copy is complete.
//! 5. If the copy fails too, the temporary file stays, and the error names it.
//! 6. If the folder of an answer cannot take it, because it is full or can no longer be written to, the
//!    answer is kept in another folder (`output.rs`), and the error names the file.

use super::output::Output;
use super::{folder_of, temporary};
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

/// Limit for the symbolic links followed from one path; Linux has the same limit.
const MOST_LINKS: usize = 40;
/// Longest end of a file name, from its first dot on, that the name of a kept file repeats.
const LONGEST_ENDING: usize = 16;

/// The kind of a file's content, which decides what happens to it if the file cannot be written or renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Numbers that took a computation: they are kept, under another name or in another folder if necessary.
    /// A pipe or device is written to directly.
    Answer,
    /// A result that can be made again, such as a converted matrix, or whose earlier version stays,
    /// such as a checkpoint: a complete file is kept, under another name if necessary. A pipe or
    /// device is written to directly.
    Result,
    /// Content that can be computed again: the temporary file is removed.
    Cache,
}

/// The error for a complete file that is not in its place.
#[derive(Debug, thiserror::Error)]
#[error("{error}; the complete file is {path}: move it by hand", path = path.display())]
struct Unplaced {
    error: io::Error,
    path: PathBuf,
}

/// Returns the complete file that [`replace`] kept when it failed with this error.
pub(crate) fn kept(error: &io::Error) -> Option<&Path> {
    error.get_ref()?.downcast_ref::<Unplaced>().map(|unplaced| unplaced.path.as_path())
}

fn unplaced(error: io::Error, path: PathBuf) -> io::Error {
    io::Error::new(error.kind(), Unplaced { error, path })
}

/// Replaces a file in the steps of the module documentation. With `sync`, the new file and its name
/// survive a power failure.
pub(crate) fn replace(
    path: &Path,
    content: Content,
    sync: bool,
    write: impl FnOnce(&mut BufWriter<&mut Output>) -> io::Result<()>,
) -> io::Result<()> {
    let special = fs::metadata(path).is_ok_and(|existing| !existing.is_file() && !existing.is_dir());
    if special && content != Content::Cache {
        return write_buffered(&mut Output::new(path.to_owned(), File::create(path)?), write);
    }
    let (mut output, place) = match open(path) {
        Ok((output, place)) => (output, Some(place)),
        Err(error) if content == Content::Answer => (Output::elsewhere(error)?, None),
        Err(error) => return Err(error),
    };
    if content == Content::Answer {
        output.may_move();
    }
    let written = write_buffered(&mut output, write).and_then(|()| {
        // A file in another folder stays private.
        if let Some(Place { old: Some(old), .. }) = &place
            && !output.has_moved()
        {
            take_over(output.file(), old);
        }
        if sync { output.file().sync_all() } else { Ok(()) }
    });
    if let Err(error) = written {
        // If this fails, the next process that writes in the folder removes the file.
        let _ = fs::remove_file(output.path());
        return Err(error);
    }
    let (temporary, file, moved) = output.into_parts();
    let Some(Place { target, .. }) = place.filter(|_| moved.is_none()) else {
        let error = moved.unwrap_or_else(|| io::ErrorKind::Other.into());
        return Err(unplaced(error, keep(&temporary, path)));
    };
    install(&temporary, &file, &target, content, sync)?;
    if sync {
        sync_folder(folder_of(&target));
    }
    Ok(())
}

/// The file to replace.
struct Place {
    target: PathBuf,
    /// The metadata of the existing file.
    old: Option<Metadata>,
}

/// Creates a temporary file in the folder of the file that a path names.
fn open(path: &Path) -> io::Result<(Output, Place)> {
    let target = follow(path)?;
    let old = fs::metadata(&target).ok().filter(Metadata::is_file);
    fs::create_dir_all(folder_of(&target))?;
    let (temporary, file) = temporary::create(folder_of(&target), old.is_some())?;
    Ok((Output::new(temporary, file), Place { target, old }))
}

fn write_buffered(
    output: &mut Output,
    write: impl FnOnce(&mut BufWriter<&mut Output>) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(1 << 20, output);
    write(&mut buffered).and_then(|()| buffered.flush())
}

/// Renames a complete temporary file to its target, or copies its content into the existing target.
fn install(temporary: &Path, file: &File, target: &Path, content: Content, sync: bool) -> io::Result<()> {
    let Err(refused) = fs::rename(temporary, target) else { return Ok(()) };
    if content == Content::Cache {
        let _ = fs::remove_file(temporary);
        return Err(refused);
    }
    // If the process is killed during the copy, the file must not be removed as a leftover.
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
    Err(unplaced(error, kept))
}

/// Renames a complete temporary file so that it is not removed as a leftover, with the endings of the target.
fn keep(temporary: &Path, target: &Path) -> PathBuf {
    let number = temporary.file_stem().unwrap_or_default().to_string_lossy();
    let mut name = OsString::from(format!("kept-{}", number.trim_start_matches('.')));
    let named = target.file_name().unwrap_or_default().to_string_lossy();
    let mut endings = named.match_indices('.').map(|(at, _)| &named[at..]);
    if let Some(ending) = endings.find(|ending| (2..=LONGEST_ENDING).contains(&ending.len())) {
        name.push(ending);
    }
    let kept = temporary.with_file_name(name);
    if fs::rename(temporary, &kept).is_ok() { kept } else { temporary.to_owned() }
}

fn open_existing(target: &Path) -> io::Result<File> {
    if !target.is_file() {
        // Opening a pipe would wait for a reader.
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

/// Returns the file that a path names after following all symbolic links. The file need not exist.
pub(crate) fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            // A relative link is relative to its folder.
            Ok(next) => target = folder_of(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Copies mode, owner and group of an old file to a new one, as far as the system permits.
#[cfg(unix)]
fn take_over(file: &File, old: &Metadata) {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let mut mode = old.mode() & 0o777;
    // Only root may change the owner, but every user may choose one of their groups.
    let same_group =
        fchown(file, Some(old.uid()), Some(old.gid())).is_ok() || fchown(file, None, Some(old.gid())).is_ok();
    if !same_group {
        // A permission of the old group is kept for another group only if all users have it.
        mode = mode & !0o070 | mode & (mode << 3) & 0o070;
    }
    // Some filesystems do not support modes.
    let _ = file.set_permissions(fs::Permissions::from_mode(mode));
}

#[cfg(not(unix))]
fn take_over(_: &File, _: &Metadata) {}

/// Syncs a folder, so that file names in it survive a power failure, if the filesystem supports it.
fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder) {
        // The rename is done in any case, and some filesystems cannot sync folders.
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
    fn a_failed_write_leaves_only_the_old_file() {
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

    /// Replaces a file whose path becomes a folder while the content is written.
    fn replace_what_becomes_a_folder(folder: &tempfile::TempDir, content: Content) -> io::Error {
        let path = folder.path().join("x.npy");
        let written = replace(&path, content, false, |file| {
            fs::create_dir(&path)?;
            file.write_all(b"whole")
        });
        written.unwrap_err()
    }

    #[test]
    fn a_result_that_cannot_be_renamed_is_kept_and_the_error_names_it() {
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
    fn a_cache_file_that_cannot_be_renamed_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let error = replace_what_becomes_a_folder(&folder, Content::Cache);
        assert!(kept(&error).is_none());
        assert_eq!(count(&folder), 1, "the folder that blocked the rename");
    }

    #[cfg(unix)]
    #[test]
    fn the_temporary_file_for_a_private_file_is_private() {
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
