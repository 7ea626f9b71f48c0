//! Every reason for which a solve ends, with its evidence, and with an x that matches the reported residual.

use crate::backend::{Host, Operator};
use crate::common::solves::{System, at_most, operator, to};
use crate::common::vectors::reals;
use crate::common::{on_each_device, tolerance, zoo};
use crate::device::cpu::CpuVector;
use crate::device::{Cpu, Device, Operand, Sweep, Term, Update};
use crate::observe::{Batch, Observer, Recorder};
use crate::operator::{Cost, LinearOperator};
use crate::precond::Preconditioner;
use crate::solve::{Method, Solution, System as Given};
use crate::stop::{DIVERGENCE, StopReason, StoppingRule, stagnation_window};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

on_each_device! {
    a_solve_that_meets_the_tolerance_has_converged,
    a_right_hand_side_of_zeros_needs_no_iteration,
    the_iteration_limit_is_kept_exactly,
    a_time_limit_of_zero_ends_a_solve_before_its_first_iteration,
    a_matrix_with_nan_ends_a_solve_in_its_first_iteration,
    products_out_of_range_end_a_solve,
    an_answer_out_of_range_ends_a_solve_with_its_row_and_keeps_x,
    a_small_matrix_is_not_reported_as_indefinite,
    a_curvature_below_the_range_of_numbers_restarts_a_solve,
    a_curvature_that_is_not_positive_ends_a_solve_with_its_evidence,
    an_indefinite_matrix_may_be_detected_later,
    a_negative_preconditioner_ends_a_solve_before_its_first_iteration,
    an_indefinite_preconditioner_may_be_detected_later,
    a_diverging_residual_ends_a_solve,
    a_window_without_progress_ends_a_solve,
    a_tolerance_beyond_double_precision_ends_with_a_residual_gap,
    single_precision_is_refined_to_the_tolerance,
    a_limit_at_a_restart_is_the_reason,
    tolerances_may_be_relative_to_the_start_or_absolute,
    a_start_that_meets_the_tolerance_needs_no_iteration,
    observers_receive_the_start_of_a_solve_that_needs_no_iteration,
    a_flag_set_by_an_observer_interrupts,
}

fn a_solve_that_meets_the_tolerance_has_converged<D: Host>(device: &D) {
    let system = System::random(zoo::generated("hex27:7x7x7"));
    for precond in [Preconditioner::NONE, Preconditioner::JACOBI] {
        let outcome = system.solve_with(device, precond, &to(tolerance::RTOL));
        assert!(outcome.reason == StopReason::Converged && outcome.reason.is_success());
        assert!(outcome.residual <= tolerance::RTOL && outcome.iterations > 5);
        assert!(outcome.residual_true <= tolerance::RTOL && outcome.restarts == 0);
    }
}

fn a_right_hand_side_of_zeros_needs_no_iteration<D: Host>(device: &D) {
    for (what, n) in [("poisson2d:9x9", 81), ("poisson2d:1x1", 1)] {
        let system = System { matrix: zoo::generated(what), b: vec![0.0; n] };
        let outcome = system.solve(device, &to(tolerance::RTOL));
        assert!(outcome.reason == StopReason::ZeroRightHandSide && outcome.reason.is_success());
        assert_eq!((outcome.iterations, outcome.residual, outcome.x), (0, 0.0, vec![0.0; n]));
    }
    let empty = System { matrix: zoo::diagonal(&[]), b: vec![] };
    // The default backend of every device accepts a matrix without rows.
    assert_eq!(empty.solve(device, &to(tolerance::RTOL)).reason, StopReason::ZeroRightHandSide);
}

fn the_iteration_limit_is_kept_exactly<D: Host>(device: &D) {
    let system = System::generated("poisson2d:40x40");
    for precond in [Preconditioner::NONE, Preconditioner::JACOBI] {
        for limit in [0, 1, 2, 7, 8, 9, 17, 33] {
            let outcome = system.solve_with(device, precond.clone(), &at_most(limit));
            assert_eq!(outcome.reason, StopReason::IterationLimit { limit });
            assert_eq!(outcome.iterations, limit);
            assert!(!outcome.reason.is_success());
            assert_eq!(outcome.x.iter().all(|&x| x == 0.0), limit == 0);
        }
    }
}

fn a_time_limit_of_zero_ends_a_solve_before_its_first_iteration<D: Host>(device: &D) {
    let system = System::generated("poisson2d:10x10");
    let limit = StoppingRule::within(Duration::ZERO, Instant::now()).unwrap();
    let rules = [StoppingRule::RelativeResidual(tolerance::RTOL), limit];
    let outcome = system.solve(device, &StoppingRule::any(rules));
    assert_eq!(outcome.reason, StopReason::TimeLimit { seconds: 0.0 });
    assert_eq!((outcome.iterations, outcome.residual, outcome.x), (0, 1.0, vec![0.0; 100]));
}

fn a_matrix_with_nan_ends_a_solve_in_its_first_iteration<D: Host>(device: &D) {
    for bad in [f64::NAN, f64::INFINITY] {
        let mut values = vec![2.0; 700];
        values[650] = bad;
        let system = System { matrix: zoo::diagonal(&values), b: vec![1.0; 700] };
        let outcome = system.solve(device, &to(tolerance::RTOL));
        let found = StopReason::NotFinite { iteration: 1, vector: "A p", row: Some(650) };
        assert_eq!(outcome.reason, found);
        assert_eq!((outcome.iterations, outcome.residual, outcome.x), (0, 1.0, vec![0.0; 700]));
    }
}

fn products_out_of_range_end_a_solve<D: Host>(device: &D) {
    // q = 1e308 is finite, p'q = 5e308 is not.
    let system = System { matrix: zoo::diagonal(&[1e308; 5]), b: vec![1.0; 5] };
    let outcome = system.solve(device, &to(tolerance::RTOL));
    let found = StopReason::NotFinite { iteration: 1, vector: "", row: None };
    assert_eq!((outcome.reason, outcome.iterations), (found, 0));
}

fn an_answer_out_of_range_ends_a_solve_with_its_row_and_keeps_x<D: Host>(device: &D) {
    // x = 1e310, while p, A p and all products are finite.
    for method in Method::ALL {
        let system = System { matrix: zoo::diagonal(&[1.0, 1e-160, 1.0]), b: vec![0.0, 1e150, 0.0] };
        let outcome = system.solve_by(device, method, Preconditioner::NONE, &to(tolerance::RTOL));
        let found = |vector| StopReason::NotFinite { iteration: outcome.iterations, vector, row: Some(1) };
        assert_eq!(outcome.reason, found("x"), "{method:?}");
        assert_eq!((outcome.residual, outcome.residual_true, outcome.x), (1.0, 1.0, vec![0.0; 3]));
    }
}

/// Makes a diagonal matrix of the numbers from 1 on, times a factor; the solution is all ones.
fn numbers(n: usize, by: f64) -> System {
    System::ones(zoo::diagonal(&(1..=n).map(|i| i as f64 * by).collect::<Vec<_>>()))
}

fn a_small_matrix_is_not_reported_as_indefinite<D: Host>(device: &D) {
    for method in [Method::Cg, Method::PipelinedCg] {
        let outcome = numbers(4, 1e-110).solve_by(device, method, Preconditioner::NONE, &to(tolerance::RTOL));
        assert_eq!(outcome.reason, StopReason::Converged, "{method:?}");
    }
    let system = numbers(4, 1e-24);
    let a = operator::<D, f32>(device, &Arc::new(system.matrix.to_f32()));
    let outcome = Method::Cg.solve(a, None, &system.given(), &to(tolerance::RTOL_F32), &mut []);
    assert_eq!(outcome.unwrap().reason, StopReason::Converged, "f32");
}

fn a_curvature_below_the_range_of_numbers_restarts_a_solve<D: Host>(device: &D) {
    // The first iteration reduces p by 1e11 or more, and p'A p below 1e-324.
    let system = System { matrix: zoo::diagonal(&[1e-303, 1e-303 * (1.0 + 1e-11)]), b: vec![1.0; 2] };
    let outcome = system.solve(device, &to(1e-6 * tolerance::RTOL));
    assert_eq!((outcome.reason, outcome.restarts), (StopReason::Converged, 1));
}

fn a_curvature_that_is_not_positive_ends_a_solve_with_its_evidence<D: Host>(device: &D) {
    for (other, curvature) in [(-1.0, 0.0), (-3.0, -600.0)] {
        let values: Vec<f64> = (0..600).map(|i| if i % 2 == 0 { 1.0 } else { other }).collect();
        let system = System { matrix: zoo::diagonal(&values), b: vec![1.0; 600] };
        let outcome = system.solve(device, &to(tolerance::RTOL));
        assert_eq!(outcome.reason, StopReason::IndefiniteMatrix { iteration: 1, curvature });
        assert_eq!((outcome.iterations, outcome.residual), (0, 1.0));
    }
}

fn an_indefinite_matrix_may_be_detected_later<D: Host>(device: &D) {
    let system = System { matrix: zoo::diagonal(&[5.0, 4.0, 3.0, 2.0, -0.1]), b: vec![1.0; 5] };
    for precond in [None, Some(operator(device, &zoo::diagonal(&[1.0, 0.5, 1.0, 0.5, 1.0])))] {
        let a = operator(device, &system.matrix);
        let outcome = system.solve_operators(a, precond, &to(tolerance::RTOL), &mut []);
        match outcome.reason {
            StopReason::IndefiniteMatrix { iteration, curvature } => {
                assert!(curvature < 0.0 && iteration > 1 && iteration == outcome.iterations + 1);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// y = -x, with the default implementation of `apply_dot` in two passes.
struct Minus<D: Device>(usize, Mutex<D::Slots>);

impl<D: Device> LinearOperator<D, f64> for Minus<D> {
    fn shape(&self) -> (usize, usize) {
        (self.0, self.0)
    }

    fn apply(
        &self,
        device: &D,
        alpha: f64,
        x: &D::Vector<f64>,
        beta: f64,
        y: &mut D::Vector<f64>,
    ) -> crate::Result<()> {
        assert!((alpha, beta) == (1.0, 0.0));
        let term = Term::minus_one(Operand::Read(0));
        let updates = [Update { target: 0, terms: &[term] }];
        let sweep = Sweep {
            name: "minus",
            numbers: &[],
            writes: 1,
            reads: 1,
            updates: &updates,
            dots: &[],
            then: &[],
        };
        device.sweep(&mut [y], &[x], &mut self.1.lock().unwrap(), &sweep)
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }

    fn storage(&self) -> u64 {
        0
    }
}

fn a_negative_preconditioner_ends_a_solve_before_its_first_iteration<D: Host>(device: &D) {
    let system = System { matrix: zoo::generated("poisson2d:20x30"), b: vec![2.0; 600] };
    let m = Operator::new(device, Arc::new(Minus::<D>(600, device.slots(1, 1).unwrap().into())));
    let a = operator(device, &system.matrix);
    let outcome = system.solve_operators(a, Some(m), &to(tolerance::RTOL), &mut []);
    assert_eq!(outcome.reason, StopReason::IndefinitePreconditioner { iteration: 0, product: -2400.0 });
    assert_eq!((outcome.iterations, outcome.residual, outcome.x), (0, 1.0, vec![0.0; 600]));
}

fn an_indefinite_preconditioner_may_be_detected_later<D: Host>(device: &D) {
    let system = System { matrix: zoo::diagonal(&[1.0, 2.0, 3.0, 4.0, 5.0, 0.1]), b: vec![1.0; 6] };
    let m = operator(device, &zoo::diagonal(&[1.0, 0.5, 0.3, 0.25, 0.2, -0.1]));
    let a = operator(device, &system.matrix);
    let outcome = system.solve_operators(a, Some(m), &to(tolerance::RTOL), &mut []);
    match outcome.reason {
        StopReason::IndefinitePreconditioner { iteration, product } => {
            assert!(product < 0.0 && iteration > 0 && iteration == outcome.iterations);
        }
        other => panic!("{other:?}"),
    }
}

fn a_diverging_residual_ends_a_solve<D: Host>(device: &D) {
    // The first step, with a length for the small eigenvalue, overshoots along the large one by 1e12 / 2.
    let system = System { matrix: zoo::diagonal(&[1.0, 1e-24]), b: vec![1e-12, 1.0] };
    let rules = [StoppingRule::RelativeResidual(tolerance::RTOL), StoppingRule::Divergence(DIVERGENCE)];
    let a = operator::<D, f64>(device, &system.matrix);
    let outcome = Method::Cg.solve(a, None, &system.given(), &StoppingRule::any(rules), &mut []);
    let outcome = outcome.unwrap();
    match outcome.reason {
        StopReason::Diverged { iteration: 1, growth } => {
            assert!(growth > DIVERGENCE && outcome.iterations == 1)
        }
        other => panic!("{other:?}"),
    }
    // Without the rule the second iteration finds the answer, as far as rounding permits.
    let outcome = Method::Cg.solve(
        operator::<D, f64>(device, &system.matrix),
        None,
        &system.given(),
        &at_most(1),
        &mut [],
    );
    assert_eq!(outcome.unwrap().reason, StopReason::IterationLimit { limit: 1 });
}

fn a_window_without_progress_ends_a_solve<D: Host>(device: &D) {
    // The residual of a point load on a chain moves one node per iteration and hardly falls.
    let n = 700;
    let chain: Vec<Vec<(u32, f64)>> = (0..n)
        .map(|i: u32| {
            let mut row = vec![(i, 2.0)];
            if i > 0 {
                row.insert(0, (i - 1, -1.0));
            }
            if i + 1 < n {
                row.push((i + 1, -1.0));
            }
            row
        })
        .collect();
    let matrix = zoo::square(&chain.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut b = vec![0.0; n as usize];
    b[0] = 1.0;
    let system = System { matrix, b };
    let rule = |window| {
        StoppingRule::any([StoppingRule::RelativeResidual(tolerance::RTOL), StoppingRule::Stagnation(window)])
    };
    let outcome = system.solve(device, &rule(2));
    match outcome.reason {
        StopReason::Stagnated { iteration, window: 2 } => {
            assert!(iteration == outcome.iterations && outcome.restarts > 0, "{outcome:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(system.solve(device, &rule(stagnation_window(700))).reason, StopReason::Converged);
}

fn a_tolerance_beyond_double_precision_ends_with_a_residual_gap<D: Host>(device: &D) {
    // b is not the product of A and a vector of doubles, so no x has a residual of 0.
    let system = System { b: reals(62, 1024), ..System::generated("poisson2d:32x32") };
    let rtol = tolerance::RTOL_BEYOND_F64;
    let outcome = system.solve(device, &to(rtol));
    assert!(outcome.restarts > 0, "the solve must have restarted: {outcome:?}");
    match outcome.reason {
        StopReason::ResidualGap { recursive, recomputed } => {
            assert!(recomputed == outcome.residual_true && recursive == outcome.residual);
            assert!(recomputed > rtol && recomputed <= tolerance::RESIDUAL_GAP);
        }
        other => panic!("{other:?}"),
    }
}

fn single_precision_is_refined_to_the_tolerance<D: Host>(device: &D) {
    let system = System::random(zoo::generated("poisson2d:32x32"));
    let narrow = Arc::new(system.matrix.to_f32());
    for (rtol, restarts) in [(tolerance::RTOL_F32, 0), (tolerance::RTOL_BEYOND_F32, 1)] {
        let a = operator::<D, f32>(device, &narrow);
        let outcome = Method::Cg.solve(a, None, &system.given(), &to(rtol), &mut []).unwrap();
        assert!(outcome.reason == StopReason::Converged && outcome.residual_true <= rtol, "{outcome:?}");
        assert!(outcome.restarts >= restarts && (restarts > 0 || outcome.restarts == 0), "{outcome:?}");
    }
}

fn a_limit_at_a_restart_is_the_reason<D: Host>(device: &D) {
    let system = System::random(zoo::generated("poisson2d:32x32"));
    let narrow = Arc::new(system.matrix.to_f32());
    let rtol = tolerance::RTOL_BEYOND_F32;
    let run = |limit: usize| {
        let rule = [StoppingRule::RelativeResidual(rtol), StoppingRule::MaxIterations(limit)];
        let a = operator::<D, f32>(device, &narrow);
        Method::Cg.solve(a, None, &system.given(), &StoppingRule::any(rule), &mut []).unwrap()
    };
    let whole = run(5000);
    assert!(whole.reason == StopReason::Converged && whole.restarts > 0, "{whole:?}");
    // The recursive residual of the first run meets its tolerance at one of these iterations.
    for limit in (1..whole.iterations).rev() {
        assert_eq!(run(limit).reason, StopReason::IterationLimit { limit });
    }
}

fn tolerances_may_be_relative_to_the_start_or_absolute<D: Host>(device: &D) {
    let system = System::generated("poisson2d:30x30");
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let start: Vec<f64> = reals(61, 900).iter().map(|x| 1.0 + 1e-3 * x).collect();
    let initial = crate::solve::verdict::true_residual(&system.matrix, &system.b, &start);
    let given = Given { x0: Some(&start), ..system.given() };
    let run = |rule: StoppingRule| {
        let a = operator::<D, f64>(device, &system.matrix);
        let outcome = Method::Cg.solve(a, None, &given, &rule, &mut []).unwrap();
        assert_eq!(outcome.reason, StopReason::Converged);
        outcome
    };
    let relative = run(StoppingRule::RelativeResidual(tolerance::RTOL));
    let reduced = run(StoppingRule::InitialResidual(tolerance::RTOL));
    let absolute = run(StoppingRule::AbsoluteResidual(tolerance::RTOL));
    assert!(initial < 0.1 && relative.residual_true <= tolerance::RTOL);
    assert!(reduced.residual_true <= tolerance::RTOL * initial && reduced.iterations > relative.iterations);
    assert!(absolute.residual_true * norm(&system.b) <= tolerance::RTOL);
    assert_eq!(reduced.goal, Some(tolerance::RTOL * initial));
    // Of several tolerances, the first one that is met ends the solve.
    let rules =
        [StoppingRule::InitialResidual(tolerance::RTOL), StoppingRule::RelativeResidual(tolerance::RTOL)];
    assert_eq!(run(StoppingRule::any(rules)).iterations, relative.iterations);
}

fn a_start_that_meets_the_tolerance_needs_no_iteration<D: Host>(device: &D) {
    let system = System::generated("poisson2d:20x20");
    let ones = vec![1.0; 400];
    let given = Given { x0: Some(&ones), ..system.given() };
    let a = operator::<D, f64>(device, &system.matrix);
    let outcome = Method::Cg.solve(a, None, &given, &to(tolerance::RTOL), &mut []).unwrap();
    assert_eq!((outcome.reason, outcome.iterations, outcome.x), (StopReason::Converged, 0, ones));
    let short = Given { x0: Some(&[1.0; 3]), ..system.given() };
    let a = operator::<D, f64>(device, &system.matrix);
    let refused = Method::Cg.solve(a, None, &short, &to(tolerance::RTOL), &mut []).map(|o| o.reason);
    assert!(matches!(refused, Err(crate::Error::Dimension { expected: 400, got: 3, .. })), "{refused:?}");
}

fn observers_receive_the_start_of_a_solve_that_needs_no_iteration<D: Host>(device: &D) {
    let system = System::generated("poisson2d:20x20");
    let zeros = [0.0; 400];
    let solve_from = |b: &[f64], x0: &[f64]| {
        let given = Given { x0: Some(x0), ..Given::new(&system.matrix, b) };
        let (a, mut recorder) = (operator::<D, f64>(device, &system.matrix), Recorder::default());
        let outcome = Method::Cg.solve(a, None, &given, &to(tolerance::RTOL), &mut [&mut recorder]).unwrap();
        assert!(outcome.reason.is_success() && outcome.iterations == 0);
        (recorder.residuals().to_vec(), outcome.residual_true)
    };
    assert_eq!(solve_from(&zeros, &zeros), (vec![0.0], 0.0));
    let (residuals, end) = solve_from(&system.b, &[1.0 + 1e-12; 400]);
    assert!(residuals == [end] && end > 0.0 && end <= tolerance::RTOL, "{residuals:?}");
}

/// Sets a flag after this many iterations.
struct StopAfter(usize, Arc<AtomicBool>);

impl Observer for StopAfter {
    fn batch(&mut self, batch: &Batch<'_>) {
        if batch.first + batch.residuals.len() >= self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

fn a_flag_set_by_an_observer_interrupts<D: Host>(device: &D) {
    // The system needs more iterations than a batch has.
    let system = System::generated("poisson2d:200x200");
    let flag = Arc::new(AtomicBool::new(false));
    let rules = [StoppingRule::RelativeResidual(tolerance::RTOL), StoppingRule::Interrupt(flag.clone())];
    let outcome = system.watch(device, &StoppingRule::any(rules), &mut StopAfter(20, flag.clone()));
    assert_eq!(outcome.reason, StopReason::Interrupted);
    // The solve ends with the batch in which the flag was set.
    assert!((20..20 + D::BATCH).contains(&outcome.iterations), "{}", outcome.iterations);
    assert!(outcome.residual > tolerance::RTOL && flag.load(Ordering::Relaxed));
}

/// Returns x for the first applications and `then` times x afterwards. Counts on the host, so
/// it works on the CPU only.
struct Turns {
    left: AtomicUsize,
    then: f64,
}

impl LinearOperator<Cpu, f64> for Turns {
    fn shape(&self) -> (usize, usize) {
        (0, 0)
    }

    fn apply(
        &self,
        _: &Cpu,
        _: f64,
        x: &CpuVector<f64>,
        _: f64,
        y: &mut CpuVector<f64>,
    ) -> crate::Result<()> {
        let left = self.left.load(Ordering::Relaxed);
        let by = if left == 0 { self.then } else { 1.0 };
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        y.data_mut().iter_mut().zip(x.data()).for_each(|(y, x)| *y = by * x);
        Ok(())
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }

    fn storage(&self) -> u64 {
        0
    }
}

fn turning(then: f64) -> Solution {
    let (cpu, system) = (Cpu::new(Some(2)).unwrap(), System::generated("poisson2d:30x30"));
    let m = Operator::new(&cpu, Arc::new(Turns { left: AtomicUsize::new(4), then }));
    system.solve_operators(operator(&cpu, &system.matrix), Some(m), &to(tolerance::RTOL), &mut [])
}

#[test]
fn a_preconditioner_that_becomes_negative_keeps_the_x_of_its_iteration() {
    // One application before the first iteration, and one in each iteration.
    let outcome = turning(-1.0);
    assert!(
        matches!(outcome.reason, StopReason::IndefinitePreconditioner { iteration: 4, product } if product < 0.0)
    );
    assert_eq!(outcome.iterations, 4);
}

#[test]
fn a_preconditioner_that_becomes_nan_keeps_the_x_of_its_iteration() {
    for then in [f64::NAN, f64::INFINITY] {
        let outcome = turning(then);
        let vector = "the preconditioned residual";
        assert_eq!(outcome.reason, StopReason::NotFinite { iteration: 4, vector, row: Some(0) });
        assert_eq!(outcome.iterations, 4);
    }
}

#[test]
fn every_reason_has_a_name_and_a_sentence_with_its_evidence() {
    let reasons = [
        (StopReason::Converged, "converged", "converged"),
        (StopReason::ZeroRightHandSide, "zero_right_hand_side", "x = 0"),
        (StopReason::ResidualGap { recursive: 1e-9, recomputed: 2e-7 }, "residual_gap", "2.00e-7"),
        (StopReason::IterationLimit { limit: 77 }, "iteration_limit", "77 iterations"),
        (StopReason::TimeLimit { seconds: 2.5 }, "time_limit", "2.5 s"),
        (
            StopReason::NotFinite { iteration: 12, vector: "A p", row: Some(41) },
            "not_finite",
            "iteration 12, first in row 41 of A p",
        ),
        (
            StopReason::NotFinite { iteration: 12, vector: "x", row: Some(41) },
            "not_finite",
            "after 12 iterations x is NaN or infinite, first in row 41",
        ),
        (
            StopReason::NotFinite { iteration: 12, vector: "", row: None },
            "not_finite",
            "in iteration 12, though all",
        ),
        (StopReason::LeastSquares { residual: 0.25, normal: 3e-12 }, "least_squares", "2.500e-1 ||b||"),
        (
            StopReason::Stagnated { iteration: 3000, window: 1000 },
            "stagnated",
            "1000 iterations before iteration 3000",
        ),
        (StopReason::Diverged { iteration: 5, growth: 3e10 }, "diverged", "3.0e10 at iteration 5"),
        (
            StopReason::IndefiniteMatrix { iteration: 3, curvature: -4.5 },
            "indefinite_matrix",
            "-4.500e0 in iteration 3, so the matrix is not positive definite and conjugate gradients do not apply; \
             MINRES is the method for such a matrix",
        ),
        (
            StopReason::IndefinitePreconditioner { iteration: 3, product: -4.5 },
            "indefinite_preconditioner",
            "-4.500e0 in iteration 3",
        ),
        (StopReason::Underflow { iteration: 3 }, "underflow", "in iteration 3, though"),
        (StopReason::Breakdown { iteration: 31 }, "breakdown", "iteration 31, though"),
        (StopReason::Interrupted, "interrupted", "interrupted"),
    ];
    for (reason, word, evidence) in reasons {
        assert_eq!(reason.name(), word);
        assert!(reason.to_string().contains(evidence), "{reason}");
        let json = serde_json::to_value(reason).unwrap();
        assert_eq!(json["reason"], word);
        assert_eq!(reason.is_success(), !reason.to_string().contains("not converged"));
    }
}
