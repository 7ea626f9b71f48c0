//! Real Matrix Market files: published matrices, and a collection of small unusual and faulty files.

use crate::common::real;

use solver::Error;
use solver::source::Loaded;
use solver::source::load;
use std::path::Path;

/// Reads a file through the public interface, which detects its kind.
fn read(path: &Path) -> Result<Loaded, Error> {
    load(path.to_str().unwrap())
}

/// Returns the number that follows a word in a line of text.
fn number_after(line: &str, word: &str) -> usize {
    let rest = line.split_once(word).unwrap_or_else(|| panic!("no '{word}' in {line}")).1;
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn every_real_matrix_has_its_documented_sizes() {
    let real = real::folder();
    let sources = std::fs::read_to_string(real.join("SOURCES.md")).unwrap();
    let mut checked = 0;
    for line in sources.lines() {
        let Some((name, facts)) = line.strip_prefix("- **").and_then(|rest| rest.split_once("**: ")) else {
            continue;
        };
        if !name.ends_with(".mtx.gz") {
            continue;
        }
        let loaded = read(&real.join(name)).unwrap_or_else(|error| panic!("must be read: {error}"));
        let matrix = &loaded.matrix;
        let got = [matrix.rows(), matrix.cols(), loaded.stored as usize, matrix.nnz()];
        let rows: usize = facts.split(' ').next().unwrap().parse().unwrap();
        let stated =
            [rows, number_after(facts, " x "), number_after(facts, "stored "), number_after(facts, "nnz ")];
        assert_eq!(got, stated, "{name}: rows, columns, stored, expanded");
        assert_eq!(loaded.symmetric, facts.contains(" symmetric "), "{name}");
        if loaded.symmetric {
            let mirrored = |i: usize| matrix.row(i).all(|(j, value)| matrix.get(j, i) == Some(value));
            assert!((0..matrix.rows()).all(mirrored), "{name} is not symmetric");
        }
        checked += 1;
    }
    let files = std::fs::read_dir(&real).unwrap().map(|entry| entry.unwrap().file_name());
    let present = files.filter(|name| name.to_string_lossy().ends_with(".mtx.gz")).count();
    assert_eq!(checked, present, "files without a line in SOURCES.md");
    assert!(checked > 0);
}

/// Asserts the behaviour of this reader for files that other readers treat differently.
fn policy(file: &str, result: Result<Loaded, Error>) {
    let sizes = |loaded: &Loaded| {
        let m = &loaded.matrix;
        [m.rows(), m.cols(), loaded.stored as usize, m.nnz()]
    };
    let read = |expected: [usize; 4], (row, column): (usize, usize), value: f64| match &result {
        Ok(loaded) => {
            assert_eq!(sizes(loaded), expected, "{file}");
            assert_eq!(loaded.matrix.get(row, column), Some(value), "{file}");
        }
        Err(error) => panic!("{file} must be read: {error}"),
    };
    let refused = |words: &[&str]| match &result {
        Ok(_) => panic!("{file} must be refused"),
        Err(error) => {
            let message = error.to_string();
            assert!(words.iter().all(|word| message.contains(word)), "{file}: {message}");
        }
    };
    match file {
        "fmm__coordinate_hermitian_real_row.mtx" => read([3, 3, 3, 5], (0, 2), 10.0),
        "sprs__hermitian-int.mtx" => read([2, 2, 2, 3], (0, 1), 5.0),
        "fmm__coordinate_symmetric_row_general_dup.mtx" => read([3, 3, 6, 5], (2, 2), 60.0),
        "fmm__coordinate_symmetric_row_general_zero.mtx" => read([3, 3, 6, 5], (2, 2), 30.0),
        "fmm__overflow_value_gt_float64.mtx" => refused(&[":4:5: expected a finite number", "1E310"]),
        "fmm__permissive_banner_one_percent_eye3.mtx" => read([3, 3, 3, 3], (2, 2), 1.0),
        "fmm__permissive_lines_indented.mtx" => read([1, 1, 1, 1], (0, 0), 1.0),
        "gapbs__4.mtx" => read([14, 14, 256, 58], (0, 1), 4.0),
        "lagraph__matrix_uint64.mtx" => read([7, 7, 12, 12], (0, 1), 18_446_744_073_709_551_615.0),
        "lagraph__skew_fp64.mtx" => refused(&["expected a finite number"]),
        "lis__testmat.mtx" => refused(&["a size line of five numbers", "Lis"]),
        "lis__testvec0.mtx" => refused(&["the object 'vector'"]),
        "sprs__too_many_elems_in_entry.mm" => refused(&["expected end of line"]),
        "fmm__array_symmetric.mtx" => read([3, 3, 6, 9], (0, 2), 33.0),
        "fmm__coordinate_hermitian_row.mtx" => {
            refused(&[":4:8: expected an imaginary part of 0 at row 3, column 1", "found 1"]);
        }
        "fmm__eye3_array.mtx" => read([3, 3, 9, 3], (1, 1), 1.0),
        "fmm__eye3_complex.mtx" => read([3, 3, 3, 3], (1, 1), 1.0),
        "mathnet__hilbert_real_symmetric_array_10.mtx" => read([10, 10, 55, 100], (0, 9), 0.1),
        other => panic!("{other}: this test has no policy for the file"),
    }
}

#[test]
fn every_case_of_the_collection_has_the_result_in_its_table() {
    let real = real::folder();
    let folder = real.join("mm-cases");
    let table = std::fs::read_to_string(folder.join("CASES.tsv")).expect("the table of cases");
    let mut checked = 0;
    for case in table.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let fields: Vec<&str> = case.split('\t').collect();
        let (file, expected) = (fields[0], fields[2]);
        let result = read(&folder.join(file));
        match expected {
            "accept" => {
                let loaded = result.unwrap_or_else(|error| panic!("{file} must be read: {error}"));
                let matrix = &loaded.matrix;
                let got = [matrix.rows(), matrix.cols(), loaded.stored as usize, matrix.nnz()];
                assert_eq!(got.map(|n| n.to_string()), fields[3..7], "{file}");
            }
            // A file without its banner may be read as a table of edges between names.
            "reject" => assert!(
                result.is_err() || result.is_ok_and(|loaded| loaded.kind == Some("edge table")),
                "{file} must be refused: {}",
                fields[7]
            ),
            "policy" | "unsupported" => policy(file, result),
            other => panic!("{file}: unknown expectation {other}"),
        }
        checked += 1;
    }
    assert!(checked > 0, "no cases in the table");
}
