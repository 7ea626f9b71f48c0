//! Any bytes as a Matrix Market file, of a matrix and of a vector: that or an error, never a panic. And the lines that
//! are read as a whole give the matrix, bit for bit, that the same lines give word by word, as they are where a blank
//! comes first.

#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::format::Csr;
use solver::source::market;
use std::path::Path;

/// Lines are not read as a whole near the end of the file.
const FAR: usize = 80;

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("fuzz.mtx");
    let _ = market::parse(path, bytes);
    let _ = market::parse_vector(path, bytes);

    let whole = [bytes, &[b'\n'; FAR]].concat();
    let by_words = indented(&whole);
    match (market::parse(path, &whole), market::parse(path, &by_words)) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one.matrix.pattern(), other.matrix.pattern());
            assert_eq!(bits(&one.matrix), bits(&other.matrix));
        }
        (Err(_), Err(_)) => {}
        (one, other) => panic!("{:?} and {:?}", one.err(), other.err()),
    }
});

/// The text with a blank before every line that begins with a digit.
fn indented(text: &[u8]) -> Vec<u8> {
    let mut to = Vec::new();
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if line[0].is_ascii_digit() {
            to.push(b' ');
        }
        to.extend_from_slice(line);
    }
    to
}

fn bits(matrix: &Csr) -> Vec<u64> {
    (0..matrix.nnz()).map(|entry| matrix.values().get(entry).to_bits()).collect()
}
