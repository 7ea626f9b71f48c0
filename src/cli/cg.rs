//! `solver cg` and `solver minres`: load the matrix, solve, write the results and print the report.

use super::args::CgArgs;
use super::flags::as_flag;
use super::layout::labelled;
use super::load::load;
use super::plan::Plan;
use super::profile::Profiling;
use super::progress::{Live, during, show_phases};
use super::summary::{LABELS, verbose};
use super::vectors::{RightHandSide, writer};
use super::{choices, fetch, flags, interrupt, print, print_json};
use crate::engine::tune::Explanation;
use crate::engine::{self, Answer, Matrix, Solver};
use crate::error::{Error, Result};
use crate::observe::{History, Phase, Report, profile};
use crate::solve::problem::Problem;
use crate::source::Options;
use std::time::Instant;

pub(super) fn run(args: CgArgs, minres: bool) -> Result<bool> {
    let profiling = Profiling::start(args.run.profile);
    let plan = Plan::resolve(args, minres)?;
    if plan.run.dry_run {
        print(&plan.describe()?.to_string())?;
        return Ok(true);
    }
    if let Some(why) = &plan.running.settled.device_because {
        log::info!("device: {}", flags::note(why));
    }
    plan.run.start_pool();
    plan.running.settled.check_device()?;
    fetch::on_first_use(plan.fetch)?;
    let began = Instant::now();
    let attached = plan.rhs == RightHandSide::Attached;
    let loaded = load(&plan.matrix, Options { as_stored: plan.as_stored, attached, ..Options::default() })?;
    let seconds = began.elapsed().as_secs_f64();
    let problem = plan.rhs.make(&loaded.matrix, &loaded.attached)?;
    // Frees the vectors stored with the matrix.
    let loaded = crate::source::Loaded { attached: Vec::new(), ..loaded };
    let matrix = Matrix::of_loaded(plan.matrix.to_string_lossy(), loaded, seconds);
    let Solved { mut report, explanation, written } = solve(&plan, matrix, problem)?;
    report.profile = profiling.times();
    let explained = Some(&explanation).filter(|_| plan.run.explain);
    let printed = match plan.run.json {
        true => print_json(&choices::with_explanation(&report, explained)?),
        false => {
            let mut lines = report.lines();
            lines.extend(choices::line(&explanation, report.backend_because.as_deref()));
            lines.extend(plan.files().filter(|_| written.is_ok()));
            if verbose() {
                lines.extend(report.details());
            }
            let table = explained.map(choices::explained).map_or(String::new(), |table| table + "\n");
            print(&(table + &labelled(LABELS, &lines))).and_then(|()| profiling.print())
        }
    };
    written.and(printed)?;
    Ok(report.converged)
}

/// The outcome of a solve.
struct Solved {
    report: Report,
    explanation: Explanation,
    /// The outcome of writing the results.
    written: Result<()>,
}

/// Solves, writes the results, and measures the stream bandwidth.
fn solve(plan: &Plan, matrix: Matrix, problem: Problem) -> Result<Solved> {
    let rows = matrix.rows();
    let x0 = plan.x0.as_ref().map(|x0| x0.values(rows)).transpose()?;
    let name = plan.x0.as_ref().map(ToString::to_string);
    let mut prepared = Solver::new(plan.method, &matrix)
        .settled(plan.running.request.clone(), plan.running.settled.clone())
        .assume_symmetric(plan.assume_symmetric)
        .stopping(plan.stopping.clone())
        .checkpoints(plan.checkpoints.clone())
        .tune(plan.run.tune)
        .on_phase(show_phases())
        .prepare()?;
    drop(matrix);
    // Ctrl-C exits immediately up to this point: there are no results to save yet.
    let interrupted = interrupt::catch();
    prepared.cancel_by(&interrupted)?;
    let limits = plan.running.limits(plan.stopping.most_iterations(rows));
    let mut live = Live::new(plan.method.name(), limits, plan.run.monitor, "recurrence residual / ||b||");
    let mut b = engine::RightHandSide::of(&problem);
    if let (Some(x0), Some(name)) = (x0, &name) {
        b = b.from_start(x0).start_named(name);
    }
    let answer = prepared.solve_watched(b, &mut [&mut live]);
    live.finish();
    let mut answer = answer.map_err(|error| name_start(plan, error))?;
    let written = write_answer(plan, &answer);
    let explanation = prepared.explanation().clone();
    // The measurement needs about as much memory as the solve.
    let device = prepared.into_device();
    drop(problem);
    interrupt::hold();
    during("measuring the stream bandwidth", || answer.measure_limit(&device, Some(&interrupted)));
    interrupt::let_go();
    let report = report(plan, &answer);
    let history = History::new(report, answer.into_recorder());
    let written = written.and(plan.run.write_results(&history));
    Ok(Solved { report: history.report, explanation, written })
}

/// Writes x if `--output` names a file.
fn write_answer(plan: &Plan, answer: &Answer) -> Result<()> {
    let Some(path) = plan.output.as_deref() else { return Ok(()) };
    let _span = profile::begin(Phase::Write);
    let write = writer(path)?;
    during(format!("writing {}", path.display()), || write(path, answer.x()))?;
    log::info!("solution written to {}", path.display());
    Ok(())
}

/// Returns the report, with hints that name flags.
fn report(plan: &Plan, answer: &Answer) -> Report {
    let matrix = plan.matrix.display();
    let naming = |setting: &str, value: &str| match (setting, value) {
        ("method", "minres") => format!("solver minres --matrix {matrix}"),
        _ => as_flag(setting, value),
    };
    let report = answer.report_naming(&naming);
    Report { note: report.note.as_deref().map(flags::note), ..report }
}

/// Adds the name of the start file to an error about the start.
fn name_start(plan: &Plan, error: Error) -> Error {
    match (&error, &plan.x0) {
        (Error::StartScale { .. }, Some(x0)) => flags::bad("--x0", x0, error.to_string()),
        _ => error,
    }
}
