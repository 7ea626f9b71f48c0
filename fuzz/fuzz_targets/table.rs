//! Parses any bytes with the reader of tables of edges; the last byte selects the options.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::format::Duplicates;
use solver::source::{Options, parse_as};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Some((last, text)) = bytes.split_last() else { return };
    // A newline, which ends most files, selects the defaults.
    let choice = last ^ b'\n';
    let columns = ["source,target", "target,source,weight", "source,target,weight,time", "-,source,target"];
    let options = Options {
        duplicates: if choice & 1 == 0 { Duplicates::Sum } else { Duplicates::Keep },
        close_gaps: choice & 2 != 0,
        columns: (choice & 4 != 0).then(|| columns[usize::from(choice >> 3) % 4].parse().ok()).flatten(),
        ..Options::default()
    };
    if let Ok(loaded) = parse_as("edge table", Path::new("fuzz"), text, &options) {
        assert!(loaded.labels.is_none_or(|labels| labels.len() == loaded.matrix.rows()));
    }
});
