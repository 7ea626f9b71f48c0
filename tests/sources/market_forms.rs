//! Matrix Market beyond the plain coordinate file: arrays, complex fields, triangles as stored, and vectors.

use solver::Error;
use solver::format::Csr;
use solver::source::market::{parse, parse_vector, read_vector};
use solver::source::{Options, load_with};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

type Entry = (usize, usize, f64);

fn entries(matrix: &Csr) -> Vec<Entry> {
    (0..matrix.rows()).flat_map(|i| matrix.row(i).map(move |(j, v)| (i, j, v))).collect()
}

fn read(banner: &str, rest: &str) -> Result<(Vec<Entry>, u64, bool), Error> {
    let text = format!("%%MatrixMarket matrix {banner}\n{rest}");
    let loaded = parse(Path::new("test.mtx"), text.as_bytes())?;
    Ok((entries(&loaded.matrix), loaded.stored, loaded.symmetric))
}

fn message(result: Result<impl std::fmt::Debug, Error>) -> String {
    result.expect_err("must be refused").to_string()
}

#[test]
fn an_array_is_read_by_columns_and_its_zeros_are_dropped() {
    let (got, stored, symmetric) =
        read("array real general", "2 3\n% note\n1\n\n0\n-0.0\n4\n 5e0 \n6").unwrap();
    assert_eq!(got, [(0, 0, 1.0), (0, 2, 5.0), (1, 1, 4.0), (1, 2, 6.0)]);
    assert_eq!((stored, symmetric), (6, false));
}

#[test]
fn symmetric_arrays_hold_the_lower_triangle() {
    let (got, stored, symmetric) = read("array integer symmetric", "3 3\n1\n2\n3\n4\n0\n6\n").unwrap();
    let lower = [(0, 0, 1.0), (0, 1, 2.0), (0, 2, 3.0), (1, 0, 2.0), (1, 1, 4.0), (2, 0, 3.0), (2, 2, 6.0)];
    assert_eq!(got, lower);
    assert_eq!((stored, symmetric), (6, true));
    assert_eq!(read("array real hermitian", "2 2\n1\n2\n3\n").unwrap().0.len(), 4);
}

#[test]
fn skew_symmetric_arrays_hold_the_strictly_lower_triangle() {
    let (got, stored, _) = read("array real skew-symmetric", "3 3\n2\n3\n6\n").unwrap();
    let both = [(0, 1, -2.0), (0, 2, -3.0), (1, 0, 2.0), (1, 2, -6.0), (2, 0, 3.0), (2, 1, 6.0)];
    assert_eq!(got, both);
    assert_eq!(stored, 3);
    assert_eq!(read("array real skew-symmetric", "1 1\n").unwrap().0, []);
}

#[test]
fn arrays_with_too_few_too_many_or_wrong_values_are_refused_at_their_line() {
    let short = message(read("array real general", "2 2\n1\n2\n3\n"));
    assert_eq!(
        short,
        "test.mtx:6:1: expected 4 entries, as the size line announces, found end of file after 3 entries"
    );
    let long = message(read("array real symmetric", "2 2\n1\n2\n3\n4\n"));
    assert_eq!(long, "test.mtx:6:1: expected 3 entries, as the size line announces, found 4 entries");
    assert_eq!(message(read("array real skew-symmetric", "1 1\n4\n")).lines().count(), 1);
    assert!(
        message(read("array real general", "2 1\n1\ninf\n")).starts_with("test.mtx:4:1: expected a finite")
    );
    assert!(
        message(read("array real general", "2 1\n1 2\n")).starts_with("test.mtx:3:3: expected end of line")
    );
    assert!(
        message(read("array real general", "2\n1\n2\n"))
            .starts_with("test.mtx:2:2: expected the number of col")
    );
    for size in ["4294967295 4294967295", "0 4294967295", "4294967295 0"] {
        let result = read("array real general", size);
        assert!(result.is_err() || result.unwrap().0.is_empty(), "{size}");
    }
}

#[test]
fn a_long_array_does_not_depend_on_the_number_of_threads() {
    let n = 300;
    let mut text = String::new();
    writeln!(text, "{n} {n}").unwrap();
    for k in 0..n * (n + 1) / 2 {
        text.push_str(if k % 97 == 0 { "% note\n\n" } else { "" });
        writeln!(text, "{}", if k % 3 == 0 { 0.0 } else { k as f64 / 7.0 }).unwrap();
    }
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let one = pool(1).install(|| read("array real symmetric", &text)).unwrap();
    assert_eq!(one.1, (n * (n + 1) / 2) as u64);
    for threads in [2, 3, 8] {
        assert_eq!(pool(threads).install(|| read("array real symmetric", &text)).unwrap(), one);
    }
}

#[test]
fn complex_files_are_read_if_every_imaginary_part_is_zero() {
    let (got, ..) = read("coordinate complex hermitian", "2 2 2\n1 1 4 0\n2 1 -1.5 -0.0e0\n").unwrap();
    assert_eq!(got, [(0, 0, 4.0), (0, 1, -1.5), (1, 0, -1.5)]);
    assert_eq!(read("array complex general", "1 2\n1 0\n2 0\n").unwrap().0, [(0, 0, 1.0), (0, 1, 2.0)]);
}

#[test]
fn the_first_entry_with_an_imaginary_part_is_reported_with_its_line() {
    let got = message(read("coordinate complex general", "2 2 3\n1 1 4 0\n% note\n2 1 1 -2e-3\n2 2 1 7\n"));
    let expected = "test.mtx:5:7: expected an imaginary part of 0 at row 2, column 1, as only real matrices are solved \
                    with, found -2e-3";
    assert_eq!(got, expected);
    let got = message(read("coordinate complex general", "2 2 1\n1 1 4\n"));
    assert_eq!(got, "test.mtx:3:6: expected a number, found end of line");
}

#[test]
fn as_stored_reads_the_triangle_that_the_file_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("half.mtx");
    let options = Options { as_stored: true, ..Options::default() };
    for (banner, sign) in [("coordinate real symmetric", 1.0), ("coordinate real skew-symmetric", -1.0)] {
        std::fs::write(&path, format!("%%MatrixMarket matrix {banner}\n3 3 2\n3 1 4\n2 1 {sign}\n")).unwrap();
        let loaded = load_with(path.to_str().unwrap(), &options).unwrap();
        assert_eq!(entries(&loaded.matrix), [(1, 0, sign), (2, 0, 4.0)], "{banner}");
        assert_eq!((loaded.stored, loaded.symmetric), (2, false));
    }
    let text = "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n";
    std::fs::write(&path, text).unwrap();
    let loaded = load_with(path.to_str().unwrap(), &options).unwrap();
    assert_eq!(entries(&loaded.matrix), [(0, 0, 1.0), (1, 0, 2.0), (1, 1, 3.0)]);
    // A nonzero diagonal of a skew-symmetric matrix is refused with `as_stored` too.
    std::fs::write(&path, "%%MatrixMarket matrix coordinate real skew-symmetric\n1 1 1\n1 1 4\n").unwrap();
    assert!(load_with(path.to_str().unwrap(), &options).is_err());
}

#[test]
fn vectors_are_read_from_array_and_coordinate_files_plain_and_compressed() {
    let vector = |text: &str| parse_vector(Path::new("b.mtx"), text.as_bytes());
    let array = vector("%%MatrixMarket matrix array real general\n3 2\n1\n2\n3\n4\n5\n6\n").unwrap();
    assert_eq!((array.rows(), array.cols(), array.values()), (3, 2, &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0][..]));
    let sparse = "%%MatrixMarket matrix coordinate real general\n4 1 3\n4 1 2.5\n1 1 1\n4 1 1\n";
    assert_eq!(vector(sparse).unwrap().values(), [1.0, 0.0, 0.0, 3.5]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.mtx.gz");
    let mut packer =
        flate2::write::GzEncoder::new(std::fs::File::create(&path).unwrap(), flate2::Compression::default());
    packer.write_all(sparse.as_bytes()).unwrap();
    packer.finish().unwrap();
    assert_eq!(read_vector(&path).unwrap().values(), [1.0, 0.0, 0.0, 3.5]);
}

#[test]
fn faulty_vectors_and_implausible_sizes_are_refused() {
    let vector = |rest: &str| {
        message(parse_vector(Path::new("b.mtx"), format!("%%MatrixMarket matrix {rest}").as_bytes()))
    };
    assert!(vector("array real general\n2 1\n1\n").contains("found end of file after 1 entry"));
    assert!(vector("array real general\n1 1\n1\n2\n").contains("b.mtx:4:1: expected 1 entry"));
    assert!(vector("array real general\n1 1\nx\n").contains("b.mtx:3:1: expected a number"));
    assert!(vector("coordinate real general\n1000000 1000000 1\n1 1 1\n").contains("the number of values"));
    assert!(
        vector("coordinate real general\n1 1 2\n1 1 1e308\n1 1 1e308\n").contains("beyond the range of f64")
    );
}

#[test]
fn an_exponent_without_a_letter_needs_a_decimal_point() {
    let parse = |value: &str| {
        let text = format!("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {value}\n");
        solver::source::market::parse(std::path::Path::new("t.mtx"), text.as_bytes())
    };
    assert_eq!(parse("1.5+100").unwrap().matrix.get(0, 0), Some(1.5e100));
    assert_eq!(parse("-1.5-100").unwrap().matrix.get(0, 0), Some(-1.5e-100));
    for date in ["2015-12", "12-5", "1+1", "1-123", "1.5-", "1.5+1-2"] {
        assert!(matches!(parse(date), Err(solver::Error::Parse { line: 3, column: 5, .. })), "{date}");
    }
}
