//! The Matrix Market reader: valid files, and faulty files with the line and column of the fault.

use solver::Error;
use solver::format::{Csr, Values};
use solver::source::market::{parse, read};
use solver::source::{Loaded, Options};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";

fn parse_str(text: &str) -> Result<Loaded, Error> {
    parse(Path::new("test.mtx"), text.as_bytes())
}

fn entries(matrix: &Csr) -> Vec<(usize, usize, f64)> {
    (0..matrix.rows()).flat_map(|i| matrix.row(i).map(move |(j, v)| (i, j, v))).collect()
}

fn accepted(text: &str) -> Vec<(usize, usize, f64)> {
    let read = |text: &str| match parse_str(text) {
        Ok(loaded) => entries(&loaded.matrix),
        Err(error) => panic!("must be read: {text:?}: {error}"),
    };
    let entries = read(text);
    assert_eq!(read(&far_from_the_end(text)), entries, "{text:?}");
    entries
}

/// Appends a long comment: the parser takes a different code path for lines near the end of a file.
fn far_from_the_end(text: &str) -> String {
    format!("{text}\n{}", "%".repeat(200))
}

/// Returns the line, the column, the expected and the found text of a fault.
fn refused(text: &str) -> (u64, u64, String, String) {
    let refused = |text: &str| match parse_str(text) {
        Err(Error::Parse { path, line, column, expected, found }) => {
            assert_eq!(path, PathBuf::from("test.mtx"));
            (line, column, expected, found)
        }
        other => panic!("must be refused with a position: {text:?}: {other:?}"),
    };
    let fault = refused(text);
    if !fault.3.starts_with("end of file") {
        assert_eq!(refused(&far_from_the_end(text)), fault, "{text:?}");
    }
    fault
}

fn assert_refused(text: &str, line: u64, column: u64, expected: &str, found: &str) {
    assert_eq!(refused(text), (line, column, expected.to_owned(), found.to_owned()), "{text:?}");
}

fn body(lines: &str) -> String {
    format!("{GENERAL}3 3 1\n{lines}")
}

#[test]
fn a_general_matrix_is_read_with_rows_and_columns_sorted() {
    let text = format!("{GENERAL}% note\n2 3 3\n2 3 -1.5\n1 2 4\n2 1 .25\n");
    assert_eq!(accepted(&text), [(0, 1, 4.0), (1, 0, 0.25), (1, 2, -1.5)]);
    let loaded = parse_str(&text).unwrap();
    assert_eq!(
        (loaded.matrix.rows(), loaded.matrix.cols(), loaded.stored, loaded.symmetric),
        (2, 3, 3, false)
    );
}

#[test]
fn blank_lines_comments_tabs_and_crlf_are_allowed_everywhere() {
    let text = "%%matrixMARKET\tMATRIX  Coordinate Real GENERAL\r\n\r\n  % one\r\n\r\n \t2 2\t2 \r\n% two\r\n\r\n\
                \t 1  1\t+1e0 \r\n  % three\r\n\n2 2 2.\t\r\n\r\n% four";
    assert_eq!(accepted(text), [(0, 0, 1.0), (1, 1, 2.0)]);
}

#[test]
fn unusual_banners_and_carriage_returns_as_line_ends_are_accepted() {
    assert_eq!(accepted("%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 5\n"), [(0, 0, 5.0)]);
    assert_eq!(accepted("\t %%MatrixMarket matrix coordinate real general\n 1 1 1\n 1 1 5"), [(0, 0, 5.0)]);
    assert_eq!(accepted(&format!("\u{feff}{}", body("3 1 7\n"))), [(2, 0, 7.0)], "a UTF-8 byte order mark");
    assert_eq!(accepted(&format!("\r\n \n{}", body("3 1 7\n"))), [(2, 0, 7.0)], "blank lines first");
    let text = body("% note\n\n3 1 7\n").replace('\n', "\r");
    assert_eq!(
        entries(&parse_str(&format!("{text}\n")).unwrap().matrix),
        [(2, 0, 7.0)],
        "one CRLF at the end"
    );
    assert_eq!(accepted(&text), [(2, 0, 7.0)]);
    assert_refused(&text.replace('7', "x"), 5, 5, "a number", "x");
    assert_refused(&body("3 1 7\r2 2 1\n"), 3, 7, "end of line", "2");
}

#[test]
fn a_file_with_a_damaged_banner_is_refused_and_not_read_as_an_edge_list() {
    for (text, line) in [
        ("%%__BadBanner matrix coordinate real general\n3 3 1\n1 1 5\n", 1),
        ("%%NotMarket\n1 1 1\n", 1),
        ("\n%%MatrixMarkt matrix coordinate real general\n% more\n4 4 2\n1 1 2.5\n2 2 1\n3 3 1\n", 2),
    ] {
        let read = solver::source::parse(Path::new("bad.mtx"), text.as_bytes(), &Options::default());
        let message = read.unwrap_err().to_string();
        let expected =
            format!("bad.mtx:{line}:1: expected a first line that begins with %%MatrixMarket, found %%");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn the_last_line_needs_no_newline() {
    assert_eq!(accepted(&body("3 1 7")), [(2, 0, 7.0)]);
}

#[test]
fn symmetric_entries_are_mirrored_and_the_diagonal_is_not() {
    // The format requires the lower triangle, but files with the upper one exist too.
    for entries in ["1 1 5\n3 1 -2\n3 2 4\n", "1 1 5\n1 3 -2\n2 3 4\n"] {
        let text = format!("%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n{entries}");
        assert_eq!(accepted(&text), [(0, 0, 5.0), (0, 2, -2.0), (1, 2, 4.0), (2, 0, -2.0), (2, 1, 4.0)]);
        let loaded = parse_str(&text).unwrap();
        assert_eq!((loaded.stored, loaded.symmetric), (3, true));
    }
}

#[test]
fn hermitian_without_imaginary_parts_is_symmetric() {
    let text = "%%MatrixMarket matrix coordinate real hermitian\n2 2 1\n2 1 3\n";
    assert_eq!(accepted(text), [(0, 1, 3.0), (1, 0, 3.0)]);
    assert!(parse_str(text).unwrap().symmetric);
}

#[test]
fn skew_symmetric_entries_change_sign_across_the_diagonal() {
    let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 2 0\n3 1 1.5\n";
    assert_eq!(accepted(text), [(0, 2, -1.5), (1, 1, 0.0), (2, 0, 1.5)]);
    assert!(!parse_str(text).unwrap().symmetric);
}

#[test]
fn a_skew_symmetric_diagonal_must_be_zero() {
    let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n2 2 1e-9\n";
    assert_refused(text, 3, 5, "0 on the diagonal of a skew-symmetric matrix", "1e-9");
}

#[test]
fn a_pattern_stores_no_values() {
    let text = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 1\n3 2\n";
    assert_eq!(accepted(text), [(0, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0)]);
    assert_eq!(parse_str(text).unwrap().matrix.values(), &Values::Ones);
}

#[test]
fn a_pattern_with_duplicates_counts_them() {
    let text = "%%MatrixMarket matrix coordinate pattern general\n3 3 5\n2 3\n1 1\n2 3\n2 1\n2 3\n";
    assert_eq!(accepted(text), [(0, 0, 1.0), (1, 0, 1.0), (1, 2, 3.0)]);
    assert_eq!(parse_str(text).unwrap().stored, 5);
}

#[test]
fn duplicates_are_summed_in_the_order_of_the_file_and_zeros_are_kept() {
    let text = format!("{GENERAL}2 2 5\n1 2 1e100\n1 1 0\n1 2 1\n1 2 -1e100\n2 2 -0.0\n");
    assert_eq!(accepted(&text), [(0, 0, 0.0), (0, 1, 0.0), (1, 1, 0.0)]);
    let text = format!("{GENERAL}2 2 3\n1 2 1e100\n1 2 -1e100\n1 2 1\n");
    assert_eq!(accepted(&text), [(0, 1, 1.0)]);
}

#[test]
fn an_infinite_sum_of_duplicates_is_refused_at_its_line() {
    let text = format!("{GENERAL}2 2 4\n2 1 1e308\n1 1 1\n2 1 1e308\n2 1 -1e308\n");
    assert_refused(&text, 5, 1, "entries for row 2, column 1 with a finite sum", "a sum of inf");
    let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 3\n2 1 1e308\n% between\n2 1 1e308\n2 1 1\n";
    assert_refused(text, 5, 1, "entries for row 1, column 2 with a finite sum", "a sum of -inf");
}

#[test]
fn numbers_in_all_spellings_are_read_exactly() {
    let spellings = [
        ("1", 1.0),
        ("+1", 1.0),
        ("-0", -0.0),
        ("007", 7.0),
        (".5", 0.5),
        ("-5.", -5.0),
        ("1e5", 1e5),
        ("1E-5", 1e-5),
        ("1.0D+03", 1000.0),
        ("1d5", 1e5),
        ("-2.5d-3", -2.5e-3),
        ("+.5D0", 0.5),
        ("1.5+300", 1.5e300),
        ("-2.5-300", -2.5e-300),
        ("1.+2", 100.0),
        ("-12345.678901", -12_345.678_901),
        ("12345678.12345678", 12_345_678.123_456_78),
        ("0.12345678901234567", 0.123_456_789_012_345_67),
        ("9007199254740993.0", 9_007_199_254_740_992.0),
        ("0.00000000000000000001", 1e-20),
        ("0.1", 0.1),
        ("123456789012345", 123_456_789_012_345.0),
        ("1234567890123456789", 1_234_567_890_123_456_789.0),
        ("18446744073709551615", 18_446_744_073_709_551_615.0),
        ("2.2250738585072011e-308", 2.225_073_858_507_201e-308),
        ("9007199254740993", 9_007_199_254_740_992.0),
        ("1.7976931348623157e308", f64::MAX),
        ("1e-400", 0.0),
    ];
    for (text, value) in spellings {
        let read = accepted(&body(&format!("1 1 {text}\n")))[0].2;
        assert_eq!(read.to_bits(), f64::to_bits(value), "{text}");
    }
}

#[test]
fn malformed_numbers_are_refused_at_their_column() {
    for word in
        ["x", "1.5x", "1,5", "0x10", "1e", "--1", "+-1", "1d", "d5", "1.0d1d1", "1+2+3", ".", "-.", "%"]
    {
        assert_refused(&body(&format!("1 1 {word}\n")), 3, 5, "a number", word);
    }
    for word in ["inf", "-Infinity", "NaN", "1e400", "-1D400"] {
        assert_refused(&body(&format!("2 2  {word}\n")), 3, 6, "a finite number", word);
    }
    assert_refused(&body("1 1\n"), 3, 4, "a number", "end of line");
    assert_refused(&body("1 1"), 3, 4, "a number", "end of file");
}

#[test]
fn an_integer_matrix_has_integers_only() {
    let text = |value| format!("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 {value}\n");
    assert_refused(&text("1.5"), 3, 5, "an integer, as the banner says", "1.5");
    assert_eq!(accepted(&text("2.0")), [(0, 0, 2.0)]);
}

#[test]
fn indices_outside_the_matrix_are_refused_at_their_line_and_column() {
    let row = "a row index from 1 to 3";
    let column = "a column index from 1 to 3";
    for index in ["0", "4", "-1", "1.0", "x", "1x", "18446744073709551617", "99999999999999999999999999"] {
        assert_refused(&body(&format!("% note\n\n  {index} 1 1\n")), 5, 3, row, index);
        assert_refused(&body(&format!("1 {index} 1\r\n")), 3, 3, column, index);
    }
    assert_refused(&body("1\n"), 3, 2, column, "end of line");
    assert_eq!(accepted(&body("00000000000000000000000000000000000002 3 1\n")), [(1, 2, 1.0)]);
}

#[test]
fn extra_words_on_an_entry_line_are_refused() {
    assert_refused(&body("1 1 1 9\n"), 3, 7, "end of line", "9");
    assert_refused(&body("1 1 1% note\n"), 3, 5, "a number", "1%");
    assert_refused(&body("1 % 1 1\n"), 3, 3, "a column index from 1 to 3", "%");
    let pattern = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 1\n";
    assert_refused(pattern, 3, 5, "end of line", "1");
}

#[test]
fn a_comment_may_follow_the_last_word_of_a_line() {
    for end in [" % note\n", "\t%\n", " %% 7 8 9 %\r\n", "  %1\n"] {
        let lines = |lines: &[&str]| lines.iter().map(|line| format!("{line}{end}")).collect::<String>();
        let banner = "%%MatrixMarket matrix coordinate";
        let real = [&format!("{banner} real general"), "3 3 2", "1 2 0.12345678901234567890123", "3 1 -4"];
        assert_eq!(accepted(&lines(&real)), [(0, 1, 0.123_456_789_012_345_68), (2, 0, -4.0)]);
        let pattern = [&format!("{banner} pattern symmetric"), "3 3 2", "2 1", "3 3"];
        assert_eq!(accepted(&lines(&pattern)), [(0, 1, 1.0), (1, 0, 1.0), (2, 2, 1.0)]);
        let complex = [&format!("{banner} complex general"), "3 3 2", "3 1 5 0", "1 2 7 0.0"];
        assert_eq!(accepted(&lines(&complex)), [(0, 1, 7.0), (2, 0, 5.0)]);
        let array = ["%%MatrixMarket matrix array integer general", "2 2", "1", "0", "3", "4"];
        assert_eq!(accepted(&lines(&array)), [(0, 0, 1.0), (0, 1, 3.0), (1, 1, 4.0)]);
    }
    assert_eq!(accepted(&body("1 1 1 % at the end of the file")), [(0, 0, 1.0)]);
}

#[test]
fn a_wrong_number_of_entries_is_refused_with_both_counts() {
    let text = format!("{GENERAL}3 3 3\n1 1 1\n% note\n2 2 2\n");
    assert_refused(&text, 6, 1, "3 entries, as the size line announces", "end of file after 2 entries");
    let text = format!("{GENERAL}3 3 1\n\n1 1 1\n\n % note\n  2 2 2\n3 3 3\n");
    assert_refused(&text, 7, 3, "1 entry, as the size line announces", "3 entries");
    let text = format!("{GENERAL}3 3 0\n1 1 1\n");
    assert_refused(&text, 3, 1, "0 entries, as the size line announces", "1 entry");
}

#[test]
fn the_first_fault_in_the_file_is_reported() {
    assert_refused(&body("1 1 1\n2 2 2\n3 3 x\n"), 4, 1, "1 entry, as the size line announces", "3 entries");
    assert_refused(&body("1 1 x\n2 2 y\n"), 3, 5, "a number", "x");
}

#[test]
fn banners_are_refused_at_the_faulty_word() {
    let begins = "a first line that begins with %%MatrixMarket";
    assert_refused("", 1, 1, begins, "end of file");
    assert_refused("\n", 2, 1, begins, "end of file");
    assert_refused("67 67 294\n", 1, 1, begins, "67");
    assert_refused("%%%MatrixMarket matrix coordinate real general\n", 1, 1, begins, "%%%MatrixMarket");
    assert_refused("MatrixMarket matrix coordinate real general\n", 1, 1, begins, "MatrixMarket");
    assert_refused("%%MatrixMarket\n", 1, 15, "the object 'matrix'", "end of line");
    assert_refused("%%MatrixMarket matrix\tlist\n", 1, 23, "the format 'coordinate' or 'array'", "list");
    let field = "the field 'real', 'integer', 'pattern' or 'complex'";
    assert_refused("%%MatrixMarket matrix coordinate double general\n", 1, 34, field, "double");
    let array = "the field 'real', 'integer' or 'complex', the three that an array can have";
    assert_refused("%%MatrixMarket matrix array pattern general\n", 1, 29, array, "pattern");
    let symmetry = "the symmetry 'general', 'symmetric', 'skew-symmetric' or 'hermitian'";
    assert_refused("%%MatrixMarket matrix coordinate real", 1, 38, symmetry, "end of file");
    assert_refused("%%MatrixMarket matrix coordinate real upper\n", 1, 39, symmetry, "upper");
    let symmetry = "the symmetry 'general' or 'symmetric', the two that a pattern can have";
    let text = "%%MatrixMarket matrix coordinate pattern skew-symmetric\n";
    assert_refused(text, 1, 42, symmetry, "skew-symmetric");
    assert_refused("%%MatrixMarket matrix coordinate real general x\n", 1, 47, "end of line", "x");
}

#[test]
fn size_lines_are_refused_at_the_faulty_word() {
    let size = |line: &str| format!("{GENERAL}%\n{line}\n");
    assert_refused(&size("-3 3 1"), 3, 1, "the number of rows", "-3");
    assert_refused(&size("3 3.0 1"), 3, 3, "the number of columns", "3.0");
    assert_refused(&size("3 3"), 3, 4, "the number of entries", "end of line");
    assert_refused(&size("3 3 99999999999999999999"), 3, 5, "the number of entries", "99999999999999999999");
    assert_refused(&size("100 100 460 1"), 3, 13, "end of line", "1");
    let expected = "the size line: numbers of rows, columns and entries";
    assert_refused(GENERAL, 2, 1, expected, "end of file");
    assert_refused(GENERAL.trim_end(), 1, 46, expected, "end of file");
    let text = "%%MatrixMarket matrix coordinate real symmetric\n4 3 0\n";
    let expected = "as many rows as columns, as the banner says that the matrix is symmetric";
    assert_refused(text, 2, 1, expected, "4 rows and 3 columns");
}

#[test]
fn unsupported_features_are_refused_by_name() {
    for (text, name) in [
        ("%%MatrixMarket vector coordinate real general\n1\n1 1\n".to_owned(), "the object 'vector'"),
        (format!("{GENERAL}1 1 1 1 0\n1 1 1\n1 1\n"), "a size line of five numbers"),
    ] {
        match parse_str(&text) {
            Err(Error::UnsupportedFile { what, .. }) => assert!(what.contains(name), "{what}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn offending_words_are_truncated_and_escaped_in_messages() {
    let long = "9".repeat(5000);
    assert_refused(
        &body(&format!("{long} 1 1\n")),
        3,
        1,
        "a row index from 1 to 3",
        &format!("{}...", "9".repeat(40)),
    );
    let text = [body("1 1 ").as_bytes(), b"\x1b[31m\xff\n"].concat();
    match parse(Path::new("test.mtx"), &text) {
        Err(Error::Parse { found, .. }) => assert_eq!(found, "\\u{1b}[31m\u{fffd}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn headers_with_implausible_sizes_are_refused_immediately() {
    for size in [
        "10 10 1000000000000000",
        "10 10 18446744073709551615",
        "1000000000 1000000000 0",
        "4294967295 1 0",
        "4294967296 1 1",
        "1 4294967296 1",
        "1099511627776 1099511627776 3",
    ] {
        let before = Instant::now();
        let result = parse_str(&format!("{GENERAL}{size}\n"));
        assert!(result.is_err(), "{size}");
        assert!(before.elapsed() < Duration::from_millis(200), "{size} took {:?}", before.elapsed());
    }
    let loaded = parse_str(&format!("{GENERAL}1000 4294967295 1\n1000 4294967295 1\n")).unwrap();
    assert_eq!((loaded.matrix.rows(), loaded.matrix.cols()), (1000, u32::MAX as usize));
}

#[test]
fn empty_matrices_are_read() {
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (10, 10)] {
        let loaded = parse_str(&format!("{GENERAL}{rows} {cols} 0\n")).unwrap();
        assert_eq!((loaded.matrix.rows(), loaded.matrix.cols(), loaded.matrix.nnz()), (rows, cols, 0));
    }
}

#[test]
fn gzip_is_recognised_by_its_content_and_damage_is_an_error() {
    let text = body("3 1 7\n");
    let mut packed = Vec::new();
    std::io::Read::read_to_end(
        &mut flate2::read::GzEncoder::new(text.as_bytes(), flate2::Compression::default()),
        &mut packed,
    )
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.mtx");
    std::fs::write(&path, &packed).unwrap();
    assert_eq!(entries(&read(&path).unwrap().matrix), [(2, 0, 7.0)]);
    for length in 2..packed.len() {
        assert!(parse(&path, &packed[..length]).is_err(), "cut to {length} bytes");
    }
    let middle = packed.len() / 2;
    packed[middle] ^= 0xff;
    assert!(parse(&path, &packed).is_err());
}

#[test]
fn missing_files_empty_files_and_folders_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(read(&folder.path().join("none.mtx")), Err(Error::Io { action: "read", .. })));
    assert!(matches!(read(folder.path()), Err(Error::Io { action: "read", .. })));
    let empty = folder.path().join("empty.mtx");
    std::fs::write(&empty, "").unwrap();
    assert!(matches!(read(&empty), Err(Error::Parse { line: 1, column: 1, .. })));
}
