//! Any bytes as a Matrix Market file, of a matrix and of a vector: that or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::source::market;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("fuzz.mtx");
    let _ = market::parse(path, bytes);
    let _ = market::parse_vector(path, bytes);
});
