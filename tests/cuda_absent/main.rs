//! Missing, broken or scarce GPU resources. A separate binary, as a limit on GPU memory counts
//! what other processes use.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Test helpers panic on failure, and tests may print measurements.

// The `#[test]` of this crate replaces that of the standard library.
#[macro_use]
extern crate solver_test_attribute;

#[path = "../common/mod.rs"]
mod common;

mod cuda_absent;

fn main() -> std::process::ExitCode {
    common::harness::run(None)
}
