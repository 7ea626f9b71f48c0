//! Finds out before a computation whether its result can be written.

use super::replace::follow;
use super::{folder_of, temporary};
use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::path::Path;

/// Refuses a path to which no result could be written; the error says why, and what to do.
pub(crate) fn check_writable(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err("it is a folder; name a file in it".to_owned()),
        // A pipe or a device is written to as it is.
        Ok(there) if !there.is_file() => return Ok(()),
        _ => {}
    }
    let target = follow(path).map_err(|e| e.to_string())?;
    let folder = existing_folder(folder_of(&target))?;
    let ours = probe(folder).map_err(|reason| format!("{reason}; name a file in another folder"))?;
    match fs::metadata(&target) {
        Ok(there) => check_existing(&target, &there, &ours),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        // For example, the name is too long.
        Err(e) => Err(format!("no file can have this name: {e}; name another file")),
    }
}

/// The folder, or the nearest one above it that exists: the folders below that are created with the file.
fn existing_folder(folder: &Path) -> Result<&Path, String> {
    let mut above = folder.ancestors().map(|at| if at.as_os_str().is_empty() { Path::new(".") } else { at });
    let Some(existing) = above.find(|at| at.symlink_metadata().is_ok()) else { return Ok(folder) };
    match existing.is_dir() {
        true => Ok(existing),
        false => Err(format!("{} is not a folder; name a file in a folder", existing.display())),
    }
}

/// Creates a file in a folder and removes it again; returns what the system says of the file.
fn probe(folder: &Path) -> Result<Metadata, String> {
    let made = temporary::create(folder, false).and_then(|(path, file)| Ok((path, file.metadata()?, file)));
    let (path, about, _locked) =
        made.map_err(|e| format!("no file can be made in {}: {e}", folder.display()))?;
    fs::remove_file(path).map_err(|e| format!("no file can be removed from {}: {e}", folder.display()))?;
    Ok(about)
}

/// Refuses an existing file that can neither be replaced nor written to. `ours` is a file of this process in the same folder.
fn check_existing(target: &Path, there: &Metadata, ours: &Metadata) -> Result<(), String> {
    let Some(obstacle) = obstacle(target, there, ours) else { return Ok(()) };
    match File::options().write(true).open(target) {
        Ok(_) => Ok(()),
        Err(e) => Err(format!("{obstacle}, and it cannot be written to: {e}; name another file")),
    }
}

/// What prevents a file from being replaced by a rename, as far as that can be found out without trying.
#[cfg(unix)]
fn obstacle(target: &Path, there: &Metadata, ours: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    const ROOT: u32 = 0;
    let folder = fs::metadata(folder_of(target)).ok()?;
    let owners = [ROOT, folder.uid(), there.uid()];
    if folder.mode() & STICKY != 0 && !owners.contains(&ours.uid()) {
        return Some("it belongs to another user, in a folder with the sticky bit");
    }
    attribute(target)
}

#[cfg(not(unix))]
fn obstacle(_: &Path, _: &Metadata, _: &Metadata) -> Option<&'static str> {
    None
}

/// An attribute for which the system refuses a rename.
#[cfg(target_os = "linux")]
fn attribute(target: &Path) -> Option<&'static str> {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    let attributes = statx(CWD, target, AtFlags::empty(), StatxFlags::TYPE).ok()?.stx_attributes;
    let known = [
        (StatxAttributes::IMMUTABLE, "it is immutable (chattr +i)"),
        (StatxAttributes::APPEND, "it is append-only (chattr +a)"),
        (StatxAttributes::MOUNT_ROOT, "it is a mount point"),
    ];
    known.into_iter().find(|(attribute, _)| attributes.contains(*attribute)).map(|(_, name)| name)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn attribute(_: &Path) -> Option<&'static str> {
    None
}
