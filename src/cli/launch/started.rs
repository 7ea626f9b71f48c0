//! The processes that an MPI launcher has started.

use crate::device::Ranks;
use crate::device::distributed::{Mpi, launcher};
use crate::error::{Error, Result};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread;

static MPI: OnceLock<Mpi> = OnceLock::new();

/// Initialises MPI, if a launcher has started more than one process.
pub(super) fn start() -> Result<Option<Ranks>> {
    let launched = launcher::processes();
    if launched < 2 {
        return Ok(None);
    }
    let Some(mpi) = Mpi::start() else { return Ok(None) };
    let _ = MPI.set(mpi.clone());
    let ranks = Ranks::new(mpi);
    // MPI may connect other numbers than the launcher tells, for example in jobs of several programs.
    if ranks.size() > 1 {
        return Ok(Some(ranks));
    }
    let message = format!(
        "the launcher has started {launched} processes, but MPI connects none of them: it is the launcher of another MPI library than the \
         one that this program was built with. Use mpirun of that library, or build the program anew"
    );
    Err(Error::UnknownCommand { message })
}

/// Fails never: the processes share the work.
pub(in crate::cli) fn check() -> Result<()> {
    Ok(())
}

/// Ends this process by `end` when `stop` is set before [`begin_iterations`]. `end` gets whether another rank
/// has failed. Returns whether there is a thread for that.
pub(super) fn watch(stop: Arc<AtomicBool>, end: fn(bool)) -> bool {
    let Some(mpi) = MPI.get().cloned() else { return false };
    mpi.watched() && thread::Builder::new().spawn(move || mpi.end_when(&stop, end)).is_ok()
}

/// Ends the watch of [`watch`]. All ranks call both at the same place.
pub(super) fn begin_iterations() {
    if let Some(mpi) = MPI.get() {
        mpi.unwatched();
    }
}

pub(super) fn finish() {
    if let Some(mpi) = MPI.get() {
        mpi.finish();
    }
}

pub(super) fn fail(message: &str) -> Vec<Option<String>> {
    MPI.get().map_or_else(Vec::new, |mpi| mpi.fail(message))
}

pub(super) fn end_all(code: i32) {
    if let Some(mpi) = MPI.get() {
        mpi.end_all(code);
    }
}

pub(in crate::cli) fn number_on_this_machine() -> Option<usize> {
    launcher::number_on_this_machine()
}
