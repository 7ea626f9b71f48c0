//! Generates matrices from descriptions. Descriptions of large matrices are skipped: they would take much
//! time and memory, which is not a fault.

#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::source::generate::generate;

/// The largest product of all numbers of a description: a row may take up to 27 * 64 entries for each.
const LARGEST: u64 = 10_000;

fuzz_target!(|text: &str| {
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<u64>().ok());
    let product = numbers.filter(|&number| number > 0).fold(1, u64::saturating_mul);
    let stand_in = text.contains("-like") && !text.contains("scale=0.00");
    // R-MAT's scale is the logarithm of its size.
    let powers = text.starts_with("rmat") && product > 1_000;
    if product > LARGEST || stand_in || powers {
        return;
    }
    if let Some(Ok(loaded)) = generate(text) {
        assert!(loaded.matrix.rows() > 0);
    }
});
