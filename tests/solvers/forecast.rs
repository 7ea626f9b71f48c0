//! The range of the iterations left, which a line of progress shows: replays of solves, with the
//! true number at each moment.

use crate::common::{real, tolerance};
use solver::observe::Forecast;
use solver::prelude::*;
use solver::solve::Method;

/// Ends of the solves, and the moments with a range.
#[derive(Default)]
struct Replays {
    shown: usize,
    right: usize,
}

impl Replays {
    /// Replays a solve; returns in which share of the moments of its last half there was a range.
    fn add(&mut self, residuals: &[f64], goal: f64) -> f64 {
        let last = residuals.len() - 1;
        assert!(last >= 15 && residuals[last] <= goal, "{last} iterations to {:e}", residuals[last]);
        let (mut forecast, mut late) = (Forecast::default(), 0);
        for (iteration, residual) in residuals[..last].iter().enumerate() {
            forecast.add(&[*residual]);
            let Some([fewest, most]) = forecast.range(goal) else { continue };
            assert!((0.0..=most).contains(&fewest) && most.is_finite());
            self.shown += 1;
            self.right += usize::from((fewest..=most).contains(&((last - iteration) as f64)));
            late += usize::from(2 * iteration >= last);
        }
        late as f64 / (last - last / 2) as f64
    }
}

/// Returns the residuals of a solve of A x = A 1.
fn solved(what: &str, minres: bool, precond: &str) -> Vec<f64> {
    let matrix = Matrix::open(what).unwrap();
    let b = matrix.csr().multiply_reference(&vec![1.0; matrix.cols()]);
    let method = if minres { Method::Minres } else { Method::Cg };
    let solver = Solver::new(method, &matrix).device("cpu");
    let answer = solver.precond(precond).rtol(tolerance::RTOL).solve(&b).unwrap();
    answer.residuals().to_vec()
}

#[test]
fn the_range_of_an_ordinary_solve_is_right_and_comes_in_its_last_half() {
    let mut replays = Replays::default();
    let systems = [
        ("poisson2d:200x200", false, "none"),
        ("poisson2d:200x200", false, "ic0"),
        ("poisson3d:28x28x28", false, "none"),
        ("elasticity3d:9x9x9", false, "jacobi"),
        ("poisson2d:150x150", true, "none"),
    ];
    for (what, minres, precond) in systems {
        let late = replays.add(&solved(what, minres, precond), tolerance::RTOL);
        assert!(late > 0.2, "{what}, {precond}: a range in {late} of the last half");
    }
    let graph = Matrix::open_graph("rmat:scale=10,factor=8").unwrap();
    for damping in [0.9, 0.99] {
        let ranks =
            Pagerank::new(&graph).device("cpu").damping(damping).tol(tolerance::RTOL).solve().unwrap();
        let late = replays.add(ranks.residuals(), tolerance::RTOL);
        assert!(late > 0.8, "damping {damping}: a range in {late} of the last half");
    }
    let Replays { shown, right } = replays;
    println!("{right} of {shown} ranges have the true number");
    assert!(10 * right >= 9 * shown, "{right} of {shown} ranges have the true number");
}

/// Ill-conditioned systems, whose residuals stay at a level for long and then fall. Some fall evenly before,
/// so that fewer ranges are right.
#[test]
fn a_range_is_right_or_absent_while_residuals_stall() {
    let folder = real::folder();
    let mut replays = Replays::default();
    let names = ["nos3", "494_bus", "1138_bus", "bcsstk06", "bcsstk15", "bcsstk16", "ex3", "msc01050"];
    for name in names {
        let path = folder.join(format!("{name}.mtx.gz"));
        for (minres, precond) in [(false, "jacobi"), (false, "ic0"), (true, "jacobi")] {
            replays.add(&solved(path.to_str().unwrap(), minres, precond), tolerance::RTOL);
        }
    }
    let Replays { shown, right } = replays;
    println!("{right} of {shown} ranges have the true number");
    assert!(shown > 100 && 10 * right >= 8 * shown, "{right} of {shown} ranges have the true number");
}
