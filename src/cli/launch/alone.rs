//! A program without MPI: one process.

use crate::device::Ranks;
use crate::device::distributed::launcher;
use crate::error::Result;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(super) fn start() -> Result<Option<Ranks>> {
    Ok(None)
}

/// Warns if a launcher has started several processes: each of them does all of the work.
pub(super) fn warn() {
    let processes = launcher::processes();
    if processes > 1 && launcher::is_first() {
        log::warn!(
            "a launcher has started {processes} processes, and each of them runs the whole command. This program was built without \
             MPI; to divide the work, build it with --features mpi"
        );
    }
}

pub(super) fn watch(_: Arc<AtomicBool>, _: fn(bool)) -> bool {
    false
}

pub(super) fn begin_iterations() {}

pub(super) fn finish() {}

pub(super) fn fail(_: &str) -> Vec<Option<String>> {
    Vec::new()
}

pub(super) fn end_all(_: i32) {}

pub(super) fn number_on_this_machine() -> Option<usize> {
    None
}
