//! Coordinates of nodes: from files, from files next to matrices, and from generators.

use solver::format::{Coordinates, Dense};
use solver::source::{Loaded, Options, load, load_with, write_vectors};
use solver::{engine::Matrix, source::market};
use std::path::{Path, PathBuf};

const SQUARE: &str = "%%MatrixMarket matrix array real general\n4 2\n0\n1\n0\n1\n0\n0\n2\n2\n";

/// Writes the matrix of a floating square of 4 nodes to `m.mtx`, and text to a file next to it.
fn folder_with(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mtx");
    market::write_matrix(&path, &load("poisson2d:2x2").unwrap().matrix, true).unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    (folder, path)
}

fn with_vectors(path: &Path) -> Loaded {
    load_with(path, &Options { attached: true, ..Options::default() }).unwrap()
}

#[test]
fn a_file_with_a_row_for_each_node_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let values = [0.0, 0.5, 1.0, -1.0, 2.0, 1e-3];
    for ending in ["mtx", "npy", "txt", "mtx.gz"] {
        let path = folder.path().join(format!("points.{ending}"));
        for dimensions in [2, 3] {
            write_vectors(&path, &values, dimensions).unwrap();
            let read = Coordinates::open(&path).unwrap();
            assert_eq!((read.dimensions(), read.values()), (dimensions, &values[..]), "{ending}");
        }
    }
}

#[test]
fn a_number_that_is_not_finite_is_an_error_with_the_file_and_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let npy = folder.path().join("points.npy");
    write_vectors(&npy, &[0.0, 1.0, f64::NAN, 3.0, 4.0, 5.0], 2).unwrap();
    let message = Coordinates::open(&npy).unwrap_err().to_string();
    assert!(message.contains("points.npy") && message.contains("x of node 1 (counted from 0)"), "{message}");
    let mtx = folder.path().join("points.mtx");
    std::fs::write(&mtx, SQUARE.replace("0\n0\n2\n2", "0\nnan\n2\n2")).unwrap();
    let message = Coordinates::open(&mtx).unwrap_err().to_string();
    assert!(message.contains("points.mtx:8:1"), "{message}");
}

#[test]
fn a_file_of_other_shape_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points.npy");
    for columns in [1, 4] {
        write_vectors(&path, &[1.0; 8], columns).unwrap();
        let message = Coordinates::open(&path).unwrap_err().to_string();
        assert!(message.contains(&format!("{columns} coordinates; it must have 2 or 3")), "{message}");
    }
}

#[test]
fn the_file_next_to_a_matrix_has_its_coordinates() {
    let (_folder, path) = folder_with("m_coord.mtx", SQUARE);
    let loaded = with_vectors(&path);
    let expected = [0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 1.0, 2.0];
    assert_eq!(loaded.coordinates.as_ref().unwrap().values(), expected);
    assert_eq!(loaded.attached("coord"), Some(&Dense::new(4, 2, expected.to_vec()).unwrap()));
    assert!(loaded.attached.is_empty() && loaded.attached_unread.is_empty());
    let matrix = Matrix::open_with(&path, &Options { attached: true, ..Options::default() }).unwrap();
    assert_eq!(matrix.coordinates().unwrap().node(3), [1.0, 2.0]);
    let alone = load(&path).unwrap();
    assert!(alone.coordinates.is_none());
    assert_eq!(alone.attached_unread, ["coord"]);
}

#[test]
fn faulty_coordinates_next_to_a_matrix_are_skipped_with_the_reason() {
    let three = "%%MatrixMarket matrix array real general\n3 2\n0\n1\n0\n1\n0\n0\n";
    let nan = SQUARE.replace("2\n2\n", "nan\n2\n");
    for (text, told) in [(three, "3 nodes, which do not divide the 4 rows"), (&nan, "m_coord.mtx:9:1")] {
        let (_folder, path) = folder_with("m_coord.mtx", text);
        let loaded = with_vectors(&path);
        assert!(loaded.coordinates.is_none() && loaded.matrix.rows() == 4);
        assert_eq!(loaded.attached_unread, ["coord"]);
        assert!(loaded.attached_faults[0].contains(told), "{:?}", loaded.attached_faults);
        assert!(loaded.attached_faults[0].contains("m_coord.mtx"), "{:?}", loaded.attached_faults);
    }
}

#[test]
fn every_grid_has_the_coordinates_of_its_nodes_if_vectors_are_requested() {
    let requested = Options { attached: true, ..Options::default() };
    for (what, dimensions, unknowns, last) in [
        ("poisson2d:5x4", 2, 1, &[4.0, 3.0][..]),
        ("poisson3d:4x3x2", 3, 1, &[3.0, 2.0, 1.0]),
        ("hex27:3x4x2,dof=3", 3, 3, &[2.0, 3.0, 1.0]),
        ("elasticity3d:3x2x2", 3, 3, &[3.0, 1.0, 1.0]),
    ] {
        let loaded = load_with(what, &requested).unwrap();
        let coordinates = loaded.coordinates.unwrap();
        assert_eq!(
            (coordinates.dimensions(), coordinates.nodes() * unknowns),
            (dimensions, loaded.matrix.rows())
        );
        assert_eq!(coordinates.node(coordinates.nodes() - 1), last, "{what}");
    }
    assert!(load("poisson2d:5x4").unwrap().coordinates.is_none());
    assert!(load("elasticity3d:3x2x2").unwrap().coordinates.is_some());
}

#[test]
fn a_matrix_with_other_values_keeps_its_coordinates() {
    let matrix = Matrix::open("elasticity3d:3x2x2").unwrap();
    let other = matrix.with_values(vec![1.0; matrix.nnz()]).unwrap();
    assert_eq!(matrix.coordinates(), other.coordinates());
    assert!(other.coordinates().is_some());
}
