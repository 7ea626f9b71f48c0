//! Generated matrices against their formulas, and every fault in a description.

#![allow(clippy::unwrap_used)] // The lint's exception for tests does not reach their helpers.

mod common;

use common::tolerance;
use common::zoo::generated;
use proptest::prelude::*;
use solver::Error;
use solver::format::stats::first_asymmetry;
use solver::format::{Csr, Stats};
use solver::source::load;

fn row(matrix: &Csr, i: usize) -> Vec<(usize, f64)> {
    matrix.row(i).collect()
}

#[test]
fn poisson2d_has_the_five_point_stencil() {
    let m = generated("poisson2d:3x2");
    let rows: [&[(usize, f64)]; 6] = [
        &[(0, 4.0), (1, -1.0), (3, -1.0)],
        &[(0, -1.0), (1, 4.0), (2, -1.0), (4, -1.0)],
        &[(1, -1.0), (2, 4.0), (5, -1.0)],
        &[(0, -1.0), (3, 4.0), (4, -1.0)],
        &[(1, -1.0), (3, -1.0), (4, 4.0), (5, -1.0)],
        &[(2, -1.0), (4, -1.0), (5, 4.0)],
    ];
    assert_eq!((m.rows(), m.cols(), m.nnz()), (6, 6, 20));
    for (i, expected) in rows.iter().enumerate() {
        assert_eq!(row(&m, i), *expected, "row {i}");
    }
    assert_eq!(generated("poisson2d:3x2,boundary=dirichlet"), m);
    assert_eq!(row(&generated("poisson2d:1x1"), 0), [(0, 4.0)]);
}

#[test]
fn poisson2d_with_neumann_boundaries_has_rows_that_sum_to_zero() {
    for what in [
        "poisson2d:7x5,boundary=neumann",
        "poisson2d:1x9,boundary=neumann",
        "poisson2d:100x70,boundary=neumann",
    ] {
        let m = generated(what);
        assert_eq!(m.multiply_reference(&vec![1.0; m.cols()]), vec![0.0; m.rows()], "{what}");
        assert_eq!(first_asymmetry(&m), None);
    }
    let m = generated("poisson2d:3x3,boundary=neumann");
    assert_eq!((m.get(0, 0), m.get(1, 1), m.get(4, 4)), (Some(2.0), Some(3.0), Some(4.0)));
}

#[test]
fn generated_matrices_are_symmetric_and_say_so() {
    for what in ["poisson2d:31x17", "hex27:4x5x6", "hex27:3x4x2,dof=3"] {
        let loaded = load(what).unwrap();
        assert!(loaded.symmetric && loaded.stored == loaded.matrix.nnz() as u64);
        assert_eq!(first_asymmetry(&loaded.matrix), None, "{what}");
    }
}

/// The documented value beside the diagonal.
fn hashed(row: usize, col: usize) -> f64 {
    let (low, high) = (row.min(col) as u64, row.max(col) as u64);
    -(((low * 2_654_435_761 + high * 40_503) % 1000) as f64 / 1000.0 + 0.05)
}

#[test]
fn hex27_couples_neighbouring_nodes_with_hashed_values_and_a_dominant_diagonal() {
    let ([nx, ny, nz], dof) = ([4, 3, 5], 2);
    let m = generated("hex27:4x3x5,dof=2");
    assert_eq!(m.rows(), nx * ny * nz * dof);
    let place = |node: usize| [node % nx, node / nx % ny, node / (nx * ny)];
    for i in 0..m.rows() {
        let near = |j: usize| {
            let (a, b) = (place(i / dof), place(j / dof));
            a.iter().zip(b).all(|(&a, b)| a.abs_diff(b) <= 1)
        };
        let expected: Vec<usize> = (0..m.rows()).filter(|&j| near(j)).collect();
        assert_eq!(m.row(i).map(|e| e.0).collect::<Vec<_>>(), expected, "row {i}");
        let others: f64 = expected.iter().filter(|&&j| j != i).map(|&j| -hashed(i, j)).sum();
        for (j, value) in m.row(i) {
            let want = if j == i { others * 1.0001 + 1e-3 } else { hashed(i, j) };
            assert!((value - want).abs() <= tolerance::GENERATED * want.abs(), "({i}, {j}): {value}, {want}");
        }
        assert!(m.get(i, i).unwrap() > others, "row {i}");
    }
    let stats = Stats::of(&m, false);
    assert!(stats.symmetric && stats.diagonal.unwrap().dominant_rows == m.rows());
}

#[test]
fn hex27_of_the_size_of_f1_has_as_many_rows_and_entries() {
    let m = generated("hex27:48x48x50,dof=3");
    assert_eq!((m.rows(), m.nnz()), (345_600, 26_858_448));
}

#[test]
fn faults_in_a_description_are_named_with_the_right_form() {
    let faults = [
        ("poisson2d", "extents"),
        ("poisson2d:", "extents"),
        ("poisson2d:10", "1 extents, not 2"),
        ("poisson2d:10x10x10", "3 extents, not 2"),
        ("poisson2d:0x10", "'0'"),
        ("poisson2d:-1x10", "'-1'"),
        ("poisson2d:1.5x10", "'1.5'"),
        ("poisson2d:10x", "''"),
        ("poisson2d: 10x10", "' 10'"),
        ("poisson2d:10X10", "extents"),
        ("poisson2d:99999999999999999999x2", "'99999999999999999999'"),
        ("poisson2d:10x10,", "no parameter ''"),
        ("poisson2d:10x10,dof=3", "no parameter 'dof'"),
        ("poisson2d:10x10,boundary", "boundary ''"),
        ("poisson2d:10x10,boundary=periodic", "boundary 'periodic'"),
        ("poisson2d:10x10,boundary=neumann,boundary=dirichlet", "'boundary' stands twice"),
        ("hex27:4x4", "2 extents, not 3"),
        ("hex27:4x4x4,dof=0", "dof '0'"),
        ("hex27:4x4x4,dof=65", "dof '65'"),
        ("hex27:4x4x4,dof=three", "dof 'three'"),
        ("hex27:4x4x4,dof=3,dof=4", "'dof' stands twice"),
        ("hex27:4x4x4,boundary=neumann", "no parameter 'boundary'"),
    ];
    for (what, named) in faults {
        match load(what) {
            Err(Error::Generator { spec, reason, form }) => {
                assert_eq!(spec, what);
                assert!(reason.contains(named), "{what}: {reason}");
                assert!(
                    form.starts_with(what.split(':').next().unwrap()) && form.contains("for example"),
                    "{form}"
                );
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn sizes_that_overflow_are_refused_at_once() {
    let max = "18446744073709551615";
    for what in [
        "poisson2d:4294967295x4294967295".to_owned(),
        "poisson2d:65536x65536".to_owned(),
        format!("poisson2d:{max}x{max}"),
        format!("hex27:{max}x{max}x{max},dof=64"),
        "hex27:2000x2000x1000,dof=3".to_owned(),
    ] {
        match load(&what) {
            Err(Error::TooLarge { what: _, value, limit, place }) => {
                assert!(value > limit && limit == u128::from(u32::MAX) && place.contains("32-bit"), "{what}");
            }
            other => panic!("{what}: {:?}", other.map(|l| l.matrix.rows())),
        }
    }
}

#[test]
fn what_is_neither_file_nor_generator_is_refused_with_the_generators() {
    for what in ["poisson3d:4x4x4", "", "hex", "poisson2d "] {
        match load(what) {
            Err(Error::UnknownMatrix { what: named, known }) => {
                assert_eq!(named, what);
                assert!(known.contains("poisson2d:NXxNY") && known.contains("hex27:NXxNYxNZ"), "{known}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    for what in ["no/such/file", "no-such-file.mtx"] {
        assert!(matches!(load(what), Err(Error::Io { action: "read", .. })), "{what}");
    }
}

proptest! {
    #[test]
    fn any_description_is_a_matrix_or_an_error(text in "(poisson2d|hex27)(:[0-9x]{0,4}(,(dof|boundary)?=?[0-9a-z]{0,2}){0,2})?") {
        if let Ok(loaded) = load(&text) {
            prop_assert!(loaded.matrix.rows() > 0 && loaded.matrix.rows() == loaded.matrix.cols());
        }
    }
}
