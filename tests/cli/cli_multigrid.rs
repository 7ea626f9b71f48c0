//! Multigrid on the command line: coordinates of nodes and near-null vectors from files.

use crate::common::process::{cg, file, refused, run, word};
use solver::precond::NearNull;
use solver::source::{load, npy};

const BODY: &str = "delaunay3d:n=800,unknowns=3";

/// Writes the matrix of [`BODY`] with its coordinates as files; returns the path of the matrix.
fn written(folder: &std::path::Path) -> String {
    let path = folder.join("body.mtx");
    let out = run(&["convert", BODY, word(&path)]);
    assert!(out.status.success(), "{out:?}");
    word(&path).to_owned()
}

#[test]
fn coordinates_next_to_the_matrix_or_named_and_their_modes_as_vectors_give_the_same_solve() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = written(folder.path());
    let solved = |args: &[&str]| {
        let (code, report) = cg(&[&["--matrix", matrix.as_str(), "--precond", "amg"], args].concat());
        assert_eq!(code, 0, "{report}");
        (report["iterations"].clone(), report["preconditioner"].as_str().unwrap().to_owned())
    };
    let next_to_it = solved(&[]);
    assert!(next_to_it.1.contains("amg:block=3 with 6 rigid-body modes"), "{}", next_to_it.1);
    let moved = folder.path().join("nodes.mtx");
    std::fs::rename(folder.path().join("body_coord.mtx"), &moved).unwrap();
    assert_eq!(solved(&["--coords", word(&moved)]), next_to_it);
    assert!(!solved(&[]).1.contains("rigid"));
    let modes = NearNull::rigid_body_modes(&load(BODY).unwrap().coordinates.unwrap()).unwrap();
    let vectors = folder.path().join("modes.npy");
    npy::write(&vectors, modes.vectors()).unwrap();
    let given = solved(&["--near-null", word(&vectors)]);
    assert_eq!(given.0, next_to_it.0);
    assert!(given.1.contains("6 given vectors"), "{}", given.1);
}

#[test]
fn coordinates_and_near_null_vectors_that_do_not_fit_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let refused_with = |precond: &str, option: &str, text: &str| {
        let path = file(&folder, "numbers.txt", text);
        let typed = ["cg", "poisson2d:2x2", "--device", "cpu", "--precond", precond, option, word(&path)];
        refused(&typed)
    };
    for (option, text, told) in [
        ("--coords", "0 0\n1 0\n0 1\n", "3 nodes, which do not divide the 4 rows"),
        ("--coords", "0 0\n1 0\n0 1\n1 nan\n", "a finite number, found nan"),
        ("--coords", "0\n1\n2\n3\n", "a node has 1 coordinates; it must have 2 or 3"),
        ("--near-null", "1\n1\n1\n", "3 rows and the matrix 4"),
        ("--near-null", "1 0\n1 0\n1 0\n1 0\n", "column 2 (counted from 1) is zero"),
        ("--near-null", "1 2\n1 2\n1 2\n1 2\n", "column 2 (counted from 1) is a combination"),
    ] {
        let error = refused_with("amg", option, text);
        assert!(error.contains(told), "{option}: {error}");
    }
    let other = refused_with("jacobi", "--coords", "0 0\n1 0\n0 1\n1 1\n");
    assert!(other.contains("--coords") && other.contains("--precond amg"), "{other}");
}

#[test]
fn a_system_without_a_solution_is_named_and_projected_on_request() {
    let system = ["--matrix", "poisson2d:20x15,boundary=neumann", "--rhs", "random:3", "--precond", "amg"];
    let (code, report) = cg(&system);
    assert_eq!(code, 1, "{report}");
    let hint = report["hint"].as_str().unwrap();
    assert!(hint.contains("the constant vector") && hint.contains("--project"), "{hint}");
    let (code, report) = cg(&[&system[..], &["--project"]].concat());
    assert_eq!(code, 0, "{report}");
    assert!(report["note"].as_str().unwrap().contains("was removed"), "{report}");
}
