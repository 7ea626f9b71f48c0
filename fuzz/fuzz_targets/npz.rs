//! Parses any bytes with the reader of kind 'SciPy sparse matrix'.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::source::{Options, parse_as};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_as("SciPy sparse matrix", Path::new("fuzz"), bytes, &Options::default());
});
