//! Parses any bytes as numbers in text: the numbers are finite, and their count is the product
//! of rows and columns.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::source::parse_dense;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    // Other kinds of files have separate targets.
    if !bytes.first().is_some_and(|byte| b"#+-. \n0123456789".contains(byte)) {
        return;
    }
    if let Ok(dense) = parse_dense(Path::new("fuzz"), bytes) {
        assert_eq!(dense.rows() * dense.cols(), dense.values().len());
        assert!(dense.values().iter().all(|value| value.is_finite()));
    }
});
