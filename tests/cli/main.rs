//! Tests of the program as users run it, and of its pictures.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers panic on failure as tests do, and tests may print measurements.

// Its `#[test]` replaces that of the standard library.
#[macro_use]
extern crate solver_test_attribute;

#[path = "../common/mod.rs"]
mod common;

mod bench;
mod bench_faults;
mod bench_runs;
mod bench_studies;
mod bench_tables;
mod circles;
mod cli;
mod cli_checkpoints;
mod cli_columns;
mod cli_files;
mod cli_gpus;
mod cli_interrupt;
mod cli_labels;
mod cli_live;
mod cli_markov;
mod cli_monitor;
mod cli_multigrid;
mod cli_outputs;
mod cli_pagerank;
mod cli_pagerank_each;
mod cli_plan;
mod cli_profile;
mod cli_reports;
mod cli_solves;
mod cli_symmetry;
mod cli_tune;
mod cli_vectors;
mod convert;
mod errors;
mod figures;
mod full_disks;
mod help;
mod info;
mod library_words;
mod plot;
mod public_calls;
mod scarcity;
mod spy;

fn main() -> std::process::ExitCode {
    common::harness::run(None)
}
