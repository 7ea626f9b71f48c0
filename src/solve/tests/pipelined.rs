//! Pipelined conjugate gradients: the iterates of the classic form, and restarts that correct their rounding.

use crate::backend::{Host, Operator};
use crate::common::places::check_threads;
use crate::common::solves::{System, at_most, operator, to};
use crate::common::vectors::{bits, reals};
use crate::common::{on_each_device, tolerance, zoo};
use crate::device::{Cpu, Device, Op};
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::precond::Preconditioner;
use crate::solve::Method;
use crate::stop::StopReason;
use std::sync::Arc;

on_each_device! {
    it_takes_as_many_iterations_as_the_classic_form,
    restarts_correct_its_loss_of_accuracy,
    the_iteration_limit_is_kept_exactly,
    an_indefinite_matrix_is_detected,
    a_breakdown_of_recurrences_is_not_reported_as_an_indefinite_matrix,
    an_indefinite_preconditioner_is_detected,
    a_matrix_with_nan_ends_a_solve_in_its_first_iteration,
    single_precision_is_refined_to_the_tolerance_of_double,
    the_bytes_of_an_iteration_match_the_documented_budget,
    both_forms_find_the_same_spectrum,
}

const BOTH: [Preconditioner; 2] = [Preconditioner::NONE, Preconditioner::JACOBI];

fn it_takes_as_many_iterations_as_the_classic_form<D: Host>(device: &D) {
    for what in ["poisson2d:64x64", "hex27:6x6x6,dof=3", "poisson2d:1x1"] {
        let system = System::random(zoo::generated(what));
        for precond in BOTH {
            let solve = |method| system.solve_by(device, method, precond.clone(), &to(tolerance::RTOL));
            let (classic, pipelined) = (solve(Method::Cg), solve(Method::PipelinedCg));
            assert_eq!(pipelined.reason, StopReason::Converged, "{what}, {}: {pipelined:?}", precond.name());
            let off = pipelined.iterations.abs_diff(classic.iterations);
            assert!(off <= tolerance::iterations(classic.iterations), "{what}: {off}");
        }
    }
}

fn restarts_correct_its_loss_of_accuracy<D: Host>(device: &D) {
    let system = System::random(zoo::generated("poisson2d:100x100"));
    // The tolerance is so small that the recurrences deviate from the true residual before they reach it.
    let rtol = tolerance::RTOL_BEYOND_PIPELINED;
    let classic = system.solve_by(device, Method::Cg, Preconditioner::NONE, &to(rtol));
    let a = operator::<D, f64>(device, &system.matrix);
    let pipelined = Method::PipelinedCg.solve(a, None, &system.given(), &to(rtol), &mut []).unwrap();
    assert_eq!((classic.reason, classic.restarts), (StopReason::Converged, 0));
    assert!(pipelined.reason == StopReason::Converged && pipelined.restarts > 0, "{pipelined:?}");
    assert!(pipelined.residual_true <= rtol);
}

fn the_iteration_limit_is_kept_exactly<D: Host>(device: &D) {
    let system = System::generated("poisson2d:40x40");
    for precond in BOTH {
        for limit in [0, 1, 8, 9, 33] {
            let outcome = system.solve_by(device, Method::PipelinedCg, precond.clone(), &at_most(limit));
            assert_eq!(outcome.reason, StopReason::IterationLimit { limit });
            assert_eq!(outcome.iterations, limit);
        }
    }
}

fn an_indefinite_matrix_is_detected<D: Host>(device: &D) {
    let values: Vec<f64> = (0..600).map(|i| if i % 2 == 0 { 1.0 } else { -3.0 }).collect();
    let system = System { matrix: zoo::diagonal(&values), b: vec![1.0; 600] };
    let outcome = system.solve_by(device, Method::PipelinedCg, Preconditioner::NONE, &to(tolerance::RTOL));
    assert_eq!(outcome.reason, StopReason::IndefiniteMatrix { iteration: 1, curvature: -600.0 });
    let system = System { matrix: zoo::diagonal(&[5.0, 4.0, 3.0, 2.0, -0.1]), b: vec![1.0; 5] };
    let outcome = system.solve_by(device, Method::PipelinedCg, Preconditioner::NONE, &to(tolerance::RTOL));
    match outcome.reason {
        StopReason::IndefiniteMatrix { iteration, curvature } => {
            assert!(curvature < 0.0 && iteration == outcome.iterations + 1);
        }
        other => panic!("{other:?}"),
    }
}

/// An operator with one matrix for plain products, as in the recurrences, and another matrix for
/// products with a dot product.
struct TwoFaced<D: Device> {
    alone: Operator<D, f64>,
    with_dot: Operator<D, f64>,
}

impl<D: Device> LinearOperator<D, f64> for TwoFaced<D> {
    fn shape(&self) -> (usize, usize) {
        self.alone.shape()
    }

    fn apply(
        &self,
        _: &D,
        alpha: f64,
        x: &D::Vector<f64>,
        beta: f64,
        y: &mut D::Vector<f64>,
    ) -> crate::Result<()> {
        self.alone.apply(alpha, x, beta, y)
    }

    fn apply_dot(
        &self,
        _: &D,
        x: &D::Vector<f64>,
        y: &mut D::Vector<f64>,
        slots: &mut D::Slots,
        dot: &DotInto,
        then: &[Op],
    ) -> crate::Result<()> {
        self.with_dot.apply_dot(x, y, slots, dot, then)
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }

    fn storage(&self) -> u64 {
        0
    }
}

fn a_breakdown_of_recurrences_is_not_reported_as_an_indefinite_matrix<D: Host>(device: &D) {
    let values: Vec<f64> = (1..=600).map(f64::from).collect();
    let wrong: Vec<f64> = values.iter().map(|v| -100.0 * v).collect();
    let system = System { matrix: zoo::diagonal(&values), b: reals(74, 600) };
    let (alone, with_dot) = (operator(device, &zoo::diagonal(&wrong)), operator(device, &system.matrix));
    let a = Operator::new(device, Arc::new(TwoFaced { alone, with_dot }));
    let rule = to(tolerance::RTOL);
    let outcome = Method::PipelinedCg.solve(a, None, &system.given(), &rule, &mut []).unwrap();
    match outcome.reason {
        StopReason::Breakdown { iteration } => {
            assert!(iteration == outcome.iterations + 1 && outcome.restarts > 0, "{outcome:?}");
        }
        other => panic!("{other:?}"),
    }
}

fn an_indefinite_preconditioner_is_detected<D: Host>(device: &D) {
    let system = System { matrix: zoo::diagonal(&[1.0, 2.0, 3.0, 4.0, 5.0, 0.1]), b: vec![1.0; 6] };
    for (values, at_once) in [([1.0, 0.5, 0.3, 0.25, 0.2, -0.1], false), ([-1.0; 6], true)] {
        let (a, m) = (operator::<D, f64>(device, &system.matrix), operator(device, &zoo::diagonal(&values)));
        let rule = to(tolerance::RTOL);
        let outcome = Method::PipelinedCg.solve(a, Some(m), &system.given(), &rule, &mut []).unwrap();
        match outcome.reason {
            StopReason::IndefinitePreconditioner { iteration, product } => {
                assert!(product < 0.0 && (iteration == 0) == at_once && iteration == outcome.iterations);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn a_matrix_with_nan_ends_a_solve_in_its_first_iteration<D: Host>(device: &D) {
    let mut values = vec![2.0; 700];
    values[650] = f64::INFINITY;
    let system = System { matrix: zoo::diagonal(&values), b: vec![1.0; 700] };
    let outcome = system.solve_by(device, Method::PipelinedCg, Preconditioner::NONE, &to(tolerance::RTOL));
    assert_eq!(outcome.reason, StopReason::NotFinite { iteration: 1, vector: "A u", row: Some(650) });
    assert_eq!((outcome.iterations, outcome.x), (0, vec![0.0; 700]));
}

fn single_precision_is_refined_to_the_tolerance_of_double<D: Host>(device: &D) {
    let system = System::random(zoo::generated("poisson2d:32x32"));
    let narrow = Arc::new(system.matrix.to_f32());
    let a = operator::<D, f32>(device, &narrow);
    let rule = to(tolerance::RTOL);
    let outcome = Method::PipelinedCg.solve(a, None, &system.given(), &rule, &mut []).unwrap();
    assert!(outcome.reason == StopReason::Converged && outcome.restarts > 0, "{outcome:?}");
}

fn the_bytes_of_an_iteration_match_the_documented_budget<D: Host>(device: &D) {
    let system = System::generated("poisson2d:20x20");
    let n = system.matrix.rows() as u64;
    // The bytes of the product without its two vectors.
    let arrays = operator::<D, f64>(device, &system.matrix).cost().bytes - 2 * n * 8;
    let bytes =
        |precond| system.solve_by(device, Method::PipelinedCg, precond, &at_most(1)).bytes_per_iteration;
    assert_eq!(bytes(Preconditioner::NONE), arrays + 15 * n * 8);
    assert_eq!(bytes(Preconditioner::JACOBI), arrays + 23 * n * 8);
}

fn both_forms_find_the_same_spectrum<D: Host>(device: &D) {
    // All eigenvalues are found after as many iterations as there are eigenvalues.
    let values: Vec<f64> = (0..12).map(|i| f64::from(i) + 0.5).collect();
    let system = System { matrix: zoo::diagonal(&values), b: reals(73, 12) };
    for method in [Method::Cg, Method::PipelinedCg] {
        let outcome = system.solve_by(device, method, Preconditioner::NONE, &to(tolerance::RTOL));
        let seen = outcome.spectrum.unwrap();
        assert!((seen.smallest - 0.5).abs() <= tolerance::X && (seen.largest - 11.5).abs() <= tolerance::X);
        let predicted = seen.iterations(tolerance::RTOL).unwrap() as usize;
        assert!(predicted >= outcome.iterations && predicted < 60, "{predicted}, {}", outcome.iterations);
    }
    // Scaling by the inverse of the diagonal makes any diagonal matrix the identity.
    let outcome = system.solve_by(device, Method::Cg, Preconditioner::JACOBI, &to(tolerance::RTOL));
    let condition = outcome.spectrum.unwrap().condition().unwrap();
    assert!((condition - 1.0).abs() <= tolerance::X, "{condition}");
}

#[test]
fn on_the_cpu_any_number_of_threads_gives_the_same_bits() {
    let system = System::generated("poisson2d:50x60");
    for precond in BOTH {
        let run = |threads| {
            let cpu = Cpu::new(Some(threads)).unwrap();
            let outcome = system.solve_by(&cpu, Method::PipelinedCg, precond.clone(), &to(tolerance::RTOL));
            (outcome.iterations, bits(&outcome.x), outcome.residual.to_bits())
        };
        check_threads(precond.name(), &[2, 3, 7], run);
    }
}
