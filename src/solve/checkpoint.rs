//! Checkpoints: a solve saved between two iterations, from which it goes on: with the same bits, or on another device or by
//! another backend with other roundings.
//!
//! # Layout
//! All integers are little-endian, all numbers as wide as in memory.
//! - A magic of eight bytes and the version of the layout.
//! - What identifies the run, as pairs of texts: fingerprints of the matrix, the right-hand side and the start, the
//!   method with the version of its state, the device and its hardware, and whatever else the caller says that bits
//!   depend on. Tolerances and limits are not among them: they may change from one part of a run to the next.
//! - What the host knows of each column (`linear/saving.rs`): counts, numbers, coefficients, the history, x, and of several
//!   columns whether the column has ended. A column that had ended and does not meet its goal starts again from its true
//!   residual when the others have ended.
//! - What the device holds: slots, and the vectors that go from one step into the next, n x k.
//! - A checksum (XXH3, 64 bits) of all before it. It finds accidents; a file that passes is still read with checked
//!   lengths.
//!
//! # When
//! Between two batches of iterations, once an interval has passed, and when a run ends in a way that can be gone on
//! from. The new file stands beside the old one and is synchronised before it replaces it, so a kill at any moment
//! leaves one of the two. Where it cannot be written (a full disk), the solve warns and goes on.

mod file;
mod fingerprint;

use super::System;
use crate::error::{Error, Result};
use crate::files;
pub(super) use file::{Reader, Writer};
pub use fingerprint::{of_matrix, of_vector};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where and how often a solve saves itself, and what it goes on from. By default it does neither.
#[derive(Clone, Debug, Default)]
pub struct Checkpoints {
    /// Where checkpoints go, and how much time passes from one to the next.
    pub save: Option<(PathBuf, Duration)>,
    /// The checkpoint to go on from.
    pub resume: Option<PathBuf>,
    /// What a run depends on besides system, method and device, by name: the preconditioner, the precision, the backend. A
    /// checkpoint with other labels is refused, but for the backend, which decides on bits alone.
    pub labels: Vec<(&'static str, String)>,
}

/// What decides on roundings alone: a solve may go on elsewhere, by another backend.
const ONLY_BITS: [&str; 3] = ["device", "hardware", "backend"];

/// Pairs of a name and what it is in a run.
pub(super) type Identity = Vec<(String, String)>;

/// What a run is told apart by.
pub(super) fn identity(
    system: &System<'_>,
    own: [(&str, String); 5],
    checkpoints: &Checkpoints,
) -> Result<Identity> {
    let Some(matrix) = system.matrix.stored() else {
        let path = checkpoints.save.as_ref().map(|save| &save.0).or(checkpoints.resume.as_ref());
        let path = path.map_or_else(String::new, |path| path.display().to_string());
        let reason = "a matrix whose entries are not stored cannot be recognised by its checkpoint";
        return Err(Error::setting("checkpoint", path, reason));
    };
    let start = system.x0.map_or_else(|| "x = 0".to_owned(), of_vector);
    let system = [("matrix", of_matrix(matrix)), ("right-hand side", of_vector(system.b)), ("start", start)];
    let labels = checkpoints.labels.iter().map(|(name, value)| (*name, value.clone()));
    let all = system.into_iter().chain(own).chain(labels);
    Ok(all.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A checkpoint as it lies on disk, whole and undamaged.
pub struct Saved {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where the state begins.
    state: usize,
    identity: Identity,
}

impl Saved {
    /// Reads a checkpoint and verifies its checksum.
    pub fn read(path: &Path) -> Result<Saved> {
        let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
        let fault = |reason: String| Error::Checkpoint { path: path.to_owned(), reason };
        let mut file = File::open(path).map_err(io)?;
        let mut start = [0; file::START];
        file.read_exact(&mut start).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => fault("it is no checkpoint, or it is truncated".to_owned()),
            _ => io(e),
        })?;
        file::check_start(&start).map_err(fault)?;
        let mut bytes = start.to_vec();
        file.read_to_end(&mut bytes).map_err(io)?;
        let length = file::check_sum(&bytes).map_err(fault)?;
        bytes.truncate(length);
        let mut reader = Reader::new(&bytes[file::START..]);
        let identity = reader.identity().map_err(fault)?;
        let state = bytes.len() - reader.left();
        Ok(Saved { path: path.to_owned(), bytes, state, identity })
    }

    /// Refuses a checkpoint of another run; the error names all that differs. Where only bits do, it warns.
    pub(super) fn check(&self, here: &Identity) -> Result<()> {
        let of = |identity: &Identity, name: &str| {
            let found = identity.iter().find(|(other, _)| other == name);
            found.map_or_else(|| "not told".to_owned(), |(_, value)| value.clone())
        };
        let only_there = self.identity.iter().filter(|(name, _)| here.iter().all(|(other, _)| other != name));
        let (other_bits, differences): (Vec<_>, Vec<_>) =
            (here.iter().chain(only_there).map(|(name, _)| name))
                .map(|name| (name, of(&self.identity, name), of(here, name)))
                .filter(|(_, there, here)| there != here)
                .partition(|(name, ..)| ONLY_BITS.contains(&name.as_str()));
        let told = |all: &[(&String, String, String)]| {
            let one = |(name, there, here): &(&String, String, String)| {
                format!("{name}: {there} there, {here} here")
            };
            all.iter().map(one).collect::<Vec<_>>().join("; ")
        };
        if !differences.is_empty() {
            return Err(self.fault(format!("it belongs to another run ({})", told(&differences))));
        }
        if !other_bits.is_empty() {
            let (path, told) = (self.path.display(), told(&other_bits));
            log::warn!("{path}: the solve goes on with other roundings than it began with ({told})");
        }
        Ok(())
    }

    /// The state that follows.
    pub(super) fn state(&self) -> Reader<'_> {
        Reader::new(&self.bytes[self.state..])
    }

    /// An error about this file.
    pub(super) fn fault(&self, reason: String) -> Error {
        Error::Checkpoint { path: self.path.clone(), reason }
    }
}

/// Refuses a place where no checkpoint could be written, before time is spent on one: the error says what stands
/// against it.
pub fn check_place(path: &Path) -> std::result::Result<(), String> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err("it is there already, and no file".to_owned());
    }
    if let Ok(mut there) = fs::File::open(path) {
        let mut start = Vec::new();
        let read = there.by_ref().take(file::MAGIC.len() as u64).read_to_end(&mut start);
        // An empty file may have been made to be filled.
        if read.is_err() || !(start.is_empty() || start == file::MAGIC) {
            return Err("a file is there already, and it is no checkpoint; name another one".to_owned());
        }
    }
    files::check_writable(path)
}
