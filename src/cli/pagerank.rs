//! `solver pagerank`: ranks of the vertices of a graph, with a bound on their error that is certain.

pub(super) mod args;
mod numbers;
mod output;
mod plan;
pub(super) use output::by_rank;
mod report;

use super::flags::as_flag;
use super::ids::Ids;
use super::load::load;
use super::progress::{Live, during};
use super::running::recorder;
use super::summary::verbose;
use super::{fetch, print, print_json};
use crate::backend::Pick;
use crate::device::{Cpu, Cuda, Device};
use crate::engine::{self, DeviceName, Ended};
use crate::error::{ChainError, Error, Result};
use crate::format::{Csr, Duplicates};
use crate::observe::{History, Observer};
use crate::scalar::{Precision, Scalar};
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::power::vectors;
use crate::solve::pagerank::{Method, Problem, Ranking, gauss_seidel, power};
use crate::source::Options;
use crate::stop::StoppingRule;
use args::PagerankArgs;
use numbers::Others;
use plan::Plan;
use report::{Facts, RankReport};
use std::sync::Arc;
use std::time::Instant;

/// What is ranked.
struct Ranked {
    links: Links,
    vertices: Ids,
    facts: Facts,
}

fn name(vertices: &Ids, vertex: usize) -> String {
    format!("vertex {}", vertices.name(vertex))
}

/// An error that names vertices, by their labels or ids.
fn by_id(vertices: &Ids, error: Error) -> Error {
    match error {
        Error::Chain(ChainError::LinkWeights { vertex, to, reason }) => {
            let (vertex, to) = (vertices.name(vertex as usize), to.map(|to| vertices.name(to as usize)));
            ChainError::NamedWeights { vertex, to, reason }.into()
        }
        other => other,
    }
}

/// What a solve leaves behind.
struct Solved {
    report: RankReport,
    /// Whether ranks, history and picture could be written, where that was asked for.
    written: Result<()>,
}

pub(super) fn run(args: &PagerankArgs) -> Result<bool> {
    let plan = Plan::resolve(args)?;
    if args.run.dry_run {
        print(&plan.describe(args)?.to_string())?;
        return Ok(true);
    }
    if let Some(why) = &plan.running.settled.device_because {
        log::info!("device: {why}");
    }
    log::info!("dangling {}: {}", plan.dangling.name(), plan.dangling.formula());
    args.run.start_pool();
    plan.running.settled.check_device()?;
    fetch::on_first_use(plan.fetch)?;
    let began = Instant::now();
    let options = Options {
        duplicates: Duplicates::Keep,
        close_gaps: true,
        columns: args.columns,
        ..Options::default()
    };
    let mut loaded = load(&args.graph, options)?;
    let mut facts = Facts::of(&loaded);
    let vertices = Ids::of(&mut loaded, 0, args.labels.as_deref())?;
    let graph = plan.kept(loaded.matrix)?;
    facts.seconds_load = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let pays = matches!(plan.running.settled.device, DeviceName::Cpu(_)) || plan.may_take_long();
    let links =
        during("sorting the links", || if pays { Links::in_best_order(graph) } else { Links::new(&graph) });
    let links = links.map_err(|error| by_id(&vertices, error))?;
    facts.seconds_setup = began.elapsed().as_secs_f64();
    let ranked = Ranked { links, vertices, facts };
    let Solved { report, written } = match (plan.method, plan.running.settled.device) {
        (Method::GaussSeidel, _) => serially(args, &plan, ranked)?,
        (_, DeviceName::Cpu(threads)) => on_device(&Cpu::new(threads)?, args, &plan, ranked)?,
        (_, DeviceName::Cuda(index)) => on_device(&Cuda::new(index)?, args, &plan, ranked)?,
    };
    let files = args.run.files(&[("ranks", args.output.as_deref())]).filter(|_| written.is_ok());
    let printed = if args.run.json { print_json(&report) } else { print(&report.in_words(files, verbose())) };
    written.and(printed)?;
    Ok(report.converged)
}

/// The one place where the precision of the vectors becomes a type.
fn on_device<D: Pick<f32> + Pick<f64>>(
    device: &D,
    args: &PagerankArgs,
    plan: &Plan,
    ranked: Ranked,
) -> Result<Solved> {
    match args.run.precision {
        Precision::F32 => by_power::<D, f32>(device, args, plan, ranked),
        Precision::F64 | Precision::Mixed => by_power::<D, f64>(device, args, plan, ranked),
    }
}

fn by_power<D: Pick<T>, T: Scalar>(
    device: &D,
    args: &PagerankArgs,
    plan: &Plan,
    mut ranked: Ranked,
) -> Result<Solved> {
    let began = Instant::now();
    let matrix: Arc<Csr> = match args.run.precision {
        Precision::F64 => Arc::clone(ranked.links.incoming()),
        Precision::F32 | Precision::Mixed => Arc::new(ranked.links.incoming().to_f32()),
    };
    let (backend, why) = during("choosing a backend", || {
        plan.running.settled.backend.settle(&matrix, size_of::<T>(), device.resident_rows())
    })?;
    if let Some(why) = &why {
        log::info!("backend {}: {why}", backend.label());
    }
    let vectors = vectors(plan.dangling, plan.teleport.is_some(), plan.method == Method::Extrapolated);
    let reserve = (vectors * matrix.rows() * size_of::<T>()) as u64;
    let operator = during(format!("building backend {}", backend.label()), || {
        backend.build::<D, T>(device, &matrix, reserve)
    })?;
    ranked.facts.seconds_setup += began.elapsed().as_secs_f64();
    ranked.facts.backend = backend.label();
    ranked.facts.backend_because = why;
    watched(device, args, plan, ranked, |problem, rule, observers| {
        power::<D, T>(device, operator, problem, plan.method == Method::Extrapolated, rule, observers)
    })
}

fn serially(args: &PagerankArgs, plan: &Plan, mut ranked: Ranked) -> Result<Solved> {
    ranked.facts.backend = "none".to_owned();
    watched(&Cpu::new(Some(1))?, args, plan, ranked, gauss_seidel)
}

/// Solves under the eyes of history and progress, writes the results, and measures the machine.
fn watched<D: Device>(
    device: &D,
    args: &PagerankArgs,
    plan: &Plan,
    mut ranked: Ranked,
    solve: impl FnOnce(&Problem<'_>, &StoppingRule, &mut [&mut dyn Observer]) -> Result<Ranking>,
) -> Result<Solved> {
    ranked.facts.device = device.describe();
    let Ranked { links, vertices, .. } = &ranked;
    let n = links.vertices();
    let teleport = plan.teleport.as_ref().map(|v| v.over(n, vertices)).transpose()?;
    let lost = !plan.dangling.conserves();
    let start = plan.start.as_ref().map(|x0| x0.over(n, vertices, Others::Share, lost)).transpose()?;
    let problem = Problem {
        links,
        damping: args.damping,
        dangling: plan.dangling,
        teleport: teleport.as_deref(),
        start: start.as_deref(),
    };
    // Until here there is nothing to lose, and Ctrl-C ends the program at once.
    let rule = plan.running.rule(args.max_iters, args.tol, plan.stagnation());
    let mut recorder = recorder(args.max_iters);
    let limits = plan.running.limits(args.max_iters);
    let mut live = Live::new("pagerank", limits, args.run.monitor, "bound on the error by the last step");
    let ranking = solve(&problem, &rule, &mut [&mut recorder, &mut live]);
    live.finish();
    let ranking = ranking?;
    let written = args.output.as_deref().map_or(Ok(()), |path| {
        if ranking.ranks.iter().any(|rank| !rank.is_finite()) {
            let reason = "the ranks are not finite".to_owned();
            return Err(Error::Unwritable { path: path.to_owned(), reason });
        }
        during(format!("writing {}", path.display()), || output::write(path, &ranking.ranks, vertices))
    });
    let mut report = RankReport::new(args, plan, &ranked, &ranking);
    report.hint = engine::hint(
        &Ended {
            reason: &ranking.reason,
            residuals: recorder.residuals(),
            goal: args.tol,
            seconds_each: report.seconds_per_iteration,
            precision: args.run.precision,
            restarts: false,
            tolerance: "tol",
            precond: None,
            resume: None,
        },
        &as_flag,
    );
    super::interrupt::hold();
    report::measure(&mut report, device, &ranking);
    let history = History::new(report.for_history(), recorder);
    let written = written.and(args.run.write_results(&history));
    Ok(Solved { report, written })
}
