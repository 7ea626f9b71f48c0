//! Storage formats, their conversions and statistics.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Test helpers panic on failure, and tests may print measurements.

// The `#[test]` of this crate replaces that of the standard library.
#[macro_use]
extern crate solver_test_attribute;

#[path = "../common/mod.rs"]
mod common;

mod circles;
mod formats;
mod formats_faults;
mod formats_foreign;
mod formats_round_trips;
mod stats;
mod symmetry;

fn main() -> std::process::ExitCode {
    common::harness::run(None)
}
