//! Compares generated matrices with their formulas, and checks the errors for faulty descriptions.

use crate::Error;
use crate::common::tolerance;
use crate::common::zoo::generated;
use crate::format::stats::{Verdict, symmetry_of};
use crate::format::{Csr, Stats};
use crate::source::load;
use proptest::prelude::*;

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
        assert_eq!(symmetry_of(&m).unwrap(), Verdict::Exact);
    }
    let m = generated("poisson2d:3x3,boundary=neumann");
    assert_eq!((m.get(0, 0), m.get(1, 1), m.get(4, 4)), (Some(2.0), Some(3.0), Some(4.0)));
}

#[test]
fn generated_matrices_are_symmetric_and_declared_symmetric() {
    for what in ["poisson2d:31x17", "hex27:4x5x6", "hex27:3x4x2,dof=3"] {
        let loaded = load(what).unwrap();
        assert!(loaded.symmetric && loaded.stored == loaded.matrix.nnz() as u64);
        assert_eq!(symmetry_of(&loaded.matrix).unwrap(), Verdict::Exact, "{what}");
    }
}

/// Returns the documented value of an off-diagonal entry.
fn hashed(row: usize, col: usize) -> f64 {
    let (low, high) = (row.min(col) as u64, row.max(col) as u64);
    -(((low * 2_654_435_761 + high * 40_503) % 1000) as f64 / 1000.0 + 0.05)
}

#[test]
fn hex27_couples_neighbouring_nodes_with_hashed_values_and_a_dominant_diagonal() {
    let ([nx, ny, nz], dof) = ([4, 3, 5], 2);
    let m = generated("hex27:4x3x5,dof=2");
    assert_eq!(m.rows(), nx * ny * nz * dof);
    let coordinates = |node: usize| [node % nx, node / nx % ny, node / (nx * ny)];
    for i in 0..m.rows() {
        let near = |j: usize| {
            let (a, b) = (coordinates(i / dof), coordinates(j / dof));
            a.iter().zip(b).all(|(&a, b)| a.abs_diff(b) <= 1)
        };
        let expected: Vec<usize> = (0..m.rows()).filter(|&j| near(j)).collect();
        assert_eq!(m.row(i).map(|e| e.0).collect::<Vec<_>>(), expected, "row {i}");
        let off_diagonal: f64 = expected.iter().filter(|&&j| j != i).map(|&j| -hashed(i, j)).sum();
        for (j, value) in m.row(i) {
            let want = if j == i { off_diagonal * 1.0001 + 1e-3 } else { hashed(i, j) };
            assert!((value - want).abs() <= tolerance::GENERATED * want.abs(), "({i}, {j}): {value}, {want}");
        }
        assert!(m.get(i, i).unwrap() > off_diagonal, "row {i}");
    }
    let stats = Stats::of(&m, false);
    assert!(stats.symmetric && stats.diagonal.unwrap().dominant_rows == m.rows());
}

#[test]
fn hex27_of_the_size_of_f1_has_the_documented_rows_and_entries() {
    let m = generated("hex27:48x48x50,dof=3");
    assert_eq!((m.rows(), m.nnz()), (345_600, 26_858_448));
}

/// Returns the FNV hash, by 64-bit words, of the rows, columns and bits of the values of all entries.
fn hash_of(matrix: &Csr) -> u64 {
    let entries =
        (0..matrix.rows()).flat_map(|i| matrix.row(i).map(move |(j, v)| [i as u64, j as u64, v.to_bits()]));
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x100_0000_01b3);
    entries.flatten().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn random_chains_have_the_same_bits_in_every_release() {
    for (what, hash) in [
        ("blockband:n=300,block=5,density=0.2", 0x668a_2c4c_5a47_15b1),
        ("blockband:n=60,block=4,density=0.4,symmetric", 0xcd8c_500b_84d7_3316),
        ("uniform:n=100,row=5", 0xfd86_1d00_7936_01d6),
        ("uniform:n=50,cols=70,row=6,seed=2", 0x6a4b_3533_c243_8d3e),
    ] {
        let found = hash_of(&generated(what));
        assert_eq!(found, hash, "{what}: {found:#x}");
    }
}

#[test]
fn a_faulty_description_is_refused_with_the_fault_and_the_correct_form() {
    let faults = [
        ("poisson2d", "extents"),
        ("poisson2d:", "a parameter is missing"),
        ("poisson2d:boundary=neumann", "there is no size"),
        ("poisson2d:10x10,n=10x10", "'n' is given twice"),
        ("poisson2d:10", "n '10' is not NXxNY with NX and NY from 1"),
        ("poisson2d:10x10x10", "n '10x10x10' is not NXxNY"),
        ("poisson2d:0x10", "n '0x10'"),
        ("poisson2d:-1x10", "n '-1x10'"),
        ("poisson2d:1.5x10", "n '1.5x10'"),
        ("poisson2d:10x", "n '10x'"),
        ("poisson2d: 10x10", "n ' 10x10'"),
        ("poisson2d:10X10", "n '10X10'"),
        ("poisson2d:99999999999999999999x2", "n '99999999999999999999x2'"),
        ("poisson2d:10x10,", "a parameter is missing"),
        ("poisson2d:10x10,dof=3", "no parameter 'dof'; there are: n, boundary"),
        ("poisson2d:10x10,boundary", "boundary ''"),
        ("poisson2d:10x10,boundary=periodic", "boundary 'periodic'"),
        ("poisson2d:10x10,boundary=neumann,boundary=dirichlet", "'boundary' is given twice"),
        ("hex27:4x4", "n '4x4' is not NXxNYxNZ"),
        ("hex27:4x4x4,dof=0", "dof '0'"),
        ("hex27:4x4x4,dof=65", "dof '65'"),
        ("hex27:4x4x4,dof=three", "dof 'three'"),
        ("hex27:4x4x4,dof=3,dof=4", "'dof' is given twice"),
        ("hex27:4x4x4,boundary=neumann", "no parameter 'boundary'"),
        ("hex27:abc", "no parameter 'abc'"),
        ("poisson3d:4x4", "n '4x4' is not NXxNYxNZ"),
        ("poisson3d:4x4x4,points=9", "points '9' is not one of 7, 27"),
        ("poisson3d:4x4x4,boundary=Neumann", "boundary 'Neumann' is not one of dirichlet, neumann"),
        ("elasticity3d:4x4", "n '4x4' is not NXxNYxNZ"),
        ("elasticity3d:4x1x4", "two nodes or more"),
        ("elasticity3d:4x4x1", "two nodes or more"),
        ("elasticity3d:4x4x4,contrast=0.5", "contrast '0.5' is not a number from 1 to 1e12"),
        ("elasticity3d:4x4x4,contrast=inf", "contrast 'inf'"),
        ("elasticity3d:4x4x4,seed=-1", "seed '-1' is not a whole number from 0 to 18446744073709551615"),
        ("elasticity3d:4x4x4,seed=1.5", "seed '1.5'"),
        ("blockband:density=0.1", "there is no size: n"),
        ("blockband:n=100x100", "n '100x100' is not a whole number"),
        ("blockband:n=100,block=0", "block '0' is not a whole number from 1 to 64"),
        ("blockband:n=100,block=65", "block '65'"),
        ("blockband:n=101", "101, is not a multiple of the block size 5"),
        ("blockband:n=100,density=0", "density '0' is not a number above 0 and at most 1"),
        ("blockband:n=100,density=NaN", "density 'NaN'"),
        ("blockband:n=100,density=0.05", "density 0.05 is less than the diagonal block"),
        ("blockband:n=100,density=0.9,band=0.1", "holds 0.2500"),
        ("blockband:n=100,density=0.9,band=0.1,symmetric", "holds 0.2350"),
        ("blockband:n=100,band=1.5", "band '1.5' is not a number above 0 and at most 1"),
        ("blockband:n=100,density=0.5,band=0.5,contiguous", "exclude each other"),
        ("blockband:n=100,density=0.5,contiguous=yes", "contiguous takes no value"),
        ("blockband:n=100,density=0.5,symmetric=", "symmetric takes no value"),
        ("blockband:n=100,density=0.5,symmetric,symmetric", "'symmetric' is given twice"),
        ("blockband:n=100,density=0.5,shift=2", "shift '2' is not a number above 0 and at most 1"),
        ("blockband:n=100,density=0.5,shift", "shift ''"),
        ("uniform:row=3", "there is no size: n"),
        ("uniform:n=0", "n '0' is not a whole number from 1"),
        ("uniform:n=10,row=11", "row '11' is not a whole number from 1 to 10"),
        ("uniform:n=10,row=0", "row '0'"),
        ("uniform:n=10,cols=0", "cols '0'"),
        ("uniform:n=10,cols=5,row=6", "row '6' is not a whole number from 1 to 5"),
        ("uniform:n=10,seed=x", "seed 'x'"),
        ("density:n=10,sparsity=1", "sparsity '1' is not a number from 0 to below 1"),
        ("density:n=10,sparsity=-0.1", "sparsity '-0.1'"),
        ("density:n=10,sparsity=most", "sparsity 'most'"),
        ("banded:n=10,half=10", "half '10' is not a whole number from 0 to 9"),
        ("banded:n=10,fill=1.1", "fill '1.1' is not a number from 0 to 1"),
        ("banded:n=10,band=3", "no parameter 'band'; there are: n, half, fill, seed"),
        ("spd-random:n=10,row=11", "row '11' is not a whole number from 1 to 10"),
        ("spd-random:n=10,shift=0", "shift '0' is not a number from 1e-6 to 1e6"),
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
fn sizes_beyond_32_bits_are_refused() {
    let max = "18446744073709551615";
    for what in [
        "poisson2d:4294967295x4294967295".to_owned(),
        "poisson2d:65536x65536".to_owned(),
        format!("poisson2d:{max}x{max}"),
        format!("hex27:{max}x{max}x{max},dof=64"),
        "hex27:2000x2000x1000,dof=3".to_owned(),
        "poisson3d:2000x2000x2000".to_owned(),
        "elasticity3d:2000x2000x1000".to_owned(),
        "uniform:n=4294967296".to_owned(),
        "uniform:n=1,cols=4294967296".to_owned(),
        format!("blockband:{max}"),
        format!("spd-random:{max},row=1"),
    ] {
        match load(&what) {
            Err(Error::TooLarge { what: _, value, limit, container }) => {
                assert!(
                    value > limit && limit == u128::from(u32::MAX) && container.contains("32-bit"),
                    "{what}"
                );
            }
            other => panic!("{what}: {:?}", other.map(|l| l.matrix.rows())),
        }
    }
}

#[test]
fn more_entries_than_memory_holds_are_refused() {
    for (what, entries) in [
        ("uniform:n=4000000000,row=1000000", 4e15),
        ("uniform:n=4294967295,row=4294967295", 1.8e19),
        ("density:n=4000000000,sparsity=0", 1.6e19),
        ("banded:n=4000000000,half=1000000", 8e15),
        ("spd-random:n=4000000000,row=500000", 2e15),
        ("blockband:n=1000000000", 5e16),
        ("blockband:n=1000000000,symmetric", 5e16),
    ] {
        match load(what) {
            Err(Error::OutOfMemory { bytes }) => {
                assert!(bytes as f64 > 11.0 * entries && (bytes as f64) < 14.0 * entries, "{what}: {bytes}");
            }
            other => panic!("{what}: {:?}", other.map(|l| l.matrix.nnz())),
        }
    }
}

#[test]
fn a_name_that_is_neither_a_file_nor_a_generator_is_refused_with_similar_names() {
    for (what, like) in
        [("poisson4d:4x4x4x4", "poisson3d"), ("", ""), ("hex", "hex27"), ("poisson2d ", "poisson2d")]
    {
        match load(what) {
            Err(Error::UnknownMatrix { what: named, near }) => {
                assert_eq!(named, what);
                assert!(near.contains(like), "{near}");
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
    fn any_description_gives_a_matrix_or_an_error(
        name in "poisson[23]d|hex27|elasticity3d|blockband|uniform|density|banded|spd-random",
        size in "(:(n=)?([0-9x]{0,3}|[1-4](x[1-4]){1,2}))?",
        parameters in "(,(n|dof|points|boundary|contrast|seed|block|density|band|contiguous|symmetric|shift|row|cols|sparsity|half|fill)?=?[0-9a-z.]{0,3}){0,3}",
    ) {
        let text = name + &size + &parameters;
        if let Ok(loaded) = load(&text) {
            let matrix = loaded.matrix;
            prop_assert!(matrix.rows() > 0);
            prop_assert!(matrix.rows() == matrix.cols() || text.contains("cols"));
            prop_assert!(!loaded.symmetric || symmetry_of(&matrix).unwrap() == Verdict::Exact);
        }
    }
}
