//! Every preconditioner of the table has the properties that methods require: linear, symmetric, positive
//! definite, reproducible; and each is compared with its definition.

use crate::Error;
use crate::backend::{Host, Operator, Pick};
use crate::common::places::check_threads;
use crate::common::solves::{System, operator, preconditioner, to};
use crate::common::vectors::{bits, download, reals, upload};
use crate::common::{on_each_device, tolerance, zoo};
use crate::device::{Cpu, Device, SlotState};
use crate::format::{Csr, Values};
use crate::operator::dot_into;
use crate::precond::{Preconditioner, ROWS};
use crate::scalar::Scalar;
use std::sync::Arc;

on_each_device!(
    every_preconditioner_is_symmetric_and_positive_definite,
    every_preconditioner_scales_and_adds_and_reads_the_old_y_only_if_beta_is_not_zero,
    the_fused_dot_product_matches_the_vectors,
    vectors_of_another_length_are_refused,
    no_preconditioner_increases_the_number_of_iterations,
    block_jacobi_applies_the_inverses_of_its_blocks,
    chebyshev_matches_the_polynomial_of_its_definition,
    chebyshev_of_even_degree_is_positive_definite_with_a_wrong_estimate,
);

/// Makes a positive definite matrix from the symmetrised pattern of this one, with a dominant
/// diagonal of varied magnitude.
fn definite(matrix: &Csr) -> Arc<Csr> {
    let n = matrix.rows();
    let mut rows = vec![std::collections::BTreeMap::<u32, f64>::new(); n];
    for row in 0..n {
        for (col, value) in matrix.row(row).filter(|&(col, _)| col != row) {
            *rows[row].entry(col as u32).or_default() += value;
            *rows[col].entry(row as u32).or_default() += value;
        }
    }
    let rows: Vec<Vec<(u32, f64)>> = rows
        .into_iter()
        .enumerate()
        .map(|(row, mut entries)| {
            let sum: f64 = entries.values().map(|v| v.abs()).sum();
            entries.insert(row as u32, 1.1 * sum + 1.0 + (row % 13) as f64);
            entries.into_iter().collect()
        })
        .collect();
    zoo::square(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Returns positive definite matrices of many shapes.
fn definite_zoo() -> zoo::Zoo {
    let square = zoo::reals().into_iter().filter(|(_, matrix)| matrix.is_square());
    let mut all: zoo::Zoo = square.map(|(name, matrix)| (name, definite(&matrix))).collect();
    all.push(("poisson2d", zoo::generated("poisson2d:37x29")));
    all.push(("elasticity3d", zoo::generated("elasticity3d:5x4x3,contrast=100,seed=2")));
    assert!(all.iter().any(|(name, _)| *name == "1x1") && all.iter().any(|(name, _)| *name == "0x0"));
    all
}

/// Returns every preconditioner except `none`, with the defaults of the table and with parameters
/// that change the code path.
fn all() -> Vec<Preconditioner> {
    let more = [
        "block-jacobi:block=2",
        "block-jacobi:block=7",
        "block-jacobi:block=31",
        "chebyshev:degree=1",
        "amg:precision=f64",
        "amg:precision=f64,coarse=4,block=1",
        "amg:precision=f64,coarse=4,cycle=v,degree=1",
    ];
    let more = more.iter().map(|typed| typed.parse().unwrap());
    // The levels of amg are in single precision unless it is told otherwise.
    let rows = Preconditioner::all().filter(|p| *p != Preconditioner::NONE && p.name() != "amg");
    let all: Vec<_> = rows.chain(more).collect();
    assert!(all.len() >= 7, "{all:?}");
    all
}

/// Returns the preconditioners that run on a device. Checks that triangular solves, which run on the CPU
/// only so far, report this.
fn all_on<D: Host>(device: &D) -> Vec<Preconditioner> {
    let matrix = zoo::diagonal(&[1.0, 2.0]);
    let a = operator::<D, f64>(device, &matrix);
    let runs = |precond: &Preconditioner| match precond.build(&matrix, &a, 0) {
        Err(e @ Error::CpuOnly { .. }) => {
            assert!(D::KIND == "cuda" && precond.needs_cpu(), "{precond}: {e}");
            assert!(e.to_string().contains("the CPU"), "{e}");
            false
        }
        built => built.unwrap().is_some(),
    };
    all().into_iter().filter(runs).collect()
}

fn build<D: Pick<T>, T: Scalar>(device: &D, precond: Preconditioner, matrix: &Arc<Csr>) -> Operator<D, T> {
    precond.build(matrix, &operator::<D, T>(device, matrix), 0).unwrap().unwrap()
}

fn apply<D: Device, T: Scalar>(
    device: &D,
    m: &Operator<D, T>,
    (alpha, beta): (f64, f64),
    x: &[f64],
    y: &[f64],
) -> Vec<f64> {
    let x = upload::<D, T>(device, x, 1);
    let mut y = upload::<D, T>(device, y, 1);
    m.apply(alpha, &x, beta, &mut y).unwrap();
    download::<D, T>(device, &y, m.shape().0)
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

/// Runs the check in both precisions on all matrices.
fn for_each<D: Host>(device: &D, check: impl Check) {
    for (name, matrix) in &definite_zoo() {
        for precond in all_on(device) {
            let what = format!("{precond}, {name}");
            check.check::<D, f64>(device, &build(device, precond.clone(), matrix), &what);
            check.check::<D, f32>(device, &build(device, precond, matrix), &what);
        }
    }
}

trait Check {
    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, m: &Operator<D, T>, what: &str);
}

fn every_preconditioner_is_symmetric_and_positive_definite<D: Host>(device: &D) {
    struct Symmetric;
    impl Check for Symmetric {
        fn check<D: Pick<T>, T: Scalar>(&self, device: &D, m: &Operator<D, T>, what: &str) {
            let n = m.shape().0;
            assert_eq!(m.shape(), (n, n), "{what}");
            assert!(n == 0 || m.cost().bytes > 0 && m.cost().flops > 0 && m.storage() > 0, "{what}");
            for seed in 1..4 {
                let (x, y) = (reals(seed, n), reals(seed + 100, n));
                let zero = vec![0.0; n];
                let mx = apply(device, m, (1.0, 0.0), &x, &zero);
                let my = apply(device, m, (1.0, 0.0), &y, &zero);
                let gap = (dot(&mx, &y) - dot(&x, &my)).abs();
                let scale = norm(&mx) * norm(&y) + norm(&x) * norm(&my);
                assert!(gap <= tolerance::preconditioned::<T>(scale), "{what}: {gap:e} of {scale:e}");
                assert!(n == 0 || dot(&x, &mx) > 0.0, "{what}: {:e}", dot(&x, &mx));
            }
        }
    }
    for_each(device, Symmetric);
}

fn every_preconditioner_scales_and_adds_and_reads_the_old_y_only_if_beta_is_not_zero<D: Host>(device: &D) {
    struct Scales;
    impl Check for Scales {
        fn check<D: Pick<T>, T: Scalar>(&self, device: &D, m: &Operator<D, T>, what: &str) {
            let n = m.shape().0;
            let (x, y) = (reals(7, n), reals(8, n));
            let plain = apply(device, m, (1.0, 0.0), &x, &vec![0.0; n]);
            let over_nan = apply(device, m, (1.0, 0.0), &x, &vec![f64::NAN; n]);
            assert_eq!(bits(&plain), bits(&over_nan), "{what}");
            for (alpha, beta) in [(-0.75, 0.0), (1.0, 1.0), (2.5, -0.5), (0.0, 1.0)] {
                let got = apply(device, m, (alpha, beta), &x, &y);
                let expected: Vec<f64> = plain.iter().zip(&y).map(|(m, y)| alpha * m + beta * y).collect();
                let gap: Vec<f64> = got.iter().zip(&expected).map(|(g, e)| g - e).collect();
                let scale = (alpha * norm(&plain)).abs() + (beta * norm(&y)).abs();
                assert!(norm(&gap) <= tolerance::preconditioned::<T>(scale), "{what}: {alpha}, {beta}");
            }
        }
    }
    for_each(device, Scales);
}

fn the_fused_dot_product_matches_the_vectors<D: Host>(device: &D) {
    use crate::device::{Op, Slot};
    struct Fused;
    impl Check for Fused {
        fn check<D: Pick<T>, T: Scalar>(&self, device: &D, m: &Operator<D, T>, what: &str) {
            let n = m.shape().0;
            let x = crate::common::vectors::rounded::<T>(&reals(9, n));
            let plain = apply(device, m, (1.0, 0.0), &x, &vec![0.0; n]);
            let (on_device, mut y) =
                (upload::<D, T>(device, &x, 1), upload::<D, T>(device, &vec![f64::NAN; n], 1));
            let mut slots = device.slots(3, 1).unwrap();
            let then = [Op::Add(Slot(2), Slot(1), Slot(1)), Op::Count(Slot(2))];
            m.apply_dot(&on_device, &mut y, &mut slots, &dot_into(Slot(1)), &then).unwrap();
            let got = download::<D, T>(device, &y, n);
            let gap: Vec<f64> = got.iter().zip(&plain).map(|(g, p)| g - p).collect();
            assert!(norm(&gap) <= tolerance::preconditioned::<T>(norm(&plain)), "{what}");
            let mut state = SlotState::new(3, 1);
            device.read(&slots, &mut state).unwrap();
            let magnitude: f64 = x.iter().zip(&got).map(|(x, y)| (x * y).abs()).sum();
            let gap = (state.get(Slot(1), 0) - dot(&x, &got)).abs();
            assert!(gap <= 2.0 * tolerance::dot(n, magnitude), "{what}: {gap:e}");
            assert_eq!(state.get(Slot(2), 0), 2.0 * state.get(Slot(1), 0), "{what}");
            assert_eq!(state.counts, [1], "{what}");
        }
    }
    for_each(device, Fused);
}

fn vectors_of_another_length_are_refused<D: Host>(device: &D) {
    let matrix = zoo::generated("poisson2d:6x7");
    for precond in all_on(device) {
        let m = build::<D, f64>(device, precond.clone(), &matrix);
        let vector = |n| device.vector::<f64>(n, 1).unwrap();
        for (x, y) in [(41, 42), (42, 41), (43, 42), (42, 43)] {
            let outcome = m.apply(1.0, &vector(x), 0.0, &mut vector(y));
            assert!(matches!(outcome, Err(Error::Dimension { .. })), "{precond}: {outcome:?}");
        }
        m.apply(1.0, &vector(42), 0.0, &mut vector(42)).unwrap();
    }
}

fn no_preconditioner_increases_the_number_of_iterations<D: Host>(device: &D) {
    let system = System::generated("elasticity3d:7x6x5,contrast=100,seed=2");
    let rule = to(tolerance::RTOL);
    let plain = system.solve(device, &rule).iterations;
    for precond in all_on(device) {
        let outcome = system.solve_with(device, precond.clone(), &rule);
        assert!(outcome.reason.is_success(), "{precond}: {:?}", outcome.reason);
        assert!(outcome.iterations <= plain, "{precond}: {} instead of {plain}", outcome.iterations);
    }
}

#[test]
fn on_the_cpu_any_number_of_threads_gives_the_same_bits() {
    let run = |threads: usize, precond: Preconditioner, matrix: &Arc<Csr>| {
        let cpu = Cpu::new(Some(threads)).unwrap();
        let x = reals(21, matrix.rows());
        let y = |m: Vec<f64>| bits(&m);
        let wide = build::<Cpu, f64>(&cpu, precond.clone(), matrix);
        let narrow = build::<Cpu, f32>(&cpu, precond, matrix);
        [
            y(apply(&cpu, &wide, (1.0, 0.0), &x, &x)),
            y(apply(&cpu, &wide, (0.3, -2.0), &x, &x)),
            y(apply(&cpu, &narrow, (1.0, 0.0), &x, &x)),
        ]
    };
    for what in ["poisson2d:61x67", "elasticity3d:9x8x7,contrast=100,seed=2"] {
        let matrix = zoo::generated(what);
        for precond in all() {
            check_threads(&format!("{precond}, {what}"), &[2, 3, 4], |threads| {
                run(threads, precond.clone(), &matrix)
            });
        }
    }
}

/// Solves a dense system by elimination with partial pivoting.
fn solve_dense(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let largest = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, largest);
        b.swap(k, largest);
        let (pivot, below) = a[k..].split_first_mut().unwrap();
        for (i, row) in below.iter_mut().enumerate() {
            let factor = row[k] / pivot[k];
            row.iter_mut().zip(&*pivot).for_each(|(entry, p)| *entry -= factor * p);
            b[k + 1 + i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - known) / a[k][k];
    }
    b
}

fn block_jacobi_applies_the_inverses_of_its_blocks<D: Host>(device: &D) {
    for (what, blocks) in
        [("elasticity3d:5x4x3,contrast=100,seed=2", [3, 6, 16]), ("poisson2d:11x10", [2, 4, 200])]
    {
        let matrix = zoo::generated(what);
        let n = matrix.rows();
        let x = reals(3, n);
        for block in blocks {
            let m = build::<D, f64>(device, preconditioner(&format!("block-jacobi:block={block}")), &matrix);
            let got = apply(device, &m, (1.0, 0.0), &x, &vec![0.0; n]);
            for first in (0..n).step_by(block) {
                let rows = first..(first + block).min(n);
                let dense =
                    rows.clone().map(|i| rows.clone().map(|j| matrix.get(i, j).unwrap_or(0.0)).collect());
                let expected = solve_dense(dense.collect(), x[rows.clone()].to_vec());
                for (got, expected) in got[rows.clone()].iter().zip(&expected) {
                    let gap = (got - expected).abs();
                    assert!(
                        gap <= tolerance::preconditioned::<f64>(expected.abs().max(1.0)),
                        "{what}, {block}: {gap:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_automatic_block_size_is_the_number_of_unknowns_per_point() {
    let found = |what: &str| preconditioner("block-jacobi").settle(&zoo::generated(what)).to_string();
    assert_eq!(found("elasticity3d:6x6x6,contrast=100,seed=2"), "block-jacobi:block=3");
    assert_eq!(found("blockband:n=1000,block=5,density=0.2,symmetric,shift=0.85"), "block-jacobi:block=5");
    let given = preconditioner("block-jacobi:block=4");
    assert_eq!(given.settle(&zoo::generated("poisson2d:9x9")), given);
}

/// Computes q(D^-1 A) D^-1 x by the three-term recurrence, in double precision.
fn chebyshev_reference(matrix: &Csr, largest: f64, (degree, ratio): (usize, f64), x: &[f64]) -> Vec<f64> {
    let d = matrix.diagonal();
    let (theta, delta) = (0.5 * (largest + largest / ratio), 0.5 * (largest - largest / ratio));
    let mut direction: Vec<f64> = x.iter().zip(&d).map(|(x, d)| x / d / theta).collect();
    let mut y = direction.clone();
    let mut rho = delta / theta;
    for _ in 0..degree {
        let next = 1.0 / (2.0 * theta / delta - rho);
        let ay = matrix.multiply_reference(&y);
        for i in 0..x.len() {
            direction[i] = next * rho * direction[i] + 2.0 * next / delta * (x[i] - ay[i]) / d[i];
            y[i] += direction[i];
        }
        rho = next;
    }
    y
}

fn chebyshev_matches_the_polynomial_of_its_definition<D: Host>(device: &D) {
    // The diagonal is constant, 4, and absolute row sums are at most 8, so the bound of the row sums, 2,
    // applies: the estimate times its margin is above the largest eigenvalue, 1.9856.
    let matrix = zoo::generated("poisson2d:20x24");
    let n = matrix.rows();
    let x = reals(5, n);
    for (degree, ratio) in [(1, 30.0), (2, 30.0), (4, 30.0), (9, 7.5)] {
        let m = build::<D, f64>(
            device,
            preconditioner(&format!("chebyshev:degree={degree},ratio={ratio}")),
            &matrix,
        );
        let got = apply(device, &m, (1.0, 0.0), &x, &vec![0.0; n]);
        let expected = chebyshev_reference(&matrix, 2.0, (degree, ratio), &x);
        let gap: Vec<f64> = got.iter().zip(&expected).map(|(g, e)| g - e).collect();
        assert!(
            norm(&gap) <= tolerance::preconditioned::<f64>(norm(&expected)),
            "{degree}: {:e}",
            norm(&gap)
        );
        let a = operator::<D, f64>(device, &matrix).cost();
        let vectors = ((7 * degree + 4) * n * 8) as u64;
        assert_eq!(m.cost().bytes, degree as u64 * a.bytes + vectors);
    }
}

fn chebyshev_of_even_degree_is_positive_definite_with_a_wrong_estimate<D: Host>(device: &D) {
    // The bound is that of the matrix, 2; the operator is that of 20 times the matrix, with
    // eigenvalues up to 40.
    let matrix = zoo::generated("poisson2d:30x30");
    let values = (0..matrix.nnz()).map(|j| 20.0 * matrix.values().get(j)).collect();
    let larger = Arc::new(Csr::with_pattern(matrix.pattern().clone(), Values::F64(values)).unwrap());
    let a = operator::<D, f64>(device, &larger);
    let n = matrix.rows();
    let x = reals(6, n);
    let product = |degree| {
        let m = preconditioner(&format!("chebyshev:degree={degree}")).build(&matrix, &a, 0).unwrap().unwrap();
        dot(&x, &apply(device, &m, (1.0, 0.0), &x, &vec![0.0; n]))
    };
    for degree in [2, 4, 6] {
        assert!(product(degree) > 0.0 && product(degree + 1) < 0.0, "{degree}");
    }
}

#[test]
fn every_preconditioner_parses_its_printed_form() {
    for precond in all() {
        assert_eq!(precond.to_string().parse::<Preconditioner>().unwrap(), precond, "{precond}");
    }
    for row in ROWS {
        assert_eq!(row.name.parse::<Preconditioner>().unwrap(), row.default());
        assert!(!row.summary.is_empty());
    }
    let typed = "chebyshev:ratio=12.5,degree=7".parse().unwrap();
    assert_eq!(preconditioner("chebyshev:degree=7,ratio=12.5"), typed);
}

#[test]
fn a_matrix_times_a_number_has_the_multigrid_cycle_divided_by_it() {
    let (cpu, n) = (Cpu::new(Some(2)).unwrap(), 900);
    let matrix = zoo::generated(&format!("spd-random:n={n},row=9"));
    let factor = 2.0_f64.powi(21);
    let values = (0..matrix.nnz()).map(|at| factor * matrix.values().get(at)).collect();
    let larger = Arc::new(Csr::with_pattern(Arc::clone(matrix.pattern()), Values::F64(values)).unwrap());
    let [b, y] = [3, 4].map(|seed| reals(seed, n));
    for precond in ["amg:coarse=40", "amg:coarse=40,degree=1,cycle=v", "amg:levels=2", "amg:precision=f64"] {
        let applied = |matrix: &Arc<Csr>, alpha: f64| {
            let m = build::<_, f64>(&cpu, preconditioner(precond), matrix);
            apply(&cpu, &m, (alpha, 0.25), &b, &y)
        };
        let (own, of_larger) = (applied(&matrix, 2.0), applied(&larger, 2.0 * factor));
        assert!(own.iter().zip(&y).any(|(own, y)| (own - 0.25 * y).abs() > 1e-3), "{precond}");
        for (own, of_larger) in own.iter().zip(&of_larger) {
            assert!((own - of_larger).abs() <= 1e-5 * own.abs().max(1.0), "{precond}: {own}, {of_larger}");
        }
    }
}

#[test]
fn a_settled_preconditioner_prints_every_parameter_that_the_matrix_decides() {
    let matrix = zoo::generated("poisson2d:9x9");
    for row in ROWS {
        let settled = row.default().settle(&matrix);
        assert_eq!(settled.to_string().parse::<Preconditioner>().unwrap(), settled, "{settled}");
        for param in row.params.iter().filter(|param| param.default.is_none()) {
            assert!(settled.to_string().contains(&format!("{}=", param.name)), "{settled}");
        }
    }
}

#[test]
fn the_memory_estimate_is_close_to_the_stored_bytes() {
    let device = Cpu::new(Some(2)).unwrap();
    for (what, block) in [("poisson2d:70x60", "4"), ("elasticity3d:12x11x10", "3")] {
        let matrix = zoo::generated(what);
        let (rows, entries) = (matrix.rows() as u64, matrix.nnz() as u64);
        for precond in Preconditioner::all().filter(|p| *p != Preconditioner::NONE) {
            let precond = match precond.name() {
                "block-jacobi" => preconditioner(&format!("block-jacobi:block={block}")),
                _ => precond,
            };
            let kept = [
                build::<_, f64>(&device, precond.clone(), &matrix).storage(),
                build::<_, f32>(&device, precond.clone(), &matrix).storage(),
            ];
            for (kept, width) in kept.into_iter().zip([8, 4]) {
                let estimated = precond.bytes(rows, entries, width);
                let near = 0.75 * kept as f64 <= estimated as f64 && estimated as f64 <= 2.1 * kept as f64;
                assert!(
                    near,
                    "{precond} of {what}, {width} bytes per number: {estimated} estimated, {kept} stored"
                );
            }
        }
    }
}
