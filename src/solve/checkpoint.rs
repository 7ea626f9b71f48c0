//! Checkpoints: a solve saved between two iterations, from which it can be resumed, either with the same bits
//! or, on another device or backend, with different rounding.
//!
//! # Layout
//! All integers are little-endian; numbers have the same width as in memory.
//! - A magic of eight bytes and the version of the layout.
//! - The identity of the run, as pairs of texts: fingerprints of the matrix, the right-hand side and the
//!   start, the method with the version of its state, the device and its hardware, and the caller's
//!   labels of settings on which the bits depend. Tolerances and limits are not included: they may
//!   change when a run is resumed.
//! - The host's state of each column (`linear/saving.rs`): counts, numbers, coefficients, the history, x,
//!   and, if there are several columns, whether the column has ended. A column that had ended without meeting
//!   its goal starts again from its true residual once the other columns have ended.
//! - The device's state: slots, and the vectors that pass from one step to the next, n x k.
//! - A checksum (XXH3, 64 bits) of all preceding bytes. It detects accidental damage; the lengths in a file
//!   with a valid checksum are still checked.
//!
//! # When
//! A checkpoint is written between two batches of iterations once an interval has passed, and at the end of a
//! run that can be resumed. The new file is written next to the old one and synchronised before it replaces
//! it, so that one complete file exists if the process is killed at any moment. If the file cannot be written
//! (for example because the disk is full), the solve continues with a warning, and its outcome says so unless
//! a later checkpoint was written.

mod file;
mod fingerprint;

use super::System;
use super::given::MatrixRef;
use crate::device::Ranks;
use crate::error::{Error, Result};
use crate::files;
pub(super) use file::{Reader, Writer};
pub(crate) use fingerprint::{of_matrix, of_vector};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where and how often a solve saves checkpoints, and which checkpoint it resumes from. By
/// default it does neither.
#[derive(Clone, Debug, Default)]
pub struct Checkpoints {
    /// The path of the checkpoint, and the time between two checkpoints.
    pub save: Option<(PathBuf, Duration)>,
    /// The checkpoint to resume from.
    pub resume: Option<PathBuf>,
    /// Named settings on which a run depends in addition to system, method and device: the preconditioner,
    /// the precision, the backend. A checkpoint with different labels is refused, except for the backend and
    /// the partition over ranks, which affect rounding only.
    pub labels: Vec<(&'static str, String)>,
}

/// Settings that affect rounding only: a solve may be resumed with different values of these.
const ROUNDING_ONLY: [&str; 4] = ["device", "hardware", "backend", "partition"];

/// Pairs of a setting's name and its value in a run.
pub(super) type Identity = Vec<(String, String)>;

/// Collects the settings that identify a run.
pub(super) fn identity(
    system: &System<'_>,
    run_settings: [(&str, String); 5],
    checkpoints: &Checkpoints,
) -> Result<Identity> {
    let Some([matrix, b, start]) = fingerprints(system)? else {
        let path = checkpoints.save.as_ref().map(|save| &save.0).or(checkpoints.resume.as_ref());
        let path = path.map_or_else(String::new, |path| path.display().to_string());
        let reason = "a matrix whose entries are not stored cannot be recognised by its checkpoint";
        return Err(Error::setting("checkpoint", path, reason));
    };
    let system = [("matrix", matrix), ("right-hand side", b), ("start", start)];
    let labels = checkpoints.labels.iter().map(|(name, value)| (*name, value.clone()));
    let all = system.into_iter().chain(run_settings).chain(labels);
    Ok(all.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Returns the fingerprints of matrix, right-hand side and start; `None` if the entries of the matrix are not
/// known. Over ranks they are those of the whole system.
fn fingerprints(system: &System<'_>) -> Result<Option<[String; 3]>> {
    let no_start = || "x = 0".to_owned();
    Ok(match system.matrix {
        MatrixRef::Applied(_) => None,
        MatrixRef::Stored(matrix) => {
            Some([of_matrix(matrix), of_vector(system.b), system.x0.map_or_else(no_start, of_vector)])
        }
        MatrixRef::OfRank(rows) => {
            let of_vector = |vector| fingerprint::of_vector_of_ranks(rows, vector);
            let start = system.x0.map_or_else(|| Ok(no_start()), of_vector)?;
            Some([fingerprint::of_matrix_of_ranks(rows)?, of_vector(system.b)?, start])
        }
    })
}

/// An open checkpoint file with a valid checksum.
pub(crate) struct Saved {
    path: PathBuf,
    file: File,
    /// The offset of the state in the file.
    state: u64,
    /// The offset of its end.
    end: u64,
    identity: Identity,
    checksum: u64,
}

impl Saved {
    /// Opens a checkpoint, verifies its checksum, and reads its identity.
    pub(crate) fn read(path: &Path) -> Result<Saved> {
        let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
        let fault = |reason: String| Error::Checkpoint { path: path.to_owned(), reason };
        let mut file = File::open(path).map_err(io)?;
        let mut start = [0; file::START];
        file.read_exact(&mut start).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => fault("it is no checkpoint, or it is truncated".to_owned()),
            _ => io(e),
        })?;
        file::check_start(&start).map_err(fault)?;
        let length = file.metadata().map_err(io)?.len();
        let (end, checksum) = file::check_sum(&file, length).map_err(io)?.map_err(fault)?;
        let mut reader = Reader::new(&file, file::START as u64, end).map_err(fault)?;
        let identity = reader.identity().map_err(fault)?;
        let state = end - reader.left();
        Ok(Saved { path: path.to_owned(), file, state, end, identity, checksum })
    }

    /// Reads a checkpoint. Ranks call this together, and must find the same file.
    pub(super) fn read_on(ranks: Option<&Ranks>, path: &Path) -> Result<Saved> {
        let Some(ranks) = ranks else { return Saved::read(path) };
        let saved = ranks.agreed(Saved::read(path))?;
        let content = [saved.end, saved.checksum];
        ranks.agree_on(content, || Error::different_files("resume", path.display()))?;
        Ok(saved)
    }

    /// Refuses a checkpoint of another run, with an error that names all differences. Only warns if the
    /// differences affect rounding alone.
    pub(super) fn check(&self, here: &Identity) -> Result<()> {
        let value_in = |identity: &Identity, name: &str| {
            let found = identity.iter().find(|(other, _)| other == name);
            found.map_or_else(|| "not given".to_owned(), |(_, value)| value.clone())
        };
        let only_saved = self.identity.iter().filter(|(name, _)| here.iter().all(|(other, _)| other != name));
        let (rounding_differences, differences): (Vec<_>, Vec<_>) =
            (here.iter().chain(only_saved).map(|(name, _)| name))
                .map(|name| (name, value_in(&self.identity, name), value_in(here, name)))
                .filter(|(_, there, here)| there != here)
                .partition(|(name, ..)| ROUNDING_ONLY.contains(&name.as_str()));
        let list = |all: &[(&String, String, String)]| {
            let describe = |(name, there, here): &(&String, String, String)| {
                format!("{name}: {there} in the checkpoint, {here} here")
            };
            all.iter().map(describe).collect::<Vec<_>>().join("; ")
        };
        if !differences.is_empty() {
            return Err(self.fault(format!("it belongs to another run ({})", list(&differences))));
        }
        if !rounding_differences.is_empty() {
            let (path, differences) = (self.path.display(), list(&rounding_differences));
            log::warn!("{path}: the solve resumes with different rounding ({differences})");
        }
        Ok(())
    }

    /// Returns a reader of the state, which follows the identity.
    pub(super) fn state(&self) -> Result<Reader<'_>> {
        Reader::new(&self.file, self.state, self.end).map_err(|reason| self.fault(reason))
    }

    /// Returns an error about this file.
    pub(super) fn fault(&self, reason: String) -> Error {
        Error::Checkpoint { path: self.path.clone(), reason }
    }
}

/// Checks that a checkpoint can be written to this path, before a solve spends time. The error
/// says why it cannot.
pub(crate) fn check_place(path: &Path) -> std::result::Result<(), String> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err("it exists already, and is no regular file".to_owned());
    }
    if let Ok(mut file) = fs::File::open(path) {
        let mut start = Vec::new();
        let read = file.by_ref().take(file::MAGIC.len() as u64).read_to_end(&mut start);
        // An empty file may have been created for this checkpoint.
        if read.is_err() || !(start.is_empty() || start == file::MAGIC) {
            return Err("a file exists already, and it is no checkpoint; name another one".to_owned());
        }
    }
    files::check_writable(path)
}
