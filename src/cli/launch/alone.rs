//! A program without MPI: one process.

use crate::device::Ranks;
use crate::device::distributed::launcher;
use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(super) fn start() -> Result<Option<Ranks>> {
    Ok(None)
}

/// Fails if a launcher has started several processes: each of them would do all of the work.
pub(in crate::cli) fn check() -> Result<()> {
    let processes = launcher::processes();
    if processes < 2 {
        return Ok(());
    }
    let message = format!(
        "a launcher has started {processes} processes, and each of them would run the whole command, because this program was built \
         without MPI. To share the work, build it with --features mpi; otherwise start it without the launcher"
    );
    Err(Error::UnknownCommand { message })
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

pub(in crate::cli) fn number_on_this_machine() -> Option<usize> {
    None
}
