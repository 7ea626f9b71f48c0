//! Matrix Market files that contradict their banner without violating the grammar: entries of both triangles,
//! and integers that the values cannot represent.

use solver::source::market::{parse, parse_vector};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;

fn refused(text: &str) -> String {
    parse(Path::new("test.mtx"), text.as_bytes()).expect_err("must be refused").to_string()
}

const BOTH: &str = "expected entries of one triangle only, because the banner declares symmetry (if both triangles are \
                    stored, it must say general), found";

#[test]
fn a_symmetric_file_with_both_triangles_is_refused_at_its_first_entry_above_the_diagonal() {
    for (banner, value) in [
        ("real symmetric", " 1.5"),
        ("integer symmetric", " 2"),
        ("pattern symmetric", ""),
        ("real skew-symmetric", " 1"),
        ("complex hermitian", " 1 0"),
    ] {
        let text = |indices: &[&str]| {
            let size = format!("9 9 {}", indices.len());
            let lines: String = indices.iter().map(|pair| format!("{pair}{value}\n")).collect();
            format!("%%MatrixMarket matrix coordinate {banner}\n% note\n{size}\n{lines}")
        };
        let first = refused(&text(&["3 1", "1 3", "2 4"]));
        assert_eq!(
            first,
            format!(
                "test.mtx:5:1: {BOTH} row 1, column 3 above the diagonal, and other entries are below it"
            )
        );
        // The two triangles need not hold the same pair of indices.
        let last = refused(&text(&["  2 5", "3 2", "4 2"]));
        assert_eq!(
            last,
            format!(
                "test.mtx:4:3: {BOTH} row 2, column 5 above the diagonal, and other entries are below it"
            )
        );
        for one in [["3 1", "4 2"], ["1 3", "2 4"]] {
            let loaded = parse(Path::new("test.mtx"), text(&one).as_bytes()).unwrap();
            assert_eq!((loaded.stored, loaded.matrix.nnz()), (2, 4), "{banner}");
        }
        let vector = parse_vector(Path::new("test.mtx"), text(&["3 1", "1 3"]).as_bytes());
        assert!(vector.unwrap_err().to_string().contains(BOTH), "{banner}");
    }
}

#[test]
fn a_general_file_may_have_entries_in_both_triangles() {
    let text = "%%MatrixMarket matrix coordinate real general\n2 2 2\n2 1 1\n1 2 1\n";
    assert_eq!(parse(Path::new("test.mtx"), text.as_bytes()).unwrap().matrix.nnz(), 2);
}

#[test]
fn the_reported_entry_above_the_diagonal_does_not_depend_on_the_number_of_threads() {
    let mut text = "%%MatrixMarket matrix coordinate real symmetric\n50000 50000 50000\n".to_owned();
    for i in 1..=50_000 {
        let (row, column) = if i == 30_000 || i == 45_000 { (i - 1, i) } else { (i, 1) };
        writeln!(text, "{row} {column} 1.25").unwrap();
    }
    for threads in [1, 2, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let message = pool.install(|| refused(&text));
        let place = "row 29999, column 30000 above the diagonal, and other entries are below it";
        assert_eq!(message, format!("test.mtx:30002:1: {BOTH} {place}"), "{threads} threads");
    }
}

fn info(text: &str, more: &[&str]) -> (PathBuf, Output) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.mtx");
    std::fs::write(&path, text).unwrap();
    let mut command = crate::common::process::solver();
    let done = command.args(["info", "--matrix", path.to_str().unwrap()]).args(more).output().unwrap();
    (path, done)
}

fn errors(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[test]
fn as_stored_refuses_a_symmetric_file_with_both_triangles() {
    let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 2 1\n2 1 1\n";
    let (path, done) = info(text, &["--as-stored"]);
    let place = format!("{}:3:1: {BOTH} row 1, column 2 above", path.display());
    assert_eq!(done.status.code(), Some(2));
    assert!(errors(&done).contains(&place), "{}", errors(&done));
}

#[test]
fn a_rounded_integer_with_a_plus_sign_is_reported() {
    let (_, done) =
        info("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 +9007199254740993\n", &[]);
    assert!(errors(&done).contains("+9007199254740993 is read as 9007199254740992"), "{}", errors(&done));
}

#[test]
fn only_the_first_rounded_integer_is_reported_with_its_rounded_value() {
    let text = "%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 1 9007199254740992\n\
                2 2 -9007199254740993\n3 3 18446744073709551615\n";
    let (path, done) = info(text, &[]);
    let expected = format!("{}:4: -9007199254740993 is read as -9007199254740992", path.display());
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    assert!(errors(&done).contains(&expected), "{}", errors(&done));
    assert_eq!(errors(&done).matches("is read as").count(), 1, "{}", errors(&done));
    let matrix = parse(Path::new("test.mtx"), text.as_bytes()).unwrap().matrix;
    assert_eq!((matrix.get(1, 1), matrix.get(2, 2)), (Some(-9_007_199_254_740_992.0), Some(2_f64.powi(64))));
}

#[test]
fn exact_integers_and_real_numbers_cause_no_warning() {
    for (field, value) in [
        ("integer", "9007199254740992"),
        ("integer", "-1152921504606846976"),
        ("integer", "1e20"),
        ("real", "9007199254740993"),
    ] {
        let (_, done) =
            info(&format!("%%MatrixMarket matrix coordinate {field} general\n1 1 1\n1 1 {value}\n"), &[]);
        assert_eq!((done.status.code(), errors(&done)), (Some(0), String::new()), "{field} {value}");
    }
}
