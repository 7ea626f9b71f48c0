//! Conjugate gradients on every backend: answers, iterations, bits and costs.

use crate::Error;
use crate::backend::{Choice, Host, Pick};
use crate::common::each_backend::{Case, Check, build, choices_for, for_each};
use crate::common::places::check_threads;
use crate::common::solves::{System, at_most, operator, refused, serial, to};
use crate::common::vectors::bits;
use crate::common::{on_each_backend, on_each_device, tolerance, zoo};
use crate::device::Cpu;
use crate::format::Csr;
use crate::format::stats::Verdict;
use crate::observe::{Batch, Observer, Recorder};
use crate::precond::Preconditioner;
use crate::scalar::{Precision, Scalar};
use crate::solve::{Method, System as Given, verdict};
use crate::stop::{StopReason, StoppingRule};
use std::sync::Arc;

on_each_device! {
    an_indefinite_real_matrix_is_detected,
    a_singular_but_consistent_system_converges,
    a_diagonal_system_with_jacobi_takes_one_iteration,
    a_combination_of_rules_ends_with_the_first_that_holds,
    a_residual_of_exactly_zero_ends_a_solve_with_any_rule,
    observers_receive_every_iteration_once_and_in_order,
    batches_do_not_change_the_bits,
    the_bytes_of_an_iteration_match_the_documented_budget,
    right_hand_sides_out_of_range_are_refused,
    a_right_hand_side_of_any_scale_takes_the_same_iterations,
    systems_with_mismatched_sizes_are_refused,
    diagonals_that_jacobi_cannot_invert_are_refused_with_their_row,
    jacobi_applies_the_inverse_of_the_diagonal,
}

const BOTH: [Preconditioner; 2] = [Preconditioner::NONE, Preconditioner::JACOBI];

/// Checks that a system with the solution of ones converges in about as many iterations as a serial run.
struct Converges;

fn rtol_of<T: Scalar>() -> f64 {
    if size_of::<T>() == 4 { tolerance::RTOL_F32 } else { tolerance::RTOL }
}

impl Check for Converges {
    /// The system, and the iterations of serial runs with each preconditioner. The matrix is that of the
    /// tested precision. In single precision the solution is random: a solution of ones makes b too
    /// small if rows nearly cancel.
    type Expected = (System, [usize; 2]);

    fn expect<T: Scalar>(&self, matrix: &Csr) -> Self::Expected {
        let system =
            if size_of::<T>() == 4 { System::random } else { System::ones }(Arc::new(matrix.clone()));
        let serial = BOTH.map(|precond| serial(&system, precond, &to(rtol_of::<T>())).iterations);
        (system, serial)
    }

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, (system, serial): &Self::Expected) {
        let (single, rtol) = (size_of::<T>() == 4, rtol_of::<T>());
        for (precond, &expected) in BOTH.into_iter().zip(serial) {
            let Some(a) = case.build::<D, T>(device) else { return };
            let m = precond.build(&case.matrix, &a, 0).unwrap();
            let outcome = Method::Cg.solve(a, m, &system.given(), &to(rtol), &mut []).unwrap();
            let off = outcome.iterations.abs_diff(expected);
            let what =
                format!("{case}, {}: {} iterations, serial {expected}", precond.name(), outcome.iterations);
            assert!(off <= tolerance::iterations(expected) && expected > 1, "{what}");
            let near = |x: &f64| (x - 1.0).abs() <= tolerance::X;
            assert!(single || outcome.x.iter().all(near), "{what}");
            let residual = outcome.residual_true;
            assert!(outcome.reason == StopReason::Converged && residual <= rtol, "{what}: {outcome:?}");
        }
    }
}

fn every_backend_converges_to_the_solution_in_as_many_iterations<D: Host>(device: &D, backend: &str) {
    let zoo: zoo::Zoo =
        ["poisson2d:45x36", "hex27:6x6x6,dof=3"].into_iter().map(|s| (s, zoo::generated(s))).collect();
    for_each(device, backend, &zoo, &Converges);
}

fn a_singular_but_consistent_system_converges<D: Host>(device: &D) {
    let system = System::random(zoo::generated("poisson2d:40x30,boundary=neumann"));
    for precond in BOTH {
        let outcome = system.solve_with(device, precond.clone(), &to(tolerance::RTOL));
        assert_eq!(outcome.reason, StopReason::Converged, "{}: {outcome:?}", precond.name());
        assert!(outcome.residual_true <= tolerance::RTOL && outcome.restarts == 0);
    }
}

fn a_diagonal_system_with_jacobi_takes_one_iteration<D: Host>(device: &D) {
    // Magnitudes as far apart as those of a lumped mass matrix; powers of 2 have exact inverses.
    let values: Vec<f64> = (0..1500).map(|i| 2f64.powi(i % 40 - 20)).collect();
    let system = System::ones(zoo::diagonal(&values));
    let outcome = system.solve_with(device, Preconditioner::JACOBI, &to(tolerance::RTOL));
    assert_eq!((outcome.iterations, &outcome.reason), (1, &StopReason::Converged));
    assert!(outcome.x.iter().all(|&x| x == 1.0));
}

fn a_combination_of_rules_ends_with_the_first_that_holds<D: Host>(device: &D) {
    use StoppingRule::{MaxIterations, RelativeResidual};
    let system = System::generated("poisson2d:16x16");
    let run = |rule: StoppingRule| {
        let outcome = system.solve(device, &rule);
        (outcome.iterations, outcome.residual, outcome.reason)
    };
    let loose = 1e-2;
    let (alone, residual, reason) = run(RelativeResidual(loose));
    assert!((3..30).contains(&alone) && residual <= loose && reason == StopReason::Converged, "{alone}");
    let limit = |limit| StopReason::IterationLimit { limit };
    let (iterations, _, reason) = run(StoppingRule::any([RelativeResidual(loose), MaxIterations(alone - 1)]));
    assert_eq!((iterations, reason), (alone - 1, limit(alone - 1)));
    let inner = StoppingRule::any([RelativeResidual(loose), MaxIterations(alone + 4)]);
    let nested = StoppingRule::any([RelativeResidual(tolerance::RTOL), inner]);
    assert_eq!(run(nested), (alone, residual, StopReason::Converged));
    assert_eq!(run(RelativeResidual(1.0)), (0, 1.0, StopReason::Converged));
}

fn a_residual_of_exactly_zero_ends_a_solve_with_any_rule<D: Host>(device: &D) {
    let system = System::ones(zoo::diagonal(&[2.0; 600]));
    for rule in [StoppingRule::MaxIterations(9), StoppingRule::RelativeResidual(0.0)] {
        for precond in BOTH {
            let outcome = system.solve_with(device, precond, &rule);
            assert_eq!(
                (outcome.reason, outcome.iterations, outcome.residual),
                (StopReason::Converged, 1, 0.0)
            );
        }
    }
}

/// Checks the order of the batches that it receives.
#[derive(Default)]
struct OrderCheck {
    received: Option<usize>,
    residuals: Vec<f64>,
    seconds: f64,
}

impl Observer for OrderCheck {
    fn batch(&mut self, batch: &Batch<'_>) {
        assert_eq!(batch.first, self.received.unwrap_or(0));
        assert!(!batch.residuals.is_empty() && batch.tolerance == Some(tolerance::RTOL));
        assert!(batch.seconds.0 >= self.seconds && batch.seconds.1 >= batch.seconds.0);
        self.seconds = batch.seconds.1;
        match self.received {
            // The first batch contains only the residual before the first iteration.
            None => {
                assert_eq!(batch.residuals, [1.0]);
                self.received = Some(0);
            }
            Some(received) => self.received = Some(received + batch.residuals.len()),
        }
        self.residuals.extend_from_slice(batch.residuals);
    }
}

fn observers_receive_every_iteration_once_and_in_order<D: Host>(device: &D) {
    let system = System::generated("poisson2d:96x96");
    let (mut watch, mut recorder) = (OrderCheck::default(), Recorder::with_capacity(500));
    let a = operator(device, &system.matrix);
    let outcome = system.solve_operators(a, None, &to(tolerance::RTOL), &mut [&mut watch, &mut recorder]);
    assert!(outcome.iterations > 100);
    assert_eq!(watch.received, Some(outcome.iterations));
    assert_eq!(watch.residuals.len(), outcome.iterations + 1);
    assert_eq!(watch.residuals.last(), Some(&outcome.residual));
    assert_eq!(recorder.residuals(), watch.residuals);
    // A solve that stops at this iteration has the same residual.
    for limit in [1, 8, 9, 50] {
        assert_eq!(system.solve(device, &at_most(limit)).residual, watch.residuals[limit]);
    }
}

/// Makes each batch one iteration.
struct EachIterate;

impl Observer for EachIterate {
    fn batch(&mut self, batch: &Batch<'_>) {
        assert_eq!(batch.residuals.len(), 1);
    }

    fn wants_iterates(&self) -> bool {
        true
    }
}

fn batches_do_not_change_the_bits<D: Host>(device: &D) {
    let system = System::generated("hex27:9x8x7");
    for limit in [1, 17, 40] {
        let single = system.watch(device, &StoppingRule::MaxIterations(limit), &mut EachIterate);
        let batched = system.solve(device, &StoppingRule::MaxIterations(limit));
        assert_eq!((single.iterations, batched.iterations), (limit, limit));
        assert!(bits(&single.x) == bits(&batched.x) && single.residual == batched.residual, "{limit}");
    }
}

fn the_bytes_of_an_iteration_match_the_documented_budget<D: Host>(device: &D) {
    let system = System::generated("poisson2d:20x20");
    let n = system.matrix.rows() as u64;
    // The bytes of the product without its two vectors.
    let arrays = operator::<D, f64>(device, &system.matrix).cost().bytes - 2 * n * 8;
    let bytes = |precond| system.solve_with(device, precond, &at_most(1)).bytes_per_iteration;
    assert_eq!(bytes(Preconditioner::NONE), arrays + 10 * n * 8);
    assert_eq!(bytes(Preconditioner::JACOBI), arrays + 13 * n * 8);
}

fn right_hand_sides_out_of_range_are_refused<D: Host>(device: &D) {
    let matrix = zoo::generated("poisson2d:4x4");
    for scale in [f64::NAN, f64::INFINITY, 5e-324] {
        let mut b = vec![0.0; 16];
        b[5] = -scale;
        match refused(device, &matrix, &b) {
            Error::RightHandSideNotFinite { row } => {
                assert!(row == 5 && !scale.is_finite(), "{scale}: row {row}")
            }
            Error::RightHandSideScale { largest, norm_squared } => {
                assert!(largest == scale && !norm_squared.is_normal(), "{largest}, {norm_squared}");
            }
            other => panic!("{scale}: {other}"),
        }
    }
}

fn a_right_hand_side_of_any_scale_takes_the_same_iterations<D: Host>(device: &D) {
    let system = System::random(zoo::generated("poisson2d:20x30"));
    let whole = system.solve(device, &to(tolerance::RTOL));
    for power in [-900, -300, -1, 1, 300, 900] {
        let by = 2f64.powi(power);
        let scaled =
            System { matrix: Arc::clone(&system.matrix), b: system.b.iter().map(|b| b * by).collect() };
        let outcome = scaled.solve(device, &to(tolerance::RTOL));
        let x: Vec<f64> = outcome.x.iter().map(|x| x / by).collect();
        assert!(bits(&x) == bits(&whole.x) && outcome.residual == whole.residual, "2^{power}");
        assert_eq!((outcome.reason, outcome.spectrum), (StopReason::Converged, whole.spectrum));
    }
}

fn systems_with_mismatched_sizes_are_refused<D: Host>(device: &D) {
    let wide = zoo::matrix(3, &[&[(0, 1.0)], &[(2, 1.0)]]);
    let error = refused(device, &wide, &[1.0; 2]);
    assert!(matches!(error, Error::NotSquare { rows: 2, cols: 3, solver: "cg" }), "{error}");
    for got in [0, 15, 17] {
        let error = refused(device, &zoo::generated("poisson2d:4x4"), &vec![1.0; got]);
        assert!(matches!(error, Error::Dimension { expected: 16, got: g, .. } if g == got), "{error}");
    }
}

fn diagonals_that_jacobi_cannot_invert_are_refused_with_their_row<D: Host>(device: &D) {
    let full = |d: f64| zoo::square(&[&[(0, 1.0)], &[(0, 1.0), (1, 2.0)], &[(1, 1.0), (2, d)]]);
    let hole = zoo::square(&[&[(0, 1.0)], &[(1, 1.0)], &[(1, 1.0)]]);
    let cases = [(hole, "not stored"), (full(0.0), "0"), (full(-3.5), "-3.5"), (full(f64::NAN), "NaN")];
    let build = |precond: Preconditioner, matrix: Arc<Csr>| {
        precond.build(&matrix, &operator::<D, f64>(device, &matrix), 0)
    };
    for (matrix, found) in cases {
        match build(Preconditioner::JACOBI, matrix).map(|_| ()) {
            Err(e @ Error::BadDiagonal { precond: "jacobi", row: 2, .. }) => {
                assert!(e.to_string().contains(&format!("is {found};")), "{e}");
            }
            other => panic!("{found}: {other:?}"),
        }
    }
    assert!(build(Preconditioner::JACOBI, full(1e-9)).unwrap().is_some());
    assert!(build(Preconditioner::NONE, full(0.0)).unwrap().is_none());
}

fn jacobi_applies_the_inverse_of_the_diagonal<D: Host>(device: &D) {
    let matrix = zoo::diagonal(&[1.0, 2.0, 4.0, 8.0]);
    let m = Preconditioner::JACOBI.build(&matrix, &operator::<D, f64>(device, &matrix), 0).unwrap().unwrap();
    assert_eq!((m.shape(), m.cost().bytes, m.cost().flops, m.storage()), ((4, 4), 96, 4, 32));
    let x = crate::common::vectors::upload::<D, f64>(device, &[8.0, -8.0, 4.0, 0.0], 1);
    let apply = |alpha, beta, before: f64| {
        let mut y = crate::common::vectors::upload::<D, f64>(device, &[before; 4], 1);
        m.apply(alpha, &x, beta, &mut y).unwrap();
        crate::common::vectors::download::<D, f64>(device, &y, 4)
    };
    assert_eq!(apply(1.0, 0.0, f64::NAN), [8.0, -4.0, 1.0, 0.0]);
    assert_eq!(apply(-0.5, 2.0, 1.0), [-2.0, 4.0, 1.5, 2.0]);
    let short = device.vector::<f64>(3, 1).unwrap();
    let mut y = device.vector::<f64>(4, 1).unwrap();
    assert!(matches!(m.apply(1.0, &short, 0.0, &mut y), Err(Error::Dimension { .. })));
}

#[test]
fn on_the_cpu_any_number_of_threads_gives_the_same_bits() {
    let system = System::generated("poisson2d:50x60");
    for precond in BOTH {
        let run = |threads| {
            let cpu = Cpu::new(Some(threads)).unwrap();
            // Runs inside the pool, as programs do; the other tests run outside.
            let outcome = system.solve_with(&cpu, precond.clone(), &to(tolerance::RTOL));
            (outcome.iterations, bits(&outcome.x), outcome.residual.to_bits())
        };
        check_threads(precond.name(), &[2, 3, 7], run);
    }
}

#[test]
fn on_the_cpu_work_stealing_keeps_the_same_bits() {
    let system = System::generated("poisson2d:640x620");
    let run = |threads| {
        let cpu = Cpu::new(Some(threads)).unwrap();
        let outcome = system.solve_with(&cpu, Preconditioner::JACOBI, &at_most(12));
        (bits(&outcome.x), outcome.residual.to_bits())
    };
    check_threads("work stealing", &[2, 2, 2, 3, 3, 3], run);
}

/// Loads a real matrix.
fn real(name: &str) -> System {
    let folder = crate::common::real::folder();
    let path = std::path::Path::new(&folder).join(format!("{name}.mtx.gz"));
    let matrix = Arc::new(crate::source::load(path.to_str().unwrap()).unwrap().matrix);
    System::ones(matrix)
}

/// A rule for runs that converge or detect that the matrix is not positive definite.
fn loose() -> StoppingRule {
    StoppingRule::any([
        StoppingRule::RelativeResidual(tolerance::RTOL),
        StoppingRule::MaxIterations(tolerance::LOOSE_ITERATIONS),
    ])
}

fn real_matrices_converge<D: Host>(device: &D, backend: &str) {
    for name in ["494_bus", "nos3", "gr_30_30", "fv3", "Chem97ZtZ"] {
        let system = real(name);
        // As in the zoo, backends with many parameter values test only some of them on the larger matrices.
        for choice in choices_for::<D>(backend, &system.matrix) {
            let what = format!("{name}, {}", choice.label());
            let built = build::<D, f64>(device, &choice, &system.matrix);
            let Some(a) = built.unwrap_or_else(|e| panic!("{what}: {e}")) else { continue };
            let m = Preconditioner::JACOBI.build(&system.matrix, &a, 0).unwrap();
            let outcome = Method::Cg.solve(a, m, &system.given(), &loose(), &mut []).unwrap();
            assert_eq!(outcome.reason, StopReason::Converged, "{what}: {outcome:?}");
        }
    }
}

on_each_backend! { every_backend_converges_to_the_solution_in_as_many_iterations, real_matrices_converge }

fn an_indefinite_real_matrix_is_detected<D: Host>(device: &D) {
    let outcome = real("SiH4").solve(device, &loose());
    assert!(
        matches!(outcome.reason, StopReason::IndefiniteMatrix { iteration, curvature } if iteration > 0 && curvature <= 0.0),
        "{outcome:?}"
    );
}

#[test]
fn a_nonsymmetric_real_matrix_is_detected() {
    let system = real("add32");
    let verdict = crate::format::stats::symmetry_of(&system.matrix).unwrap();
    let Verdict::No(found) = verdict else { panic!("{verdict:?}") };
    assert_eq!(system.matrix.get(found.row, found.col), Some(found.value));
    assert_eq!(system.matrix.get(found.col, found.row), found.mirrored);
    assert_ne!(Some(found.value), found.mirrored);
}

#[test]
fn mixed_precision_solves_the_original_system_to_the_tolerance_of_double() {
    let cpu = Cpu::new(Some(2)).unwrap();
    let choice = Choice::resolve("cpu", "rows", "rows").unwrap();
    choice.check_precision(Precision::Mixed).unwrap();
    let system = System::generated("hex27:6x6x6,dof=3");
    let narrow = Arc::new(system.matrix.to_f32());
    let solve = |matrix: &Csr| {
        let a = operator::<Cpu, f64>(&cpu, &narrow);
        let given = Given::new(matrix, &system.b);
        Method::Cg.solve(a, None, &given, &to(tolerance::RTOL), &mut []).unwrap()
    };
    // For the matrix that the solver uses, one run suffices; measured with the source matrix, the rounding
    // of the values is visible.
    let rounded = solve(&narrow);
    assert_eq!((rounded.reason, rounded.restarts), (StopReason::Converged, 0));
    assert!(verdict::true_residual(&system.matrix, &system.b, &rounded.x) > tolerance::RTOL);
    let exact = solve(&system.matrix);
    assert!(exact.reason == StopReason::Converged && exact.restarts > 0, "{exact:?}");
    assert!(verdict::true_residual(&system.matrix, &system.b, &exact.x) <= tolerance::RTOL);
}
