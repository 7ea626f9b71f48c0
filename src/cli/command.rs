//! The beginning and the end of every command that solves.

use super::dry_run::Decisions;
use super::layout::labelled;
use super::profile::{Profiling, seconds_total};
use super::progress::during;
use super::running::{MaybeNamed, RunArgs, Running};
use super::summary::{LABELS, Line, verbose};
use super::{choices, fetch, flags, interrupt, over_ranks, print, print_json};
use crate::engine::tune::Explanation;
use crate::engine::{Ahead, DeviceHandle, Found, Opening};
use crate::error::Result;
use crate::files::Reserved;
use crate::observe::{Common, Phase, profile};
use crate::source::catalog::Entry;
use serde::Serialize;
use std::ops::DerefMut;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// What a solve returns.
pub(super) struct Solved<R> {
    pub report: R,
    pub explanation: Explanation,
    /// The outcome of writing the results.
    pub written: Result<()>,
}

/// The text of a report.
pub(super) struct Shown {
    pub lines: Vec<Line>,
    /// The lines and the table that `-v` adds.
    pub details: (Vec<Line>, String),
    /// What follows the lines.
    pub table: String,
    /// The line of written files.
    pub files: Option<Line>,
}

/// Begins a command: the signals, the defaults of a rank, and the profile. `files` are those of vectors and
/// weights.
pub(super) fn start(run: &mut RunArgs, files: &[MaybeNamed<'_>]) -> Result<Profiling> {
    interrupt::end_all_ranks();
    over_ranks::set_defaults(run, files)?;
    Ok(Profiling::start(run.profile))
}

/// Checks and opens the devices, and downloads what is missing; returns none after a dry run, which prints
/// the plan.
pub(super) fn begin(
    run: &RunArgs,
    running: &Running,
    (ahead, missing): (Ahead, Option<&'static Entry>),
    describe: impl FnOnce() -> Result<Decisions>,
) -> Result<Option<Opening>> {
    over_ranks::check_devices(&running.settled)?;
    if run.dry_run {
        print(&describe()?.to_string())?;
        return Ok(None);
    }
    if let Some(why) = &running.settled.device_because {
        log::info!("device: {}", flags::note(why));
    }
    run.start_pool();
    let opening = running.settled.open_ahead(ahead, &running.request)?;
    fetch::on_first_use(missing)?;
    Ok(Some(opening))
}

/// Prints the report, and returns whether the solve converged. Fails if the report or the results could not
/// be written.
pub(super) fn end<R: Serialize + DerefMut<Target = Common>>(
    run: &RunArgs,
    profiling: &Profiling,
    solved: Solved<R>,
    show: impl FnOnce(&R) -> Shown,
) -> Result<bool> {
    let Solved { mut report, explanation, written } = solved;
    (report.seconds_total, report.profile) = (Some(seconds_total()), profiling.times());
    let Shown { mut lines, details, table, files } = show(&report);
    let parts = report.parts.as_ref();
    let explained = Some(&explanation).filter(|_| run.explain);
    let printed = match run.json {
        true => print_json(&choices::with_explanation(&report, explained, parts)?),
        false => {
            lines.extend(choices::line(&explanation, report.backend_because.as_deref()));
            lines.extend(files.filter(|_| written.is_ok()));
            let mut text = explained.map_or(String::new(), |why| choices::explained(why, parts) + "\n");
            if verbose() {
                lines.extend(details.0);
                text.push_str(&details.1);
            }
            print(&(text + &labelled(LABELS, &lines) + &table)).and_then(|()| profiling.print())
        }
    };
    written.and(printed).map(|()| report.converged)
}

/// Measures the stream bandwidth for the report, and writes the history. The measurement needs about as much
/// memory as the solve.
pub(super) fn conclude<R>(
    run: &RunArgs,
    found: &mut dyn Found<Report = R>,
    (explanation, written): (Explanation, Result<()>),
    (device, interrupted): (&DeviceHandle, &AtomicBool),
    report: impl FnOnce(&dyn Found<Report = R>) -> R,
) -> Solved<R> {
    interrupt::measuring_the_stream(|| found.measure_limit(device, Some(interrupted)));
    let report = report(found);
    let written = run.write_results(written, || found.history_of(&report));
    Solved { report, explanation, written }
}

/// Writes what `named` is with `write` into the reserved space, if `--output` names a file.
pub(super) fn write_output(
    named: &str,
    output: Option<&Path>,
    reserved: Option<Reserved>,
    write: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let Some(path) = output else { return Ok(()) };
    drop(reserved);
    let _span = profile::begin(Phase::Write);
    during(format!("writing {}", path.display()), || write(path))?;
    log::info!("{named} written to {}", path.display());
    Ok(())
}
