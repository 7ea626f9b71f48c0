//! Parses any bytes with the reader of kind 'edge list'; the last byte selects the options.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::format::Duplicates;
use solver::source::{Options, parse_as};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Some((last, text)) = bytes.split_last() else { return };
    // A newline, which ends most files, selects the defaults.
    let choice = last ^ b'\n';
    let options = Options {
        duplicates: if choice & 1 == 0 { Duplicates::Sum } else { Duplicates::Keep },
        close_gaps: choice & 2 != 0,
        ..Options::default()
    };
    let _ = parse_as("edge list", Path::new("fuzz"), text, &options);
});
