//! `solver cg` and `solver minres`: from a matrix by name to an answer with its verdict.

mod checks;
mod report;
mod words;

use super::args::CgArgs;
use super::load::load;
use super::plan::Plan;
use super::progress::{Live, during};
use super::running::{Place, recorder};
use super::summary::verbose;
use super::vectors::{RightHandSide, writer};
use super::{fetch, interrupt, print, print_json};
use crate::backend::Pick;
use crate::device::{Cpu, Cuda};
use crate::error::Result;
use crate::format::Csr;
use crate::observe::{History, Observer, Report};
use crate::scalar::{Precision, Scalar};
use crate::solve::System;
use crate::solve::problem::Problem;
use crate::source::Options;
use crate::stop::{DIVERGENCE, StoppingRule, stagnation_window};
use checks::{check_matrix, check_range, name_start};
use report::{advice, measure, report};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use words::in_words;

/// What is solved.
struct Given<'a> {
    matrix: Arc<Csr>,
    /// The real matrix that this one only imitates.
    stand_in: Option<&'static str>,
    problem: Problem,
    /// Notes on how the file was read and on the symmetry of the matrix.
    note: Option<String>,
    x0: Option<&'a [f64]>,
    seconds_load: f64,
}

/// What a solve leaves behind.
struct Solved {
    history: History,
    /// Whether answer, history and picture could be written, where that was asked for.
    written: Result<()>,
}

pub(super) fn run(args: CgArgs, minres: bool) -> Result<bool> {
    let plan = Plan::resolve(args, minres)?;
    if plan.run.dry_run {
        print(&plan.describe()?.to_string())?;
        return Ok(true);
    }
    if let Some(why) = &plan.running.why {
        log::info!("device: {why}");
    }
    plan.run.start_pool();
    plan.running.check_device()?;
    fetch::on_first_use(plan.fetch)?;
    let began = Instant::now();
    let beside = plan.rhs == RightHandSide::Beside;
    let loaded = load(&plan.matrix, Options { as_stored: plan.as_stored, beside, ..Options::default() })?;
    let symmetry = during("checking the matrix", || check_matrix(&plan, &loaded))?;
    let notes: Vec<String> = loaded.notes.iter().cloned().chain(symmetry).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    let seconds_load = began.elapsed().as_secs_f64();
    let problem = plan.rhs.make(&loaded)?;
    // Places of nodes take room, and are not needed.
    drop(loaded.beside);
    let x0 = plan.x0.as_ref().map(|x0| x0.values(loaded.matrix.rows())).transpose()?;
    let (matrix, stand_in) = (Arc::new(loaded.matrix), loaded.stand_in);
    let given = Given { matrix, stand_in, problem, note, x0, seconds_load };
    let Solved { history, written } = match plan.running.place {
        Place::Cpu(threads) => on_device(&Cpu::new(threads)?, &plan, given)?,
        Place::Cuda(index) => on_device(&Cuda::new(index)?, &plan, given)?,
    };
    let (report, saved) = (&history.report, plan.run.save_measured(&history));
    let written = written.and(saved);
    let printed = match plan.run.json {
        true => print_json(report),
        false => print(&in_words(report, plan.files().filter(|_| written.is_ok()), verbose())),
    };
    written.and(printed)?;
    Ok(report.converged)
}

fn stopping_rule(plan: &Plan, rows: usize, interrupt: Arc<AtomicBool>) -> StoppingRule {
    let mut rules = plan.tolerances.clone();
    rules.extend([
        StoppingRule::MaxIterations(plan.max_iters(rows)),
        StoppingRule::Stagnation(stagnation_window(rows)),
        StoppingRule::Divergence(DIVERGENCE),
        StoppingRule::Interrupt(interrupt),
    ]);
    rules.extend(plan.running.time_limit.map(StoppingRule::TimeLimit));
    StoppingRule::any(rules)
}

/// The one place where the precision of the vectors becomes a type.
fn on_device<D: Pick<f32> + Pick<f64>>(device: &D, plan: &Plan, given: Given<'_>) -> Result<Solved> {
    match plan.run.precision {
        Precision::F32 => solve::<D, f32>(device, plan, given),
        Precision::F64 | Precision::Mixed => solve::<D, f64>(device, plan, given),
    }
}

fn solve<D: Pick<T>, T: Scalar>(device: &D, plan: &Plan, given: Given<'_>) -> Result<Solved> {
    let began = Instant::now();
    let Given { matrix: exact, stand_in, problem, note, x0, seconds_load } = given;
    if plan.run.precision.narrow_values() {
        check_range(plan.run.precision, "the matrix", (0..exact.nnz()).map(|j| exact.values().get(j)))?;
    }
    if plan.run.precision == Precision::F32 {
        check_range(plan.run.precision, "the right-hand side", problem.b.iter().copied())?;
    }
    let matrix =
        if plan.run.precision.narrow_values() { Arc::new(exact.to_f32()) } else { Arc::clone(&exact) };
    let resident = if plan.precond.is_sweeps() { device.resident_rows() } else { 0 };
    let (backend, why) =
        during("choosing a backend", || plan.running.backend.settle(&matrix, size_of::<T>(), resident))?;
    if let Some(why) = &why {
        log::info!("backend {}: {why}", backend.label());
    }
    let precond = plan.precond.settle(&exact);
    let (rows, width) = (exact.rows() as u64, size_of::<T>() as u64);
    let vectors = plan.method.vectors(precond.name() != "none") as u64 * rows * width;
    // Of blocks only an estimate is known, by which nothing is refused.
    let rest = if precond.is_blocks() { 0 } else { precond.bytes(rows, exact.nnz() as u64, width) };
    let a = during(format!("building backend {}", backend.label()), || {
        backend.build::<D, T>(device, &matrix, vectors + rest)
    })?;
    let m = during(format!("building preconditioner {precond}"), || {
        precond.build::<D, T>(device, &exact, &a, vectors)
    })?;
    // Until here there is nothing to lose, and Ctrl-C ends the program at once.
    let rule = stopping_rule(plan, exact.rows(), interrupt::catch());
    let system = System { matrix: &exact, b: &problem.b, x0 };
    let mut recorder = recorder(plan.max_iters(exact.rows()));
    let limits = plan.running.limits(plan.max_iters(exact.rows()));
    let mut live =
        Live::new(plan.method.name(), limits, plan.run.monitor, "residual of the recursion / ||b||");
    let before = began.elapsed().as_secs_f64();
    let observers: &mut [&mut dyn Observer] = &mut [&mut recorder, &mut live];
    let mut checkpoints = plan.checkpoints.clone();
    checkpoints.labels = vec![
        ("precision", plan.run.precision.name().to_owned()),
        ("backend", backend.label()),
        ("preconditioner", precond.to_string()),
    ];
    let outcome = plan.method.solve_saved(device, a, m, &system, &rule, observers, &checkpoints);
    live.finish();
    let outcome = outcome.map_err(|error| name_start(plan, error))?;
    let written = plan.output.as_deref().map_or(Ok(()), |path| {
        let write = writer(path)?;
        during(format!("writing {}", path.display()), || write(path, &outcome.x))?;
        log::info!("solution written to {}", path.display());
        Ok(())
    });
    let report = Report {
        stand_in: stand_in.map(str::to_owned),
        hint: advice(plan, &outcome, recorder.residuals()),
        backend: backend.label(),
        backend_because: why,
        preconditioner: precond.to_string(),
        note,
        seconds_load,
        seconds_setup: before + outcome.seconds_setup,
        ..report(device, plan, &exact, &problem, &outcome)
    };
    let mut history = History::new(report, recorder);
    let written = written.and(plan.run.write_results(&history));
    // The measurement takes about as much memory as the solve.
    drop((exact, matrix, problem));
    measure(&mut history.report, device, &outcome);
    Ok(Solved { history, written })
}
