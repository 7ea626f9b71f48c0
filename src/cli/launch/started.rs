//! The processes that an MPI launcher has started.

use crate::device::Ranks;
use crate::device::distributed::Mpi;
use std::sync::OnceLock;

static MPI: OnceLock<Mpi> = OnceLock::new();

/// Initialises MPI, if a launcher has started more than one process.
pub(super) fn start() -> Option<Ranks> {
    if Mpi::launched() < 2 {
        return None;
    }
    let mpi = Mpi::start()?;
    let _ = MPI.set(mpi.clone());
    Some(Ranks::new(mpi))
}

pub(super) fn finish() {
    if let Some(mpi) = MPI.get() {
        mpi.finish();
    }
}

pub(super) fn fail(message: &str) -> Option<Vec<String>> {
    MPI.get().and_then(|mpi| mpi.fail(message))
}

pub(super) fn end_all(code: i32) {
    if let Some(mpi) = MPI.get() {
        mpi.end_all(code);
    }
}

pub(super) fn number_on_this_machine() -> Option<usize> {
    Mpi::number_on_this_machine()
}

pub(super) fn on_this_machine() -> Option<usize> {
    Mpi::on_this_machine()
}
