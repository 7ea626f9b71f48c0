//! Long edge lists in gzip files are parsed while they are decompressed. They give the same graph as plain
//! files, or the same error at the same position.

use crate::common::archives::gzip;
use solver::Error;
use solver::format::Duplicates;
use solver::observe::Meter;
use solver::source::{Loaded, Options, parse};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Number of edges, enough for several portions of text.
const EDGES: u64 = 120_000;

/// Generates edges among `nodes` nodes, many of them repeated, with `end` at the end of each line.
fn edges(nodes: u64, end: impl Fn(u64) -> String) -> String {
    let mut text = String::new();
    for e in 0..EDGES {
        write!(text, "{}\t{}{}", e * 7919 % nodes, e * 104_729 % nodes * 3, end(e)).unwrap();
    }
    text
}

fn plain(nodes: u64) -> String {
    edges(nodes, |_| "\n".to_owned())
}

/// Compresses the text as several gzip members, split within lines.
fn members(bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(bytes.len() / 3 - 7).flat_map(gzip).collect()
}

fn read(bytes: &[u8], options: &Options) -> Result<Loaded, Error> {
    parse(Path::new("graph"), bytes, options)
}

#[test]
fn a_compressed_edge_list_gives_the_same_bits_as_the_plain_one() {
    let lines = plain(5000);
    let mixed = edges(5000, |e| if e % 3 == 0 { "\r\n# more\n\n".to_owned() } else { " \r\n".to_owned() });
    let long = format!("{lines}#{}\n7 8\n{}\n{lines}", "-".repeat(900_000), " ".repeat(900_000));
    let texts = [
        format!("# a comment\n{lines}"),
        lines.trim_end().to_owned(),
        format!("\u{feff}{lines}"),
        edges(5000, |e| format!(",{}.25\n", e % 7)),
        format!("%{}\n{lines}", "-".repeat(3_000_000)),
        mixed,
        long,
    ];
    for (case, text) in texts.iter().enumerate() {
        for (close_gaps, duplicates) in [(false, Duplicates::Sum), (true, Duplicates::Keep)] {
            let options = Options { close_gaps, duplicates, ..Options::default() };
            let plain = read(text.as_bytes(), &options).unwrap();
            assert_eq!((plain.kind, plain.ids.is_some()), (Some("edge list"), close_gaps), "{case}");
            for (packed, threads) in [(gzip(text.as_bytes()), 1), (members(text.as_bytes()), 3)] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let loaded = pool.install(|| read(&packed, &options)).unwrap();
                assert!(loaded.matrix == plain.matrix, "{case}");
                assert_eq!((loaded.stored, loaded.kind), (plain.stored, plain.kind), "{case}");
                assert_eq!(loaded.ids, plain.ids, "{case}");
            }
        }
    }
}

#[test]
fn the_meter_counts_the_compressed_bytes_of_an_edge_list() {
    let packed = members(plain(5000).as_bytes());
    let meter = Arc::new(Meter::default());
    read(&packed, &Options { meter: Some(Arc::clone(&meter)), ..Options::default() }).unwrap();
    let now = meter.read();
    assert_eq!((now.phase, now.done, now.total), ("reading", packed.len() as u64, packed.len() as u64));
}

/// Asserts that the plain text and both compressed forms give the same error message, and returns it.
fn refused(text: &str) -> String {
    let error = |bytes: &[u8]| read(bytes, &Options::default()).unwrap_err().to_string();
    let plain = error(text.as_bytes());
    assert_eq!(error(&gzip(text.as_bytes())), plain);
    assert_eq!(error(&members(text.as_bytes())), plain);
    plain
}

#[test]
fn a_fault_far_into_a_compressed_edge_list_is_reported_with_line_column_and_word() {
    let lines = plain(5000);
    let node = "expected a node from 0 to 4294967294";
    let error = refused(&format!("# edges\n{lines}12 x7\n{lines}1 y\n"));
    assert_eq!(error, format!("graph:120002:4: {node}, found x7"));
    assert_eq!(refused(&format!("{lines}3 ")), format!("graph:120001:3: {node}, found end of file"));
    let error = refused(&format!("\u{feff}{lines}{lines}\r\n1 2 3\n"));
    assert_eq!(error, "graph:240002:5: expected end of line, found 3");
    let weights = edges(5000, |_| " 1e308\n".to_owned());
    let error = refused(&format!("{weights}0 0 nan\n"));
    assert_eq!(error, "graph:120001:5: expected the weight of the edge, a finite number, found nan");
}

#[test]
fn a_fault_found_after_parsing_a_compressed_list_is_reported_as_for_a_plain_one() {
    let lines = plain(5000);
    let error = refused(&format!("{lines}9 8\n# gap\n1 4000000000\n{lines}"));
    assert!(error.starts_with("graph:120003:1: ") && error.ends_with("node 4000000000"), "{error}");
    let weights = edges(EDGES, |_| " 1\n".to_owned());
    let error = refused(&format!("{weights}1 1 1e308\n{weights}1 1 1e308\n"));
    assert!(error.starts_with("graph:240002:1: ") && error.ends_with("a sum of inf"), "{error}");
    let error = refused(&format!("90000 {EDGES}\n{lines}"));
    assert!(error.contains(&format!("whose first line, '90000 {EDGES}', looks like its sizes")), "{error}");
    let error = refused(&format!("90000 90000 {EDGES}\n{lines}"));
    assert!(error.contains("looks like its sizes"), "{error}");
    let error = refused(&format!("1 2 3\n{lines}"));
    assert_eq!(error, "graph:2:1: expected an edge of 3 words, as on the first line, found 2 words");
}

#[test]
fn a_compressed_metis_graph_that_begins_like_an_edge_list_is_read_as_a_metis_graph() {
    let n = 60_000;
    let list = |v: usize| format!("{} {}\n", (v + n - 1) % n + 1, (v + 1) % n + 1);
    let ring: String = (0..n).map(list).collect();
    let text = format!("{n} {n}\n{ring}");
    let loaded = read(&gzip(text.as_bytes()), &Options::default()).unwrap();
    assert_eq!((loaded.kind, loaded.matrix.rows(), loaded.symmetric), (Some("METIS graph"), n, true));
    assert!(refused(&text[..text.len() - 40]).contains("look like those of a METIS graph"));
}

#[test]
fn damage_to_a_gzip_file_is_reported_instead_of_the_resulting_syntax_error() {
    let packed = gzip(plain(5000).as_bytes());
    let damaged = |bytes: &[u8]| match read(bytes, &Options::default()) {
        Err(Error::Io { action: "decompress", path, .. }) => assert_eq!(path, Path::new("graph")),
        other => panic!("must be refused: {:?}", other.map(|loaded| loaded.matrix.nnz())),
    };
    for cut in [packed.len() / 2, packed.len() - 9, packed.len() - 1] {
        damaged(&packed[..cut]);
    }
    let mut checksum = packed.clone();
    let last = packed.len() - 6;
    checksum[last] ^= 1;
    damaged(&checksum);
    // A gzip file without compression, in which the damage turns a digit into a letter.
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    std::io::Write::write_all(&mut packer, plain(5000).as_bytes()).unwrap();
    let mut stored = packer.finish().unwrap();
    let digit =
        (400_000..).find(|&at| stored[at].is_ascii_digit() && stored[at + 1].is_ascii_digit()).unwrap();
    stored[digit] = b'x';
    damaged(&stored);
}
