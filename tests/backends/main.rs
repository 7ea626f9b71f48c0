//! Backends compared with the definition of the product, and the choices of `auto`.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers fail like tests do, and tests may print measurements.

// Its `#[test]` replaces the one of the standard library.
#[macro_use]
extern crate solver_test_attribute;

#[path = "../common/mod.rs"]
mod common;

mod backends;
mod burst;
mod choices;
mod columns;
mod columns_on_cpus;
mod conformance;
mod studies;
mod threads;
mod triangular;

fn main() -> std::process::ExitCode {
    common::harness::run(None)
}
