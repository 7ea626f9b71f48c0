//! Parses any bytes as a file of vectors: a NumPy array, a Matrix Market array or matrix, compressed or not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::source::parse_dense;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_dense(Path::new("fuzz"), bytes);
});
