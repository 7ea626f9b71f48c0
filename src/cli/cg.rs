//! `solver cg` and `solver minres`: load the matrix, solve, write the results and print the report.

mod ranks;

use super::args::CgArgs;
use super::command::{self, Shown, Solved, conclude, write_output};
use super::flags::as_flag;
use super::load::load;
use super::plan::{Plan, located};
use super::progress::{Largest, Limits, Live, show_phases};
use super::{choices, flags, interrupt, launch};
use crate::engine::{
    Ahead, DeviceSettings, Found, Matrix, Prepared, RankMatrix, RhsName, RightHandSide, RightHandSides,
    RunSettings, Solver, SystemSettings,
};
use crate::error::{Error, Result};
use crate::observe::Report;
use crate::observe::report::ColumnReport;
use crate::solve::problem::Problem;
use crate::source::{Loaded, Options, UnsaidIndex, write_vectors};
use crate::text::duration;
use std::borrow::Cow;
use std::time::Instant;

pub(super) fn run(mut args: CgArgs, minres: bool) -> Result<bool> {
    let rhs = args.rhs.as_deref().and_then(RhsName::file);
    let files = [("--rhs", rhs), ("--x0", args.x0.as_deref()), ("--resume", args.resume.as_deref())];
    let profiling = command::start(&mut args.run, &files)?;
    let plan = Plan::resolve(args, minres)?;
    let ahead = (Ahead::System(plan.method), plan.fetch);
    let Some(_opening) = command::begin(&plan.args.run, &plan.running, ahead, || plan.describe())? else {
        return Ok(true);
    };
    let (given, problem) = match launch::ranks() {
        Some(ranks) => ranks::system(&plan, ranks)?,
        None => system(&plan)?,
    };
    let solved = solve(&plan, given, problem)?;
    command::end(&plan.args.run, &profiling, solved, |report| Shown {
        lines: report.lines(),
        details: (report.details(), columns(report)),
        table: String::new(),
        files: plan.files(),
    })
}

/// Loads the matrix; with what is stored with it if the right-hand side or the coordinates of nodes are
/// needed.
fn load_system(plan: &Plan) -> Result<Loaded> {
    let coordinates = plan.running.request.precond.takes_near_null() && plan.coordinates.is_none();
    let attached = plan.rhs == RhsName::Attached || coordinates;
    let (as_stored, first_index) = (plan.args.as_stored, plan.args.first_index);
    load(&plan.args.matrix, Options { as_stored, attached, first_index, ..Options::default() })
}

/// Warns of a list that may be counted from 1: as it was read, its first row is empty, and the
/// system is singular.
fn warn_of_index(list: Option<&UnsaidIndex>) {
    if let Some(list) = list {
        log::warn!("{}: {}", list.path.display(), flags::note(&list.to_string()));
    }
}

/// The matrix of a solve: all of it, or the rows of a rank.
enum Given {
    Whole(Matrix),
    OfRank(RankMatrix),
}

/// Reads the system.
fn system(plan: &Plan) -> Result<(Given, Problem)> {
    let began = Instant::now();
    let loaded = load_system(plan)?;
    let seconds = began.elapsed().as_secs_f64();
    let problem = plan.rhs.make(&loaded.matrix, &loaded.attached, loaded.unsaid_index.as_deref())?;
    // Frees the vectors stored with the matrix.
    let loaded = crate::source::Loaded { attached: Vec::new(), ..loaded };
    let matrix = Matrix::of_loaded(plan.args.matrix.to_string_lossy(), loaded, seconds);
    Ok((Given::Whole(located(matrix, plan.coordinates.as_ref())?), problem))
}

/// Solves with the live line of the method. Returns the solutions, n x k, row-major, and the rest of the
/// answer.
fn answer(
    prepared: &mut Prepared,
    problem: &Problem,
    start: Option<(&[f64], &str)>,
    mut live: Live,
) -> Result<(Vec<f64>, Box<dyn Found<Report = Report>>)> {
    if problem.columns == 1 {
        let mut b = RightHandSide::of(problem);
        if let Some((x0, name)) = start {
            b = b.from_start(x0).start_named(name);
        }
        let mut answer = prepared.solve_watched(b, &mut [&mut live])?;
        return Ok((answer.take_x(), Box::new(answer)));
    }
    let mut b = RightHandSides::from(problem);
    if let Some((x0, name)) = start {
        b = b.from_start(x0).start_named(name);
    }
    let mut answers = prepared.solve_many_watched(b, &mut [&mut Largest::new(live)])?;
    Ok((answers.take_x(), Box::new(answers)))
}

/// Describes the residuals of `--monitor`.
fn monitored(columns: usize) -> &'static str {
    match columns {
        1 => "recurrence residual / ||b||",
        _ => "largest recurrence residual / ||b|| of the running columns",
    }
}

/// Solves, writes the results, and measures the stream bandwidth. Over ranks, the first one writes.
fn solve(plan: &Plan, given: Given, problem: Problem) -> Result<Solved<Report>> {
    let began = Instant::now();
    let rows = match &given {
        Given::Whole(matrix) => matrix.rows(),
        Given::OfRank(matrix) => matrix.total_rows(),
    };
    let reserved = plan.reserve(rows, problem.columns)?;
    let (solver, x0, of_rank) = match given {
        Given::Whole(matrix) => {
            let x0 = plan.x0.as_ref().map(|x0| x0.values(rows, matrix.unsaid_index())).transpose()?;
            warn_of_index(matrix.unsaid_index());
            let solver = Solver::new(plan.method, &matrix).assume_symmetric(plan.args.assume_symmetric);
            (solver.partition(plan.args.partition.clone()).tune(plan.args.run.tune), x0, None)
        }
        Given::OfRank(matrix) => {
            let x0 = plan.x0.as_ref().map(|x0| x0.rows_of_rank(&matrix)).transpose()?;
            (Solver::over_ranks(plan.method, &matrix), x0.map(Cow::Owned), Some(matrix))
        }
    };
    let name = plan.x0.as_ref().map(ToString::to_string);
    let mut prepared = solver
        .project(plan.args.project)
        .settled(plan.running.request.clone(), plan.running.settled.clone())
        .stopping(plan.stopping.clone())
        .time_from(began)
        .checkpoints(plan.checkpoints.clone())
        .on_phase(show_phases())
        .prepare()?;
    // Ctrl-C exits immediately up to this point: there are no results to save yet.
    let interrupted = interrupt::catch();
    launch::begin_iterations();
    prepared.cancel_by(&interrupted)?;
    let limits = Limits::new(plan.stopping.most_iterations(rows), plan.running.time_limit, began);
    let live = Live::new(plan.method.name(), limits, plan.args.run.monitor, monitored(problem.columns));
    let found = answer(&mut prepared, &problem, x0.as_deref().zip(name.as_deref()), live);
    let (x, mut found) = found.map_err(|error| name_start(plan, error))?;
    let written = write_output("solution", plan.args.output.as_deref(), reserved, |path| match &of_rank {
        Some(matrix) => matrix.write_vectors(path, &x, problem.columns),
        None => write_vectors(path, &x, problem.columns),
    });
    let explanation = prepared.explanation().clone();
    let device = prepared.into_device();
    drop((x, problem, of_rank));
    let machine = (&device, &*interrupted);
    Ok(conclude(&plan.args.run, &mut *found, (explanation, written), machine, |found| report(plan, found)))
}

/// Returns the report, with hints that name flags.
fn report(plan: &Plan, found: &dyn Found<Report = Report>) -> Report {
    let matrix = plan.args.matrix.display();
    let naming = |setting: &str, value: &str| match (setting, value) {
        ("method", "minres") => format!("solver minres --matrix {matrix}"),
        _ => as_flag(setting, value),
    };
    let report = found.report_naming(&naming);
    Report { note: report.note.as_deref().map(flags::note), ..report }
}

/// Adds the name of the start file to an error about the start.
fn name_start(plan: &Plan, error: Error) -> Error {
    match (&error, &plan.x0) {
        (Error::StartScale { .. }, Some(x0)) => flags::bad("--x0", x0, error.to_string()),
        _ => error,
    }
}

/// Formats the columns of several right-hand sides as a table; empty for one right-hand side.
fn columns(report: &Report) -> String {
    if report.columns.is_empty() {
        return String::new();
    }
    let row = |column: &ColumnReport| {
        vec![
            column.column.to_string(),
            column.iterations.to_string(),
            column.restarts.to_string(),
            format!("{:.3e}", column.residual_true),
            duration(column.seconds_solve),
            column.message.clone(),
        ]
    };
    let header = ["column", "iterations", "restarts", "residual", "time", "end"];
    choices::table(&header, report.columns.iter().map(row).collect()) + "\n"
}
