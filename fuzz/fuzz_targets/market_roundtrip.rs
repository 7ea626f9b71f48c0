//! Writes every matrix that can be parsed, and reads back the same matrix bit for bit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::source::market;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Ok(loaded) = market::parse(Path::new("fuzz.mtx"), bytes) else { return };
    let path = std::env::temp_dir().join(format!("fuzz-roundtrip-{}.mtx", std::process::id()));
    market::write_matrix(&path, &loaded.matrix, loaded.symmetric).expect("a parsed matrix can be written");
    let again = market::read(&path).expect("a written matrix can be read");
    let bits = |matrix: &solver::format::Csr| -> Vec<u64> {
        (0..matrix.nnz()).map(|entry| matrix.values().get(entry).to_bits()).collect()
    };
    assert_eq!(again.matrix.pattern(), loaded.matrix.pattern());
    assert_eq!(bits(&again.matrix), bits(&loaded.matrix));
    let _ = std::fs::remove_file(&path);
});
