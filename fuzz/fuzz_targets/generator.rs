//! Descriptions of generated matrices. Those with long numbers are left out: a large matrix takes time, which is no fault.

#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::source::generate::generate;

fuzz_target!(|text: &str| {
    let long = |number: &str| number.len() > 2;
    if text.split(|c: char| !c.is_ascii_digit()).any(long) {
        return;
    }
    if let Some(Ok(loaded)) = generate(text) {
        assert!(loaded.matrix.rows() > 0);
    }
});
