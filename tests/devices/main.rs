//! Devices, their sweeps, and the libraries and kernels that GPUs need.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers fail like tests do, and tests may print what they measure.

// The crate's `#[test]` replaces that of the standard library.
#[macro_use]
extern crate solver_test_attribute;

#[path = "../common/mod.rs"]
mod common;

mod block;
mod devices;
mod kernel_cache;
mod kernels;
mod libraries;
mod nvrtc;
mod recording;
mod sweeps;
mod tape;

fn main() -> std::process::ExitCode {
    common::harness::run(None)
}
