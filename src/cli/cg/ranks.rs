//! The system of a linear solve over ranks.

use super::{Given, load_system, warn_of_index};
use crate::cli::load::shown;
use crate::cli::plan::Plan;
use crate::device::Ranks;
use crate::engine::{Matrix, Purpose, RankMatrix, RankSource, RhsName};
use crate::error::Result;
use crate::observe::Meter;
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
    Ok((Matrix::of_loaded(plan.args.matrix.to_string_lossy(), loaded, seconds), problem))
}

/// Makes or reads the rows of the system on each rank, or reads the system on the first rank
/// and distributes it.
pub(super) fn system(plan: &Plan, ranks: &Ranks) -> Result<(Given, Problem)> {
    let purpose = Purpose {
        method: plan.method,
        precond: plan.running.request.precond.clone(),
        precision: plan.args.run.precision,
        assume_symmetric: plan.args.assume_symmetric,
        partition: plan.args.partition.clone(),
    };
    let open =
        |meter: &Arc<Meter>| RankMatrix::open(ranks, RankSource::metered(&plan.args.matrix, meter), &purpose);
    if !plan.needs_whole_matrix()
        && let Some(matrix) = shown(&plan.args.matrix, open)?
    {
        let problem = plan.rhs.make_rows(&matrix)?;
        return Ok((Given::OfRank(matrix), problem));
    }
    let given = ranks.agreed(ranks.is_first().then(|| read(plan)).transpose())?;
    let (whole, problem) = given.unzip();
    let matrix = RankMatrix::distribute(ranks, whole.as_ref(), &purpose)?;
    drop(whole);
    let problem = match plan.rhs {
        RhsName::File(_) => plan.rhs.make_rows(&matrix)?,
        _ => matrix.problem(problem.flatten().as_ref())?,
    };
    Ok((Given::OfRank(matrix), problem))
}
