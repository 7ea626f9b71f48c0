//! `solver info --precond`: the levels of a preconditioner, and a prediction of a solve.

use super::args::InfoArgs;
use super::{naming, options};
use crate::cli::choices::table;
use crate::cli::layout::labelled;
use crate::cli::load::load_matrix;
use crate::cli::plan::{located, nodes};
use crate::cli::print_found;
use crate::cli::progress::{bytes, during};
use crate::engine::Trial;
use crate::error::Result;
use crate::observe::Level;
use crate::precond::Preconditioner;
use crate::text::{duration, thousands};

/// Builds the levels and prints them.
pub(super) fn run(args: &InfoArgs, precond: &Preconditioner) -> Result<bool> {
    let files = (args.coords.as_deref(), args.near_null.as_deref());
    let (precond, coordinates) = nodes(precond, files, false)?;
    let reads = coordinates.is_none() && precond.takes_near_null();
    let matrix = located(load_matrix(&args.matrix, options(args, reads))?, coordinates.as_ref())?;
    let spelled = |setting: &str, value: &str| naming(matrix.name(), setting, value);
    let trial = during("building the levels".to_owned(), || matrix.try_levels(precond, &spelled))?;
    print_found(args.json, &trial, in_words)?;
    Ok(true)
}

/// Describes the levels together, the prediction, and each level in a table.
fn in_words(trial: &Trial) -> String {
    let [rows, entries] = [trial.rows, trial.nnz].map(thousands);
    let mut lines = vec![
        ("matrix", format!("{}, {rows} rows, {entries} entries", trial.matrix)),
        ("operator", trial.preconditioner.clone()),
        ("near-null", trial.multigrid.near_null.clone()),
        ("levels", format!("{}, {}", trial.multigrid.in_words(), bytes(trial.bytes))),
        ("setup", format!("{} on {}", duration(trial.seconds_setup), trial.device)),
        ("prediction", prediction(trial)),
    ];
    lines.extend(trial.hint.clone().map(|hint| ("hint", hint)));
    format!("{}\n{}", labelled(12, &lines), levels(&trial.multigrid.levels))
}

fn prediction(trial: &Trial) -> String {
    if let Some(failure) = &trial.failure {
        return format!("none: {failure}");
    }
    let run = trial.iterations_run;
    match (trial.iterations_predicted, trial.convergence_factor, trial.seconds_predicted) {
        (Some(iterations), Some(factor), Some(seconds)) => format!(
            "cg takes about {} iterations to a relative residual of {:e}, and with the setup {}; extrapolated \
             from {run} iterations with a random right-hand side, with a convergence factor of {factor:.2} and \
             {} per iteration",
            thousands(iterations),
            trial.rtol,
            duration(seconds),
            duration(trial.seconds_per_iteration)
        ),
        _ => format!(
            "none: with a random right-hand side, the residual did not fall in the last half of {run} \
             iterations of cg"
        ),
    }
}

/// Formats the levels as a table.
fn levels(levels: &[Level]) -> String {
    let whole = |number: Option<u64>| number.map_or("-".to_owned(), thousands);
    let real = |number: Option<f64>| number.map_or("-".to_owned(), |number| format!("{number:.2}"));
    let row = |(number, level): (usize, &Level)| {
        vec![
            number.to_string(),
            thousands(level.rows),
            thousands(level.entries),
            format!("{:.1}", level.entries as f64 / level.rows.max(1) as f64),
            whole(level.aggregates),
            real(level.aggregate_mean),
            whole(level.aggregate_largest),
            real(level.eigenvalue_largest),
            bytes(level.bytes),
            level.backend.clone(),
        ]
    };
    let header = [
        "level",
        "rows",
        "entries",
        "per row",
        "aggregates",
        "mean",
        "largest",
        "eigenvalue",
        "memory",
        "backend",
    ];
    table(&header, levels.iter().enumerate().map(row).collect())
}
