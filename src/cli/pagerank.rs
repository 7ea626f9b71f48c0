//! `solver pagerank`: ranks of the vertices of a graph, with a certified bound on their error.

pub(super) mod args;
mod plan;

use super::flags::{self, as_flag};
use super::layout::labelled;
use super::load::{load, shown};
use super::profile::{Profiling, seconds_total};
use super::progress::{Largest, Limits, Live, during, show_phases};
use super::summary::{LABELS, verbose};
use super::{choices, fetch, interrupt, launch, print, print_json};
use crate::device::Ranks;
use crate::engine::pagerank::{Prepared, RankReport};
use crate::engine::tune::Explanation;
use crate::engine::{Ahead, DeviceSettings, Matrix, Pagerank, RankGraph, RankSource, RunSettings};
use crate::error::Result;
use crate::files::Reserved;
use crate::format::Duplicates;
use crate::source::Options;
use args::PagerankArgs;
use plan::Plan;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub(super) fn run(mut args: PagerankArgs) -> Result<bool> {
    let personalise = args.personalise.as_deref().map(Path::new);
    let each = args.personalise_each.as_deref();
    interrupt::end_all_ranks();
    launch::set_defaults(
        &mut args.run,
        &[("--personalise", personalise), ("--personalise-each", each), ("--x0", args.x0.as_deref())],
    )?;
    let args = &args;
    let profiling = Profiling::start(args.run.profile);
    let plan = Plan::resolve(args)?;
    launch::check_devices(&plan.running.settled)?;
    if args.run.dry_run {
        print(&plan.describe(args)?.to_string())?;
        return Ok(true);
    }
    if let Some(why) = &plan.running.settled.device_because {
        log::info!("device: {}", flags::note(why));
    }
    let dangling = plan.settings.dangling;
    log::info!("dangling {}: {}", dangling.name(), dangling.formula());
    args.run.start_pool();
    let _opening = plan.running.settled.open_ahead(Ahead::Ranks, &plan.running.request)?;
    fetch::on_first_use(plan.fetch)?;
    let (mut report, explanation, written) = solve(args, plan)?;
    (report.seconds_total, report.profile) = (Some(seconds_total()), profiling.times());
    let explained = Some(&explanation).filter(|_| args.run.explain);
    let printed = match args.run.json {
        true => print_json(&choices::with_explanation(&report, explained, report.parts.as_ref())?),
        false => {
            let mut lines = report.lines();
            let files = args.run.files(&[("ranks", args.output.as_deref())]);
            lines.extend(choices::line(&explanation, report.backend_because.as_deref()));
            lines.extend(files.filter(|_| written.is_ok()));
            if verbose() {
                lines.extend(report.details());
            }
            let table = explained
                .map(|reasons| choices::explained(reasons, report.parts.as_ref()))
                .map_or(String::new(), |table| table + "\n");
            print(&(table + &labelled(LABELS, &lines) + &report.table())).and_then(|()| profiling.print())
        }
    };
    written.and(printed)?;
    Ok(report.converged)
}

/// Loads the named graph, with the labels of its vertices.
fn graph(args: &PagerankArgs) -> Result<Matrix> {
    let began = Instant::now();
    let options = Options {
        duplicates: Duplicates::Keep,
        close_gaps: true,
        columns: args.columns.clone(),
        ..Options::default()
    };
    let loaded = load(&args.graph, options)?;
    let graph = Matrix::of_loaded(args.graph.to_string_lossy(), loaded, began.elapsed().as_secs_f64());
    match &args.labels {
        Some(path) => graph.read_labels(path),
        None => Ok(graph),
    }
}

/// Makes or reads the links of each rank, or loads the graph on the first rank and distributes it.
fn graph_over(ranks: &Ranks, args: &PagerankArgs) -> Result<RankGraph> {
    if args.columns.is_none()
        && let Some(graph) =
            shown(&args.graph, |meter| RankGraph::open(ranks, RankSource::metered(&args.graph, meter)))?
    {
        return args.labels.iter().try_fold(graph.map_notes(flags::note), RankGraph::read_labels);
    }
    let whole = ranks.agreed(ranks.is_first().then(|| graph(args)).transpose())?;
    RankGraph::distribute(ranks, whole.as_ref())
}

/// Ranks the vertices, writes the results, and measures the stream bandwidth. Returns the report, the reasons for the backend, and the outcome of writing.
fn solve(args: &PagerankArgs, plan: Plan) -> Result<(RankReport, Explanation, Result<()>)> {
    let pagerank = match launch::ranks() {
        Some(ranks) => Pagerank::over_ranks(&graph_over(ranks, args)?),
        None => Pagerank::new(&graph(args)?),
    };
    let (began, max_iters, time_limit) = (Instant::now(), plan.settings.max_iters, plan.running.time_limit);
    let mut pagerank = pagerank
        .settings(plan.settings)
        .settled(plan.running.request, plan.running.settled)
        .tune(args.run.tune)
        .on_phase(show_phases());
    if let Some(limit) = time_limit {
        pagerank = pagerank.time_limit(limit).time_from(began);
    }
    if let Some(weights) = plan.personalise {
        pagerank = pagerank.personalise(weights);
    }
    let each = !plan.each.is_empty();
    pagerank = pagerank.personalise_each(plan.each);
    if let Some(ranks) = plan.x0 {
        pagerank = pagerank.x0(ranks);
    }
    let mut prepared = pagerank.prepare()?;
    let reserved = launch::reserve(args.output.as_deref(), |path| prepared.most_bytes(path))?;
    // Ctrl-C exits immediately up to this point: there are no results to save yet.
    let interrupted = interrupt::catch();
    launch::begin_iterations();
    prepared.cancel_by(&interrupted);
    let limits = Limits::new(max_iters, time_limit, began);
    if each {
        return solve_each(args, prepared, (limits, reserved), &interrupted);
    }
    let mut live = Live::new("pagerank", limits, args.run.monitor, "error bound from the last step");
    let ranks = prepared.solve_watched(&mut [&mut live]);
    live.finish();
    let mut ranks = ranks?;
    let written = write_ranks(args, reserved, |path| ranks.write(path));
    let explanation = prepared.explanation().clone();
    let device = prepared.into_device();
    if launch::ranks().is_none() {
        interrupt::measuring_the_stream(|| ranks.measure_limit(&device, Some(&interrupted)));
    }
    let written = launch::then_on_first(launch::ranks(), written, || {
        args.run.write_results(&ranks.history_naming(&as_flag))
    });
    Ok((ranks.report_naming(&as_flag), explanation, written))
}

/// Writes the ranks into the reserved space if `--output` names a file.
fn write_ranks(
    args: &PagerankArgs,
    reserved: Option<Reserved>,
    write: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let Some(path) = args.output.as_deref() else { return Ok(()) };
    drop(reserved);
    during(format!("writing {}", path.display()), || write(path))?;
    log::info!("ranks written to {}", path.display());
    Ok(())
}

/// Ranks the vertices for each personalisation, as [`solve`] does for one.
fn solve_each(
    args: &PagerankArgs,
    mut prepared: Prepared,
    (limits, reserved): (Limits, Option<Reserved>),
    interrupted: &AtomicBool,
) -> Result<(RankReport, Explanation, Result<()>)> {
    let what = "largest error bound from the last step of the running columns";
    let mut live = Largest::new(Live::new("pagerank", limits, args.run.monitor, what));
    let ranks = prepared.solve_each_watched(&mut [&mut live]);
    live.finish();
    let mut ranks = ranks?;
    let written = write_ranks(args, reserved, |path| ranks.write(path));
    let explanation = prepared.explanation().clone();
    let device = prepared.into_device();
    if launch::ranks().is_none() {
        interrupt::measuring_the_stream(|| ranks.measure_limit(&device, Some(interrupted)));
    }
    let written = launch::then_on_first(launch::ranks(), written, || {
        args.run.write_results(&ranks.history_naming(&as_flag))
    });
    Ok((ranks.report_naming(&as_flag), explanation, written))
}
