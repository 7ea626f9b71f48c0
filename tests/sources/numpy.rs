//! NumPy arrays and SciPy sparse matrices: files that NumPy and SciPy wrote, files that they
//! read, and faulty files.

use crate::common::harness::skip;
use proptest::prelude::*;
use solver::Error;
use solver::format::{Coo, Csr, Dense, Duplicates, Offsets, Values};
use solver::source::{Loaded, Options, load, load_with, npy, npz, parse, read_dense};
use std::io::Write;
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    crate::common::process::project("tests/data").join(name)
}

fn entries(matrix: &Csr) -> Vec<(usize, usize, f64)> {
    (0..matrix.rows()).flat_map(|i| matrix.row(i).map(move |(j, v)| (i, j, v))).collect()
}

fn scipy(name: &str) -> (Loaded, Vec<(usize, usize, f64)>) {
    let loaded = load(data(name).to_str().unwrap()).unwrap();
    assert_eq!(loaded.kind, Some("SciPy sparse matrix"));
    let entries = entries(&loaded.matrix);
    (loaded, entries)
}

/// Builds an array with the given header.
fn array(descr: &str, fortran: bool, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), numbers].concat()
}

fn i32s(numbers: &[i32]) -> Vec<u8> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    array("<i4", false, &format!("({},)", numbers.len()), &bytes)
}

fn f64s(numbers: &[f64]) -> Vec<u8> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    array("<f8", false, &format!("({},)", numbers.len()), &bytes)
}

fn zip(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Builds a csr archive of a 2 x 3 matrix in which `changes` replace valid members.
fn csr_with(changes: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut members = vec![
        ("format", array("|S3", false, "()", b"csr")),
        ("shape", i32s(&[2, 3])),
        ("indptr", i32s(&[0, 2, 3])),
        ("indices", i32s(&[2, 0, 1])),
        ("data", f64s(&[1.0, 2.0, 3.0])),
    ];
    for (name, bytes) in changes {
        members.iter_mut().find(|(other, _)| other == name).unwrap().1 = bytes.clone();
    }
    zip(&members)
}

fn read(bytes: &[u8]) -> Result<Loaded, Error> {
    parse(Path::new("test.npz"), bytes, &Options::default())
}

fn message(bytes: &[u8]) -> String {
    match read(bytes) {
        Err(error) => error.to_string(),
        Ok(loaded) => panic!("must be refused: {loaded:?}"),
    }
}

#[test]
fn every_format_that_scipy_saves_is_read() {
    let expected = [(0, 0, 1.5), (0, 3, -2.0), (1, 2, 3.0), (2, 1, 4.0), (2, 3, 0.25)];
    for name in ["csr.npz", "csc.npz"] {
        let (loaded, entries) = scipy(name);
        assert_eq!((loaded.matrix.rows(), loaded.matrix.cols(), loaded.stored), (4, 4, 5), "{name}");
        assert_eq!(entries, expected, "{name}");
    }
    for name in ["coo.npz", "coo-array.npz"] {
        let (loaded, entries) = scipy(name);
        assert_eq!((loaded.matrix.rows(), loaded.matrix.cols(), loaded.stored), (3, 5, 4), "{name}");
        assert_eq!(entries, [(0, 3, 2.0), (1, 0, 4.0), (2, 1, 4.0)], "{name}: duplicates are summed");
    }
    let (loaded, entries) = scipy("bsr.npz");
    assert_eq!((loaded.matrix.rows(), loaded.matrix.cols(), loaded.stored), (4, 6, 12));
    assert_eq!(entries[..4], [(0, 3, 1.0), (0, 4, 2.0), (0, 5, 3.0), (1, 3, 4.0)]);
    assert_eq!(entries[6..8], [(2, 0, 7.0), (2, 1, 8.0)]);
    let (_, entries) = scipy("dia.npz");
    let diagonals = [(0, 0, 1.0), (0, 1, 6.0), (1, 1, 2.0), (1, 2, 7.0), (2, 0, 9.0), (2, 2, 3.0)];
    assert_eq!(entries[..6], diagonals);
    assert_eq!(entries[6..], [(2, 3, 8.0), (3, 1, 10.0), (3, 3, 4.0)]);
}

#[test]
fn format_names_and_numbers_are_read_in_every_supported_type() {
    let expected = [(0, 0, 2.0), (0, 2, 1.0), (1, 1, 3.0)];
    let wide: Vec<u8> = "csr".chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
    let halves = |n: &[i64]| n.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>();
    let singles: Vec<u8> = [1.0_f32, 2.0, 3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let pairs: Vec<u8> = [1.0_f64, 0.0, 2.0, -0.0, 3.0, 0.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    for changes in [
        vec![],
        vec![("format", array("<U3", false, "()", &wide))],
        vec![("indices", array(">i8", false, "(3,)", &halves(&[2, 0, 1])))],
        vec![("data", array("<f4", false, "(3,)", &singles))],
        vec![("data", array("|u1", false, "(3,)", &[1, 2, 3]))],
        vec![("data", array("|i1", false, "(3L,)", &[1, 2, 3]))],
        vec![("data", array("<c16", false, "(3,)", &pairs))],
    ] {
        let loaded = read(&csr_with(&changes)).unwrap_or_else(|error| panic!("{changes:?}: {error}"));
        assert_eq!(entries(&loaded.matrix), expected, "{changes:?}");
    }
    let bools = csr_with(&[("data", array("|b1", false, "(3,)", &[1, 0, 7]))]);
    assert_eq!(entries(&read(&bools).unwrap().matrix), [(0, 0, 0.0), (0, 2, 1.0), (1, 1, 1.0)]);
}

#[test]
fn faults_in_the_arrays_are_reported_with_array_and_index() {
    for (change, expected) in [
        (("indices", i32s(&[2, 3, 1])), "indices[1]: expected a column from 0 to 2, found 3"),
        (("indices", i32s(&[2, -1, 1])), "indices[1]: expected a column from 0 to 2, found -1"),
        (("indptr", i32s(&[0, 2, 4])), "indptr[2]: expected an offset from 0 to 3, found 4"),
        (("indptr", i32s(&[0, 3])), "indptr: expected 3 offsets, found 2"),
        (("indptr", i32s(&[1, 2, 3])), "indptr: expected 0 as the first offset, found 1"),
        (
            ("indptr", i32s(&[0, 3, 2])),
            "indptr: expected offsets that never decrease, so 3 or more at [2], found 2",
        ),
        (
            ("indptr", i32s(&[0, 2, 2])),
            "indptr: expected 3 as the last offset, the number of indices, found 2",
        ),
        (("data", f64s(&[1.0, 2.0])), "data: expected 1 dimension and 3 values"),
        (("data", f64s(&[1.0, f64::NAN, 2.0])), "data[1]: expected a finite number, found NaN"),
        (("shape", i32s(&[2])), "shape: expected 2 sizes, found 1"),
        (("shape", i32s(&[2, -3])), "shape[1]: expected a size from 0 to 4294967295, found -3"),
        (
            ("format", array("|S3", false, "()", b"lil")),
            "format 'lil' is not supported; convert it with tocsr",
        ),
        (("data", array("<f2", false, "(3,)", &[0; 6])), "the type '<f2' of data is not supported"),
        (
            ("data", array("|O", false, "(3,)", &[0; 24])),
            "the type '|O' of data is not supported; numbers are read as",
        ),
        (("data", array("<M8[s]", false, "(3,)", &[0; 24])), "the type '<M8[s]' of data is not supported"),
        (("data", array("|O", false, "(3,)", &[])), "the type '|O' of data is not supported"),
        (("indices", f64s(&[2.0, 0.0, 1.0])), "indices: expected integers, found <f8"),
    ] {
        let message = message(&csr_with(&[change]));
        assert!(message.starts_with("test.npz: ") && message.contains(expected), "{message}");
    }
    let imaginary: Vec<u8> =
        [1.0_f64, 0.0, 2.0, 5.0, 3.0, 0.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let message = message(&csr_with(&[("data", array("<c16", false, "(3,)", &imaginary))]));
    assert!(message.contains("data[1]: expected a real number"), "{message}");
}

#[test]
fn truncated_archives_and_archives_without_a_sparse_matrix_are_errors() {
    let valid = std::fs::read(data("csr.npz")).unwrap();
    for length in 4..valid.len() {
        assert!(read(&valid[..length]).is_err(), "cut to {length} bytes");
    }
    let mut broken = valid.clone();
    broken[30..200].iter_mut().for_each(|byte| *byte ^= 0xff);
    assert!(read(&broken).is_err());
    let other = message(&zip(&[("arr_0", f64s(&[1.0]))]));
    assert!(
        other.contains("'format.npy'") && other.contains("arr_0.npy") && other.contains("save_npz"),
        "{other}"
    );
    let message = message(&zip(&[]));
    assert!(message.contains("it holds: no files"), "{message}");
}

#[test]
fn headers_with_implausible_sizes_are_refused() {
    let rows = csr_with(&[("shape", i32s(&[i32::MAX, 3]))]);
    assert!(message(&rows).contains("offsets"));
    let claim = array("<f8", false, "(1000000000000000,)", &[0; 16]);
    assert!(message(&csr_with(&[("data", claim)])).contains("bytes of numbers"));
    let coo = zip(&[
        ("format", array("|S3", false, "()", b"coo")),
        ("shape", i32s(&[i32::MAX, 1])),
        ("row", i32s(&[])),
        ("col", i32s(&[])),
        ("data", f64s(&[])),
    ]);
    let most = "test.npz: the number of rows is 2147483647, more than the 16";
    assert!(message(&coo).starts_with(most), "{}", message(&coo));
    let rows = message(&array("<f8", false, "(4000000000, 0)", &[]));
    assert!(rows.starts_with("test.npz: the number of rows is 4000000000"), "{rows}");
    let rows = message(&array("<f8", false, "(5000000000, 0)", &[]));
    assert!(rows.contains("expected at most 4294967295 rows and columns, found (5000000000, 0)"), "{rows}");
    let message = message(&array("<f8", false, "(4294967296, 4294967296, 8)", &[]));
    assert!(message.contains("more than 2^64"), "{message}");
}

#[test]
fn an_infinite_sum_of_duplicates_is_refused_with_its_file_and_position() {
    for (format, place) in [("csr", "row 0, column 2"), ("csc", "row 2, column 0")] {
        let square = csr_with(&[
            ("format", array("|S3", false, "()", format.as_bytes())),
            ("shape", i32s(if format == "csr" { &[2, 3] } else { &[3, 2] })),
            ("indices", i32s(&[2, 2, 1])),
            ("data", f64s(&[1e308, 1e308, 1.0])),
        ]);
        let message = message(&square);
        assert_eq!(
            message,
            format!(
                "test.npz: the duplicates at {place} (counted from 0) have a sum beyond the range of f64"
            )
        );
    }
}

#[test]
fn duplicates_are_kept_on_request() {
    let keep = Options { duplicates: Duplicates::Keep, ..Options::default() };
    for name in ["coo.npz", "coo-array.npz"] {
        let loaded = load_with(data(name).to_str().unwrap(), &keep).unwrap();
        assert!(loaded.matrix.pattern().has_repeats() && loaded.matrix.nnz() == 4, "{name}");
    }
    let rows = csr_with(&[("indices", i32s(&[2, 2, 1]))]);
    let loaded = parse(Path::new("a.npz"), &rows, &keep).unwrap();
    assert_eq!(entries(&loaded.matrix), [(0, 2, 1.0), (0, 2, 2.0), (1, 1, 3.0)]);
}

#[test]
fn the_first_rounded_integer_is_reported_with_its_file_and_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let warnings = |numbers: [i64; 4]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        std::fs::write(&path, array("<i8", false, "(2, 2)", &bytes)).unwrap();
        let mut solver = crate::common::process::solver();
        let done = solver.args(["info", "--matrix"]).arg(&path).output().unwrap();
        assert_eq!(done.status.code(), Some(0));
        String::from_utf8(done.stderr).unwrap()
    };
    // 2^53 + 1 and 2^53 + 3 have no exact f64; 2^53 + 2 has one.
    let warned = warnings([1, 9_007_199_254_740_994, 9_007_199_254_740_993, -9_007_199_254_740_995]);
    let expected = "a.npy: the array[2] is 9007199254740993, which f64 rounds to 9007199254740992\n";
    assert!(warned.ends_with(expected) && warned.lines().count() == 1, "{warned}");
    assert_eq!(warnings([1, 9_007_199_254_740_992, -(1 << 62), 0]), "");
}

#[test]
fn a_dense_array_is_a_matrix_of_its_nonzeros() {
    let loaded = load(data("fortran.npy").to_str().unwrap()).unwrap();
    assert_eq!(entries(&loaded.matrix), [(0, 0, 1.0), (0, 2, 2.0), (1, 1, 3.0)]);
    assert_eq!((loaded.matrix.rows(), loaded.matrix.cols(), loaded.kind), (2, 3, Some("NumPy array")));
    let message = message(&f64s(&[1.0, 2.0]));
    assert!(message.contains("one-dimensional"), "{message}");
}

#[test]
fn faulty_headers_of_arrays_are_errors() {
    for bytes in [
        b"\x93NUMPY".to_vec(),
        b"\x93NUMPY\x01\x00\xff".to_vec(),
        b"\x93NUMPY\x09\x00\x00\x00".to_vec(),
        b"\x93NUMPY\x01\x00\xff\xff{}".to_vec(),
        array("<f8", false, "(2, x)", &[0; 16]),
        array("<f8", false, "(2, 2)", &[0; 31]),
        array("<f8", false, "(2, 2)", &[0; 33]),
        array("<f8", false, "(1, 1, 1)", &[0; 8]),
        array("[('a', '<f8')]", false, "(1, 1)", &[0; 8]),
    ] {
        assert!(
            matches!(read(&bytes), Err(Error::Malformed { .. } | Error::UnsupportedFile { .. })),
            "{bytes:?}"
        );
    }
}

#[test]
fn vectors_are_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.npy");
    for dense in [
        Dense::new(3, 1, vec![1.0, -0.5, 1e300]).unwrap(),
        Dense::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap(),
        Dense::new(0, 1, vec![]).unwrap(),
    ] {
        npy::write(&path, &dense).unwrap();
        assert_eq!(read_dense(&path).unwrap(), dense);
    }
    assert_eq!(read_dense(&data("fortran.npy")).unwrap().values(), [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]);
    let market = folder.path().join("b.mtx");
    std::fs::write(&market, "%%MatrixMarket matrix array real general\n% note\n2 2\n1\n2\n\n3\n4\n").unwrap();
    assert_eq!(read_dense(&market).unwrap().values(), [1.0, 3.0, 2.0, 4.0]);
    std::fs::write(&market, "%%MatrixMarket matrix coordinate real general\n3 1 1\n2 1 5\n").unwrap();
    assert_eq!(read_dense(&market).unwrap().values(), [0.0, 5.0, 0.0]);
    std::fs::write(&market, "a 2 3\n").unwrap();
    assert!(matches!(read_dense(&market), Err(Error::UnsupportedFile { .. })));
}

/// Returns a Python interpreter with SciPy; skips the test if there is none.
fn python() -> PathBuf {
    let python = PathBuf::from(std::env::var_os("SOLVER_PYTHON").unwrap_or("python3".into()));
    let works = std::process::Command::new(&python).args(["-c", "import scipy.sparse"]).output();
    let works = works.is_ok_and(|done| done.status.success());
    if !works {
        skip(format_args!("{} has no scipy (SOLVER_PYTHON names another)", python.display()));
    }
    python
}

#[test]
fn scipy_and_numpy_read_the_written_files() {
    let python = python();
    let folder = tempfile::tempdir().unwrap();
    let matrix =
        Coo::new(3, 4, vec![0, 2, 2], vec![3, 0, 2], vec![0.1, -2.0, 3e-300]).unwrap().into_csr().unwrap();
    npz::write(&folder.path().join("f64.npz"), &matrix).unwrap();
    npz::write(&folder.path().join("f32.npz"), &matrix.to_f32()).unwrap();
    npy::write(&folder.path().join("b.npy"), &Dense::new(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap()).unwrap();
    let script = "import sys, numpy as np, scipy.sparse as sp\n\
        for name, kind in (('f64', np.float64), ('f32', np.float32)):\n\
        \x20   a = sp.load_npz(name + '.npz')\n\
        \x20   assert a.format == 'csr' and a.dtype == kind and a.has_canonical_format, a\n\
        \x20   a.check_format(full_check=True)\n\
        \x20   e = np.zeros((3, 4), kind); e[0, 3] = kind(0.1); e[2, 0] = -2; e[2, 2] = kind(3e-300)\n\
        \x20   assert a.shape == e.shape and (a.toarray() == e).all(), a.toarray()\n\
        b = np.load('b.npy'); assert b.dtype == np.float64 and (b == [[1, 2], [3, 4]]).all(), b\n\
        sp.save_npz('back.npz', sp.load_npz('f64.npz').tocsc())\n";
    let done =
        std::process::Command::new(python).args(["-c", script]).current_dir(folder.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(load(folder.path().join("back.npz").to_str().unwrap()).unwrap().matrix, matrix);
}

#[test]
fn a_pattern_is_written_with_its_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ones.npz");
    let matrix = Csr::new(2, 2, Offsets::U32(vec![0, 1, 2]), vec![1, 0], Values::Ones).unwrap();
    npz::write(&path, &matrix).unwrap();
    assert_eq!(entries(&load(path.to_str().unwrap()).unwrap().matrix), [(0, 1, 1.0), (1, 0, 1.0)]);
}

proptest! {
    #[test]
    fn any_matrix_is_read_back_bit_for_bit(
        triplets in proptest::collection::vec((0_u32..9, 0_u32..7, -1e300_f64..1e300), 0..40),
    ) {
        let (rows, rest): (Vec<_>, Vec<_>) = triplets.into_iter().map(|(i, j, v)| (i, (j, v))).unzip();
        let (cols, values) = rest.into_iter().unzip();
        let matrix = Coo::new(9, 7, rows, cols, values).unwrap().into_csr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        npz::write(&path, &matrix).unwrap();
        let back = load(path.to_str().unwrap()).unwrap().matrix;
        prop_assert_eq!(entries(&back), entries(&matrix));
    }
}
