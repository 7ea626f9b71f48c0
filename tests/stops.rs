//! Every way in which a solve ends, with its evidence, and with an x that fits the residual it reports.

#![allow(clippy::unwrap_used)] // The lint's exception for tests does not reach their helpers.

mod common;

use common::solves::{System, at_most, operator, to};
use common::vectors::reals;
use common::{on_each_device, tolerance, zoo};
use solver::backend::{Host, Operator};
use solver::device::cpu::CpuVector;
use solver::device::{Coefficient, Cpu, Device, Operand, Sweep, Term, Update};
use solver::observe::{Batch, Observer};
use solver::operator::{Cost, LinearOperator};
use solver::precond::Preconditioner;
use solver::solve::cg;
use solver::stop::{Progress, StopReason, StoppingRule};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

on_each_device! {
    a_solve_that_meets_the_tolerance_has_converged,
    a_right_hand_side_of_zeros_needs_no_iteration,
    the_iteration_limit_is_kept_exactly,
    no_time_at_all_ends_a_solve_before_its_first_iteration,
    a_matrix_with_nan_ends_a_solve_in_its_first_iteration,
    products_out_of_range_end_a_solve,
    a_curvature_that_is_not_positive_ends_a_solve_with_its_evidence,
    an_indefinite_matrix_may_show_itself_later,
    a_negative_preconditioner_ends_a_solve_before_its_first_iteration,
    an_indefinite_preconditioner_may_show_itself_later,
    what_single_precision_cannot_reach_is_a_gap_between_residuals,
    a_flag_set_by_an_observer_interrupts,
}

fn a_solve_that_meets_the_tolerance_has_converged<D: Host>(device: &D) {
    let system = System::random(zoo::generated("hex27:7x7x7"));
    for precond in [Preconditioner::None, Preconditioner::Jacobi] {
        let outcome = system.solve_with(device, precond, &to(tolerance::RTOL));
        assert!(outcome.reason == StopReason::Converged && outcome.reason.is_success());
        assert!(outcome.residual <= tolerance::RTOL && outcome.iterations > 5);
        let (reason, residual) = system.judge(tolerance::RTOL, outcome);
        assert!(reason == StopReason::Converged && residual <= tolerance::RTOL);
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
    // The default backend of every device takes a matrix without rows.
    assert_eq!(empty.solve(device, &to(tolerance::RTOL)).reason, StopReason::ZeroRightHandSide);
}

fn the_iteration_limit_is_kept_exactly<D: Host>(device: &D) {
    let system = System::generated("poisson2d:40x40");
    for precond in [Preconditioner::None, Preconditioner::Jacobi] {
        for limit in [0, 1, 2, 7, 8, 9, 17, 33] {
            let outcome = system.solve_with(device, precond, &at_most(limit));
            assert_eq!(outcome.reason, StopReason::IterationLimit { limit });
            assert_eq!(outcome.iterations, limit);
            assert!(!outcome.reason.is_success());
            assert_eq!(outcome.x.iter().all(|&x| x == 0.0), limit == 0);
        }
    }
}

fn no_time_at_all_ends_a_solve_before_its_first_iteration<D: Host>(device: &D) {
    let system = System::generated("poisson2d:10x10");
    let rules = [StoppingRule::RelativeResidual(tolerance::RTOL), StoppingRule::TimeLimit(Duration::ZERO)];
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
        assert_eq!(outcome.reason, StopReason::NotFinite { iteration: 1 });
        assert_eq!((outcome.iterations, outcome.residual, outcome.x), (0, 1.0, vec![0.0; 700]));
    }
}

fn products_out_of_range_end_a_solve<D: Host>(device: &D) {
    // q = 1e300 is a number, p'q = 1e400 is none.
    let system = System { matrix: zoo::diagonal(&[1e200; 5]), b: vec![1e100; 5] };
    let outcome = system.solve(device, &to(tolerance::RTOL));
    assert_eq!((outcome.reason, outcome.iterations), (StopReason::NotFinite { iteration: 1 }, 0));
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

fn an_indefinite_matrix_may_show_itself_later<D: Host>(device: &D) {
    let system = System { matrix: zoo::diagonal(&[5.0, 4.0, 3.0, 2.0, -0.1]), b: vec![1.0; 5] };
    for precond in [None, Some(operator(device, &zoo::diagonal(&[1.0, 0.5, 1.0, 0.5, 1.0])))] {
        let a = operator(device, &system.matrix);
        let outcome = system.solve_operators(device, a, precond, &to(tolerance::RTOL), &mut []);
        match outcome.reason {
            StopReason::IndefiniteMatrix { iteration, curvature } => {
                assert!(curvature < 0.0 && iteration > 1 && iteration == outcome.iterations + 1);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// y = -x, by the default two passes of `apply_dot`.
struct Minus<D: Device>(usize, std::cell::RefCell<D::Slots>);

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
    ) -> solver::Result<()> {
        assert!((alpha, beta) == (1.0, 0.0));
        let term = Term { by: Coefficient::Constant(-1.0), v: Operand::Read(0), times: None };
        let updates = [Update { target: 0, terms: &[term] }];
        let sweep = Sweep { name: "minus", writes: 1, reads: 1, updates: &updates, dots: &[], then: &[] };
        device.sweep(&mut [y], &[x], &mut self.1.borrow_mut(), &sweep)
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
    let m: Operator<D, f64> = Rc::new(Minus::<D>(600, device.slots(1, 1).unwrap().into()));
    let a = operator(device, &system.matrix);
    let outcome = system.solve_operators(device, a, Some(m), &to(tolerance::RTOL), &mut []);
    assert_eq!(outcome.reason, StopReason::IndefinitePreconditioner { iteration: 0, product: -2400.0 });
    assert_eq!((outcome.iterations, outcome.residual, outcome.x), (0, 1.0, vec![0.0; 600]));
}

fn an_indefinite_preconditioner_may_show_itself_later<D: Host>(device: &D) {
    let system = System { matrix: zoo::diagonal(&[1.0, 2.0, 3.0, 4.0, 5.0, 0.1]), b: vec![1.0; 6] };
    let m = operator(device, &zoo::diagonal(&[1.0, 0.5, 0.3, 0.25, 0.2, -0.1]));
    let a = operator(device, &system.matrix);
    let outcome = system.solve_operators(device, a, Some(m), &to(tolerance::RTOL), &mut []);
    match outcome.reason {
        StopReason::IndefinitePreconditioner { iteration, product } => {
            assert!(product < 0.0 && iteration > 0 && iteration == outcome.iterations);
        }
        other => panic!("{other:?}"),
    }
}

fn what_single_precision_cannot_reach_is_a_gap_between_residuals<D: Host>(device: &D) {
    let system = System::random(zoo::generated("poisson2d:32x32"));
    let narrow = Arc::new(system.matrix.to_f32());
    let b: Vec<f32> = system.b.iter().map(|&b| b as f32).collect();
    let rtol = tolerance::RTOL_BEYOND_F32;
    let outcome =
        cg::solve(device, operator::<D, f32>(device, &narrow), None, &b, &to(rtol), &mut []).unwrap();
    assert_eq!(outcome.reason, StopReason::Converged);
    let residual = outcome.residual;
    match system.judge(rtol, outcome) {
        (StopReason::ResidualGap { recursive, recomputed }, by_judge) => {
            assert!(recursive == residual && recursive <= rtol);
            assert!(recomputed > rtol && recomputed == by_judge && recomputed < tolerance::RTOL_F32);
        }
        other => panic!("{other:?}"),
    }
}

/// Sets a flag once so many iterations are done.
struct StopAfter(usize, Arc<AtomicBool>);

impl Observer for StopAfter {
    fn batch(&mut self, batch: &Batch<'_>) {
        if batch.first + batch.residuals.len() >= self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

fn a_flag_set_by_an_observer_interrupts<D: Host>(device: &D) {
    let system = System::generated("poisson2d:60x60");
    let flag = Arc::new(AtomicBool::new(false));
    let rules = [StoppingRule::RelativeResidual(tolerance::RTOL), StoppingRule::Interrupt(flag.clone())];
    let outcome = system.watch(device, &StoppingRule::any(rules), &mut StopAfter(20, flag.clone()));
    assert_eq!(outcome.reason, StopReason::Interrupted);
    // At the end of the batch that the flag was set in.
    assert!((20..20 + D::BATCH).contains(&outcome.iterations), "{}", outcome.iterations);
    assert!(outcome.residual > tolerance::RTOL && flag.load(Ordering::Relaxed));
}

/// Gives `x` for the first applications and `then` times x afterwards. Counts on the host, so for the CPU only.
struct Turns {
    left: Cell<usize>,
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
    ) -> solver::Result<()> {
        let by = if self.left.get() == 0 { self.then } else { 1.0 };
        self.left.set(self.left.get().saturating_sub(1));
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

fn turning(then: f64) -> solver::solve::Outcome<f64> {
    let (cpu, system) = (Cpu::new(Some(2)).unwrap(), System::generated("poisson2d:30x30"));
    let m: Operator<Cpu, f64> = Rc::new(Turns { left: Cell::new(4), then });
    system.solve_operators(&cpu, operator(&cpu, &system.matrix), Some(m), &to(tolerance::RTOL), &mut [])
}

#[test]
fn a_preconditioner_that_turns_negative_leaves_the_x_of_its_iteration() {
    // One application before the first iteration, one in each.
    let outcome = turning(-1.0);
    assert!(
        matches!(outcome.reason, StopReason::IndefinitePreconditioner { iteration: 4, product } if product < 0.0)
    );
    assert_eq!(outcome.iterations, 4);
}

#[test]
fn a_preconditioner_that_turns_to_nan_leaves_the_x_of_its_iteration() {
    for then in [f64::NAN, f64::INFINITY] {
        let outcome = turning(then);
        assert_eq!(outcome.reason, StopReason::NotFinite { iteration: 4 });
        assert_eq!(outcome.iterations, 4);
    }
}

#[test]
fn rules_know_how_many_iterations_may_run_before_they_are_asked_again() {
    use StoppingRule::{MaxIterations, RelativeResidual, TimeLimit};
    let all = StoppingRule::all([MaxIterations(5), RelativeResidual(0.1)]);
    assert_eq!(MaxIterations(10).iterations_left(4), 6);
    assert_eq!(MaxIterations(10).iterations_left(12), 0);
    assert_eq!(
        StoppingRule::any([MaxIterations(10), MaxIterations(7), RelativeResidual(0.1)]).iterations_left(4),
        3
    );
    assert_eq!(StoppingRule::any([MaxIterations(10), all.clone()]).iterations_left(4), 1);
    assert_eq!(TimeLimit(Duration::from_secs(1)).iterations_left(4), usize::MAX);
    assert_eq!(all.residual_tolerance(), None);
    assert_eq!(
        StoppingRule::any([all, RelativeResidual(0.2), RelativeResidual(0.3)]).residual_tolerance(),
        Some(0.3)
    );
}

#[test]
fn empty_combinations_of_rules_never_stop() {
    let now = Progress { iteration: 9, residual: 0.0, elapsed: Duration::from_secs(9) };
    assert_eq!(StoppingRule::any([]).check(&now), None);
    assert_eq!(StoppingRule::all([]).check(&now), None);
    assert_eq!(StoppingRule::RelativeResidual(0.1).check(&Progress { residual: f64::NAN, ..now }), None);
}

#[test]
fn every_reason_has_a_word_and_a_sentence_with_its_evidence() {
    let reasons = [
        (StopReason::Converged, "converged", "converged"),
        (StopReason::ZeroRightHandSide, "zero_right_hand_side", "x = 0"),
        (StopReason::ResidualGap { recursive: 1e-9, recomputed: 2e-7 }, "residual_gap", "2.00e-7"),
        (StopReason::IterationLimit { limit: 77 }, "iteration_limit", "77 iterations"),
        (StopReason::TimeLimit { seconds: 2.5 }, "time_limit", "2.5 s"),
        (StopReason::NotFinite { iteration: 12 }, "not_finite", "iteration 12"),
        (
            StopReason::IndefiniteMatrix { iteration: 3, curvature: -4.5 },
            "indefinite_matrix",
            "-4.500e0 in iteration 3",
        ),
        (
            StopReason::IndefinitePreconditioner { iteration: 3, product: -4.5 },
            "indefinite_preconditioner",
            "-4.500e0 in iteration 3",
        ),
        (StopReason::Interrupted, "interrupted", "interrupted"),
    ];
    for (reason, word, evidence) in reasons {
        assert_eq!(reason.name(), word);
        assert!(reason.to_string().contains(evidence), "{reason}");
        let json = serde_json::to_value(&reason).unwrap();
        assert_eq!(json["reason"], word);
        assert_eq!(reason.is_success(), !reason.to_string().contains("not converged"));
    }
}

#[test]
fn the_judge_does_not_pass_nan_and_leaves_other_reasons_alone() {
    let system = System { matrix: zoo::diagonal(&[1.0; 3]), b: reals(60, 3) };
    let mut outcome = system.solve(&Cpu::new(Some(1)).unwrap(), &to(tolerance::RTOL));
    outcome.x[1] = f64::NAN;
    assert!(matches!(system.judge(tolerance::RTOL, outcome.clone()).0, StopReason::ResidualGap { .. }));
    outcome.reason = StopReason::Interrupted;
    assert_eq!(system.judge(tolerance::RTOL, outcome).0, StopReason::Interrupted);
}
