//! Checks before a computation whether its result can be written.

use super::replace::follow;
use super::{folder_of, temporary};
use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::path::Path;

/// Checks that a result can be written to a path; the error gives the reason and a remedy.
pub(crate) fn check_writable(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(existing) if existing.is_dir() => return Err("it is a folder; name a file in it".to_owned()),
        // Pipes and devices are written to directly.
        Ok(existing) if !existing.is_file() => return Ok(()),
        _ => {}
    }
    let target = follow(path).map_err(|e| e.to_string())?;
    let folder = existing_folder(folder_of(&target))?;
    let ours = probe(folder).map_err(|reason| format!("{reason}; name a file in another folder"))?;
    match fs::metadata(&target) {
        Ok(existing) => check_existing(&target, &existing, &ours),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        // For example, the name is too long.
        Err(e) => Err(format!("no file can have this name: {e}; name another file")),
    }
}

/// Returns the folder or its nearest existing ancestor; missing folders are created with the file.
pub(super) fn existing_folder(folder: &Path) -> Result<&Path, String> {
    let mut above = folder.ancestors().map(|at| if at.as_os_str().is_empty() { Path::new(".") } else { at });
    let Some(existing) = above.find(|at| at.symlink_metadata().is_ok()) else { return Ok(folder) };
    match existing.is_dir() {
        true => Ok(existing),
        false => Err(format!("{} is not a folder; name a file in a folder", existing.display())),
    }
}

/// Creates a file in a folder and removes it; returns the file's metadata.
fn probe(folder: &Path) -> Result<Metadata, String> {
    let created =
        temporary::create(folder, false).and_then(|(path, file)| Ok((path, file.metadata()?, file)));
    let (path, metadata, _locked) =
        created.map_err(|e| format!("no file can be created in {}: {e}", folder.display()))?;
    fs::remove_file(path).map_err(|e| format!("no file can be removed from {}: {e}", folder.display()))?;
    Ok(metadata)
}

/// Refuses an existing file that can neither be replaced nor written to. `ours` is a file of this
/// process in the same folder.
fn check_existing(target: &Path, existing: &Metadata, ours: &Metadata) -> Result<(), String> {
    let Some(obstacle) = obstacle(target, existing, ours) else { return Ok(()) };
    match File::options().write(true).open(target) {
        Ok(_) => Ok(()),
        Err(e) => Err(format!("{obstacle}, and it cannot be written to: {e}; name another file")),
    }
}

/// Returns the reason why a rename cannot replace a file, as far as it can be determined without trying.
#[cfg(unix)]
fn obstacle(target: &Path, existing: &Metadata, ours: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    const ROOT: u32 = 0;
    let folder = fs::metadata(folder_of(target)).ok()?;
    let owners = [ROOT, folder.uid(), existing.uid()];
    if folder.mode() & STICKY != 0 && !owners.contains(&ours.uid()) {
        return Some("it belongs to another user, in a folder with the sticky bit");
    }
    attribute(target)
}

#[cfg(not(unix))]
fn obstacle(_: &Path, _: &Metadata, _: &Metadata) -> Option<&'static str> {
    None
}

/// Returns an attribute that makes the system refuse a rename.
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
