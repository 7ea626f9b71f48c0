//! Checks of the paths of a command before it starts: outputs that cannot be written or would overwrite an
//! input are reported before hours of work, not after.

use super::flags::bad;
use crate::error::Result;
use crate::files;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A file with the option that names it.
pub(super) type Named<'a> = (&'static str, &'a Path);

/// Checks that a file can be written at this path.
pub(super) fn check_writable((option, path): Named<'_>) -> Result<()> {
    files::check_writable(path).map_err(|reason| bad(option, path.display(), reason))
}

/// Checks that outputs overwrite neither each other nor a file that is read. `--resume` and
/// `--checkpoint` may name the same file.
pub(super) fn check_apart(inputs: &[Named<'_>], outputs: &[Named<'_>]) -> Result<()> {
    let read = inputs.iter().map(|input| (input, "read"));
    for (number, (option, path)) in outputs.iter().enumerate() {
        let written = outputs[..number].iter().map(|output| (output, "written"));
        let mut files = read.clone().chain(written);
        let same = |other: &Named<'_>| {
            canonical(other.1) == canonical(path) && (other.0, *option) != ("--resume", "--checkpoint")
        };
        if let Some(((other, _), done)) = files.find(|(other, _)| same(other)) {
            let reason = format!("the same file is {done} by {other}; name another file for {option}");
            return Err(bad(option, path.display(), reason));
        }
    }
    Ok(())
}

/// Returns one path for all names of a file that may not exist yet: the nearest existing folder, with links
/// resolved, and the names below it.
fn canonical(path: &Path) -> PathBuf {
    let target = files::follow(path).unwrap_or_else(|_| path.to_owned());
    let target = std::path::absolute(&target).unwrap_or(target);
    let existing = target.ancestors().skip(1).find_map(|at| Some((at, fs::canonicalize(at).ok()?)));
    let Some((at, mut resolved)) = existing else { return target };
    for part in target.strip_prefix(at).iter().flat_map(|below| below.components()) {
        match part {
            Component::ParentDir => _ = resolved.pop(),
            part => resolved.push(part),
        }
    }
    resolved
}
