//! Where a command reads and writes, looked at before it begins: what could not be written, or would overwrite what is
//! needed, is better known before hours of work than after them.

use super::flags::bad;
use crate::error::Result;
use crate::files;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A file with the option that named it.
pub(super) type Named<'a> = (&'static str, &'a Path);

/// Refuses a place where no file could be written.
pub(super) fn check_writable((option, path): Named<'_>) -> Result<()> {
    files::check_writable(path).map_err(|reason| bad(option, path.display(), reason))
}

/// Refuses outputs that would overwrite each other, or a file that is read. The file that a solve goes on from may be
/// the one that it is saved in.
pub(super) fn check_apart(inputs: &[Named<'_>], outputs: &[Named<'_>]) -> Result<()> {
    let read = inputs.iter().map(|input| (input, "read"));
    for (number, (option, path)) in outputs.iter().enumerate() {
        let written = outputs[..number].iter().map(|output| (output, "written"));
        let mut others = read.clone().chain(written);
        let same = |other: &Named<'_>| {
            place(other.1) == place(path) && (other.0, *option) != ("--resume", "--checkpoint")
        };
        if let Some(((other, _), done)) = others.find(|(other, _)| same(other)) {
            let reason = format!("the same file is {done} by {other}; name another one for {option}");
            return Err(bad(option, path.display(), reason));
        }
    }
    Ok(())
}

/// The same for every name of a file, which need not exist, nor its folder: the nearest folder that exists once all links are
/// followed, and the names below it.
fn place(path: &Path) -> PathBuf {
    let target = files::follow(path).unwrap_or_else(|_| path.to_owned());
    let target = std::path::absolute(&target).unwrap_or(target);
    let existing = target.ancestors().skip(1).find_map(|at| Some((at, fs::canonicalize(at).ok()?)));
    let Some((at, mut place)) = existing else { return target };
    for part in target.strip_prefix(at).iter().flat_map(|below| below.components()) {
        match part {
            Component::ParentDir => _ = place.pop(),
            part => place.push(part),
        }
    }
    place
}
