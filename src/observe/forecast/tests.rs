//! The range of the iterations left, which a line of progress shows: replays of solves, with the
//! true number at each moment.

use crate::common::{real, tolerance};
use crate::observe::Forecast;
use crate::prelude::*;
use crate::solve::Method;

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

/// Returns the estimate after each iteration of a solve with these residuals.
fn forecasts(residuals: &[f64], tolerance: f64) -> Vec<Option<f64>> {
    let mut forecast = Forecast::default();
    let each = residuals.iter().map(|residual| {
        forecast.add(&[*residual]);
        forecast.left(tolerance)
    });
    each.collect()
}

#[test]
fn an_even_fall_is_forecast_for_any_number_of_iterations() {
    for iterations in [40, 1000, 70_000] {
        let residuals: Vec<f64> =
            (0..iterations).map(|i| 1e-8f64.powf(f64::from(i) / f64::from(iterations))).collect();
        for (done, left) in forecasts(&residuals, 1e-8).into_iter().enumerate().skip(20) {
            let truth = f64::from(iterations) - done as f64;
            // Residuals of an incomplete stretch do not count.
            let slack = 1.0 + f64::from(iterations) / 100.0;
            assert!((left.unwrap() - truth).abs() <= slack, "{done} of {iterations}: {left:?}");
        }
    }
}

#[test]
fn there_is_no_forecast_if_the_residual_does_not_fall() {
    let falls = (0..100).map(|i| 0.9f64.powi(i));
    let stays: Vec<f64> = falls.chain(std::iter::repeat_n(0.9f64.powi(99), 100)).collect();
    assert_eq!(forecasts(&stays, 1e-8)[199], None);
    let rises: Vec<f64> = (0..500).map(|i| 1.01f64.powi(i)).collect();
    assert!(forecasts(&rises, 1e-8).iter().all(Option::is_none));
    assert!(forecasts(&[f64::NAN; 600], 1e-8).iter().all(Option::is_none));
    assert!(forecasts(&[], 1e-8).is_empty());
}

#[test]
fn a_rate_that_changes_is_not_steady() {
    let mut forecast = Forecast::default();
    forecast.add(&(0..400).map(|i| 0.97f64.powi(i)).collect::<Vec<f64>>());
    assert!((forecast.left_at_steady_rate(1e-8).unwrap() - 206.0).abs() < 10.0);
    let last = 0.97f64.powi(399);
    forecast.add(&(0..150).map(|i| last * 0.995f64.powi(i)).collect::<Vec<f64>>());
    assert!(forecast.left_at_steady_rate(1e-8).is_none() && forecast.left(1e-8).is_some());
}

#[test]
fn an_even_fall_has_a_range_with_the_true_number_and_a_slower_fall_after_it_has_none() {
    let mut forecast = Forecast::default();
    for done in 0..1000 {
        forecast.add(&[1e-8f64.powf(f64::from(done) / 2000.0)]);
        let range = forecast.range(1e-8);
        assert!(range.is_some() || done < 710, "none after {done}");
        assert!(range.is_none() || done >= 700, "{range:?} after {done}");
        if let Some([fewest, most]) = range {
            let left = 2000.0 - f64::from(done);
            assert!(fewest < left && left < most && most < 3.0 * fewest, "{fewest} to {most}: {left}");
        }
    }
    for done in 0..400 {
        forecast.add(&[1e-4 * 0.9998f64.powi(done)]);
    }
    assert!(forecast.left(1e-8).is_some() && forecast.range(1e-8).is_none());
}

#[test]
fn oscillating_residuals_do_not_make_the_forecast_jump_in_the_last_quarter() {
    // Waves of a factor of 30 on a fall that becomes steeper, as conjugate gradients show.
    let fall = |i: i32| -8.0 * (f64::from(i) / 2000.0).powf(1.5) + 0.75 * (f64::from(i) / 7.0).sin();
    let residuals: Vec<f64> = (0..2000).map(|i| 10f64.powf(fall(i))).collect();
    let forecasts = forecasts(&residuals, 1e-8);
    for (i, pair) in forecasts.windows(2).enumerate().skip(1500) {
        let (before, now) = (pair[0].unwrap(), pair[1].unwrap());
        assert!(now <= 2.0 * before, "{before} to {now} in iteration {i}");
    }
    let highest = forecasts[1500..].iter().flatten().copied().fold(0.0, f64::max);
    assert!(highest < 1000.0, "forecast {highest} with 500 iterations left");
}
