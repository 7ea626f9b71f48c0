//! Random matrices: the properties in their descriptions, and the same bits for any number of threads.

use crate::common::solves::System;
use crate::common::tolerance;
use crate::common::zoo::generated;
use crate::device::Cpu;
use crate::format::stats::{Verdict, symmetry_of};
use crate::format::{Csr, Stats, Values};
use crate::source::load;
use crate::stop::StoppingRule;

fn lengths(m: &Csr) -> Vec<usize> {
    (0..m.rows()).map(|i| m.row_range(i).len()).collect()
}

/// Checks whether a count of independent events is within six standard deviations of the expected value.
fn likely(count: usize, expected: f64) -> bool {
    (count as f64 - expected).abs() <= 6.0 * expected.sqrt() + 1.0
}

#[test]
fn generators_give_the_same_bits_for_any_number_of_threads() {
    for what in [
        "poisson2d:301x200",
        "poisson3d:40x30x20,points=27",
        "hex27:20x20x20,dof=3",
        "elasticity3d:16x17x18,contrast=1e3",
        "delaunay2d:n=20000,points=clustered,jumps=10",
        "delaunay3d:n=9000,unknowns=3,shape=plate,order=rcm",
        "blockband:n=3000",
        "blockband:n=3000,symmetric,shift=0.5",
        "blockband:n=3000,contiguous",
        "uniform:n=20000",
        "density:n=3000,sparsity=0.9",
        "banded:n=30000,fill=0.5",
        "spd-random:n=30000",
    ] {
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| load(what).unwrap())
        };
        let one = with(1);
        for threads in [2, 3] {
            let several = with(threads);
            assert_eq!(one.matrix.pattern(), several.matrix.pattern(), "{what}");
            let (Values::F64(a), Values::F64(b)) = (one.matrix.values(), several.matrix.values()) else {
                panic!("{what}: no values");
            };
            assert!(a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits()), "{what} on {threads} threads");
            assert_eq!(
                (&one.attached, &one.coordinates),
                (&several.attached, &several.coordinates),
                "{what}"
            );
        }
    }
}

#[test]
fn different_seeds_give_different_matrices_and_the_default_seed_is_1() {
    for what in [
        "elasticity3d:3x3x3,contrast=2",
        "delaunay2d:n=100",
        "delaunay3d:n=100",
        "blockband:n=300,density=0.1",
        "blockband:n=300,density=0.1,symmetric",
        "uniform:n=300",
        "density:n=300",
        "banded:n=300,fill=0.5",
        "spd-random:n=300",
    ] {
        let seeded = |seed: u64| generated(&format!("{what},seed={seed}"));
        assert_eq!(generated(what), seeded(1), "{what}");
        assert_ne!(seeded(0), seeded(1), "{what}");
        assert_ne!(seeded(u64::MAX), seeded(1), "{what}");
    }
}

#[test]
fn uniform_rows_have_equal_lengths_and_uniformly_distributed_columns() {
    let m = generated("uniform:n=2000,row=50");
    assert_eq!((m.rows(), m.cols(), m.nnz()), (2000, 2000, 100_000));
    assert!(lengths(&m).iter().all(|&length| length == 50));
    let mut hits = vec![0; 2000];
    m.col_indices().iter().for_each(|&j| hits[j as usize] += 1);
    assert!(hits.iter().all(|&count| likely(count, 50.0)), "{hits:?}");
    assert!((0..2000).flat_map(|i| m.row(i)).all(|(_, value)| value > 0.0 && value <= 1.0));
    // Full and nearly full rows, the default row length, and a rectangular matrix.
    assert!(lengths(&generated("uniform:n=40,row=40")).iter().all(|&length| length == 40));
    assert!(lengths(&generated("uniform:n=40,row=39")).iter().all(|&length| length == 39));
    assert!(lengths(&generated("uniform:n=7")).iter().all(|&length| length == 7));
    let wide = generated("uniform:n=30,cols=1000,row=20");
    assert_eq!((wide.rows(), wide.cols(), wide.nnz()), (30, 1000, 600));
    assert_eq!(generated("uniform:500,row=5"), generated("uniform:row=5,n=500"));
}

#[test]
fn density_keeps_each_position_with_the_given_probability() {
    let m = generated("density:n=1000,sparsity=0.7");
    assert_eq!((m.rows(), m.cols()), (1000, 1000));
    assert!(likely(m.nnz(), 300_000.0), "{}", m.nnz());
    let mut hits = vec![0; 1000];
    m.col_indices().iter().for_each(|&j| hits[j as usize] += 1);
    assert!(hits.iter().chain(&lengths(&m)).all(|&count| likely(count, 300.0)));
    let dense = generated("density:n=50,sparsity=0");
    assert!(lengths(&dense).iter().all(|&length| length == 50));
    let wide = generated("density:n=100,cols=20000");
    assert!(wide.cols() == 20_000 && likely(wide.nnz(), 20_000.0), "{}", wide.nnz());
}

/// Asserts that the matrix is symmetric and strictly diagonally dominant with a margin of `shift`.
fn assert_dominant(m: &Csr, shift: f64, what: &str) {
    assert_eq!(symmetry_of(m).unwrap(), Verdict::Exact, "{what}");
    for i in 0..m.rows() {
        let off_diagonal: f64 = m.row(i).filter(|&(j, _)| j != i).map(|(_, v)| v.abs()).sum();
        assert_eq!(m.get(i, i), Some(off_diagonal + shift), "{what}, row {i}");
    }
    assert!(Stats::of(m, false).symmetric);
}

#[test]
fn banded_stays_within_its_band_and_has_the_given_fill() {
    let m = generated("banded:n=500,half=7");
    assert_eq!(m.nnz(), 500 * 15 - 7 * 8);
    assert!((0..500).all(|i| m.row(i).all(|(j, _)| i.abs_diff(j) <= 7)));
    assert_dominant(&m, 1.0, "banded");
    let thin = generated("banded:n=2000,half=100,fill=0.25");
    let pairs = (2000 * 100 - 50 * 101) as f64;
    assert!(likely((thin.nnz() - 2000) / 2, 0.25 * pairs), "{}", thin.nnz());
    assert!((0..2000).all(|i| thin.row(i).all(|(j, _)| i.abs_diff(j) <= 100)));
    assert_dominant(&thin, 1.0, "banded with fill 0.25");
    assert_eq!(generated("banded:n=9,half=0").nnz(), 9);
    assert_eq!(generated("banded:n=9,half=8").nnz(), 81);
    assert_eq!(generated("banded:n=9,fill=0").nnz(), 9);
    assert_eq!(generated("banded:n=1").nnz(), 1);
}

#[test]
fn spd_random_is_symmetric_dominant_and_has_the_given_row_length() {
    let m = generated("spd-random:n=3000,row=21,shift=0.5");
    assert_dominant(&m, 0.5, "spd-random");
    assert!(likely((m.nnz() - 3000) / 2, 3000.0 * 10.0), "{}", m.nnz());
    assert!((0..3000).any(|i| m.row(i).any(|(j, _)| i.abs_diff(j) > 2500)));
    assert_eq!(generated("spd-random:n=20,row=20").nnz(), 400);
    assert_eq!(generated("spd-random:n=20,row=1").nnz(), 20);
    assert_eq!(generated("spd-random:1").nnz(), 1);
}

#[test]
fn conjugate_gradients_converge_on_positive_definite_generators() {
    let cpu = Cpu::new(Some(2)).unwrap();
    for what in [
        "spd-random:n=2000",
        "banded:n=2000,fill=0.3",
        "blockband:n=2000,symmetric",
        "blockband:n=2000,symmetric,contiguous",
        "blockband:n=2000,block=8,symmetric,density=0.4",
        "blockband:n=100,symmetric,density=1,contiguous",
        "blockband:n=2000,symmetric,contiguous,shift=0.99",
        "poisson3d:12x13x14",
        "poisson3d:9x8x7,points=27",
        "elasticity3d:6x6x6,contrast=10",
    ] {
        let outcome = System::generated(what).solve(&cpu, &StoppingRule::RelativeResidual(tolerance::RTOL));
        assert!(outcome.reason.is_success(), "{what}: {}", outcome.reason);
    }
}

/// Returns the block columns of every block row; asserts that every block is complete.
fn blocks(m: &Csr, size: usize, what: &str) -> Vec<Vec<usize>> {
    let mut rows = Vec::new();
    for i in 0..m.rows() {
        let columns: Vec<usize> = m.row(i).map(|entry| entry.0).collect();
        let row: Vec<usize> = columns.iter().step_by(size).map(|j| j / size).collect();
        let complete = row.iter().flat_map(|b| b * size..(b + 1) * size).collect::<Vec<_>>();
        assert_eq!(columns, complete, "{what}, row {i}");
        match i % size {
            0 => rows.push(row),
            _ => assert_eq!(rows[i / size], row, "{what}, row {i}"),
        }
    }
    rows
}

#[test]
fn blockband_has_dense_positive_blocks_in_its_band_and_rows_that_sum_to_one() {
    for (what, size, row, half) in [
        ("blockband:n=2000,block=5,density=0.05,band=0.25", 5, 20, 100),
        ("blockband:n=2000", 5, 20, 100),
        ("blockband:n=2000,contiguous", 5, 20, 10),
        ("blockband:n=600,block=3,density=0.02,band=0.01", 3, 4, 2),
        ("blockband:n=600,block=1,density=1,band=1", 1, 600, 600),
        ("blockband:n=64,block=8,density=0.5,band=0.5,seed=3", 8, 4, 4),
        ("blockband:n=10,density=1", 5, 2, 2),
        ("blockband:n=5,density=1", 5, 1, 1),
    ] {
        let m = generated(what);
        let rows = m.rows() / size;
        assert_eq!(m.nnz(), rows * row * size * size, "{what}");
        for (i, columns) in blocks(&m, size, what).iter().enumerate() {
            // The band is shifted inwards at the matrix borders.
            assert!(columns.iter().all(|&j| i.abs_diff(j) <= 2 * half), "{what}: {i} {columns:?}");
            let inner = (half..rows.saturating_sub(half)).contains(&i);
            assert!(!inner || columns.iter().all(|&j| i.abs_diff(j) <= half), "{what}: {i} {columns:?}");
            for near in i.saturating_sub(1)..(i + 2).min(rows) {
                assert!(columns.contains(&near), "{what}: {i} lacks {near}");
            }
        }
        assert!((0..m.rows()).flat_map(|i| m.row(i)).all(|(_, value)| value > 0.0), "{what}");
        for (i, sum) in m.multiply_reference(&vec![1.0; m.cols()]).into_iter().enumerate() {
            assert!((sum - 1.0).abs() <= tolerance::row_sum(row * size), "{what}: row {i} sums to {sum}");
        }
        assert!(!load(what).unwrap().symmetric);
    }
}

#[test]
fn contiguous_blocks_are_adjacent_around_the_diagonal() {
    for (i, columns) in
        blocks(&generated("blockband:n=500,contiguous,density=0.07"), 5, "").iter().enumerate()
    {
        let start = i.saturating_sub(3).min(93);
        assert_eq!(*columns, (start..start + 7).collect::<Vec<_>>(), "block row {i}");
    }
}

#[test]
fn symmetric_blockband_is_symmetric_with_approximately_the_given_density() {
    for (what, row, half) in [
        ("blockband:n=2000,symmetric", 20.0, 100),
        ("blockband:n=2000,symmetric,contiguous", 20.0, 10),
        ("blockband:n=2000,symmetric,density=0.4", 160.0, 100),
    ] {
        let loaded = load(what).unwrap();
        let m = &loaded.matrix;
        assert!(loaded.symmetric);
        assert_eq!(symmetry_of(m).unwrap(), Verdict::Exact, "{what}");
        let blocks = blocks(m, 5, what);
        assert!((m.nnz() as f64 / 25.0 / 400.0 / row - 1.0).abs() < 0.05, "{what}: {}", m.nnz());
        for (i, columns) in blocks.iter().enumerate() {
            assert!(columns.iter().all(|&j| i.abs_diff(j) <= half), "{what}: {i} {columns:?}");
            assert!(columns.contains(&i) && columns.contains(&(i + 1).min(399)), "{what}: {i}");
        }
    }
}

#[test]
fn the_least_eigenvalue_of_symmetric_blockband_is_one_minus_the_shift() {
    const SHIFT: f64 = 0.9;
    for what in [
        "blockband:n=200,symmetric,density=0.3",
        "blockband:n=200,symmetric,density=0.3,contiguous",
        "blockband:n=60,block=1,symmetric,density=0.1,band=1",
    ] {
        let m = generated(what);
        let norm = |x: &[f64]| x.iter().map(|v| v * v).sum::<f64>().sqrt();
        let mut x = vec![1.0 / (m.cols() as f64).sqrt(); m.cols()];
        let mut growth = 0.0;
        for _ in 0..3000 {
            // P x, as the matrix is I - 0.9 P.
            let product = m.multiply_reference(&x);
            let y: Vec<f64> = x.iter().zip(&product).map(|(x, product)| (x - product) / SHIFT).collect();
            growth = norm(&y);
            x = y.iter().map(|v| v / growth).collect();
        }
        assert!((growth - 1.0).abs() <= tolerance::row_sum(m.cols()), "{what}: {growth}");
        assert!(x.iter().all(|&v| v > 0.0), "{what}");
    }
}

#[test]
fn symmetric_blockband_has_a_shift_of_nine_tenths_by_default() {
    for base in ["blockband:n=300,density=0.2,symmetric", "blockband:n=300,symmetric,contiguous"] {
        assert_eq!(generated(base), generated(&format!("{base},shift=0.9")), "{base}");
        assert_ne!(generated(base), generated(&format!("{base},shift=0.75")), "{base}");
    }
}

#[test]
fn shift_subtracts_a_multiple_of_the_matrix_from_the_identity() {
    let base = "blockband:n=300,density=0.2";
    let (p, shifted) = (generated(base), generated(&format!("{base},shift=0.75")));
    assert_eq!(p.pattern(), shifted.pattern());
    for i in 0..p.rows() {
        for ((j, p), (_, value)) in p.row(i).zip(shifted.row(i)) {
            assert_eq!(value, f64::from(i == j) - 0.75 * p, "({i}, {j})");
        }
    }
    let singular = generated("blockband:n=300,density=0.2,shift=1");
    let sums = singular.multiply_reference(&vec![1.0; 300]);
    assert!(sums.iter().all(|sum| sum.abs() < tolerance::row_sum(60)), "{sums:?}");
}
