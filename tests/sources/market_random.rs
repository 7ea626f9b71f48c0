//! The Matrix Market reader on long and random input: the result does not depend on the number of threads,
//! and no input causes a panic.

use proptest::prelude::*;
use solver::Error;
use solver::format::Csr;
use solver::source::Loaded;
use solver::source::market::parse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

fn parse_str(text: &str) -> Result<Loaded, Error> {
    parse(Path::new("test.mtx"), text.as_bytes())
}

fn entries(matrix: &Csr) -> Vec<(usize, usize, f64)> {
    (0..matrix.rows()).flat_map(|i| matrix.row(i).map(move |(j, v)| (i, j, v))).collect()
}

/// Returns the line, the column, the expected and the found text of a fault.
fn refused(text: &str) -> (u64, u64, String, String) {
    match parse_str(text) {
        Err(Error::Parse { line, column, expected, found, .. }) => (line, column, expected, found),
        other => panic!("must be refused with a position: {other:?}"),
    }
}

/// A deterministic pseudorandom number generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Generates a text of several pieces, with comments and with duplicates whose sums depend on their order.
fn long_text(banner: &str, sorted: bool) -> String {
    let (rows, count) = (3000, 60_000);
    let mut numbers = Numbers(7);
    let mut lines: Vec<(u64, String)> = (0..count)
        .map(|_| {
            let (mut row, mut col) = (numbers.below(rows) + 1, numbers.below(40) + 1);
            if banner.contains("symmetric") {
                (row, col) = (row.max(col), row.min(col));
            }
            let value = (numbers.below(2_000_001) as f64 - 1e6) / 7.0;
            let pattern = banner.contains("pattern");
            let mut line =
                if pattern { format!("{row} {col}\n") } else { format!("{row} {col} {value:e}\n") };
            if numbers.below(50) == 0 {
                line.push_str("  % a note\n\n");
            }
            (row, line)
        })
        .collect();
    if sorted {
        lines.sort_by_key(|(row, _)| *row);
    }
    let mut text = format!("%%MatrixMarket matrix coordinate {banner}\n{rows} {rows} {count}\n");
    lines.iter().for_each(|(_, line)| text.push_str(line));
    text
}

fn bits(matrix: &Csr) -> Vec<(usize, usize, u64)> {
    entries(matrix).into_iter().map(|(i, j, v)| (i, j, v.to_bits())).collect()
}

fn with_threads<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool of threads").install(run)
}

#[test]
fn the_matrix_does_not_depend_on_the_number_of_threads() {
    for banner in ["real general", "real symmetric", "pattern general", "pattern symmetric"] {
        for sorted in [false, true] {
            let text = long_text(banner, sorted);
            assert!(text.len() > 400_000, "long enough for several pieces");
            let one = with_threads(1, || parse_str(&text)).unwrap();
            for threads in [2, 3, 8] {
                let several = with_threads(threads, || parse_str(&text)).unwrap();
                assert_eq!(several.stored, one.stored);
                assert_eq!(bits(&several.matrix), bits(&one.matrix), "{banner}, {threads} threads");
                assert_eq!(several.matrix, one.matrix);
            }
        }
    }
}

#[test]
fn the_first_fault_does_not_depend_on_the_number_of_threads() {
    let good = long_text("real general", false);
    let lines: Vec<&str> = good.lines().collect();
    for broken in [[2, 40_000], [30_000, 50_000], [lines.len() - 1, 59_000]] {
        let mut lines = lines.clone();
        for line in broken {
            lines[line] = "1 x 1";
        }
        let text = lines.join("\n");
        let line = 1 + *broken.iter().min().unwrap() as u64;
        for threads in [1, 2, 3, 8] {
            let got = with_threads(threads, || refused(&text));
            assert_eq!(got, (line, 3, "a column index from 1 to 3000".to_owned(), "x".to_owned()));
        }
    }
}

#[test]
fn the_first_excess_entry_does_not_depend_on_the_number_of_threads() {
    let good = long_text("real general", false);
    let text = good.replacen("3000 3000 60000", "3000 3000 45678", 1);
    let one = with_threads(1, || refused(&text));
    assert_eq!(one.2, "45678 entries, as the size line announces");
    assert_eq!(one.3, "60000 entries");
    let read = text.lines().skip(2).take(one.0 as usize - 3);
    assert_eq!(read.filter(|line| !line.is_empty() && !line.contains('%')).count(), 45_678);
    for threads in [2, 3, 8] {
        assert_eq!(with_threads(threads, || refused(&text)), one);
    }
}

/// Generates text that may occur between entries.
fn filler() -> impl Strategy<Value = &'static str> {
    prop_oneof![6 => Just(""), 1 => Just("\n"), 1 => Just("% 1 1 1\n"), 1 => Just(" \t\r\n"), 1 => Just("  %\r\n")]
}

type Triplet = (u32, u32, i32);

fn assemble_naively(triplets: &[Triplet], symmetric: bool) -> Vec<(usize, usize, f64)> {
    let mut sums: BTreeMap<(usize, usize), i64> = BTreeMap::new();
    for &(row, col, value) in triplets {
        let (row, col) = (row as usize, col as usize);
        *sums.entry((row, col)).or_default() += i64::from(value);
        if symmetric && row != col {
            *sums.entry((col, row)).or_default() += i64::from(value);
        }
    }
    sums.into_iter().map(|((row, col), sum)| (row, col, sum as f64)).collect()
}

proptest! {
    #[test]
    fn triplets_written_as_text_are_read_back(
        n in 1_u32..30,
        symmetric: bool,
        crlf: bool,
        final_newline: bool,
        raw in proptest::collection::vec((any::<u32>(), any::<u32>(), -1000..1000, filler(), 0..4_usize), 0..200),
    ) {
        let one_triangle = |i: u32, j: u32| if symmetric { (i.max(j), i.min(j)) } else { (i, j) };
        let triplet = |(i, j): (u32, u32), v: i32| (i, j, v);
        let triplets: Vec<Triplet> =
            raw.iter().map(|&(i, j, v, ..)| triplet(one_triangle(i % n, j % n), v)).collect();
        let kind = if symmetric { "symmetric" } else { "general" };
        let end = if crlf { "\r\n" } else { "\n" };
        let mut text =
            format!("%%MatrixMarket matrix coordinate real {kind}{end}{n} {n} {}{end}", triplets.len());
        for (&(row, col, value), &(.., filler, style)) in triplets.iter().zip(&raw) {
            let value = match style {
                0 => format!("{value}.0"),
                1 => format!("{value}D+0"),
                2 => format!("{value:e}"),
                _ => value.to_string(),
            };
            write!(text, "{filler}{} {} {value}{end}", row + 1, col + 1).unwrap();
        }
        if !final_newline {
            text.truncate(text.trim_end().len());
        }
        let loaded = parse_str(&text).unwrap();
        prop_assert_eq!(entries(&loaded.matrix), assemble_naively(&triplets, symmetric));
        prop_assert_eq!((loaded.stored, loaded.symmetric), (triplets.len() as u64, symmetric));
    }

    #[test]
    fn arbitrary_bytes_after_a_banner_cause_no_panic(
        banner in prop_oneof![
            Just("real general"), Just("integer symmetric"), Just("pattern general"), Just("real skew-symmetric")
        ],
        size in prop_oneof![Just(""), Just("2 2 1\n"), Just("1000000 1000000 3\n")],
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            proptest::collection::vec(proptest::sample::select(b"0123459 \t\n\r%+-.edDinf".to_vec()), 0..200),
        ],
    ) {
        let mut text = format!("%%MatrixMarket matrix coordinate {banner}\n{size}").into_bytes();
        text.extend(bytes);
        let _ = parse(Path::new("test.mtx"), &text);
    }

    #[test]
    fn arbitrary_bytes_cause_no_panic(gzip: bool, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = if gzip { [&[0x1f, 0x8b, 8, 0][..], &bytes].concat() } else { bytes };
        let _ = parse(Path::new("test.mtx"), &text);
    }
}
