//! Tests of solvers, PageRank, Markov chains and preconditioners.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers may panic like tests, and tests may print measurements.

// The `#[test]` of this crate replaces that of the standard library.
#[macro_use]
extern crate solver_test_attribute;

#[path = "../common/mod.rs"]
mod common;

mod adversarial;
mod block;
mod cg;
mod checkpoint_files;
mod checkpoints;
mod columns;
mod columns_on_devices;
mod engine;
mod engine_graphs;
mod forecast;
mod graphs_on_gpus;
mod iterates;
mod lent_matrices;
mod many;
mod markov;
mod minres;
mod multigrid;
mod multiply;
mod own_operators;
mod pagerank;
mod pipelined;
mod preconditioner_faults;
mod preconditioners;
mod preconditioners_real;
mod progress;
mod ranks;
mod ranks_chains;
mod ranks_chains_by_rows;
mod ranks_edges;
mod ranks_files;
mod ranks_graphs;
mod ranks_on_gpus;
mod ranks_partition;
mod rounded_symmetry;
mod rules;
mod several_devices;
mod stops;
mod verdicts;

fn main() -> std::process::ExitCode {
    common::harness::run(None)
}
