//! A solve reports *converged* only if the residual of x meets the tolerance in exact arithmetic.

use crate::backend::Host;
use crate::common::gpu::gpu;
use crate::common::solves::{System, operator};
use crate::common::vectors::{Numbers, bits, reals};
use crate::common::{exact, on_each_device, zoo};
use crate::device::Cpu;
use crate::format::{Coo, Csr, Duplicates, Values};
use crate::precond::Preconditioner;
use crate::solve::verdict::Residual;
use crate::solve::{Method, Solution, System as Given};
use crate::stop::{StopReason, StoppingRule};
use std::sync::Arc;

on_each_device! {
    a_residual_that_cancels_to_zero_is_not_accepted,
    a_chain_of_springs_is_judged_by_its_exact_residual,
    a_tolerance_below_the_rounding_of_x_is_not_met,
    a_residual_within_its_rounding_of_the_tolerance_is_undecided,
    minres_solves_systems_of_any_scale,
    an_absolute_tolerance_far_above_b_is_met_by_zero,
}

fn solve<D: Host>(device: &D, method: Method, given: &Given<'_>, rule: &StoppingRule) -> Solution {
    let a = operator::<D, f64>(device, &Arc::new(given.matrix.entries().unwrap().clone()));
    method.solve(a, None, given, rule, &mut []).unwrap()
}

/// Solves, and checks the verdict in exact arithmetic.
fn judged<D: Host>(device: &D, method: Method, system: &System, rtol: f64) -> Solution {
    let rule = [StoppingRule::RelativeResidual(rtol), StoppingRule::MaxIterations(20_000)];
    let outcome = solve(device, method, &system.given(), &StoppingRule::any(rule));
    let met = exact::meets(&system.matrix, &system.b, &outcome.x, rtol);
    let name = method.name();
    assert!(met || !outcome.reason.is_success(), "{name} to {rtol:e}: {:?} is false", outcome.reason);
    outcome
}

fn a_residual_that_cancels_to_zero_is_not_accepted<D: Host>(device: &D) {
    let matrix = zoo::symmetric(2, &[(0, 0, 100_000_000.000_000_01), (1, 0, -1e8), (1, 1, 1e8)]);
    let system = System { matrix, b: vec![0.0, 1.0] };
    for method in Method::ALL {
        let outcome = judged(device, method, &system, 1e-8);
        // No x of doubles has a residual below 0.3 here.
        assert!(!outcome.reason.is_success() && outcome.residual_true > 0.3, "{outcome:?}");
        if let StopReason::ResidualGap { recursive, .. } = outcome.reason {
            assert!(recursive <= 1e-8, "the recursive residual must meet the tolerance: {outcome:?}");
        }
    }
}

fn a_chain_of_springs_is_judged_by_its_exact_residual<D: Host>(device: &D) {
    let n = 400;
    let lower: Vec<_> = (0..n).flat_map(|i| [(i, i, 2.0), (i, i.max(1) - 1, -1.0)]).skip(2).collect();
    let matrix = zoo::symmetric(n, &[&[(0, 0, 2.0)], &lower[..]].concat());
    for (method, seed) in Method::ALL.into_iter().zip(1..) {
        let system = System { matrix: Arc::clone(&matrix), b: reals(seed, n) };
        for rtol in [1e-8, 1e-12, 1e-14] {
            judged(device, method, &system, rtol);
        }
    }
}

fn a_tolerance_below_the_rounding_of_x_is_not_met<D: Host>(device: &D) {
    let system = System { matrix: zoo::diagonal(&[3.0]), b: vec![1.0] };
    for method in Method::ALL {
        let outcome = judged(device, method, &system, 1e-17);
        // 1 - 3 * fl(1/3) = 2^-54.
        assert_eq!(outcome.residual_true, 2f64.powi(-54), "{}", method.name());
        assert!(matches!(outcome.reason, StopReason::ResidualGap { .. }), "{:?}", outcome.reason);
    }
}

fn a_residual_within_its_rounding_of_the_tolerance_is_undecided<D: Host>(device: &D) {
    let system = System { matrix: zoo::diagonal(&[3.0]), b: vec![1.0] };
    for method in Method::ALL {
        let rtol = 2f64.powi(-54);
        let StopReason::Rounding { residual, at_most } = judged(device, method, &system, rtol).reason else {
            panic!("{}", method.name());
        };
        assert!(residual == rtol && at_most > rtol && at_most < rtol * (1.0 + 1e-12), "{at_most:e}");
    }
}

fn minres_solves_systems_of_any_scale<D: Host>(device: &D) {
    let one = System { matrix: zoo::diagonal(&[1.0]), b: vec![1.0] };
    let chain = zoo::symmetric(3, &[(0, 0, 2.0), (1, 0, -1.0), (1, 1, 2.0), (2, 1, -1.0), (2, 2, -2.0)]);
    let chain = System { matrix: chain, b: vec![1.0, -2.0, 0.5] };
    for system in [one, chain] {
        for exponent in [-1000, -700, -500, -460, 460, 500, 700, 1000] {
            let by = 2f64.powi(exponent);
            let scaled = System { matrix: times(&system.matrix, by), b: system.b.clone() };
            for b_too in [false, true] {
                let by_b = if b_too { by } else { 1.0 };
                let b = scaled.b.iter().map(|b| b * by_b).collect();
                let outcome =
                    judged(device, Method::Minres, &System { b, matrix: scaled.matrix.clone() }, 1e-10);
                let what = format!("2^{exponent}, b {by_b:e}: {:?}", outcome.reason);
                assert_eq!(outcome.reason, StopReason::Converged, "{what}");
                let spectrum = outcome.spectrum.unwrap();
                assert!(spectrum.largest > 0.9 * by && spectrum.largest < 4.0 * by, "{what}: {spectrum:?}");
            }
        }
        for exponent in [-120, -60, -20, 20, 60, 120] {
            let matrix = times(&system.matrix, 2f64.powi(exponent));
            let a = operator::<D, f32>(device, &Arc::new(matrix.to_f32()));
            let given = Given::new(&matrix, &system.b);
            let rule = StoppingRule::RelativeResidual(1e-10);
            let outcome = Method::Minres.solve(a, None, &given, &rule, &mut []).unwrap();
            assert_eq!(outcome.reason, StopReason::Converged, "f32, 2^{exponent}");
        }
    }
}

#[test]
fn the_error_estimate_detects_a_small_eigenvalue_that_no_iteration_found() {
    // All eigenvalues are 1 except 1e-10 for the vector of ones. One step meets the tolerance, but x has an
    // error of 10 in that direction.
    let n = 50;
    let entry = |i: usize, j: usize| if i == j { 1.0 + 1e-10 - 1.0 / n as f64 } else { -1.0 / n as f64 };
    let lower: Vec<_> = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j, entry(i, j)))).collect();
    let mut b = vec![1e-9; n];
    (b[0], b[1]) = (1.0 + 1e-9, 1e-9 - 1.0);
    let system = System { matrix: zoo::symmetric(n, &lower), b };
    let cpu = Cpu::new(Some(1)).unwrap();
    let outcome = judged(&cpu, Method::Cg, &system, 1e-8);
    assert_eq!(outcome.reason, StopReason::Converged);
    assert!(outcome.error_estimate.unwrap() > 1.0, "{:?}", outcome.error_estimate);
}

/// Multiplies A by a power of two.
fn times(matrix: &Csr, by: f64) -> Arc<Csr> {
    let lower = (0..matrix.rows()).flat_map(|i| matrix.row(i).map(move |(j, v)| (i, j, v * by)));
    let lower: Vec<_> = lower.filter(|(i, j, _)| j <= i).collect();
    zoo::symmetric(matrix.rows(), &lower)
}

fn an_absolute_tolerance_far_above_b_is_met_by_zero<D: Host>(device: &D) {
    let system = System { matrix: zoo::diagonal(&[2.0]), b: vec![1e-300] };
    let outcome = solve(device, Method::Cg, &system.given(), &StoppingRule::AbsoluteResidual(1e10));
    assert_eq!((outcome.reason, outcome.iterations), (StopReason::Converged, 0));
    assert!(outcome.goal.unwrap().is_finite() && outcome.residual_true == 1.0);
    assert_eq!(outcome.backward_error, 1.0);
}

#[test]
fn a_start_with_a_residual_out_of_range_is_refused() {
    let cpu = Cpu::new(Some(1)).unwrap();
    let matrix = zoo::diagonal(&[2.0]);
    let refused = |b: f64, x0: f64| {
        let a = operator::<Cpu, f64>(&cpu, &matrix);
        let b = [b];
        let given = Given { x0: Some(&[x0]), ..Given::new(&matrix, &b) };
        let rule = StoppingRule::InitialResidual(1e-3);
        Method::Cg.solve(a, None, &given, &rule, &mut []).unwrap_err().to_string()
    };
    let message = refused(1e-200, 1e200);
    assert!(message.contains("2e200") && message.contains("1e-200"), "{message}");
    let message = refused(1.0, 1e308);
    assert!(message.contains("row 0, counted from 0"), "{message}");
}

#[test]
fn both_residuals_are_bounds_in_exact_arithmetic() {
    let mut numbers = Numbers::new(17);
    for case in 0..200 {
        let n = 1 + numbers.below(12);
        let mut number = |spread: f64| numbers.real() * 2f64.powf((spread * numbers.real()).round());
        let spread = [0.0, 20.0, 60.0, 300.0][case % 4];
        let lower: Vec<_> = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
        let lower: Vec<_> = lower.into_iter().map(|(i, j)| (i, j, number(spread))).collect();
        let matrix = zoo::symmetric(n, &lower);
        let x: Vec<f64> = (0..n).map(|_| number(spread)).collect();
        // b is nearly equal to A x, so that b - A x cancels.
        let b = matrix.multiply_reference(&x);
        for (what, found) in [
            ("plain", Residual::plain(&matrix, &b, &x)),
            ("compensated", Residual::compensated(&matrix, &b, &x)),
        ] {
            let bound = found.at_most;
            assert!(exact::norm_is_at_most(&matrix, &b, &x, bound), "{case}: {what} {bound:e}");
        }
        // After cancellation only the compensated residual is accurate, to many digits.
        let found = Residual::compensated(&matrix, &b, &x);
        let tight = found.norm * (1.0 - 1e-9);
        let zero = found.norm == 0.0 || !exact::norm_is_at_most(&matrix, &b, &x, tight);
        assert!(zero, "{case}: the compensated residual {:e} is too large", found.norm);
    }
}

#[test]
fn a_start_that_meets_the_tolerance_by_rounding_alone_is_not_accepted() {
    let cpu = Cpu::new(Some(1)).unwrap();
    let matrix = zoo::symmetric(2, &[(0, 0, 1e8 + 2f64.powi(-26)), (1, 0, -1e8), (1, 1, 1e8)]);
    let b = [0.0, 1.0];
    // The plain residual of this start is exactly 0.
    let x0 = [2f64.powi(26), 2f64.powi(26) + 2f64.powi(-26)];
    let a = operator::<Cpu, f64>(&cpu, &matrix);
    let m = Preconditioner::NONE.build(&matrix, &a, 0).unwrap();
    let given = Given { x0: Some(&x0), ..Given::new(&matrix, &b) };
    let outcome = Method::Minres.solve(a, m, &given, &StoppingRule::RelativeResidual(1e-8), &mut []).unwrap();
    assert!(exact::meets(&matrix, &b, &outcome.x, 1e-8) || !outcome.reason.is_success(), "{outcome:?}");
}

#[test]
fn residuals_on_the_gpu_have_the_bits_of_the_host() {
    let device = gpu();
    for what in
        ["poisson2d:250x251", "hex27:16x16x16,dof=3", "uniform:n=30000,row=7", "rmat:scale=13,factor=16"]
    {
        let matrix = Arc::new(crate::source::load(what).unwrap().matrix);
        let ones = Csr::with_pattern(Arc::clone(matrix.pattern()), Values::Ones).unwrap();
        let all = [Arc::new(matrix.to_f32()), Arc::new(matrix.with_wide_offsets()), Arc::new(ones), matrix];
        for matrix in all {
            let n = matrix.rows();
            let (mut x, b) = (reals(3, n), reals(5, n));
            for scale in [1.0, 1e-200, 1e-308, 1e300, f64::NAN] {
                x[n / 2] *= scale;
                x.iter_mut().step_by(7).for_each(|x| *x *= scale);
                let mut there = device.residuals(&matrix, 0, 0).unwrap().unwrap();
                let here = [Residual::plain(&matrix, &b, &x), Residual::compensated(&matrix, &b, &x)];
                for (compensated, here) in [false, true].into_iter().zip(here) {
                    let there = Residual::on_device(&mut *there, compensated, &b, &x).unwrap();
                    let numbers = |r: &Residual| [r.norm, r.at_most, r.decoupled];
                    let bits = |r: &Residual| [bits(&r.vector), bits(&numbers(r))].concat();
                    let same = bits(&here) == bits(&there)
                        || scale.is_nan() && here.at_most.is_nan() && there.at_most.is_nan();
                    assert!(same, "{what}, {scale:e}, compensated: {compensated}");
                }
            }
        }
    }
}

/// Returns the largest |r_i / a_ii| of rows whose diagonal begins in column `below`, by a plain loop.
fn largest_quotient(rows: &Csr, below: usize, r: &[f64]) -> f64 {
    let diagonal =
        |i: usize| rows.row(i).filter(|(j, _)| *j == below + i).map(|(_, value)| value).sum::<f64>();
    let quotients = (0..rows.rows()).filter(|&i| diagonal(i) > 0.0).map(|i| (r[i] / diagonal(i)).abs());
    quotients.fold(0.0, f64::max)
}

/// Returns a matrix whose diagonal entries are stored twice.
fn twice_on_the_diagonal(n: usize) -> Csr {
    let lower: Vec<_> =
        (0..n).flat_map(|i| [(i, i, 1.0 + i as f64), (i, i, -0.5), (i, (i + 7) % n, 1.0)]).collect();
    let (rows, cols) = lower.iter().map(|(i, j, _)| (*i as u32, *j as u32)).unzip();
    let values = lower.iter().map(|(_, _, value)| *value).collect();
    let entries = Coo::new(n, n, rows, cols, values).unwrap();
    entries.into_csr_with(Duplicates::Keep).unwrap()
}

#[test]
fn the_largest_quotient_of_residual_and_diagonal_is_that_of_a_plain_loop() {
    for matrix in [zoo::generated("poisson2d:31x30"), Arc::new(twice_on_the_diagonal(500))] {
        let n = matrix.rows();
        let (x, b) = (reals(3, n), reals(5, n));
        for found in [Residual::plain(&matrix, &b, &x), Residual::compensated(&matrix, &b, &x)] {
            assert_eq!(found.decoupled, largest_quotient(&matrix, 0, &found.vector));
            assert!(found.decoupled > 0.0);
        }
    }
}

#[test]
fn the_gpu_finds_the_quotients_of_rows_whose_diagonal_begins_in_a_later_column() {
    let device = gpu();
    for matrix in [zoo::generated("poisson2d:250x251"), Arc::new(twice_on_the_diagonal(40_000))] {
        let n = matrix.rows();
        for range in [0..n, n / 3..n - 7] {
            let rows = Arc::new(matrix.row_band(range.clone()).unwrap());
            let (x, b) = (reals(3, n), reals(5, range.len()));
            let mut there = device.residuals(&rows, range.start, 0).unwrap().unwrap();
            for compensated in [false, true] {
                let found = Residual::on_device(&mut *there, compensated, &b, &x).unwrap();
                assert_eq!(found.decoupled, largest_quotient(&rows, range.start, &found.vector));
            }
        }
    }
}
