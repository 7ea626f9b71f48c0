//! `solver markov`: the stationary distribution of a chain, or one for each closed class of states.

use super::command::{self, Shown, Solved, conclude, write_output};
use super::dry_run::Decisions;
use super::flags::{self, as_flag};
use super::load::{load_labelled, shown};
use super::progress::{Limits, Live, show_phases};
use super::running::{Running, file};
use super::{fetch, interrupt, launch, memory};
use crate::device::Ranks;
use crate::engine::markov::{Classes, MarkovReport, Settings, check_output};
use crate::engine::{
    Ahead, DeviceSettings, Markov, Matrix, Partition, RankChain, RankSource, RunSettings, Weights,
};
use crate::error::Result;
use crate::precond::Preconditioner;
use crate::source::catalog::Entry;
use crate::source::{Options, Shared};
use args::MarkovArgs;
use std::time::Instant;

pub(super) mod args;

pub(super) fn run(mut args: MarkovArgs) -> Result<bool> {
    let profiling = command::start(&mut args.run, &[("--x0", args.x0.as_deref())])?;
    let args = &args;
    let settings = Settings {
        method: args.method,
        normalize: args.normalize,
        classes: args.classes,
        tol: args.tol,
        max_iters: args.max_iters,
        top: args.top,
    };
    settings.check()?;
    args.run.check_files(
        &[
            ("--matrix", file(&args.matrix)),
            ("--labels", args.labels.as_deref()),
            ("--x0", args.x0.as_deref()),
        ],
        &[("--output", args.output.as_deref())],
    )?;
    args.output.as_deref().map(check_output).transpose()?;
    let running = args.run.resolve(settings.host_method(), Preconditioner::NONE, 1)?;
    // Over ranks, the first one sends each rank its part.
    let x0 = |path| launch::read_on_first(|| Weights::read_in_order("x0", path));
    let x0 = args.x0.as_deref().map(x0).transpose()?;
    let x0 = x0.map(|weights| weights.unwrap_or_else(|| Weights::from(Vec::new())));
    let missing = fetch::missing(&args.matrix)?;
    let ahead = (Ahead::Chain, missing);
    let describe = || describe(args, &running, missing);
    let Some(_opening) = command::begin(&args.run, &running, ahead, describe)? else { return Ok(true) };
    let solved = solve(args, settings, running, x0)?;
    command::end(&args.run, &profiling, solved, |report| Shown {
        lines: report.lines(),
        details: (report.details(), String::new()),
        table: report.table(),
        files: args.run.files(&[("distribution", args.output.as_deref())]),
    })
}

/// Describes the plan, a line for each decision.
fn describe(args: &MarkovArgs, running: &Running, fetch: Option<&'static Entry>) -> Result<Decisions> {
    let mut plan = Decisions::default();
    plan.add("solver", "markov");
    plan.source("matrix", &args.matrix, fetch);
    plan.ranks(&args.matrix, args.columns.is_some(), &Partition::default())?;
    plan.add("method", args.method.name());
    plan.add("rows", if args.normalize { "divided by their sums" } else { "must sum to 1" });
    plan.add("classes", if args.classes == Classes::Each { "each" } else { "refuse more than one" });
    plan.add_if("x0", args.x0.as_ref().map(|path| path.display()));
    plan.add("tol", format!("{:e}, on ||pi P - pi||", args.tol));
    plan.running(&args.run, running, args.max_iters);
    plan.kept(&args.matrix, running);
    plan.outputs(&args.run, args.output.as_deref());
    plan.add("memory", memory::at_least(&args.matrix, args.columns.is_some(), Shared::Chain)?);
    Ok(plan)
}

/// Loads the named chain, with the labels of its states.
fn chain(args: &MarkovArgs) -> Result<Matrix> {
    let options = Options { close_gaps: true, columns: args.columns.clone(), ..Options::default() };
    load_labelled(&args.matrix, options, args.labels.as_deref())
}

/// Makes or reads the rows of the chain on each rank, or loads the chain on the first rank.
fn chain_over(ranks: &Ranks, args: &MarkovArgs) -> Result<RankChain> {
    if args.columns.is_none()
        && let Some(chain) =
            shown(&args.matrix, |meter| RankChain::open(ranks, RankSource::metered(&args.matrix, meter)))?
    {
        return args.labels.iter().try_fold(chain.map_notes(flags::note), RankChain::read_labels);
    }
    let whole = ranks.agreed(ranks.is_first().then(|| chain(args)).transpose())?;
    Ok(RankChain::distribute(ranks, whole.as_ref()))
}

/// Finds the distributions of all classes, writes the results, and measures the stream bandwidth.
fn solve(
    args: &MarkovArgs,
    settings: Settings,
    running: Running,
    x0: Option<Weights>,
) -> Result<Solved<MarkovReport>> {
    let markov = match launch::ranks() {
        Some(ranks) => Markov::over_ranks(&chain_over(ranks, args)?),
        None => Markov::new(&chain(args)?),
    };
    let (began, max_iters) = (Instant::now(), settings.max_iters);
    let mut markov = markov
        .settings(settings)
        .settled(running.request, running.settled)
        .tune(args.run.tune)
        .on_phase(show_phases());
    if let Some(limit) = running.time_limit {
        markov = markov.time_limit(limit).time_from(began);
    }
    if let Some(weights) = x0 {
        markov = markov.x0(weights);
    }
    let mut prepared = markov.prepare()?;
    let reserved = launch::reserve(args.output.as_deref(), |path| prepared.most_bytes(path))?;
    // Ctrl-C exits immediately up to this point: there are no results to save yet.
    let interrupted = interrupt::catch();
    launch::begin_iterations();
    prepared.cancel_by(&interrupted);
    let limits = Limits::new(max_iters, running.time_limit, began);
    // Each class has a line until its solve ends.
    let live = || Live::new("markov", limits, args.run.monitor, "||pi P - pi|| from the last step");
    let mut found = prepared.solve_watched(|_| Some(Box::new(live())))?;
    let written = write_output("distribution", args.output.as_deref(), reserved, |path| found.write(path));
    let explanation = found.explanation().clone();
    let machine = (&prepared.into_device(), &*interrupted);
    Ok(conclude(&args.run, &mut found, (explanation, written), machine, |found| {
        found.report_naming(&as_flag)
    }))
}
