//! Memory use: an allocator counts for the whole process, and a limit of GPU memory for all programs, so the
//! tests run one after the other.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Test helpers panic on failure, and tests may print measurements.

// The `#[test]` of this crate replaces that of the standard library.
#[macro_use]
extern crate solver_test_attribute;

#[path = "../common/mod.rs"]
mod common;

mod bombs;
mod gpu_memory;
mod graphs_memory;
mod market_memory;
mod plan_memory;

#[global_allocator]
static ALLOCATOR: common::memory::Counted = common::memory::Counted;

fn main() -> std::process::ExitCode {
    common::harness::run(Some(1))
}
