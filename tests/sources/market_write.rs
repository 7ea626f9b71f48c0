//! Writing Matrix Market files: reading a file back gives the same matrix bit for bit, and writing is atomic.

use proptest::prelude::*;
use solver::Error;
use solver::format::{Coo, Csr, Offsets, Values};
use solver::source::market::{read, read_vector, write_matrix, write_vector};
use std::path::Path;

fn csr(rows: usize, cols: usize, triplets: &[(usize, usize, f64)]) -> Csr {
    let mut coo = Coo::with_capacity(rows, cols, triplets.len()).unwrap();
    triplets.iter().for_each(|&(row, col, value)| coo.push(row, col, value).unwrap());
    coo.into_csr().unwrap()
}

fn bits(matrix: &Csr) -> Vec<(usize, usize, u64)> {
    (0..matrix.rows()).flat_map(|i| matrix.row(i).map(move |(j, v)| (i, j, v.to_bits()))).collect()
}

fn written(matrix: &Csr, name: &str, symmetric: bool) -> Csr {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    write_matrix(&path, matrix, symmetric).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
    let loaded = read(&path).unwrap();
    assert_eq!(loaded.symmetric, symmetric);
    loaded.matrix
}

fn refusal(matrix: &Csr, symmetric: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let result = write_matrix(&folder.path().join("a.mtx"), matrix, symmetric);
    assert!(matches!(result, Err(Error::Unwritable { .. })), "{result:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file is left");
    result.unwrap_err().to_string()
}

#[test]
fn numbers_are_written_with_the_fewest_digits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    write_matrix(&path, &csr(3, 2, &[(0, 1, 4.0), (1, 0, -0.0), (1, 1, 0.1), (2, 0, 1e300)]), false).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let expected =
        "%%MatrixMarket matrix coordinate real general\n3 2 4\n1 2 4\n2 1 -0.0\n2 2 0.1\n3 1 1e+300\n";
    assert_eq!(text, expected);
}

#[test]
fn a_pattern_is_written_without_values_and_a_symmetric_matrix_as_its_lower_triangle() {
    let ones = Csr::new(2, 2, Offsets::U32(vec![0, 2, 3]), vec![0, 1, 0], Values::Ones).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    write_matrix(&path, &ones, true).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n");
    assert_eq!(read(&path).unwrap().matrix, ones);
}

#[test]
fn a_file_name_that_ends_in_gz_gives_a_compressed_file() {
    let matrix = solver::source::load("poisson2d:40x30").unwrap().matrix;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx.gz");
    write_matrix(&path, &matrix, true).unwrap();
    assert!(std::fs::read(&path).unwrap().starts_with(&[0x1f, 0x8b]));
    assert_eq!(read(&path).unwrap().matrix, matrix);
}

#[test]
fn a_matrix_of_many_blocks_is_read_back_for_any_number_of_threads() {
    let matrix = solver::source::load("hex27:16x16x16,dof=3").unwrap().matrix;
    assert!(matrix.nnz() > 200_000);
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            assert_eq!(written(&matrix, "a.mtx", false), matrix);
            assert_eq!(written(&matrix, "a.mtx", true), matrix);
        });
    }
}

#[test]
fn empty_matrices_are_read_back() {
    for (rows, cols) in [(0, 0), (0, 3), (3, 0), (2, 5)] {
        let matrix = csr(rows, cols, &[]);
        let got = written(&matrix, "a.mtx", false);
        assert_eq!((got.rows(), got.cols(), got.nnz()), (rows, cols, 0));
    }
}

#[test]
fn an_unsymmetric_matrix_is_not_written_as_symmetric() {
    let unpaired = csr(3, 3, &[(0, 0, 1.0), (1, 2, 4.0)]);
    assert!(refusal(&unpaired, true).contains("the entry at row 2, column 3 differs"));
    let unequal = csr(2, 2, &[(0, 1, 4.0), (1, 0, 5.0)]);
    assert!(refusal(&unequal, true).contains("the entry at row 1, column 2 differs"));
    assert!(refusal(&csr(2, 3, &[]), true).contains("a 2 x 3 matrix"));
}

#[test]
fn values_that_are_not_finite_are_not_written() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let matrix = csr(2, 2, &[(0, 0, 1.0), (1, 0, value)]);
        assert!(refusal(&matrix, false).contains(&format!("at row 2, column 1 is {value}")));
    }
}

#[test]
fn missing_folders_are_created_and_a_failed_write_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("a/new/folder/a.mtx");
    write_matrix(&below, &csr(1, 1, &[]), false).unwrap();
    let below = below.join("a.mtx");
    assert!(matches!(write_matrix(&below, &csr(1, 1, &[]), false), Err(Error::Io { action: "write", .. })));
    let path = folder.path().join("a.mtx");
    write_matrix(&path, &csr(1, 1, &[(0, 0, 5.0)]), false).unwrap();
    assert!(write_matrix(&path, &csr(1, 1, &[(0, 0, f64::NAN)]), false).is_err());
    assert_eq!(bits(&read(&path).unwrap().matrix), [(0, 0, 5f64.to_bits())]);
}

#[test]
fn entries_outside_the_matrix_are_refused_when_they_are_pushed() {
    let mut coo = Coo::with_capacity(2, 3, 1).unwrap();
    assert!(matches!(
        coo.push(2, 0, 1.0),
        Err(Error::TooLarge { what: "a row index", value: 2, limit: 1, .. })
    ));
    assert!(matches!(coo.push(0, 3, 1.0), Err(Error::TooLarge { what: "a column index", .. })));
    assert!(coo.push(usize::MAX, 0, 1.0).is_err());
    coo.push(1, 2, 1.5).unwrap();
    coo.push(1, 2, 2.0).unwrap();
    assert_eq!(bits(&coo.into_csr().unwrap()), [(1, 2, 3.5f64.to_bits())]);
    let mut pattern = Coo::new(1, 1, vec![0], vec![0], vec![]).unwrap();
    assert!(matches!(pattern.push(0, 0, 1.0), Err(Error::Dimension { expected: 1, got: 0, .. })));
}

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |value| value.is_finite()),
        (-1000..1000).prop_map(f64::from),
        Just(-0.0),
        Just(f64::MIN_POSITIVE / 4.0),
    ]
}

proptest! {
    #[test]
    fn any_matrix_is_read_back_bit_for_bit(
        (rows, cols) in (1_usize..20, 1_usize..20),
        narrow: bool,
        packed: bool,
        raw in proptest::collection::btree_map((0_usize..20, 0_usize..20), finite(), 0..60),
    ) {
        let triplets: Vec<_> = raw
            .iter()
            .filter(|((i, j), _)| *i < rows && *j < cols)
            .map(|(&(i, j), &v)| (i, j, if narrow && !(v as f32).is_finite() { 1.0 } else { v }))
            .collect();
        let wide = csr(rows, cols, &triplets);
        let matrix = if narrow { wide.to_f32() } else { wide };
        let name = if packed { "a.mtx.gz" } else { "a.mtx" };
        let got = written(&matrix, name, false);
        prop_assert_eq!(bits(&got), bits(&matrix));
        if narrow && matrix.nnz() > 0 {
            prop_assert_eq!(got.to_f32(), matrix);
        }
    }

    #[test]
    fn any_symmetric_matrix_is_read_back_from_its_lower_triangle(
        n in 1_usize..15,
        raw in proptest::collection::btree_map((0_usize..15, 0_usize..15), finite(), 0..60),
    ) {
        let lower = raw.iter().filter(|((i, j), _)| *i < n && j <= i);
        let both: Vec<_> =
            lower.flat_map(|(&(i, j), &v)| [(i, j, v), (j, i, v)].into_iter().take(1 + usize::from(i != j))).collect();
        let matrix = csr(n, n, &both);
        prop_assert_eq!(bits(&written(&matrix, "a.mtx", true)), bits(&matrix));
    }

    #[test]
    fn any_vector_is_read_back_bit_for_bit(values in proptest::collection::vec(finite(), 0..50)) {
        let folder = tempfile::tempdir().unwrap();
        let path: &Path = &folder.path().join("x.mtx");
        write_vector(path, &values).unwrap();
        let got = read_vector(path).unwrap();
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!((got.rows(), got.cols()), (values.len(), 1));
        prop_assert_eq!(bits(got.values()), bits(&values));
    }
}
