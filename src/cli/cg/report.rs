//! What a solve says about itself, gathered.

use crate::cli::advice::{self, Ended};
use crate::cli::limit::{self, Moved};
use crate::cli::plan::Plan;
use crate::cli::running::Place;
use crate::device::Device;
use crate::format::Csr;
use crate::observe::report::{Measure, Report};
use crate::solve::{Method, Outcome, Solution, problem};
use crate::stop::StopReason;

/// All that a solve says about itself, but for the times before it and the machine's limit.
pub(super) fn report<D: Device>(
    device: &D,
    plan: &Plan,
    matrix: &Csr,
    problem: &problem::Problem,
    outcome: &Solution,
) -> Report {
    let seconds_per_iteration = outcome.seconds_each;
    let speed = outcome.bytes_per_iteration as f64 / seconds_per_iteration / 1e9;
    let speed = if outcome.iterations == 0 { 0.0 } else { speed };
    let goal = outcome.goal.unwrap_or(0.0);
    // The bound is one of conjugate gradients.
    let spectrum = outcome.spectrum;
    let definite = plan.method != Method::Minres && outcome.reason.name() != "indefinite_matrix";
    let predicted = spectrum.filter(|_| definite).and_then(|s| s.iterations(goal));
    let error_max = problem.answer.as_ref().map(|answer| largest_difference(&outcome.x, answer));
    Report {
        solver: plan.method.name().to_owned(),
        measure: Measure::Residual,
        matrix: plan.matrix.to_string_lossy().into_owned(),
        stand_in: None,
        rows: matrix.rows() as u64,
        nnz: matrix.nnz() as u64,
        device: device.describe(),
        backend: plan.running.backend.label(),
        backend_because: None,
        precision: plan.run.precision.name().to_owned(),
        preconditioner: plan.precond.to_string(),
        right_hand_side: problem.description.clone(),
        start: plan.x0.as_ref().map(ToString::to_string),
        rtol: goal,
        converged: outcome.reason.is_success(),
        reason: outcome.reason.name().to_owned(),
        message: outcome.reason.to_string(),
        hint: None,
        iterations: outcome.iterations as u64,
        restarts: outcome.restarts as u64,
        iterations_predicted: predicted.filter(|p| p.is_finite()).map(|p| p as u64),
        eigenvalue_smallest: spectrum.map(|s| s.smallest),
        eigenvalue_largest: spectrum.map(|s| s.largest),
        condition_number: spectrum.and_then(|s| s.condition()),
        residual_recursive: outcome.residual,
        residual_true: outcome.residual_true,
        residual_at_most: outcome.residual_at_most,
        backward_error: outcome.backward_error,
        error_max,
        caution: caution(plan, problem, outcome, error_max),
        note: None,
        seconds_load: 0.0,
        seconds_setup: outcome.seconds_setup,
        seconds_solve: outcome.seconds_solve,
        seconds_per_iteration,
        bytes_per_iteration: outcome.bytes_per_iteration,
        gigabytes_per_second: speed,
        stream_gigabytes_per_second: None,
        vector_stream_gigabytes_per_second: None,
        limit_seconds_per_iteration: None,
        percent_of_limit: None,
    }
}

/// How near the iterations came to what the machine allows.
pub(super) fn measure<D: Device>(report: &mut Report, device: &D, outcome: &Outcome) {
    let moved = Moved {
        operators: outcome.operator_bytes,
        vectors: outcome.vector_bytes,
        each: outcome.bytes_per_iteration,
        iterations: outcome.iterations,
        seconds: report.seconds_per_iteration,
    };
    if let Some(limit) = limit::measure(device, &moved) {
        report.stream_gigabytes_per_second = Some(limit.stream);
        report.vector_stream_gigabytes_per_second = Some(limit.vector_stream);
        report.limit_seconds_per_iteration = Some(limit.seconds);
        report.percent_of_limit = Some(100.0 * limit.seconds / moved.seconds);
    }
}

/// What could help: another method with the command to type, or else what the residuals of all iterations say.
pub(super) fn advice(plan: &Plan, outcome: &Outcome, residuals: &[f64]) -> Option<String> {
    let untried = plan.precond.name() == "none" && plan.method != Method::Minres;
    let suitable = if matches!(plan.running.place, Place::Cpu(_)) { "ic0" } else { "chebyshev" };
    let saved = plan.checkpoints.save.as_ref().map(|(file, _)| file.as_path());
    let minres = format!("solver minres --matrix {}", plan.matrix.display());
    match outcome.reason {
        StopReason::IndefiniteMatrix { .. } if plan.run.precision.narrow_values() => {
            return Some(format!(
                "{minres}; or --precision f64: rounding to f32 may have made the matrix indefinite"
            ));
        }
        StopReason::IndefiniteMatrix { .. } => return Some(minres),
        StopReason::Diverged { .. } if plan.method != Method::Minres => {
            return Some(format!("MINRES is the method for an indefinite matrix: {minres}"));
        }
        _ => {}
    }
    advice::hint(&Ended {
        reason: &outcome.reason,
        residuals,
        goal: outcome.goal.unwrap_or(0.0),
        seconds_each: outcome.seconds_each,
        precision: plan.run.precision,
        restarts: true,
        tolerance: "--rtol",
        precond: untried.then_some(suitable),
        resume: advice::resume(saved, outcome.seconds_solve),
    })
}

/// The error of x, relative to its largest entry, from which a converged answer is called doubtful.
const DOUBTFUL: f64 = 0.1;

/// What to know of a converged answer whose error is large: the known error, or else the estimated one.
fn caution(plan: &Plan, problem: &problem::Problem, outcome: &Outcome, error: Option<f64>) -> Option<String> {
    if outcome.reason != StopReason::Converged {
        return None;
    }
    let largest = |values: &[f64]| values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let known = problem.answer.as_ref().zip(error).map(|(answer, error)| error / largest(answer));
    let error = known.or(outcome.error_estimate).filter(|error| *error > DOUBTFUL)?;
    let how = if known.is_some() { "" } else { "estimated " };
    if error == f64::INFINITY {
        return Some("the matrix is singular to working precision, so x is one of many answers".to_owned());
    }
    let precond =
        if plan.precond.name() == "none" { ", or a preconditioner such as --precond jacobi" } else { "" };
    Some(format!(
        "the {how}error of x is {:.0} % of its largest entry, although the residual is small; ask for a smaller --rtol{precond}",
        100.0 * error
    ))
}

fn largest_difference(x: &[f64], answer: &[f64]) -> f64 {
    x.iter().zip(answer).map(|(x, a)| (x - a).abs()).fold(0.0, f64::max)
}
