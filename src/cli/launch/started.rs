//! The processes that an MPI launcher has started.

use crate::device::Ranks;
use crate::device::distributed::{Mpi, launcher};
use crate::error::{Error, Result};
use std::sync::OnceLock;

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
    if ranks.size() == launched {
        return Ok(Some(ranks));
    }
    let message = format!(
        "the launcher has started {launched} processes, but MPI connects only {} of them: it is the launcher of another MPI library \
         than the one that this program was built with. Use mpirun of that library, or build the program anew",
        ranks.size()
    );
    Err(Error::UnknownCommand { message })
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

pub(super) fn number_on_this_machine() -> Option<usize> {
    launcher::number_on_this_machine()
}
