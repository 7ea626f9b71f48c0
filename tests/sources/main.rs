//! Files, generators and the catalog.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers may fail like tests, and tests may print measurements.

// The `#[test]` of this crate replaces that of the standard library.
#[macro_use]
extern crate solver_test_attribute;

#[path = "../common/mod.rs"]
mod common;

mod archives;
mod catalog;
mod coordinates;
mod direction;
mod fetch;
mod files;
mod first_use;
mod graphs;
mod graphs_packed;
mod harwell;
mod market;
mod market_forms;
mod market_notes;
mod market_random;
mod market_real;
mod market_write;
mod numpy;
mod pajek;
mod tables;
mod webgraph;

fn main() -> std::process::ExitCode {
    common::harness::run(None)
}
