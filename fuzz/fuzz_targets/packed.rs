//! Parses a list of edges while it is decompressed, and the same list as text: the graph, or
//! the fault, is the same.
#![no_main]

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use solver::format::Duplicates;
use solver::source::{Options, parse};
use std::io::Write;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Some((last, text)) = bytes.split_last() else { return };
    // Text that is itself compressed would be decompressed twice.
    if text.starts_with(&[0x1f, 0x8b]) {
        return;
    }
    // A newline, which ends most files, selects the defaults.
    let choice = last ^ b'\n';
    let options = Options {
        duplicates: if choice & 1 == 0 { Duplicates::Sum } else { Duplicates::Keep },
        close_gaps: choice & 2 != 0,
        ..Options::default()
    };
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = packed.write_all(text).and_then(|()| packed.finish()).expect("memory is written to");
    let read = |bytes: &[u8]| {
        let loaded = parse(Path::new("fuzz"), bytes, &options).map_err(|error| error.to_string());
        loaded.map(|loaded| (loaded.kind, loaded.stored, loaded.ids, loaded.matrix))
    };
    assert_eq!(read(text), read(&packed));
});
