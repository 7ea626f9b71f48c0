//! `solver tune`: measures the backends on a matrix, prints a table, and keeps the choice.

pub(super) mod args;

use super::choices::{explained, measurement};
use super::flags::bad;
use super::layout::labelled;
use super::load::load_matrix;
use super::progress::show_phases;
use super::{fetch, flags, print_found};
use crate::engine::tune::{TuneRequest, Tuning, explain, forget, forget_all, tune_watched};
use crate::engine::{Matrix, Request};
use crate::error::Result;
use crate::parallel::start_pool;
use crate::params;
use crate::precond::Preconditioner;
use crate::source::Options;
use crate::text::{duration, thousands};
use args::TuneArgs;
use std::ffi::OsStr;
use std::time::Duration;

pub(super) fn run(args: &TuneArgs) -> Result<bool> {
    let what = args.what.as_deref().or(args.matrix.as_deref());
    let Some(what) = what else {
        return removed(args, forget_all());
    };
    let candidates = args.backend.as_deref().map(backends).transpose()?.unwrap_or_default();
    let budget = Duration::try_from_secs_f64(args.time_limit)
        .map_err(|error| bad("--time-limit", args.time_limit, error.to_string()))?;
    let request = Request {
        device: args.device.clone(),
        backend: "auto".to_owned(),
        precond: Preconditioner::NONE,
        precision: args.precision,
        threads: args.threads,
        columns: 1,
    };
    let settled = request.settle()?;
    settled.require_one("backends are measured")?;
    if let Some(why) = &settled.device_because {
        log::info!("device: {}", flags::note(why));
    }
    settled.check_device()?;
    start_pool(args.threads);
    let matrix = load(args, what)?;
    if args.forget {
        return removed(args, forget(matrix.csr()));
    }
    if args.explain {
        let explanation = explain(&matrix, &request)?;
        print_found(args.json, &explanation, |explanation| explained(explanation, None))?;
        return Ok(true);
    }
    let request = TuneRequest { request, candidates, budget, keep: true };
    let tuning = tune_watched(&matrix, &request, &mut show_phases())?;
    print_found(args.json, &tuning, in_words)?;
    Ok(true)
}

fn load(args: &TuneArgs, what: &OsStr) -> Result<Matrix> {
    fetch::on_first_use(fetch::missing(what)?)?;
    load_matrix(
        what,
        Options { as_stored: args.as_stored, first_index: args.first_index, ..Options::default() },
    )
}

/// Splits a list of backends. A parameter after a comma belongs to the backend before it.
pub(super) fn backends(typed: &str) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for item in params::items(typed) {
        let is_parameter = item.split_once('=').is_some_and(|(name, _)| !name.contains(':'));
        match names.last_mut() {
            Some(last) if last.contains(':') && is_parameter => {
                last.push_str(&format!(",{item}"));
            }
            _ if item.is_empty() => {
                return Err(bad("--backend", typed, "a name is missing before or after a comma"));
            }
            _ => names.push(item.to_owned()),
        }
    }
    Ok(names)
}

fn removed(args: &TuneArgs, count: usize) -> Result<bool> {
    let choices = if count == 1 { "choice" } else { "choices" };
    let in_words = |_: &_| format!("{count} kept {choices} removed\n");
    print_found(args.json, &serde_json::json!({ "removed": count }), in_words)?;
    Ok(true)
}

fn in_words(tuning: &Tuning) -> String {
    let Tuning { product, device, precision, rows, nnz, .. } = tuning;
    let (rows, nnz) = (thousands(*rows), thousands(*nnz));
    let head = format!("{product} on {device} in {precision}, {rows} rows, {nnz} entries\n");
    let pays = match tuning.break_even {
        Some(products) => format!(
            "after {} products (iterations): the tuning took {}",
            thousands(products as u64),
            duration(tuning.seconds)
        ),
        None => format!("never: {}; the tuning took {}", tuning.why, duration(tuning.seconds)),
    };
    let kept = match &tuning.kept {
        Some(path) => format!("{}; solves with --backend auto use it, --forget removes it", path.display()),
        None => "no".to_owned(),
    };
    let lines = [("winner", format!("{}: {}", tuning.winner, tuning.why)), ("pays", pays), ("kept", kept)];
    format!("{head}{}{}", measurement(tuning), labelled(8, &lines))
}

#[cfg(test)]
mod tests {
    use super::backends;

    #[test]
    fn a_parameter_after_a_comma_belongs_to_the_backend_before_it() {
        let split = |typed: &str| backends(typed).unwrap();
        assert_eq!(split("rows,sell"), ["rows", "sell"]);
        assert_eq!(split("vector:threads=8,unroll=4,csr"), ["vector:threads=8,unroll=4", "csr"]);
        assert_eq!(split("bsr:block=2x2,bsr:block=3x3"), ["bsr:block=2x2", "bsr:block=3x3"]);
        assert_eq!(split("a:b=(c:d=1,e=2),f=3,g"), ["a:b=(c:d=1,e=2),f=3", "g"]);
        assert!(backends("rows,,sell").is_err());
        assert!(backends("").is_err());
    }
}
