//! Parses any bytes with the reader of Pajek networks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::format::stats::first_unpaired;
use solver::source::{Options, parse_as};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(loaded) = parse_as("Pajek", Path::new("fuzz"), bytes, &Options::default()) {
        assert!(loaded.labels.is_none_or(|labels| labels.len() == loaded.matrix.rows()));
        assert!(!loaded.symmetric || first_unpaired(&loaded.matrix).is_none());
    }
});
