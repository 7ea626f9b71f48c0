//! The file to which a result is written. If its folder cannot take an answer, the file moves to another
//! folder, with what was written so far: the content is produced once only.

use super::{cache_folder, temporary};
use crate::trust::create_folder;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The folder of kept answers in the cache folder.
const FOLDER: &str = "kept";

/// A file that is being written.
pub(crate) struct Output {
    path: PathBuf,
    file: File,
    /// The folders to which the file may still move.
    others: Vec<PathBuf>,
    /// Why the file is not in its own folder.
    moved: Option<io::Error>,
}

impl Output {
    /// Writes to this file, and to no other one.
    pub(super) fn new(path: PathBuf, file: File) -> Output {
        Output { path, file, others: Vec::new(), moved: None }
    }

    /// Creates a file in another folder, because of this error in its own folder.
    pub(super) fn elsewhere(error: io::Error) -> io::Result<Output> {
        let mut others = other_folders();
        match create_in(&mut others, |_| Ok(())) {
            Ok((path, file)) => Ok(Output { path, file, others, moved: Some(error) }),
            Err(reasons) => Err(nowhere(&error, &reasons)),
        }
    }

    /// Lets the file move to another folder if its own cannot take what is written.
    pub(super) fn may_move(&mut self) {
        if self.moved.is_none() {
            self.others = other_folders();
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn has_moved(&self) -> bool {
        self.moved.is_some()
    }

    /// Returns the path of the file, the file, and why it is not in its own folder if it is not.
    pub(super) fn into_parts(self) -> (PathBuf, File, Option<io::Error>) {
        (self.path, self.file, self.moved)
    }

    /// Moves the file to the next folder that can take what was written so far.
    fn move_on(&mut self, error: io::Error) -> io::Result<()> {
        let at = self.file.stream_position()?;
        let copied = create_in(&mut self.others, |mut to| {
            let mut from = &self.file;
            from.rewind()?;
            io::copy(&mut from, &mut to)?;
            to.seek(SeekFrom::Start(at)).map(drop)
        });
        let (path, file) = copied.map_err(|reasons| nowhere(&error, &reasons))?;
        let _ = fs::remove_file(&self.path);
        (self.path, self.file) = (path, file);
        self.moved.get_or_insert(error);
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted && !self.others.is_empty() => {
                    self.move_on(error)?;
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Returns the folders in which an answer may be kept if its own folder cannot take it: one in the cache
/// folder, and the system's folder of temporary files.
fn other_folders() -> Vec<PathBuf> {
    let cache = cache_folder(FOLDER).ok().map(|folder| folder.join(FOLDER));
    cache.into_iter().chain([std::env::temp_dir()]).collect()
}

/// Creates a file in the first of these folders in which this is possible and `fill` succeeds, and removes
/// that folder and those before it from the list. The error names each folder with the reason.
fn create_in(
    folders: &mut Vec<PathBuf>,
    fill: impl Fn(&File) -> io::Result<()>,
) -> Result<(PathBuf, File), String> {
    let mut reasons = Vec::new();
    while !folders.is_empty() {
        let folder = folders.remove(0);
        let created = create_folder(&folder).and_then(|()| temporary::create(&folder, true));
        let filled = created.and_then(|(path, file)| {
            fill(&file).inspect_err(|_| _ = fs::remove_file(&path))?;
            Ok((path, file))
        });
        match filled {
            Ok(created) => return Ok(created),
            Err(error) => reasons.push(format!("{}: {error}", folder.display())),
        }
    }
    Err(reasons.join("; "))
}

/// Returns the error for an answer that no folder can take.
fn nowhere(error: &io::Error, reasons: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{error}; no other folder could take it either ({reasons})"))
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    /// Returns a file that takes `before` and then no more.
    fn full_after(before: &[u8]) -> File {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create("full", flags).unwrap());
        file.write_all(before).unwrap();
        fcntl_add_seals(&file, SealFlags::WRITE).unwrap();
        file
    }

    #[test]
    fn a_file_that_takes_no_more_moves_with_what_was_written_to_the_first_folder_that_can_take_it() {
        let root = tempfile::tempdir().unwrap();
        let (no_folder, folder) = (root.path().join("a file"), root.path().join("new/kept"));
        fs::write(&no_folder, "").unwrap();
        let own = root.path().join("own");
        let mut output = Output::new(own.clone(), full_after(b"half"));
        output.others = vec![no_folder, folder.clone()];
        output.write_all(b" and half").unwrap();
        output.seek(SeekFrom::Start(0)).unwrap();
        output.write_all(b"H").unwrap();
        let (path, _, moved) = output.into_parts();
        assert_eq!((fs::read(&path).unwrap(), path.parent()), (b"Half and half".to_vec(), Some(&*folder)));
        assert_eq!(moved.unwrap().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn if_no_folder_can_take_a_file_the_error_names_them_all() {
        let root = tempfile::tempdir().unwrap();
        let folders = ["a", "b"].map(|name| root.path().join(name));
        folders.iter().for_each(|path| fs::write(path, "").unwrap());
        let mut output = Output::new(root.path().join("own"), full_after(b"half"));
        output.others = folders.to_vec();
        let error = output.write_all(b" and half").unwrap_err();
        let message = error.to_string();
        assert!(folders.iter().all(|path| message.contains(path.to_str().unwrap())), "{message}");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
