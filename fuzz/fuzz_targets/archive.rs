//! Parses any bytes with the reader of kind 'tar archive'.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::source::{Options, parse_as};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_as("tar archive", Path::new("fuzz"), bytes, &Options { attached: true, ..Options::default() });
});
