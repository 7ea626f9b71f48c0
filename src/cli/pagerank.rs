//! `solver pagerank`: ranks of the vertices of a graph, with a certified bound on their error.

pub(super) mod args;
mod plan;

use super::command::{self, Shown, Solved, conclude, write_output};
use super::flags::{self, as_flag};
use super::load::{load_labelled, shown};
use super::progress::{Largest, Limits, Live, show_phases};
use super::{interrupt, launch};
use crate::device::Ranks;
use crate::engine::pagerank::RankReport;
use crate::engine::{Ahead, DeviceSettings, Found, Matrix, Pagerank, RankGraph, RankSource, RunSettings};
use crate::error::Result;
use crate::format::Duplicates;
use crate::source::Options;
use args::PagerankArgs;
use plan::Plan;
use std::path::Path;
use std::time::Instant;

pub(super) fn run(mut args: PagerankArgs) -> Result<bool> {
    let personalise = args.personalise.as_deref().map(Path::new);
    let each = args.personalise_each.as_deref();
    let files = [("--personalise", personalise), ("--personalise-each", each), ("--x0", args.x0.as_deref())];
    let profiling = command::start(&mut args.run, &files)?;
    let args = &args;
    let plan = Plan::resolve(args)?;
    let ahead = (Ahead::Ranks, plan.fetch);
    let Some(_opening) = command::begin(&args.run, &plan.running, ahead, || plan.describe(args))? else {
        return Ok(true);
    };
    let dangling = plan.settings.dangling;
    log::info!("dangling {}: {}", dangling.name(), dangling.formula());
    command::end(&args.run, &profiling, solve(args, plan)?, |report| Shown {
        lines: report.lines(),
        details: (report.details(), String::new()),
        table: report.table(),
        files: args.run.files(&[("ranks", args.output.as_deref())]),
    })
}

/// Loads the named graph, with the labels of its vertices.
fn graph(args: &PagerankArgs) -> Result<Matrix> {
    let options = Options {
        duplicates: Duplicates::Keep,
        close_gaps: true,
        columns: args.columns.clone(),
        ..Options::default()
    };
    load_labelled(&args.graph, options, args.labels.as_deref())
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

/// Ranks the vertices, writes the results, and measures the stream bandwidth.
fn solve(args: &PagerankArgs, plan: Plan) -> Result<Solved<RankReport>> {
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
    let output =
        |found: &dyn Fn(&Path) -> Result<()>| write_output("ranks", args.output.as_deref(), reserved, found);
    let live = |what| Live::new("pagerank", limits, args.run.monitor, what);
    let (mut found, written): (Box<dyn Found<Report = RankReport>>, _) = if each {
        let what = "largest error bound from the last step of the running columns";
        let ranks = prepared.solve_each_watched(&mut [&mut Largest::new(live(what))])?;
        let written = output(&|path| ranks.write(path));
        (Box::new(ranks), written)
    } else {
        let ranks = prepared.solve_watched(&mut [&mut live("error bound from the last step")])?;
        let written = output(&|path| ranks.write(path));
        (Box::new(ranks), written)
    };
    let explanation = prepared.explanation().clone();
    let machine = (&prepared.into_device(), &*interrupted);
    let report = |found: &dyn Found<Report = RankReport>| found.report_naming(&as_flag);
    Ok(conclude(&args.run, &mut *found, (explanation, written), machine, report))
}
