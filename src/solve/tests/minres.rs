//! Minimal residuals: indefinite and singular systems, with and without a solution.

use crate::backend::{Host, Pick};
use crate::common::each_backend::{Case, Check, for_each};
use crate::common::places::check_threads;
use crate::common::solves::{System, at_most, operator, to};
use crate::common::vectors::{Numbers, bits, reals};
use crate::common::{on_each_backend, on_each_device, tolerance, zoo};
use crate::device::Cpu;
use crate::format::Csr;
use crate::observe::Recorder;
use crate::precond::Preconditioner;
use crate::scalar::Scalar;
use crate::solve::{Method, Solution, verdict};
use crate::stop::{StopReason, StoppingRule};
use std::sync::Arc;

on_each_device! {
    random_indefinite_systems_converge_to_their_solution,
    a_positive_definite_preconditioner_helps_an_indefinite_system,
    a_singular_but_consistent_system_converges,
    a_system_without_solution_ends_in_a_least_squares_solution,
    a_right_hand_side_in_the_null_space_needs_no_iteration,
    an_exact_answer_after_few_iterations_ends_the_solve,
    the_iteration_limit_is_kept_exactly_though_a_step_is_two_iterations,
    residuals_never_rise,
    an_indefinite_preconditioner_ends_a_solve_with_its_evidence,
    a_matrix_with_nan_ends_a_solve_in_its_first_iteration,
    single_precision_is_refined_to_the_tolerance_of_double,
    the_bytes_of_an_iteration_match_the_documented_budget,
    extreme_eigenvalues_are_found,
}

const BOTH: [Preconditioner; 2] = [Preconditioner::NONE, Preconditioner::JACOBI];

/// Makes a symmetric random matrix with eigenvalues on both sides of zero and away from it. Its diagonal is
/// positive, so that jacobi can be built: pairs of rows are coupled more strongly than by their diagonal.
fn indefinite(n: usize) -> Arc<Csr> {
    let mut numbers = Numbers::new(71);
    let mut rows = vec![Vec::new(); n];
    for i in 0..n {
        rows[i].push((i as u32, 1.0 + 0.25 * numbers.real()));
        let mut couple = |j: usize, value: f64| {
            if j > i && j < n {
                rows[i].push((j as u32, value));
                rows[j].push((i as u32, value));
            }
        };
        if i % 2 == 0 {
            couple(i + 1, 3.0 + 0.5 * numbers.real());
        }
        couple(i + 2 + numbers.below(5) * 2, 0.3 * numbers.real());
    }
    for row in &mut rows {
        row.sort_by_key(|e| e.0);
        row.dedup_by_key(|e| e.0);
    }
    zoo::square(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn minres<D: Host>(device: &D, system: &System, precond: Preconditioner, rule: &StoppingRule) -> Solution {
    system.solve_by(device, Method::Minres, precond, rule)
}

fn random_indefinite_systems_converge_to_their_solution<D: Host>(device: &D) {
    for n in [1, 2, 3, 64, 511, 1500] {
        let system = System::ones(indefinite(n));
        let outcome = minres(device, &system, Preconditioner::NONE, &to(tolerance::RTOL));
        assert_eq!(outcome.reason, StopReason::Converged, "{n}: {outcome:?}");
        assert!(outcome.x.iter().all(|x| (x - 1.0).abs() <= tolerance::X), "{n}");
        assert!(
            n < 64 || outcome.spectrum.unwrap().smallest < -1.0,
            "{n} is indefinite: {:?}",
            outcome.spectrum
        );
    }
    let refused = System::ones(indefinite(64)).solve(device, &to(tolerance::RTOL)).reason;
    assert!(matches!(refused, StopReason::IndefiniteMatrix { .. }), "cg refuses it: {refused:?}");
}

struct Converges;

impl Check for Converges {
    type Expected = ();

    fn expect<T: Scalar>(&self, _: &Csr) {}

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, _: &()) {
        let rtol = if size_of::<T>() == 4 { tolerance::RTOL_F32 } else { tolerance::RTOL };
        let system = System::random(case.matrix.clone());
        for precond in BOTH {
            let Some(a) = case.build::<D, T>(device) else { return };
            let m = precond.build(&case.matrix, &a, 0).unwrap();
            let outcome = Method::Minres.solve(a, m, &system.given(), &to(rtol), &mut []).unwrap();
            assert_eq!(outcome.reason, StopReason::Converged, "{case}, {}: {outcome:?}", precond.name());
        }
    }
}

on_each_backend! { every_backend_solves_an_indefinite_system }

fn every_backend_solves_an_indefinite_system<D: Host>(device: &D, backend: &str) {
    for_each(device, backend, &vec![("random indefinite", indefinite(900))], &Converges);
}

fn a_positive_definite_preconditioner_helps_an_indefinite_system<D: Host>(device: &D) {
    // The scale differs so much from row to row that only the preconditioner makes the system easy.
    let good = indefinite(600);
    let scale: Vec<f64> = (0..600).map(|i| 2f64.powi(i % 12)).collect();
    let rows: Vec<Vec<(u32, f64)>> =
        (0..600).map(|i| good.row(i).map(|(j, v)| (j as u32, scale[i] * v * scale[j])).collect()).collect();
    let system = System::random(zoo::square(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>()));
    let [plain, jacobi] = BOTH.map(|precond| minres(device, &system, precond, &to(tolerance::RTOL)));
    assert_eq!(jacobi.reason, StopReason::Converged);
    assert!(jacobi.iterations * 2 < plain.iterations, "{} of {}", jacobi.iterations, plain.iterations);
}

fn a_singular_but_consistent_system_converges<D: Host>(device: &D) {
    let system = System::random(zoo::generated("poisson2d:40x30,boundary=neumann"));
    for precond in BOTH {
        let outcome = minres(device, &system, precond.clone(), &to(tolerance::RTOL));
        assert_eq!(outcome.reason, StopReason::Converged, "{}: {outcome:?}", precond.name());
    }
}

fn a_system_without_solution_ends_in_a_least_squares_solution<D: Host>(device: &D) {
    let mut system = System::random(zoo::generated("poisson2d:40x30,boundary=neumann"));
    // The matrix maps constants to zero, so the constant part of b is not reachable.
    system.b.iter_mut().for_each(|b| *b += 0.5);
    let mean = system.b.iter().sum::<f64>() / 1200.0;
    let norm = system.b.iter().map(|b| b * b).sum::<f64>().sqrt();
    let unreachable = mean.abs() * 1200f64.sqrt() / norm;
    let outcome = minres(device, &system, Preconditioner::NONE, &to(tolerance::RTOL));
    match outcome.reason {
        StopReason::LeastSquares { residual, normal } => {
            assert!((residual / unreachable - 1.0).abs() <= tolerance::RTOL, "{residual} {unreachable}");
            assert!(normal <= tolerance::RTOL && !outcome.reason.is_success());
            let r = verdict::Residual::compensated(&system.matrix, &system.b, &outcome.x).vector;
            assert!(r.iter().all(|r| (r / mean - 1.0).abs() <= tolerance::X), "r is constant");
        }
        other => panic!("{other:?}"),
    }
}

fn a_right_hand_side_in_the_null_space_needs_no_iteration<D: Host>(device: &D) {
    let system = System { matrix: zoo::generated("poisson2d:9x9,boundary=neumann"), b: vec![1.0; 81] };
    let outcome = minres(device, &system, Preconditioner::NONE, &to(tolerance::RTOL));
    assert_eq!(outcome.reason, StopReason::LeastSquares { residual: 1.0, normal: 0.0 });
    assert_eq!((outcome.iterations, outcome.x), (0, vec![0.0; 81]));
}

fn an_exact_answer_after_few_iterations_ends_the_solve<D: Host>(device: &D) {
    // The number of iterations is that of different eigenvalues.
    let values: Vec<f64> = (0..700).map(|i| [4.0, -2.0, 1.0][i % 3]).collect();
    let system = System::ones(zoo::diagonal(&values));
    let outcome = minres(device, &system, Preconditioner::NONE, &to(tolerance::RTOL));
    assert_eq!((outcome.reason, outcome.iterations), (StopReason::Converged, 3));
    let twice = System::ones(zoo::diagonal(&[2.0; 600]));
    for precond in BOTH {
        let outcome = minres(device, &twice, precond.clone(), &StoppingRule::MaxIterations(9));
        assert_eq!((outcome.reason, outcome.iterations), (StopReason::Converged, 1), "{}", precond.name());
    }
}

fn the_iteration_limit_is_kept_exactly_though_a_step_is_two_iterations<D: Host>(device: &D) {
    let system = System::random(zoo::generated("poisson2d:40x40"));
    for precond in BOTH {
        for limit in [0, 1, 2, 7, 8, 9, 17, 34] {
            let outcome = minres(device, &system, precond.clone(), &at_most(limit));
            assert_eq!(outcome.reason, StopReason::IterationLimit { limit });
            assert_eq!(outcome.iterations, limit);
            assert_eq!(outcome.x.iter().all(|&x| x == 0.0), limit == 0);
        }
    }
}

fn residuals_never_rise<D: Host>(device: &D) {
    let system = System::random(indefinite(800));
    let mut recorder = Recorder::with_capacity(5000);
    let a = operator::<D, f64>(device, &system.matrix);
    let rule = to(tolerance::RTOL);
    let outcome = Method::Minres.solve(a, None, &system.given(), &rule, &mut [&mut recorder]).unwrap();
    let residuals = recorder.residuals();
    assert_eq!(residuals.len(), outcome.iterations + 1);
    assert!(residuals.windows(2).all(|w| w[1] <= w[0]), "{residuals:?}");
    assert_eq!(residuals.last(), Some(&outcome.residual));
}

fn an_indefinite_preconditioner_ends_a_solve_with_its_evidence<D: Host>(device: &D) {
    let system = System::ones(zoo::diagonal(&[1.0, 2.0, 3.0, 4.0, 5.0, 0.1]));
    let run = |values: &[f64]| {
        let (a, m) = (operator::<D, f64>(device, &system.matrix), operator(device, &zoo::diagonal(values)));
        let rule = to(tolerance::RTOL);
        Method::Minres.solve(a, Some(m), &system.given(), &rule, &mut []).unwrap()
    };
    let outcome = run(&[-1.0; 6]);
    let product = -system.b.iter().map(|b| b * b).sum::<f64>();
    match outcome.reason {
        StopReason::IndefinitePreconditioner { iteration: 0, product: p } => {
            assert!((p / product - 1.0).abs() <= tolerance::GENERATED && outcome.iterations == 0);
        }
        other => panic!("{other:?}"),
    }
    match run(&[1.0, 0.5, 0.3, 0.25, 0.2, -0.1]).reason {
        StopReason::IndefinitePreconditioner { iteration, product } => {
            assert!(iteration > 0 && product < 0.0)
        }
        other => panic!("{other:?}"),
    }
}

fn a_matrix_with_nan_ends_a_solve_in_its_first_iteration<D: Host>(device: &D) {
    let mut values = vec![2.0; 700];
    values[650] = f64::NAN;
    let system = System { matrix: zoo::diagonal(&values), b: vec![1.0; 700] };
    let outcome = minres(device, &system, Preconditioner::NONE, &to(tolerance::RTOL));
    assert_eq!(outcome.reason, StopReason::NotFinite { iteration: 1, vector: "A v", row: Some(650) });
    assert_eq!((outcome.iterations, outcome.x), (0, vec![0.0; 700]));
}

fn single_precision_is_refined_to_the_tolerance_of_double<D: Host>(device: &D) {
    let system = System::random(indefinite(700));
    let narrow = Arc::new(system.matrix.to_f32());
    let a = operator::<D, f32>(device, &narrow);
    let rule = to(tolerance::RTOL);
    let outcome = Method::Minres.solve(a, None, &system.given(), &rule, &mut []).unwrap();
    assert!(outcome.reason == StopReason::Converged && outcome.restarts > 0, "{outcome:?}");
}

fn the_bytes_of_an_iteration_match_the_documented_budget<D: Host>(device: &D) {
    let system = System::generated("poisson2d:20x20");
    let n = system.matrix.rows() as u64;
    // The bytes of the product without its two vectors.
    let arrays = operator::<D, f64>(device, &system.matrix).cost().bytes - 2 * n * 8;
    let bytes = |precond| minres(device, &system, precond, &at_most(1)).bytes_per_iteration;
    assert_eq!(bytes(Preconditioner::NONE), arrays + 11 * n * 8);
    assert_eq!(bytes(Preconditioner::JACOBI), arrays + 18 * n * 8);
}

fn extreme_eigenvalues_are_found<D: Host>(device: &D) {
    // All eigenvalues are found after as many iterations as there are eigenvalues.
    let values: Vec<f64> = (0..12).map(|i| f64::from(i) - 4.5).collect();
    let system = System { matrix: zoo::diagonal(&values), b: reals(72, 12) };
    let spectrum = minres(device, &system, Preconditioner::NONE, &to(tolerance::RTOL)).spectrum.unwrap();
    assert!(
        (spectrum.smallest + 4.5).abs() <= tolerance::X && (spectrum.largest - 6.5).abs() <= tolerance::X,
        "{spectrum:?}"
    );
    assert_eq!(spectrum.condition(), None);
}

#[test]
fn on_the_cpu_any_number_of_threads_gives_the_same_bits() {
    let system = System::random(indefinite(3000));
    for precond in BOTH {
        let run = |threads| {
            let outcome =
                minres(&Cpu::new(Some(threads)).unwrap(), &system, precond.clone(), &to(tolerance::RTOL));
            (outcome.iterations, bits(&outcome.x), outcome.residual.to_bits())
        };
        check_threads(precond.name(), &[2, 3, 7], run);
    }
}

fn on_real_matrices<D: Host>(device: &D) {
    let folder = crate::common::real::folder();
    // An indefinite and a singular matrix.
    for name in ["SiH4", "nopoly"] {
        let path = std::path::Path::new(&folder).join(format!("{name}.mtx.gz"));
        let matrix = Arc::new(crate::source::load(path.to_str().unwrap()).unwrap().matrix);
        for precond in BOTH {
            let outcome =
                minres(device, &System::random(matrix.clone()), precond.clone(), &to(tolerance::RTOL));
            assert_eq!(outcome.reason, StopReason::Converged, "{name}, {}: {outcome:?}", precond.name());
        }
    }
}

#[test]
fn on_the_cpu_real_matrices_converge() {
    on_real_matrices(&Cpu::new(Some(2)).unwrap());
}

#[test]
fn on_the_gpu_real_matrices_converge() {
    let gpu = crate::common::gpu::gpu();
    on_real_matrices(&gpu);
}

#[test]
fn an_odd_stagnation_window_ends_with_the_step_that_contains_its_end() {
    let values: Vec<f64> =
        (0..400).map(|i| 10f64.powf(f64::from(i / 2) / 25.0) * if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let system = System { matrix: zoo::diagonal(&values), b: vec![1.0; 400] };
    let cpu = crate::device::Cpu::new(Some(1)).unwrap();
    for odd in [3, 5, 7] {
        let run = |window| {
            let rules = [StoppingRule::RelativeResidual(1e-12), StoppingRule::Stagnation(window)];
            let outcome =
                system.solve_by(&cpu, Method::Minres, Preconditioner::NONE, &StoppingRule::any(rules));
            (outcome.reason, outcome.iterations)
        };
        let (reason, iterations) = run(odd);
        assert!(matches!(reason, StopReason::Stagnated { window, .. } if window == odd + 1), "{reason:?}");
        assert_eq!((reason, iterations), run(odd + 1));
    }
}
