//! Measures whole solves through the engine.

use super::cases::fill;
use super::product::{describe, judged};
use super::record::{Row, Spread};
use super::rivals;
use super::study::{Sweep, What};
use crate::backend::timing::operand;
use crate::engine::{
    DeviceSettings, Found, Markov, Matrix, Multiply, Pagerank, RunSettings, Solver, SystemSettings,
};
use crate::error::{Error, Result};
use crate::observe::Common;
use crate::scalar::Precision;
use crate::solve::markov::ChainMethod;
use crate::solve::pagerank::RankMethod;
use crate::solve::{Method, problem};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Solves of a case without a fixed number of samples.
pub(super) const SOLVES: usize = 3;
/// No further solve begins after this many seconds.
pub(super) const SECONDS: f64 = 20.0;

/// What one solve measured.
struct Solved {
    /// The time from the right-hand side to the verdict, without the measurement of the limit.
    seconds: f64,
    report: Common,
    message: String,
    checked: f64,
    stream: Option<f64>,
}

impl Solved {
    /// Returns whether the solve ended at the limit that the sweep sets.
    fn is_limited(&self, sweep: &Sweep) -> bool {
        !self.report.converged && sweep.max_iters.is_some_and(|limit| self.report.iterations >= limit as u64)
    }

    /// Returns whether the solve failed: it neither met the tolerance nor ended at the limit of the sweep.
    fn failed(&self, sweep: &Sweep) -> bool {
        !self.report.converged && !self.is_limited(sweep)
    }
}

/// Solves repeatedly what is prepared once, and enters the results; after a cancelled solve
/// the row stays without them.
fn repeat(
    row: &mut Row,
    sweep: &Sweep,
    preparing: f64,
    cancel: &AtomicBool,
    mut solve: impl FnMut(bool) -> Result<Solved>,
) -> Result<()> {
    let (mut each, mut whole, mut last) = (Vec::new(), Vec::new(), None);
    let samples = sweep.protocol.samples.unwrap_or(SOLVES);
    let began = Instant::now();
    for sample in 0..samples {
        // The limit is measured once, after the last solve.
        let ends = sample + 1 == samples || began.elapsed().as_secs_f64() > SECONDS;
        let solved = solve(ends)?;
        if cancel.load(Ordering::Relaxed) {
            return Ok(());
        }
        each.push(solved.report.seconds_per_iteration);
        whole.push(solved.seconds);
        row.first_seconds = row.first_seconds.or(Some(solved.seconds));
        let ends = ends || solved.failed(sweep);
        last = Some(solved);
        if ends {
            break;
        }
    }
    let Some(solved) = last else { return Ok(()) };
    let failed = solved.failed(sweep);
    row.converged = Some(solved.report.converged);
    row.iterations = Some(solved.report.iterations);
    row.checked = Some(solved.checked);
    row.bytes = solved.report.bytes_per_iteration;
    row.stream = solved.stream;
    row.label = solved.report.backend;
    row.build_seconds = Some(preparing);
    if failed {
        row.error = Some(solved.message);
        return Ok(());
    }
    row.seconds = Spread::of(&each, solved.report.iterations as usize);
    let whole = Spread::of(&whole, 1).filter(|_| solved.report.converged);
    row.total_seconds = whole.map(|spread| preparing + spread.min);
    Ok(())
}

/// Prepares a solve, and returns it with the seconds that this takes once the device is open and its kernels
/// are compiled: the first of two is not timed. Returns nothing if the study is cancelled meanwhile.
fn timed<P>(cancel: &AtomicBool, prepare: impl Fn() -> Result<P>) -> Result<Option<(P, f64)>> {
    drop(prepare()?);
    if cancel.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let began = Instant::now();
    let prepared = prepare()?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(Some((prepared, seconds)).filter(|_| !cancel.load(Ordering::Relaxed)))
}

fn precision(row: &Row) -> Precision {
    if row.precision == "f32" { Precision::F32 } else { Precision::F64 }
}

/// Measures a solve of this program. The row gets its results. `auto` chooses by its model, as in products:
/// choices that are kept on this machine would make the record depend on them.
pub(super) fn measure(matrix: &Matrix, sweep: &Sweep, row: &mut Row, cancel: &Arc<AtomicBool>) -> Result<()> {
    describe(row, matrix.csr());
    match row.what {
        What::Cg | What::Minres => check_product(matrix, row)?,
        // Ranks and distributions are of products with the transpose.
        What::Pagerank | What::Markov => check_product(&Matrix::from(matrix.csr().transposed()?), row)?,
        What::Product => {}
    }
    match row.what {
        What::Cg | What::Minres => symmetric(matrix, sweep, row, cancel),
        What::Pagerank => pagerank(matrix, sweep, row, cancel),
        What::Markov => markov(matrix, sweep, row, cancel),
        What::Product => Ok(()),
    }
}

/// Verifies a product of the backend of a case with an x that differs from entry to entry, so that also
/// solves that end at their limit are verified. The system of a solve has ones as its answer, for which a
/// product that gathers from wrong columns may be right.
fn check_product(matrix: &Matrix, row: &Row) -> Result<()> {
    let products = Multiply::new(matrix).by_model().device(&row.device).backend(&row.backend);
    let mut products = products.precision(precision(row));
    if let (Some(threads), "cpu") = (row.threads, row.device.as_str()) {
        products = products.threads(threads);
    }
    let x: Vec<f64> = operand(matrix.cols());
    let y = products.prepare()?.product(&x, 1)?;
    let checked = match precision(row) {
        Precision::F32 => rivals::compared::<f32>(matrix.csr(), &x, &y, 1),
        _ => rivals::compared::<f64>(matrix.csr(), &x, &y, 1),
    };
    judged(&checked).map(|_| ())
}

/// Measures a solve of a symmetric system by CG or MINRES.
fn symmetric(matrix: &Matrix, sweep: &Sweep, row: &mut Row, cancel: &Arc<AtomicBool>) -> Result<()> {
    let system = problem::with_known_answer(matrix.csr());
    let prepare = || {
        let method = if row.what == What::Minres { Method::Minres } else { Method::Cg };
        let solver = Solver::new(method, matrix);
        let solver = solver.by_model().cancel(cancel);
        let mut solver = solver.device(&row.device).backend(&row.backend).precision(precision(row));
        if let (Some(threads), "cpu") = (row.threads, row.device.as_str()) {
            solver = solver.threads(threads);
        }
        if let Some(precond) = &sweep.precond {
            solver = solver.precond(&fill(precond, &row.vary));
        }
        if let Some(tolerance) = sweep.tolerance {
            solver = solver.rtol(tolerance);
        }
        if let Some(limit) = sweep.max_iters {
            solver = solver.max_iters(limit);
        }
        solver.prepare()
    };
    let Some((mut prepared, preparing)) = timed(cancel, prepare)? else { return Ok(()) };
    repeat(row, sweep, preparing, cancel, |ends| {
        let began = Instant::now();
        let mut answer = prepared.solve(&system.b)?;
        let seconds = began.elapsed().as_secs_f64();
        if ends {
            answer.measure_limit(prepared.device(), Some(&**cancel));
        }
        let report = answer.report();
        Ok(Solved {
            seconds,
            checked: report.residual_true,
            stream: report.limit_seconds_per_iteration.map(|s| report.bytes_per_iteration as f64 / s / 1e9),
            message: report.message,
            report: report.common,
        })
    })
}

fn pagerank(graph: &Matrix, sweep: &Sweep, row: &mut Row, cancel: &Arc<AtomicBool>) -> Result<()> {
    let prepare = || {
        let solver = Pagerank::new(graph).by_model().cancel(cancel);
        let mut solver = solver.device(&row.device).backend(&row.backend).precision(precision(row));
        if let (Some(threads), "cpu") = (row.threads, row.device.as_str()) {
            solver = solver.threads(threads);
        }
        if let Some(tolerance) = sweep.tolerance {
            solver = solver.tol(tolerance);
        }
        if let Some(limit) = sweep.max_iters {
            solver = solver.max_iters(limit);
        }
        if let Some(method) = RankMethod::ALL.into_iter().find(|m| Some(m.name()) == sweep.method.as_deref())
        {
            solver = solver.method(method);
        }
        solver.prepare()
    };
    let Some((mut prepared, preparing)) = timed(cancel, prepare)? else { return Ok(()) };
    repeat(row, sweep, preparing, cancel, |ends| {
        let began = Instant::now();
        let mut ranks = prepared.solve()?;
        let seconds = began.elapsed().as_secs_f64();
        if ends {
            ranks.measure_limit(prepared.device(), Some(&**cancel));
        }
        let report = ranks.report();
        Ok(Solved {
            seconds,
            message: report.message,
            checked: report.error_bound,
            stream: report.stream_gigabytes_per_second,
            report: report.common,
        })
    })
}

fn markov(chain: &Matrix, sweep: &Sweep, row: &mut Row, cancel: &Arc<AtomicBool>) -> Result<()> {
    let prepare = || {
        let solver = Markov::new(chain).by_model().cancel(cancel);
        let mut solver = solver.device(&row.device).backend(&row.backend).precision(precision(row));
        if let (Some(threads), "cpu") = (row.threads, row.device.as_str()) {
            solver = solver.threads(threads);
        }
        if let Some(tolerance) = sweep.tolerance {
            solver = solver.tol(tolerance);
        }
        if let Some(limit) = sweep.max_iters {
            solver = solver.max_iters(limit);
        }
        if let Some(method) = ChainMethod::ALL.into_iter().find(|m| Some(m.name()) == sweep.method.as_deref())
        {
            solver = solver.method(method);
        }
        solver.prepare()
    };
    let Some((mut prepared, preparing)) = timed(cancel, prepare)? else { return Ok(()) };
    repeat(row, sweep, preparing, cancel, |ends| {
        let began = Instant::now();
        let mut found = prepared.solve()?;
        let seconds = began.elapsed().as_secs_f64();
        if ends {
            found.measure_limit(prepared.device(), Some(&**cancel));
        }
        let report = found.report();
        let class = report.classes.first().ok_or_else(|| Error::Rival {
            name: "markov".to_owned(),
            reason: "the chain has no closed class".to_owned(),
        })?;
        Ok(Solved {
            seconds,
            message: class.message.clone(),
            checked: class.residual,
            stream: report.percent_of_limit.map(|p| 100.0 * report.gigabytes_per_second / p),
            report: report.common,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_cancelled_study_prepares_its_case_once() {
        let (cancel, count) = (AtomicBool::new(false), Cell::new(0));
        let prepare = |cancelled_in: i32| {
            count.set(0);
            cancel.store(false, Ordering::Relaxed);
            let found = timed(&cancel, || {
                count.set(count.get() + 1);
                cancel.fetch_or(count.get() == cancelled_in, Ordering::Relaxed);
                Ok(())
            });
            (found.unwrap().is_some(), count.get())
        };
        assert_eq!([prepare(0), prepare(1), prepare(2)], [(true, 2), (false, 1), (false, 2)]);
    }
}
