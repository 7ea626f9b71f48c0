//! Products and preconditioners of the caller that end a solve, and how often they are called.

use crate::common::vectors::{bits, reals};
use solver::engine::Solver;
use solver::prelude::*;
use solver::solve::{Method, Product};
use solver::stop::StopReason;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Rows of the systems.
const N: usize = 60;

/// Multiplies by the Laplacian of a chain, shifted so that it is well-conditioned.
fn chain(x: &[f64], y: &mut [f64]) {
    for i in 0..x.len() {
        let left = if i == 0 { 0.0 } else { x[i - 1] };
        let right = x.get(i + 1).copied().unwrap_or(0.0);
        y[i] = 2.1 * x[i] - left - right;
    }
}

/// A preconditioner that keeps the eigenvectors and changes the eigenvalues.
fn scale(r: &[f64], z: &mut [f64]) {
    z.iter_mut().zip(r).enumerate().for_each(|(i, (z, r))| *z = r / (1.0 + (i % 7) as f64));
}

/// Counts calls, and breaks in the call with the number `last` and every later one. Leaves numbers
/// in y that nobody may read.
fn breaking(function: fn(&[f64], &mut [f64]), last: usize) -> (impl Product + 'static, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let product = move |x: &[f64], y: &mut [f64]| {
        if counted.fetch_add(1, Ordering::Relaxed) + 1 >= last {
            y.fill(1e3);
            return ControlFlow::Break(());
        }
        function(x, y);
        ControlFlow::Continue(())
    };
    ((N, product), calls)
}

/// Returns the chain with its entries.
fn stored() -> Matrix {
    let entries = (0..N).flat_map(|i| {
        let beside = [i.checked_sub(1), (i + 1 < N).then_some(i + 1)];
        beside.into_iter().flatten().map(move |j| (i, j, -1.0)).chain([(i, i, 2.1)])
    });
    Matrix::from_triplets(N, N, entries.collect::<Vec<_>>()).unwrap()
}

fn with_product(method: Method, product: impl Product + 'static) -> Solver {
    Solver::with_product(method, product).rtol(1e-12)
}

#[test]
fn a_product_that_breaks_ends_the_solve_with_the_x_of_the_last_finished_iteration() {
    let b = reals(31, N);
    for method in [Method::Cg, Method::Minres] {
        for last in [1, 2, 3, 9, 12, 17] {
            let (product, calls) = breaking(chain, last);
            let answer = with_product(method, product).solve(&b).unwrap();
            assert_eq!(answer.reason(), StopReason::Interrupted, "{method:?}, call {last}");
            assert_eq!(calls.load(Ordering::Relaxed), last, "it is not called again");
            let done = answer.outcome().iterations;
            assert_eq!(done, last - 1, "{method:?}");
            assert_eq!(answer.residuals().len(), done + 1);
            let limited = with_product(method, (N, chain)).max_iters(done).solve(&b).unwrap();
            assert!(bits(answer.x()) == bits(limited.x()), "{method:?}, call {last}");
            // Its residual is known only to the recurrence.
            assert!(answer.outcome().residual_true.is_nan() && answer.outcome().residual.is_finite());
            let report = answer.report().to_string();
            assert!(report.contains("of the recurrence; not recomputed"), "{report}");
        }
    }
}

#[test]
fn a_preconditioner_that_breaks_ends_the_solve_with_the_x_of_the_last_finished_iteration() {
    let (b, matrix) = (reals(32, N), stored());
    for method in [Method::Cg, Method::PipelinedCg, Method::Minres, Method::BlockCg] {
        let solver = || Solver::new(method, &matrix).device("cpu").rtol(1e-12);
        for last in [1, 2, 5, 10, 15] {
            let (precond, calls) = breaking(scale, last);
            let answer = solver().custom_precond(precond).solve(&b).unwrap();
            assert_eq!(answer.reason(), StopReason::Interrupted, "{method:?}, call {last}");
            assert_eq!(calls.load(Ordering::Relaxed), last, "it is not called again");
            let done = answer.outcome().iterations;
            // The first call may belong to the start.
            assert!((last.saturating_sub(2)..=last).contains(&done), "{method:?}, call {last}: {done}");
            let limited = solver().custom_precond((N, scale)).max_iters(done).solve(&b).unwrap();
            assert!(bits(answer.x()) == bits(limited.x()), "{method:?}, call {last}");
            // The matrix is stored, so the residual of x is known.
            assert_eq!(answer.outcome().residual_true, limited.outcome().residual_true);
        }
    }
}

#[test]
fn a_solve_after_a_broken_one_begins_anew() {
    let b = reals(33, N);
    let fails = Arc::new(AtomicUsize::new(1));
    let failing = Arc::clone(&fails);
    let product = move |x: &[f64], y: &mut [f64]| {
        chain(x, y);
        match failing.load(Ordering::Relaxed) {
            1 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    let mut prepared = Cg::with_product((N, product)).prepare().unwrap();
    let start = vec![0.5; N];
    let answer = prepared.solve(RightHandSide::from(&b).from_start(&start)).unwrap();
    assert_eq!((answer.reason(), answer.x()), (StopReason::Interrupted, &start[..]), "the start is kept");
    fails.store(0, Ordering::Relaxed);
    assert!(prepared.solve(&b).unwrap().converged());
    // Several columns end together.
    fails.store(1, Ordering::Relaxed);
    let both = [&b[..], &b[..]].concat();
    let answers = prepared.solve_many(RightHandSides::new(&both, 2)).unwrap();
    assert!(answers.outcomes().all(|outcome| outcome.reason == StopReason::Interrupted));
}

#[test]
fn nan_of_a_product_is_reported_also_if_the_caller_interrupts_at_the_same_time() {
    let b = reals(35, N);
    for method in [Method::Cg, Method::Minres] {
        let cancel = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancel);
        let calls = AtomicUsize::new(0);
        let product = move |x: &[f64], y: &mut [f64]| {
            chain(x, y);
            if calls.fetch_add(1, Ordering::Relaxed) == 3 {
                flag.store(true, Ordering::Relaxed);
                y[7] = f64::NAN;
            }
        };
        let answer = with_product(method, (N, product)).cancel(&cancel).solve(&b).unwrap();
        let reason = answer.reason();
        assert!(matches!(reason, StopReason::NotFinite { .. }), "{method:?}: {reason}");
    }
}

#[test]
fn a_product_is_called_once_in_an_iteration_and_once_by_the_verdict() {
    let b = reals(34, N);
    for method in [Method::Cg, Method::Minres] {
        let (product, calls) = breaking(chain, usize::MAX);
        let answer = with_product(method, product).rtol(1e-6).solve(&b).unwrap();
        assert!(answer.converged() && answer.outcome().restarts == 0, "{}", answer.reason());
        assert_eq!(calls.load(Ordering::Relaxed), answer.outcome().iterations + 1, "{method:?}");
    }
}

#[test]
fn a_preconditioner_is_called_once_in_an_iteration_and_once_to_estimate_the_error() {
    let (b, matrix) = (reals(36, N), stored());
    let (precond, calls) = breaking(scale, usize::MAX);
    let answer = Cg::new(&matrix).rtol(1e-6).custom_precond(precond).solve(&b).unwrap();
    assert!(answer.converged() && answer.outcome().restarts == 0, "{}", answer.reason());
    // The last iteration needs no new direction.
    assert_eq!(calls.load(Ordering::Relaxed), answer.outcome().iterations + 1);
}
