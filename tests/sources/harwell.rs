//! Harwell-Boeing and Rutherford-Boeing files: all types and formats that occur, and every kind of fault.

use solver::Error;
use solver::format::Csr;
use solver::source::{Loaded, Options, parse};
use std::path::Path;

fn entries(matrix: &Csr) -> Vec<(usize, usize, f64)> {
    (0..matrix.rows()).flat_map(|i| matrix.row(i).map(move |(j, v)| (i, j, v))).collect()
}

fn read(text: &str) -> Result<Loaded, Error> {
    parse(Path::new("test.rb"), text.as_bytes(), &Options { attached: true, ..Options::default() })
}

/// Reads a file with a valid matrix and faulty vectors, and returns the error message for the vectors.
fn vector_fault(text: &str) -> String {
    let loaded = read(text).unwrap_or_else(|error| panic!("must be read: {text}: {error}"));
    assert!(loaded.attached.is_empty() && loaded.attached_unread.contains(&"b".to_owned()));
    let alone = parse(Path::new("test.rb"), text.as_bytes(), &Options::default()).unwrap();
    assert_eq!((alone.matrix, alone.attached_faults.len()), (loaded.matrix, 0));
    assert_eq!(alone.attached_unread, loaded.attached_unread);
    loaded.attached_faults.concat()
}

fn accepted(text: &str) -> Vec<(usize, usize, f64)> {
    let loaded = read(text).unwrap_or_else(|error| panic!("must be read: {text}: {error}"));
    assert_eq!(loaded.kind, Some("Harwell-Boeing"));
    entries(&loaded.matrix)
}

fn assert_refused(text: &str, line: u64, column: u64, expected: &str, found: &str) {
    match read(text) {
        Err(Error::Parse { line: l, column: c, expected: e, found: f, .. }) => {
            assert_eq!((l, c, e.as_str(), f.as_str()), (line, column, expected, found), "{text}");
        }
        other => panic!("must be refused with a position: {text}: {other:?}"),
    }
}

/// Writes a 3 x 3 matrix with five entries, with the given type, format of values, and values.
fn small(kind: &str, format: &str, values: &str) -> String {
    format!(
        "A title of some sort                                                    |KEY     \n\
         \x20            3             1             1             1\n\
         {kind}                        3             3             5             0\n\
         (4I3)           (5I2)           {format:<20}\n\
         \x20 1  3  4  6\n 1 3 2 1 3\n{values}"
    )
}

const FIVE: [(usize, usize, f64); 5] = [(0, 0, 1.5), (0, 2, 4.0), (1, 1, -3.0), (2, 0, 2.0), (2, 2, 0.5)];

#[test]
fn values_are_read_in_every_fortran_format() {
    for (format, values) in [
        ("(5F6.1)", "   1.5   2.0  -3.0   4.0   0.5\n"),
        ("(3E12.4)", "  0.1500E+01  0.2000E+01 -0.3000E+01\n  0.4000E+01  0.5000E+00\n"),
        ("(1P,2D12.4)", "  1.5000D+00  2.0000D+00\r\n -3.0000D+00  4.0000D+00\r\n  5.0000D-01\r\n"),
        ("(1P5E8.1)", " 1.5E+00 2.0E+00-3.0E+00 4.0E+00 5.0E-01"),
        ("(5(1X,1PE8.1E2))", "x 1.5E+00  2.0E+00x-3.0E+00  4.0E+00  5.0E-01"),
        ("(1P,5F5.0)", "  15.  20. -30.  40.   5.\n"),
        ("(5D7.1)", "1.5d+002.0 +00-3.0+004.0E 005.0Q-01\n"),
        ("(5G5.1)", "1.5+02.0+0-3.+04.0-05.0-1\n"),
    ] {
        let values = values.replace("2.0 +00", " 2.0+00");
        assert_eq!(accepted(&small("RUA", format, &values)), FIVE, "{format}");
    }
}

#[test]
fn an_exponent_without_a_letter_needs_a_decimal_point_and_an_integer_has_neither() {
    let read = |format: &str, first: &str| {
        let rest = if format.contains('I') { "    2    -3     4     5" } else { "   2.0  -3.0   4.0   0.5" };
        read(&small("RUA", format, &format!("{first:>6}{rest:>24}\n")))
    };
    let first = |format, number| read(format, number).unwrap().matrix.get(0, 0).unwrap();
    assert_eq!([first("(5E6.1)", "1.5-3"), first("(5F6.1)", "-1.+2")], [1.5e-3, -100.0]);
    assert_eq!([first("(5D6.1)", "15E-1"), first("(5I6)", "+15")], [1.5, 15.0]);
    for (format, number) in [
        ("(5E6.1)", "15-3"),
        ("(5F6.1)", "15+3"),
        ("(5F6.1)", "1.5-"),
        ("(5F6.1)", "1.-2.0"),
        ("(5F6.1)", "1.5x-3"),
        ("(5I6)", "1.5"),
        ("(5I6)", "1.5-3"),
        ("(5I6)", "15E1"),
        ("(5I6)", "15-1"),
    ] {
        let error = read(format, number).unwrap_err().to_string();
        let expected = if format == "(5I6)" { "an integer, as the format says" } else { "a number" };
        assert!(error.ends_with(&format!("expected {expected}, found {number}")), "{format}: {error}");
    }
}

#[test]
fn symmetric_skew_symmetric_pattern_and_integer_types_are_read() {
    let lower = |kind: &str, values: &str| {
        format!(
            "% a comment\n% another\ntitle\n 3 1 1 1\n{kind} 3 3 4 0\n(4I3) (4I2) (4F5.1)\n\
             \x20 1  3  4  5\n 1 3 2 3\n{values}"
        )
    };
    let symmetric = lower("rsa", "  2.0 -1.0  3.0  4.0\n");
    assert_eq!(accepted(&symmetric), [(0, 0, 2.0), (0, 2, -1.0), (1, 1, 3.0), (2, 0, -1.0), (2, 2, 4.0)]);
    let loaded = read(&symmetric).unwrap();
    assert_eq!((loaded.stored, loaded.symmetric), (4, true));
    let stored = Options { as_stored: true, ..Options::default() };
    let loaded = parse(Path::new("a"), symmetric.as_bytes(), &stored).unwrap();
    assert_eq!(entries(&loaded.matrix), [(0, 0, 2.0), (1, 1, 3.0), (2, 0, -1.0), (2, 2, 4.0)]);
    assert!(!loaded.symmetric);
    let skew = lower("RZA", "  0.0 -1.0  0.0  0.0\n");
    assert_eq!(accepted(&skew), [(0, 0, 0.0), (0, 2, 1.0), (1, 1, 0.0), (2, 0, -1.0), (2, 2, 0.0)]);
    assert_refused(
        &lower("RZA", "  0.0 -1.0  3.0  0.0\n"),
        9,
        13,
        "0 on the diagonal of a skew-symmetric matrix",
        "3.0",
    );
    let pattern = lower("psa", "");
    assert_eq!(accepted(&pattern), [(0, 0, 1.0), (0, 2, 1.0), (1, 1, 1.0), (2, 0, 1.0), (2, 2, 1.0)]);
    let integers = small("iua", "(5I3)", "  1  2 -3  4  5\n");
    assert_eq!(accepted(&integers.replace(" -3", "  3"))[2], (1, 1, 3.0));
}

#[test]
fn unsorted_row_indices_and_rectangular_matrices_are_read() {
    let text =
        "t\n 3 1 1 1\nRRA 2 3 4 0\n(4I3) (4I2) (4F5.1)\n  1  3  4  5\n 2 1 2 1\n  1.0  2.0  3.0  4.0\n";
    assert_eq!(accepted(text), [(0, 0, 2.0), (0, 2, 4.0), (1, 0, 1.0), (1, 1, 3.0)]);
}

#[test]
fn right_hand_sides_guesses_and_solutions_are_attached_to_the_matrix() {
    let text = |card: &str, vectors: &str| {
        format!(
            "t\n 9 1 1 1 3\nRUA 2 2 2 0\n(3I3)           (2I2)           (2F5.1)             (4F5.1)\n{card}\n\
             \x20 1  2  3\n 1 2\n  1.0  2.0\n{vectors}"
        )
    };
    let loaded = read(&text(
        "FGX            2             0",
        "  1.0  2.0  3.0  4.0\n  5.0  6.0  7.0  8.0\n  9.0  8.0  7.0  6.0\n",
    ))
    .unwrap();
    assert_eq!(loaded.attached("b").unwrap().values(), [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(loaded.attached("x0").unwrap().values(), [5.0, 7.0, 6.0, 8.0]);
    assert_eq!(loaded.attached("x").unwrap().values(), [9.0, 7.0, 8.0, 6.0]);
    let loaded = read(&text("M              2             2", "  1  2  3\n 2 1\n  5.0  6.0\n")).unwrap();
    assert_eq!(loaded.attached("b").unwrap().values(), [0.0, 6.0, 5.0, 0.0]);
    let missing = vector_fault(&text("FGX            2             0", "  1.0  2.0\n"));
    assert_eq!(missing, "test.rb:9:11: expected a number, found nothing in columns 11 to 15");
    let ignored = "t\n 3 1 1 1\niua 1 1 1 0\n(26I3) (40I2) (26I3)\nF ignore\n  1  2\n 1\n 16\n";
    assert_eq!(accepted(ignored), [(0, 0, 16.0)]);
}

#[test]
fn complex_and_elemental_matrices_are_refused_by_name() {
    for (kind, name) in [("CUA", "complex"), ("cha", "complex"), ("RSE", "elemental"), ("pse", "elemental")] {
        match read(&small(kind, "(5F6.1)", "")) {
            Err(Error::UnsupportedFile { what, .. }) => assert!(what.contains(name), "{what}"),
            other => panic!("{kind}: {other:?}"),
        }
    }
}

#[test]
fn faults_are_reported_with_line_and_column() {
    let good = small("RUA", "(5F6.1)", "   1.5   2.0  -3.0   4.0   0.5\n");
    assert_eq!(accepted(&good), FIVE);
    let with = |from: &str, to: &str| good.replace(from, to);
    assert_refused(&with("  1  3  4  6", "  2  3  4  6"), 5, 3, "1, the first column pointer 1", "2");
    assert_refused(&with("  1  3  4  6", "  1  3  2  6"), 5, 9, "a column pointer from 3 to 6", "2");
    let last = "the last column pointer, one above the entries, 6";
    assert_refused(&with("  1  3  4  6", "  1  3  4  5"), 5, 12, last, "5");
    assert_refused(&with(" 1 3 2 1 3", " 1 3 4 1 3"), 6, 6, "a row index from 1 to 3", "4");
    assert_refused(
        &with(" 1 3 2 1 3", " 1 3 2"),
        6,
        7,
        "a row index from 1 to 3",
        "nothing in columns 7 to 8",
    );
    assert_refused(&with("  -3.0", "  -3.x"), 7, 15, "a number", "-3.x");
    assert_refused(&with("  -3.0", " 1e999"), 7, 14, "a finite number", "1e999");
    assert_refused(
        &with("   1.5   2.0  -3.0   4.0   0.5\n", ""),
        7,
        1,
        "5 more of the 5 numbers that the header announces",
        "end of file",
    );
    assert_refused(
        &with("(5F6.1)", "(5A6)  "),
        4,
        33,
        "a Fortran format such as (10I8) or (1P,4D20.13)",
        "(5A6)",
    );
    assert_refused(&with("(5F6.1)", "       "), 4, 53, "the format of the values", "end of line");
    assert_refused(
        &with("3             3             5", "3             x             5"),
        3,
        42,
        "the number of columns",
        "x",
    );
    let square = "as many rows as columns, as the type is symmetric";
    let text = with("RUA                        3", "RSA                        4");
    assert_refused(&text, 3, 1, square, "4 rows and 3 columns");
    let both = small("RSA", "(5F6.1)", "   1.5   2.0  -3.0   4.0   0.5\n");
    let what = "a row index in the lower triangle, which this file stores of a symmetric matrix";
    assert_refused(&both, 6, 8, what, "1");
    let card = "a fifth card, as there are right-hand sides";
    let announced = with("             1\nRUA", "             1             3\nRUA");
    assert_eq!(vector_fault(&announced), format!("test.rb:4:53: expected {card}, found none"));
}

#[test]
fn headers_with_implausible_sizes_are_refused() {
    let good = small("RUA", "(5F6.1)", "   1.5   2.0  -3.0   4.0   0.5\n");
    let rows = good.replace("RUA                        3", "RUA               4000000000");
    let most = "at most 2^24 rows, and 64 more for each entry";
    assert_refused(&rows, 3, 1, most, "4000000000 rows and 5 entries");
    let rows = good.replace("RUA                        3", "RUA               5000000000");
    assert_refused(&rows, 3, 19, "the number of rows, at most 4294967295", "5000000000");
    let entries = good.replace("3             5", "3 10000000000000000");
    assert!(matches!(read(&entries), Err(Error::Parse { .. })));
    let format = good.replace("(4I3)          ", "(999999999(9I9))");
    assert!(matches!(read(&format), Err(Error::Parse { line: 4, .. })));
}

#[test]
fn an_infinite_sum_of_duplicates_is_refused_with_its_file_and_position() {
    let text = "t\n 3 1 1 1\nRUA 3 2 2 0\n(3I3) (2I2) (2E9.1)\n  1  3  3\n 3 3\n  1.0E308  1.0E308\n";
    let error = read(text).unwrap_err();
    let Error::InFile { path, fault } = &error else { panic!("{error:?}") };
    assert_eq!(path, Path::new("test.rb"));
    assert!(matches!(**fault, Error::DuplicateOverflow { row: 2, col: 0 }), "{fault:?}");
    let expected =
        "test.rb: the duplicates at row 2, column 0 (counted from 0) have a sum beyond the range of f64";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn files_truncated_anywhere_are_errors() {
    let good = small("RUA", "(5F6.1)", "   1.5   2.0  -3.0   4.0   0.5\n");
    // A file that lacks only the last digit and the newline is still valid.
    for length in 0..good.len() - 3 {
        assert!(read(&good[..length]).is_err(), "cut to {length} bytes");
    }
}

#[test]
fn a_file_written_by_scipy_equals_the_npz_file_of_the_same_matrix() {
    let data = crate::common::process::project("tests/data");
    let read = |name| solver::source::load(data.join(name).to_str().unwrap()).unwrap();
    let harwell = read("scipy.rua");
    assert_eq!(harwell.kind, Some("Harwell-Boeing"));
    assert_eq!(harwell.matrix, read("csr.npz").matrix);
}
