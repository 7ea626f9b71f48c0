//! Parses any bytes as a file of labels: each label is found by its name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::source::Labels;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Ok(labels) = Labels::parse(Path::new("fuzz"), bytes) else { return };
    let index = labels.index().expect("memory for a short file");
    for (row, label) in labels.iter().enumerate() {
        let (first, only) = index.find(label).expect("every label is found");
        assert!(first == row && labels.get(row) == Some(label) || first < row && !only);
    }
});
