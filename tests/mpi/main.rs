//! Tests of the program over ranks that `mpirun` starts: real processes, and real kills.

#![allow(clippy::unwrap_used)] // Helpers panic on failure as tests do.

// Its `#[test]` replaces that of the standard library.
#[macro_use]
extern crate solver_test_attribute;

#[path = "../common/mod.rs"]
mod common;

mod chains;
mod early;
mod faults;
mod files;
mod graphs;
mod launcher;
#[cfg(feature = "metis")]
mod metis;
mod partitions;
// These tests also run in `solvers`, which is usually built without the graph partitioner.
#[cfg(feature = "metis")]
#[path = "../solvers/ranks_partition.rs"]
mod ranks_partition;
mod solves;

fn main() -> std::process::ExitCode {
    // Most of the time these tests wait for processes to start and to end.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let given = std::env::args().any(|argument| argument.starts_with("--test-threads"));
    common::harness::run((!given).then_some(2 * cores))
}
