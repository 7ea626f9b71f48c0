//! A linear solve over ranks. The first rank reads the system, writes the results and prints the report.

use super::{Found, load_system, monitored, name_start, report, warn_of_index};
use crate::cli::command::{Solved, write_output};
use crate::cli::interrupt;
use crate::cli::launch;
use crate::cli::load::shown;
use crate::cli::plan::Plan;
use crate::cli::progress::{Limits, Live, show_phases};
use crate::device::Ranks;
use crate::engine::{
    DeviceSettings, Matrix, Purpose, RankMatrix, RankSource, RhsName, RunSettings, Solver, SystemSettings,
};
use crate::error::Result;
use crate::observe::{Meter, Report};
use crate::solve::problem::Problem;
use std::sync::Arc;
use std::time::Instant;

/// Reads the matrix and makes the right-hand side, unless it is a file, of which each rank reads its rows.
fn read(plan: &Plan) -> Result<(Matrix, Option<Problem>)> {
    let began = Instant::now();
    let loaded = load_system(plan)?;
    let seconds = began.elapsed().as_secs_f64();
    let problem = match &plan.rhs {
        RhsName::File(file) => {
            file.check_rows(loaded.matrix.rows(), loaded.unsaid_index.as_deref())?;
            None
        }
        _ => Some(plan.rhs.make(&loaded.matrix, &loaded.attached, loaded.unsaid_index.as_deref())?),
    };
    warn_of_index(loaded.unsaid_index.as_deref());
    Ok((Matrix::of_loaded(plan.matrix.to_string_lossy(), loaded, seconds), problem))
}

/// Makes or reads the rows of the system on each rank, or reads the system on the first rank
/// and distributes it.
fn system(plan: &Plan, ranks: &Ranks, purpose: &Purpose) -> Result<(RankMatrix, Problem)> {
    let open =
        |meter: &Arc<Meter>| RankMatrix::open(ranks, RankSource::metered(&plan.matrix, meter), purpose);
    if !plan.needs_whole_matrix()
        && let Some(matrix) = shown(&plan.matrix, open)?
    {
        let problem = plan.rhs.make_rows(&matrix)?;
        return Ok((matrix, problem));
    }
    let given = ranks.agreed(ranks.is_first().then(|| read(plan)).transpose())?;
    let (whole, problem) = given.unzip();
    let matrix = RankMatrix::distribute(ranks, whole.as_ref(), purpose)?;
    drop(whole);
    let problem = match plan.rhs {
        RhsName::File(_) => plan.rhs.make_rows(&matrix)?,
        _ => matrix.problem(problem.flatten().as_ref())?,
    };
    Ok((matrix, problem))
}

/// Solves, and writes the results on the first rank.
pub(super) fn solve(plan: &Plan, ranks: &Ranks) -> Result<Solved<Report>> {
    let purpose = Purpose {
        method: plan.method,
        precond: plan.running.request.precond.clone(),
        precision: plan.run.precision,
        assume_symmetric: plan.assume_symmetric,
        partition: plan.partition.clone(),
    };
    let (matrix, problem) = system(plan, ranks, &purpose)?;
    let began = Instant::now();
    let reserved = plan.reserve(matrix.total_rows(), problem.columns)?;
    let x0 = match &plan.x0 {
        Some(x0) => Some(x0.rows_of_rank(&matrix)?),
        None => None,
    };
    let name = plan.x0.as_ref().map(ToString::to_string);
    let mut prepared = Solver::over_ranks(plan.method, &matrix)
        .settled(plan.running.request.clone(), plan.running.settled.clone())
        .stopping(plan.stopping.clone())
        .time_from(began)
        .checkpoints(plan.checkpoints.clone())
        .on_phase(show_phases())
        .prepare()?;
    let interrupted = interrupt::catch();
    launch::begin_iterations();
    prepared.cancel_by(&interrupted)?;
    let limits =
        Limits::new(plan.stopping.most_iterations(matrix.total_rows()), plan.running.time_limit, began);
    let live = Live::new(plan.method.name(), limits, plan.run.monitor, monitored(problem.columns));
    let found = Found::solve(&mut prepared, &problem, x0.as_deref().zip(name.as_deref()), live);
    let found = found.map_err(|error| name_start(plan, error))?;
    let explanation = prepared.explanation().clone();
    let written = write_output("solution", plan.output.as_deref(), reserved, |path| {
        let (x, columns) = found.x();
        matrix.write_vectors(path, x, columns)
    });
    let report = report(plan, &found);
    let history = found.into_history(report);
    let written = launch::then_on_first(Some(ranks), written, || plan.run.write_results(&history));
    Ok(Solved { report: history.report, explanation, written })
}
