//! Parses any bytes as the kind of file that is detected.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::source::{Options, parse};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let _ = parse(Path::new("fuzz"), bytes, &Options::default());
});
