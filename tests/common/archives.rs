//! Archives like those of the collection's server, with a matrix like one of the catalog.

use super::vectors::Numbers;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::io::Write as _;

/// Returns a matrix file with the sizes that the catalog gives for 1138_bus: 1138 rows, 2596 entries stored,
/// 4054 in all. Its diagonal holds `value`; it begins with `comment` bytes that do not compress well.
pub fn bus(value: f64, comment: usize) -> String {
    let mut text = "%%MatrixMarket matrix coordinate real symmetric\n".to_owned();
    let mut numbers = Numbers::new(7);
    while text.len() < comment {
        writeln!(text, "% {:012x}{:012x}{:012x}", numbers.word(), numbers.word(), numbers.word()).unwrap();
    }
    writeln!(text, "1138 1138 2596").unwrap();
    for i in 1..=1138 {
        writeln!(text, "{i} {i} {value}").unwrap();
    }
    (2..=1138).for_each(|i| writeln!(text, "{i} {} -1", i - 1).unwrap());
    (3..=323).for_each(|i| writeln!(text, "{i} {} -1", i - 2).unwrap());
    text
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns an archive with the matrix and a right-hand side in one folder, as the collection packs them.
pub fn tar_gz(name: &str, matrix: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let b = "%%MatrixMarket matrix array real general\n1 1\n1\n";
    for (file, text) in [(format!("{name}/{name}_b.mtx"), b), (format!("{name}/{name}.mtx"), matrix)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, file, text.as_bytes()).unwrap();
    }
    gzip(&archive.into_inner().unwrap())
}
