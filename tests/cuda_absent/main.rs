//! What is missing for GPUs, broken or scarce. A binary by itself: a limit on GPU memory counts what other processes use.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers fail like tests do, and tests may say what they measure.

// Its `#[test]` replaces that of the standard library.
#[macro_use]
extern crate solver_test_attribute;

#[path = "../common/mod.rs"]
mod common;

mod cuda_absent;

fn main() -> std::process::ExitCode {
    common::harness::run(None)
}
