//! x during a solve, as callbacks receive it.

use crate::engine::{Matrix, Solver, SystemSettings};
use crate::solve::Method;
use std::sync::{Arc, Mutex};

/// A number of iterations, and x after them.
type Iterate = (usize, Vec<f64>);

/// Solves with a callback. Returns the iterations with x after them, and the last x with the
/// number of all iterations.
fn observed(solver: impl SystemSettings, b: &[f64]) -> (Vec<Iterate>, Iterate) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&seen);
    let answer =
        solver.on_iterate(move |iteration, x| to.lock().unwrap().push((iteration, x.to_vec()))).solve(b);
    let answer = answer.unwrap();
    let last = (answer.outcome().iterations, answer.into_x());
    (std::mem::take(&mut *seen.lock().unwrap()), last)
}

fn system() -> (Matrix, Vec<f64>) {
    let a = Matrix::open("poisson2d:13x11").unwrap();
    let b = (0..a.rows()).map(|i| (i % 5) as f64 - 1.5).collect();
    (a, b)
}

#[test]
fn x_after_each_iteration_is_that_of_a_solve_that_ends_there() {
    let (a, b) = system();
    for (method, precond, step) in [
        (Method::Cg, "none", 1),
        (Method::Cg, "jacobi", 1),
        (Method::PipelinedCg, "none", 1),
        (Method::Minres, "none", 2),
        (Method::Minres, "ic0", 2),
    ] {
        let name = format!("{} with {precond}", method.name());
        let make = || Solver::new(method, &a).precond(precond);
        let (seen, (iterations, x)) = observed(make(), &b);
        assert_eq!(seen.last().unwrap(), &(iterations, x), "{name}");
        for (index, (iteration, x)) in seen.iter().enumerate().take(12) {
            assert_eq!(*iteration, step * (index + 1), "{name}");
            let alone = make().max_iters(*iteration).solve(&b).unwrap();
            assert_eq!(alone.outcome().iterations, *iteration, "{name}");
            let difference = x.iter().zip(alone.x()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(difference < 1e-12, "{name}, iteration {iteration}: {difference:e}");
        }
    }
}

#[test]
fn a_callback_does_not_change_a_bit_of_the_answer() {
    let (a, b) = system();
    for method in [Method::Cg, Method::Minres] {
        let plain = Solver::new(method, &a).solve(&b).unwrap();
        let (_, (iterations, x)) = observed(Solver::new(method, &a), &b);
        assert_eq!((iterations, &x[..]), (plain.outcome().iterations, plain.x()));
    }
}
