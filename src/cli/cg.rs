//! `solver cg` and `solver minres`: from a matrix by name to an answer with its verdict.

use super::args::CgArgs;
use super::load::load;
use super::plan::{Place, Plan, with_config};
use super::progress::Live;
use super::{duration, print, print_json, thousands};
use crate::backend::Pick;
use crate::bench::stream;
use crate::device::{Cpu, Cuda, Device};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::format::stats::first_asymmetry;
use crate::observe::{History, Observer, Recorder, Report};
use crate::scalar::{Precision, Scalar};
use crate::solve::{Method, Outcome, System, problem};
use crate::source::{Loaded, Options};
use crate::stop::{DIVERGENCE, StopReason, StoppingRule, stagnation_window};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// What a solve leaves behind.
struct Solved {
    report: Report,
    recorder: Recorder,
}

pub(super) fn run(args: CgArgs, minres: bool) -> Result<bool> {
    let args = with_config(args)?;
    let (json, dry_run, threads) = (args.json.unwrap_or(false), args.dry_run, args.threads);
    let plan = Plan::resolve(args, minres)?;
    if dry_run {
        print(&plan.describe());
        return Ok(true);
    }
    if let Some(why) = &plan.why {
        log::info!("device: {why}");
    }
    if let Some(threads) = threads {
        // Reading and checking obey the same limit as solving.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        pool.map_err(|e| Error::Threads { threads, reason: e.to_string() })?;
    }
    if let Some(entry) = plan.fetch {
        super::fetch::download(entry, None, None, &interrupt_flag())?;
    }
    let began = Instant::now();
    let loaded = load(&plan.matrix, Options { as_stored: plan.as_stored, ..Options::default() })?;
    check_matrix(&plan, &loaded)?;
    // Until here there is nothing to lose, and Ctrl-C ends the program at once.
    let interrupt = interrupt_flag();
    let seconds_load = began.elapsed().as_secs_f64();
    let rule = stopping_rule(&plan, &loaded, &interrupt);
    let mut solved = match plan.place {
        Place::Cpu(threads) => on_device(&Cpu::new(threads)?, &plan, loaded, &rule)?,
        Place::Cuda(index) => on_device(&Cuda::new(index)?, &plan, loaded, &rule)?,
    };
    solved.report.seconds_load = seconds_load;
    let converged = solved.report.converged;
    if json {
        print_json(&solved.report)
    } else {
        print(&in_words(&solved.report))
    }
    write_results(&plan, solved)?;
    Ok(converged)
}

/// The flag that Ctrl-C sets, from the first call on; the second Ctrl-C ends the program at once.
pub(super) fn interrupt_flag() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let flag = FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&flag);
        let handler = ctrlc::set_handler(move || {
            if seen.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        if let Err(e) = handler {
            log::warn!("Ctrl-C will lose the result: {e}");
        }
        flag
    });
    Arc::clone(flag)
}

/// Square and symmetric, or an error that names the first pair that differs.
fn check_matrix(plan: &Plan, loaded: &Loaded) -> Result<()> {
    let (rows, cols) = (loaded.matrix.rows(), loaded.matrix.cols());
    if rows != cols {
        return Err(Error::NotSquare { rows, cols, solver: plan.method.name() });
    }
    if loaded.symmetric || plan.assume_symmetric {
        return Ok(());
    }
    match first_asymmetry(&loaded.matrix) {
        None => Ok(()),
        Some(a) => Err(Error::NotSymmetric {
            row: a.row + 1,
            col: a.col + 1,
            value: a.value,
            mirrored: a.mirrored.map_or("none".to_owned(), |v| v.to_string()),
        }),
    }
}

fn stopping_rule(plan: &Plan, loaded: &Loaded, interrupt: &Arc<AtomicBool>) -> StoppingRule {
    let rows = loaded.matrix.rows();
    let mut rules = plan.tolerances.clone();
    rules.extend([
        StoppingRule::MaxIterations(plan.max_iters(rows)),
        StoppingRule::Stagnation(stagnation_window(rows)),
        StoppingRule::Divergence(DIVERGENCE),
        StoppingRule::Interrupt(Arc::clone(interrupt)),
    ]);
    rules.extend(plan.time_limit.map(StoppingRule::TimeLimit));
    StoppingRule::any(rules)
}

/// The one place where the precision of the vectors becomes a type.
fn on_device<D: Pick<f32> + Pick<f64>>(
    device: &D,
    plan: &Plan,
    loaded: Loaded,
    rule: &StoppingRule,
) -> Result<Solved> {
    match plan.precision {
        Precision::F32 => solve::<D, f32>(device, plan, loaded, rule),
        Precision::F64 | Precision::Mixed => solve::<D, f64>(device, plan, loaded, rule),
    }
}

fn solve<D: Pick<T>, T: Scalar>(
    device: &D,
    plan: &Plan,
    loaded: Loaded,
    rule: &StoppingRule,
) -> Result<Solved> {
    let began = Instant::now();
    let loaded_as = loaded.stand_in.map(str::to_owned);
    let exact = Arc::new(loaded.matrix);
    let problem = problem::with_known_answer(&exact);
    if plan.precision.narrow_values() {
        check_range(plan.precision, "the matrix", (0..exact.nnz()).map(|j| exact.values().get(j)))?;
    }
    if plan.precision == Precision::F32 {
        check_range(plan.precision, "the right-hand side", problem.b.iter().copied())?;
    }
    let matrix = if plan.precision.narrow_values() { Arc::new(exact.to_f32()) } else { Arc::clone(&exact) };
    let (backend, why) = plan.backend.settle(&matrix, size_of::<T>())?;
    if let Some(why) = &why {
        log::info!("backend {}: {why}", backend.label());
    }
    let a = backend.build::<D, T>(device, &matrix)?;
    let m = plan.precond.build::<D, T>(device, &exact, &a)?;
    let system = System { matrix: &exact, b: &problem.b, x0: None };
    let mut recorder = Recorder::with_capacity(plan.max_iters(exact.rows()).min(1 << 16));
    let mut live = Live::new(plan.method.name());
    let before = began.elapsed().as_secs_f64();
    let observers: &mut [&mut dyn Observer] = &mut [&mut recorder, &mut live];
    let outcome = plan.method.solve(device, a, m, &system, rule, observers);
    live.finish();
    let outcome = outcome?;
    // Before anything else that may fail.
    if let Some(path) = &plan.output {
        crate::source::market::write_vector(path, &outcome.x)?;
        log::info!("solution written to {}", path.display());
    }
    let report = report(device, plan, &exact, &problem, &outcome);
    let report = Report {
        stand_in: loaded_as,
        backend: backend.label(),
        backend_because: why,
        seconds_setup: before + outcome.seconds_setup,
        ..report
    };
    Ok(Solved { report, recorder })
}

/// All that a solve says about itself, but for the times before it.
fn report<D: Device>(
    device: &D,
    plan: &Plan,
    matrix: &Csr,
    problem: &problem::Problem,
    outcome: &Outcome,
) -> Report {
    let seconds_per_iteration = outcome.seconds_solve / outcome.iterations.max(1) as f64;
    let speed = outcome.bytes_per_iteration as f64 / seconds_per_iteration / 1e9;
    let speed = if outcome.iterations == 0 { 0.0 } else { speed };
    let limit = measure_limit(device, outcome, seconds_per_iteration);
    let goal = outcome.goal.unwrap_or(0.0);
    // The bound is one of conjugate gradients.
    let spectrum = outcome.spectrum;
    let definite = plan.method != Method::Minres && outcome.reason.name() != "indefinite_matrix";
    let predicted = spectrum.filter(|_| definite).and_then(|s| s.iterations(goal));
    Report {
        solver: plan.method.name().to_owned(),
        matrix: plan.matrix.clone(),
        stand_in: None,
        rows: matrix.rows() as u64,
        nnz: matrix.nnz() as u64,
        device: device.describe(),
        backend: plan.backend.label(),
        backend_because: None,
        precision: plan.precision.name().to_owned(),
        preconditioner: plan.precond.to_string(),
        right_hand_side: problem.description.clone(),
        rtol: goal,
        converged: outcome.reason.is_success(),
        reason: outcome.reason.name().to_owned(),
        message: message(plan, &outcome.reason),
        iterations: outcome.iterations as u64,
        restarts: outcome.restarts as u64,
        iterations_predicted: predicted.filter(|p| p.is_finite()).map(|p| p as u64),
        eigenvalue_smallest: spectrum.map(|s| s.smallest),
        eigenvalue_largest: spectrum.map(|s| s.largest),
        condition_number: spectrum.and_then(|s| s.condition()),
        residual_recursive: outcome.residual,
        residual_true: outcome.residual_true,
        backward_error: outcome.backward_error,
        error_max: problem.answer.as_ref().map(|answer| largest_difference(&outcome.x, answer)),
        seconds_load: 0.0,
        seconds_setup: outcome.seconds_setup,
        seconds_solve: outcome.seconds_solve,
        seconds_per_iteration,
        bytes_per_iteration: outcome.bytes_per_iteration,
        gigabytes_per_second: speed,
        stream_gigabytes_per_second: limit.map(|l| l.stream),
        vector_stream_gigabytes_per_second: limit.map(|l| l.vector_stream),
        limit_seconds_per_iteration: limit.map(|l| l.seconds),
        percent_of_limit: limit.map(|l| 100.0 * l.seconds / seconds_per_iteration),
    }
}

/// The reason as a sentence; where another method is called for, with the command to type.
fn message(plan: &Plan, reason: &StopReason) -> String {
    match reason {
        StopReason::IndefiniteMatrix { .. } => {
            let rounded = match plan.precision.narrow_values() {
                true => " (or try --precision f64: rounding to f32 may have made the matrix so)",
                false => "",
            };
            format!("{reason} --matrix {}{rounded}", plan.matrix)
        }
        StopReason::Diverged { .. } if plan.method != Method::Minres => {
            format!(
                "{reason}; MINRES is the method for such a matrix: solver minres --matrix {}",
                plan.matrix
            )
        }
        _ => reason.to_string(),
    }
}

/// Numbers that vanish or overflow in f32 would make another problem of it.
fn check_range(precision: Precision, what: &str, values: impl Iterator<Item = f64>) -> Result<()> {
    let lost = |v: &f64| *v != 0.0 && v.is_finite() && (*v as f32 == 0.0 || (*v as f32).is_infinite());
    match values.into_iter().find(lost) {
        None => Ok(()),
        Some(value) => Err(Error::BadOption {
            option: "--precision",
            value: precision.name().to_owned(),
            reason: format!(
                "{what} holds {value:e}, which f32 cannot; use --precision f64, or scale the system"
            ),
        }),
    }
}

/// The machine's limit for an iteration, where it means something: an iteration that moves little is bound by latency,
/// and a stream slower than the solve itself was measured on a machine that had other things to do.
fn measure_limit<D: Device>(device: &D, outcome: &Outcome, seconds: f64) -> Option<stream::Limit> {
    const LITTLE: u64 = 1 << 20;
    if outcome.iterations == 0 || outcome.bytes_per_iteration < LITTLE {
        return None;
    }
    let limit =
        stream::limit(device, outcome.operator_bytes, outcome.vector_bytes, outcome.bytes_per_iteration);
    match limit {
        // A tenth may be chance.
        Ok(limit) if limit.seconds <= 1.1 * seconds => Some(limit),
        Ok(_) => {
            log::warn!("the machine's limit is left out: it was too busy to measure a stream");
            None
        }
        Err(e) => {
            log::info!("the machine's limit is left out: {e}");
            None
        }
    }
}

fn largest_difference(x: &[f64], answer: &[f64]) -> f64 {
    x.iter().zip(answer).map(|(x, a)| (x - a).abs()).fold(0.0, f64::max)
}

/// History and picture, each where it was asked for.
fn write_results(plan: &Plan, solved: Solved) -> Result<()> {
    let note = |what: &str, path: &Path| log::info!("{what} written to {}", path.display());
    let history = History::new(solved.report, solved.recorder);
    if let Some(path) = &plan.history {
        history.save(path)?;
        note("history", path);
    }
    if let Some(path) = &plan.plot {
        crate::plot::convergence(&[history], path)?;
        note("plot", path);
    }
    Ok(())
}

/// How many, and how they were come by.
fn iterations(r: &Report) -> String {
    let restarts = match r.restarts {
        0 => String::new(),
        1 => ", started again once from b - A x".to_owned(),
        n => format!(", started again {n} times from b - A x"),
    };
    format!("{} iterations{restarts}", thousands(r.iterations))
}

fn in_words(r: &Report) -> String {
    let stands = r.stand_in.as_ref().map_or(String::new(), |real| format!(", a stand-in for {real}"));
    let size = format!("{} rows, {} entries", thousands(r.rows), thousands(r.nnz));
    let mut lines = vec![
        ("matrix", format!("{}{stands}: {size}", r.matrix)),
        ("ran on", format!("{}, backend {}, {}", r.device, r.backend, r.precision)),
        ("method", format!("{}, preconditioner {}, b = {}", r.solver, r.preconditioner, r.right_hand_side)),
        ("result", format!("{}; {}", r.message, iterations(r))),
        (
            "residual",
            format!(
                "{:.3e} by b - A x in f64, {:.3e} by the recursion; asked for {:.3e}; backward error {:.1e}",
                r.residual_true, r.residual_recursive, r.rtol, r.backward_error
            ),
        ),
    ];
    if let (Some(smallest), Some(largest)) = (r.eigenvalue_smallest, r.eigenvalue_largest) {
        let of = if r.preconditioner == "none" { "A" } else { "M A" };
        let condition = r.condition_number.map_or(String::new(), |c| format!(", condition {c:.2e}"));
        let predicted = r.iterations_predicted.map_or(String::new(), |p| {
            format!("; {} iterations suffice for that, {} used", thousands(p), thousands(r.iterations))
        });
        lines.push((
            "spectrum",
            format!("{of} from {smallest:.3e} to {largest:.3e}, as seen{condition}{predicted}"),
        ));
    }
    if let Some(why) = &r.backend_because {
        lines.insert(2, ("because", why.clone()));
    }
    if let Some(error) = r.error_max {
        lines.push(("error", format!("{error:.3e} at most in any entry of x")));
    }
    lines.push((
        "time",
        format!(
            "solve {} ({} an iteration), setup {}, reading {}",
            duration(r.seconds_solve),
            duration(r.seconds_per_iteration),
            duration(r.seconds_setup),
            duration(r.seconds_load)
        ),
    ));
    if r.iterations > 0 {
        let share = match (r.limit_seconds_per_iteration, r.percent_of_limit) {
            (Some(limit), Some(percent)) => {
                format!("; {percent:.0} % of the machine's limit, {} an iteration", duration(limit))
            }
            _ => String::new(),
        };
        let megabytes = r.bytes_per_iteration as f64 / 1e6;
        lines.push((
            "speed",
            format!("{:.1} GB/s at {megabytes:.1} MB an iteration{share}", r.gigabytes_per_second),
        ));
    }
    lines.iter().map(|(name, value)| format!("{name:<9} {value}\n")).collect()
}
