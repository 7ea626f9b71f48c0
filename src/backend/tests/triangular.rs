//! The preconditioners with triangular solves, `ic0` and `ssor`: their definition, and their bits.

use crate::Error;
use crate::backend::{Operator, Pick};
use crate::common::solves::{System, operator, preconditioner, to};
use crate::common::vectors::{Numbers, bits, download, reals, upload};
use crate::common::{tolerance, zoo};
use crate::device::Cpu;
use crate::format::Csr;
use crate::precond::Preconditioner;
use crate::scalar::Scalar;
use crate::stop::{StopReason, StoppingRule};
use proptest::prelude::*;
use std::sync::Arc;

fn cpu(threads: usize) -> Cpu {
    Cpu::new(Some(threads)).unwrap()
}

fn build<T: Scalar>(device: &Cpu, matrix: &Arc<Csr>, precond: Preconditioner) -> Operator<Cpu, T>
where
    Cpu: Pick<T>,
{
    precond.build(matrix, &operator::<Cpu, T>(device, matrix), 0).unwrap().unwrap()
}

/// Returns M^-1 r.
fn applied<T: Scalar>(device: &Cpu, m: &Operator<Cpu, T>, r: &[f64]) -> Vec<f64> {
    let r_there = upload::<Cpu, T>(device, r, 1);
    let mut z = upload::<Cpu, T>(device, &vec![f64::NAN; r.len()], 1);
    m.apply(1.0, &r_there, 0.0, &mut z).unwrap();
    download::<Cpu, T>(device, &z, r.len())
}

/// Returns the textbook's factor on dense arrays, or the row whose pivot is not positive.
fn dense_ic0(matrix: &Csr, shift: f64) -> Result<Vec<Vec<f64>>, usize> {
    let n = matrix.rows();
    let mut l = vec![vec![0.0; n]; n];
    for i in 0..n {
        for (j, value) in matrix.row(i).filter(|&(j, _)| j <= i) {
            let sum: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            if j < i {
                l[i][j] = (value - sum) / l[j][j];
            } else {
                let pivot = value * (1.0 + shift) - sum;
                if pivot <= 0.0 {
                    return Err(i);
                }
                l[i][i] = pivot.sqrt();
            }
        }
    }
    Ok(l)
}

/// Returns the factor K of M = K K' for SSOR.
fn dense_ssor(matrix: &Csr, omega: f64) -> Vec<Vec<f64>> {
    let n = matrix.rows();
    let mut k = vec![vec![0.0; n]; n];
    let diagonal = matrix.diagonal();
    for (i, row) in k.iter_mut().enumerate() {
        for (j, value) in matrix.row(i).filter(|&(j, _)| j <= i) {
            let entry = if i == j { value / omega } else { value };
            row[j] = entry / diagonal[j].sqrt() * (omega / (2.0 - omega)).sqrt();
        }
    }
    k
}

/// Returns z with K K' z = r.
fn solved(k: &[Vec<f64>], r: &[f64]) -> Vec<f64> {
    let n = r.len();
    let mut z = r.to_vec();
    for i in 0..n {
        let sum: f64 = (0..i).map(|j| k[i][j] * z[j]).sum();
        z[i] = (z[i] - sum) / k[i][i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|j| k[j][i] * z[j]).sum();
        z[i] = (z[i] - sum) / k[i][i];
    }
    z
}

fn assert_near(found: &[f64], expected: &[f64], epsilon: f64, what: &str) {
    let size = expected.iter().fold(0.0_f64, |size, z| size.max(z.abs()));
    for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
        let off = (found - expected).abs();
        assert!(
            off <= tolerance::TRIANGLES * epsilon * size,
            "{what}: row {row}: {found}, expected {expected}"
        );
    }
}

fn assert_is_reference<T: Scalar>(matrix: &Arc<Csr>, precond: Preconditioner, k: &[Vec<f64>], threads: usize)
where
    Cpu: Pick<T>,
{
    let device = cpu(threads);
    let r = reals(3, matrix.rows());
    let r: Vec<f64> = r.iter().map(|&r| T::from_f64(r).to_f64()).collect();
    let m = build::<T>(&device, matrix, precond.clone());
    let what = format!("{precond}, {} rows, {threads} threads, {}", matrix.rows(), T::NAME);
    assert_near(&applied(&device, &m, &r), &solved(k, &r), T::EPSILON, &what);
}

/// Builds a matrix of nodes with `block` unknowns each, any two nodes connected with a probability of
/// `chance` percent, with a dominant diagonal.
fn random_nodes(seed: u64, nodes: usize, block: usize, chance: usize) -> Arc<Csr> {
    let mut numbers = Numbers::new(seed);
    let n = nodes * block;
    let mut lower = Vec::new();
    let mut sums = vec![0.0; n];
    for i in 0..nodes {
        for j in 0..=i {
            if i != j && numbers.below(100) >= chance {
                continue;
            }
            for (r, c) in (0..block).flat_map(|r| (0..block).map(move |c| (i * block + r, j * block + c))) {
                if c < r {
                    let value = numbers.real();
                    lower.push((r, c, value));
                    sums[r] += value.abs();
                    sums[c] += value.abs();
                }
            }
        }
    }
    lower.extend(sums.iter().enumerate().map(|(i, sum)| (i, i, sum * 1.01 + 0.1)));
    zoo::symmetric(n, &lower)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn ic0_and_ssor_equal_the_textbook_on_random_matrices(
        seed in any::<u64>(), nodes in 1..24_usize, block in 1..=7_usize, chance in 0..70_usize, omega in 0.1..1.9,
    ) {
        let matrix = random_nodes(seed, nodes, block, chance);
        let factor = dense_ic0(&matrix, 0.0).unwrap();
        assert_is_reference::<f64>(&matrix, preconditioner("ic0"), &factor, 2);
        assert_is_reference::<f32>(&matrix, preconditioner("ic0"), &factor, 2);
        let ssor = preconditioner(&format!("ssor:omega={omega}"));
        assert_is_reference::<f64>(&matrix, ssor, &dense_ssor(&matrix, omega), 2);
    }
}

/// Returns systems large enough for several threads: lines of a grid, lines that depend on each other both
/// ways, blocks, and no order.
fn cut_among_threads() -> Vec<Arc<Csr>> {
    vec![
        zoo::generated("poisson2d:70x50"),
        zoo::generated("poisson3d:14x15x16"),
        zoo::generated("hex27:8x9x10,dof=3"),
        zoo::generated("hex27:12x12x12"),
        random_nodes(5, 1500, 1, 1),
        random_nodes(6, 400, 2, 2),
    ]
}

#[test]
fn systems_divided_among_threads_equal_the_textbook() {
    for matrix in cut_among_threads() {
        let factor = dense_ic0(&matrix, 0.0).unwrap();
        for threads in [1, 3] {
            assert_is_reference::<f64>(&matrix, preconditioner("ic0"), &factor, threads);
            assert_is_reference::<f32>(&matrix, preconditioner("ic0"), &factor, threads);
        }
        assert_is_reference::<f64>(&matrix, preconditioner("ssor"), &dense_ssor(&matrix, 1.0), 2);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for matrix in cut_among_threads() {
        let r = reals(9, matrix.rows());
        for precond in [preconditioner("ic0"), preconditioner("ssor")] {
            let run = |threads| {
                let device = cpu(threads);
                let m = build::<f64>(&device, &matrix, precond.clone());
                let first = bits(&applied(&device, &m, &r));
                assert_eq!(bits(&applied(&device, &m, &r)), first, "again, {threads} threads");
                first
            };
            let expected = run(1);
            for threads in [2, 3, 4, 7] {
                assert!(run(threads) == expected, "{precond}, {} rows, {threads} threads", matrix.rows());
            }
        }
    }
}

#[test]
fn a_matrix_without_fill_is_factored_exactly() {
    let tridiagonal: Vec<_> =
        (0..900).flat_map(|i| [(i, i, 2.0), (i, i.max(1) - 1, if i == 0 { 0.5 } else { -1.0 })]).collect();
    let arrow: Vec<_> = (0..300).flat_map(|i| [(i, i, 4.0 + i as f64), (299, i, 1.0)]).collect();
    for (what, n, lower) in [("tridiagonal", 900, tridiagonal), ("arrow", 300, arrow)] {
        let system = System::random(zoo::symmetric(n, &lower));
        let outcome = system.solve_with(&cpu(2), preconditioner("ic0"), &to(tolerance::RTOL));
        assert!(outcome.reason == StopReason::Converged && outcome.iterations <= 2, "{what}: {outcome:?}");
    }
}

#[test]
fn ic0_and_ssor_are_symmetric_and_positive() {
    let device = cpu(2);
    for matrix in cut_among_threads() {
        let (x, y) = (reals(1, matrix.rows()), reals(2, matrix.rows()));
        for precond in [preconditioner("ic0"), preconditioner("ssor"), preconditioner("ssor:omega=1.7")] {
            let m = build::<f64>(&device, &matrix, precond.clone());
            let (mx, my) = (applied(&device, &m, &x), applied(&device, &m, &y));
            let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
            let (scale, off) = ((dot(&x, &mx) * dot(&y, &my)).sqrt(), dot(&x, &my) - dot(&mx, &y));
            assert!(
                off.abs() <= tolerance::TRIANGLES * f64::EPSILON * scale,
                "{precond}: {off:e} of {scale:e}"
            );
            assert!(dot(&x, &mx) > 0.0 && dot(&y, &my) > 0.0, "{precond}");
        }
    }
}

#[test]
fn iteration_counts_equal_those_of_other_implementations() {
    let system = System::generated("poisson2d:60x60");
    for (precond, expected) in
        [(preconditioner("ic0"), 51), (preconditioner("ssor"), 60), (preconditioner("ssor:omega=1.5"), 39)]
    {
        let outcome = system.solve_with(&cpu(2), precond.clone(), &to(tolerance::RTOL));
        assert_eq!((outcome.reason, outcome.iterations), (StopReason::Converged, expected), "{precond}");
    }
}

#[test]
fn apply_scales_by_alpha_and_adds_beta_times_the_old_vector() {
    let device = cpu(2);
    let matrix = zoo::generated("poisson2d:9x8");
    let m = build::<f64>(&device, &matrix, preconditioner("ic0"));
    let r = reals(4, 72);
    let z = applied(&device, &m, &r);
    let r_there = upload::<Cpu, f64>(&device, &r, 1);
    for (alpha, beta, before) in [(-0.5, 0.0, f64::NAN), (1.0, 2.0, 3.0), (0.25, -1.0, 0.5)] {
        let mut y = upload::<Cpu, f64>(&device, &[before; 72], 1);
        m.apply(alpha, &r_there, beta, &mut y).unwrap();
        let scaled_old = if beta == 0.0 { 0.0 } else { beta * before };
        let expected: Vec<f64> = z.iter().map(|z| alpha * z + scaled_old).collect();
        assert_near(&download::<Cpu, f64>(&device, &y, 72), &expected, f64::EPSILON, "alpha and beta");
    }
    let short = upload::<Cpu, f64>(&device, &r[1..], 1);
    let mut y = upload::<Cpu, f64>(&device, &r, 1);
    assert!(matches!(m.apply(1.0, &short, 0.0, &mut y), Err(Error::Dimension { .. })));
    let (two, mut two_out) =
        (upload::<Cpu, f64>(&device, &[0.0; 144], 2), upload::<Cpu, f64>(&device, &[0.0; 144], 2));
    m.apply(1.0, &two, 0.0, &mut two_out).unwrap();
    let refused = m.apply(1.0, &two, 0.0, &mut y);
    assert!(matches!(refused, Err(Error::Dimension { .. })));
}

#[test]
fn a_breakdown_is_repaired_by_the_smallest_shift_tried() {
    // Kershaw's matrix: positive definite, but its incomplete factorisation has the pivot -5.
    let lower = [
        (0, 0, 3.0),
        (1, 0, -2.0),
        (1, 1, 3.0),
        (2, 1, -2.0),
        (2, 2, 3.0),
        (3, 0, 2.0),
        (3, 2, -2.0),
        (3, 3, 3.0),
    ];
    let matrix = zoo::symmetric(4, &lower);
    assert_eq!(dense_ic0(&matrix, 0.0).unwrap_err(), 3);
    let mut shift = 1e-3;
    while dense_ic0(&matrix, shift).is_err() {
        shift *= 2.0;
    }
    assert_is_reference::<f64>(&matrix, preconditioner("ic0"), &dense_ic0(&matrix, shift).unwrap(), 1);
    let outcome =
        System::random(matrix.clone()).solve_with(&cpu(1), preconditioner("ic0"), &to(tolerance::RTOL));
    assert_eq!(outcome.reason, StopReason::Converged);
    // An explicit shift is used unchanged if it suffices.
    let explicit = preconditioner("ic0:shift=2.5");
    assert_is_reference::<f64>(&matrix, explicit, &dense_ic0(&matrix, 2.5).unwrap(), 1);
}

#[test]
fn empty_and_diagonal_systems_are_solved_in_one_iteration() {
    let device = cpu(3);
    for precond in [preconditioner("ic0"), preconditioner("ssor")] {
        let empty = zoo::symmetric(0, &[]);
        assert!(applied(&device, &build::<f64>(&device, &empty, precond.clone()), &[]).is_empty());
        let one = zoo::diagonal(&[4.0]);
        assert_eq!(applied(&device, &build::<f64>(&device, &one, precond.clone()), &[8.0]), [2.0]);
        let many = zoo::diagonal(&(0..5000).map(|i| f64::from(1 << (i % 9))).collect::<Vec<_>>());
        let expected: Vec<f64> = (0..5000).map(|i| 1.0 / f64::from(1 << (i % 9))).collect();
        assert_eq!(
            applied(&device, &build::<f64>(&device, &many, precond.clone()), &vec![1.0; 5000]),
            expected
        );
        let outcome = System::random(many).solve_with(&device, precond, &to(tolerance::RTOL));
        assert_eq!((outcome.reason, outcome.iterations), (StopReason::Converged, 1));
    }
}

#[test]
fn every_real_positive_definite_matrix_converges_with_ic0() {
    let folder = crate::common::real::folder();
    let rule = StoppingRule::any([
        StoppingRule::RelativeResidual(tolerance::RTOL),
        StoppingRule::MaxIterations(tolerance::LOOSE_ITERATIONS),
    ]);
    for name in [
        "LFAT5",
        "494_bus",
        "1138_bus",
        "bcsstk02",
        "Chem97ZtZ",
        "gr_30_30",
        "bcsstk06",
        "nos3",
        "msc01050",
        "bcsstm39",
        "ex3",
        "ex10",
        "bcsstk13",
        "fv3",
        "crystm01",
        "bcsstk15",
        "bcsstk16",
        "cvxbqp1",
    ] {
        let path = std::path::Path::new(&folder).join(format!("{name}.mtx.gz"));
        let matrix = Arc::new(crate::source::load(path.to_str().unwrap()).unwrap().matrix);
        let system = System::ones(matrix);
        let device = cpu(2);
        let a = operator::<Cpu, f64>(&device, &system.matrix);
        let m = preconditioner("ic0").build(&system.matrix, &a, 0).unwrap();
        let method = crate::solve::Method::Cg;
        let outcome = method.solve(a, m, &system.given(), &rule, &mut []).unwrap();
        println!("{name}: {} iterations, {} restarts", outcome.iterations, outcome.restarts);
        assert_eq!(outcome.reason, StopReason::Converged, "{name}: {outcome:?}");
    }
}
