//! Parses any bytes as a Matrix Market file, of a matrix and of a vector: the result is that or an
//! error, never a panic. In addition, the fast path for complete lines and the slow path for single
//! words give the same matrix, bit for bit. A blank at the beginning of a line selects the slow path.
//! The last byte selects the options.

#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::Error;
use solver::format::{Csr, Duplicates};
use solver::source::{Loaded, Options, market, parse_as};
use std::path::Path;

/// The fast path is not used for lines this close to the end of the file.
const FAR: usize = 80;

fuzz_target!(|bytes: &[u8]| {
    let Some((last, bytes)) = bytes.split_last() else { return };
    // A newline, which ends most files, selects the defaults.
    let choice = last ^ b'\n';
    let options = Options {
        duplicates: if choice & 1 == 0 { Duplicates::Sum } else { Duplicates::Keep },
        as_stored: choice & 2 != 0,
        ..Options::default()
    };
    let _ = parse(bytes, &options);
    let _ = market::parse_vector(Path::new("fuzz.mtx"), bytes);

    let whole = [bytes, &[b'\n'; FAR]].concat();
    let by_words = indented(&whole);
    match (parse(&whole, &options), parse(&by_words, &options)) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one.matrix.pattern(), other.matrix.pattern());
            assert_eq!(bits(&one.matrix), bits(&other.matrix));
        }
        (Err(_), Err(_)) => {}
        (one, other) => panic!("{:?} and {:?}", one.err(), other.err()),
    }
});

fn parse(bytes: &[u8], options: &Options) -> Result<Loaded, Error> {
    parse_as("Matrix Market", Path::new("fuzz.mtx"), bytes, options)
}

/// Inserts a blank before every line that begins with a digit.
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
