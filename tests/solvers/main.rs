//! Tests of solvers, PageRank, Markov chains and preconditioners.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers may panic like tests, and tests may print measurements.

// The `#[test]` of this crate replaces that of the standard library.
#[macro_use]
extern crate solver_test_attribute;

#[path = "../common/mod.rs"]
mod common;

mod many;
mod multiply;
mod own_operators;
mod progress;
mod ranks;
mod ranks_chains;
mod ranks_chains_by_rows;
mod ranks_edges;
mod ranks_partition;

fn main() -> std::process::ExitCode {
    common::harness::run(None)
}
