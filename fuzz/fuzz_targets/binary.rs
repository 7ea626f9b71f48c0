#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let _ = solver::source::binary::read_bytes(Path::new("fuzz.slv"), bytes);
});
