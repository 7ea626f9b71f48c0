//! `solver markov`: the stationary distribution of a chain, or one for each class that it cannot leave.

use super::dry::Decisions;
use super::ids::Ids;
use super::load::load;
use super::memory;
use super::pagerank::by_rank;
use super::progress::{Live, during};
use super::running::{Running, bad, distribution, file, recorder};
use super::summary::verbose;
use super::vectors::FromFile;
use super::{fetch, print, print_json};
use crate::backend::Pick;
use crate::device::{Cpu, Cuda, Device};
use crate::engine::{DeviceName, Moved};
use crate::error::{ChainError, Error, Result};
use crate::format::{Csr, Dense};
use crate::observe::{History, Observer, Recorder, write_file_with};
use crate::parallel::zeros;
use crate::precond::Preconditioner;
use crate::scalar::{Precision, Scalar};
use crate::solve::markov::chain::{Chain, Closed};
use crate::solve::markov::power::VECTORS;
use crate::solve::markov::{Method, Problem, Stationary, power, serial};
use crate::solve::rounding::sum;
use crate::source::catalog::Entry;
use crate::source::fields::quoted;
use crate::source::{Options, npy};
use crate::stop::StoppingRule;
use args::{Classes, MarkovArgs, MethodName};
use report::MarkovReport;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub(super) mod args;
mod report;

/// What a solve of one class leaves behind.
struct Solved {
    stationary: Stationary,
    recorder: Recorder,
    device: String,
    backend: String,
    backend_because: Option<String>,
}

pub(super) fn run(args: &MarkovArgs) -> Result<bool> {
    let method = match args.method {
        MethodName::Power => Method::Power,
        MethodName::GaussSeidel => Method::GaussSeidel,
        MethodName::Aggregation => Method::Aggregation,
    };
    if !(args.tol > 0.0 && args.tol < 2.0) {
        return Err(bad("--tol", args.tol, "it must lie between 0 and 2, the largest residual there is"));
    }
    args.run.check_files(
        &[
            ("--matrix", file(&args.matrix)),
            ("--labels", args.labels.as_deref()),
            ("--x0", args.x0.as_deref()),
        ],
        &[("--output", args.output.as_deref())],
    )?;
    args.output.as_deref().map(writer).transpose()?;
    let running =
        args.run.resolve((method != Method::Power).then_some(method.name()), Preconditioner::None)?;
    let start = args.x0.as_deref().map(|path| FromFile::read("--x0", path)).transpose()?;
    let missing = fetch::missing(&args.matrix)?;
    if args.run.dry_run {
        print(&describe(args, method, &running, missing)?.to_string())?;
        return Ok(true);
    }
    if let Some(why) = &running.settled.device_because {
        log::info!("device: {why}");
    }
    args.run.start_pool();
    running.settled.check_device()?;
    fetch::on_first_use(missing)?;
    let began = Instant::now();
    let options = Options { close_gaps: true, columns: args.columns, ..Options::default() };
    let mut loaded = load(&args.matrix, options)?;
    let seconds_load = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let graph = loaded.first_id.is_some() || loaded.labels.is_some() || args.labels.is_some();
    let ids = Ids::of(&mut loaded, 1, args.labels.as_deref())?;
    let notes = std::mem::take(&mut loaded.notes);
    let chain = during("finding the classes", || Chain::new(loaded.matrix, args.normalize));
    let chain = chain.map_err(|error| if graph { by_id(&ids, error) } else { error })?;
    let seconds_chain = began.elapsed().as_secs_f64();
    if chain.closed().len() > 1 && args.classes == Classes::Refuse {
        return Err(ChainError::Reducible { classes: chain.closed().len() }.into());
    }
    let states = chain.steps().rows();
    let name = |row| format!("state {}", ids.name(row));
    let start = start.as_ref().map(|x0| distribution("--x0", x0, x0.values(states)?, false, name));
    let start = start.transpose()?;
    let rule = running.rule(args.max_iters, args.tol, STAGNATION);
    let report =
        MarkovReport { notes, ..MarkovReport::new(args, method, &chain, seconds_load, seconds_chain) };
    let task =
        Task { args, method, running: &running, chain: &chain, ids: &ids, start: start.as_deref(), rule };
    let Found { report, written } = match running.settled.device {
        DeviceName::Cpu(threads) => each_class(&Cpu::new(threads)?, &task, report)?,
        DeviceName::Cuda(index) => each_class(&Cuda::new(index)?, &task, report)?,
    };
    let files = args.run.files(&[("distribution", args.output.as_deref())]).filter(|_| written.is_ok());
    let printed = if args.run.json { print_json(&report) } else { print(&report.in_words(files, verbose())) };
    written.and(printed)?;
    Ok(report.converged)
}

/// The plan in words, a line for each decision.
fn describe(
    args: &MarkovArgs,
    method: Method,
    running: &Running,
    fetch: Option<&'static Entry>,
) -> Result<Decisions> {
    let mut plan = Decisions::default();
    plan.add("solver", "markov");
    plan.source("matrix", &args.matrix, fetch);
    plan.add("method", method.name());
    plan.add("rows", if args.normalize { "divided by their sums" } else { "must sum to 1" });
    plan.add("classes", if args.classes == Classes::Each { "each" } else { "refuse several" });
    plan.add_if("x0", args.x0.as_ref().map(|path| path.display()));
    plan.add("tol", format!("{:e}, of ||pi P - pi||", args.tol));
    plan.running(&args.run, running, args.max_iters);
    plan.outputs(&args.run, args.output.as_deref());
    plan.add("memory", memory::at_least(&args.matrix, args.columns, 1, "the chain")?);
    Ok(plan)
}

/// An error about a row of a graph, whose vertices have ids.
fn by_id(ids: &Ids, error: Error) -> Error {
    let of = |row: usize, to: Option<usize>, reason: String| {
        ChainError::NamedWeights { vertex: ids.name(row), to: to.map(|to| ids.name(to)), reason }.into()
    };
    match error {
        Error::Chain(ChainError::RowSum { row, sum }) => {
            let hint = "--normalize divides each by the sum, where that is not 0";
            of(row, None, format!("their weights sum to {sum}, and must sum to 1; {hint}"))
        }
        Error::Chain(ChainError::Probability { row, col, value }) => {
            of(row, Some(col), format!("its weight is {value}, and must not be negative"))
        }
        other => other,
    }
}

/// Iterations without progress that count as the end of it: slow chains gain little in each.
const STAGNATION: usize = 2000;

/// What is solved, and how.
struct Task<'a> {
    args: &'a MarkovArgs,
    method: Method,
    running: &'a Running,
    chain: &'a Chain,
    ids: &'a Ids,
    start: Option<&'a [f64]>,
    rule: StoppingRule,
}

/// What the solves of all classes leave behind.
struct Found {
    report: MarkovReport,
    /// Whether distributions, history and picture could be written, where that was asked for.
    written: Result<()>,
}

/// Finds the distributions of all classes, writes the results, and measures the machine.
fn each_class<D: Pick<f32> + Pick<f64>>(
    device: &D,
    task: &Task<'_>,
    mut report: MarkovReport,
) -> Result<Found> {
    let (args, chain) = (task.args, task.chain);
    let mut all = Vec::new();
    let mut history: Option<History> = None;
    // What was moved for the class whose speed is reported, and for that of the history.
    let (mut told, mut drawn) = (Moved::default(), Moved::default());
    for class in chain.closed() {
        let solved = solve_class(device, task, class)?;
        let (residual, moved) = (solved.stationary.residual, report::moved(&solved.stationary));
        if report.take_in(args, task.ids, class, &solved) {
            told = moved;
        }
        if history.as_ref().is_none_or(|worst| residual.total_cmp(&worst.report.residual_true).is_gt()) {
            history = Some(History::new(report.for_history(args, &solved), solved.recorder));
            drawn = moved;
        }
        all.push(solved.stationary.probabilities);
    }
    report.conclude();
    let written = args.output.as_deref().map_or(Ok(()), |path| {
        writer(path)?(path, task.ids, chain.steps().rows(), chain.closed(), &all)?;
        log::info!("distribution written to {}", path.display());
        Ok(())
    });
    super::interrupt::hold();
    report.percent_of_limit = report::percent_of_limit(device, &told);
    if let Some(history) = &mut history {
        history.report.percent_of_limit = match drawn == told {
            true => report.percent_of_limit,
            false => report::percent_of_limit(device, &drawn),
        };
    }
    let written = written.and(history.as_ref().map_or(Ok(()), |history| args.run.write_results(history)));
    Ok(Found { report, written })
}

/// The distribution of one class.
fn solve_class<D: Pick<f32> + Pick<f64>>(device: &D, task: &Task<'_>, class: &Closed) -> Result<Solved> {
    let incoming = task.chain.within(class)?;
    // The start within the class; where it has nothing there, all states alike.
    let start = task.start.and_then(|start| {
        let within = || class.states.iter().map(|&state| start[state as usize]);
        let total = sum(within());
        total.is_normal().then(|| within().map(|p| p / total).collect::<Vec<f64>>())
    });
    let problem = Problem { incoming: &incoming, period: class.period, start: start.as_deref() };
    let mut recorder = recorder(task.args.max_iters);
    let limits = task.running.limits(task.args.max_iters);
    let mut live = Live::new("markov", limits, task.args.run.monitor, "||pi P - pi|| by the last step");
    let observers: &mut [&mut dyn Observer] = &mut [&mut recorder, &mut live];
    let solved = match task.method {
        Method::Power => on_device(device, task, &incoming, &problem, observers),
        method => serial(&problem, method == Method::Aggregation, &task.rule, observers)
            .map(|stationary| found(device, stationary, "none".to_owned(), None)),
    };
    live.finish();
    Ok(Solved { recorder, ..solved? })
}

fn found<D: Device>(device: &D, stationary: Stationary, backend: String, because: Option<String>) -> Solved {
    Solved {
        stationary,
        recorder: Recorder::default(),
        device: device.describe(),
        backend,
        backend_because: because,
    }
}

/// The one place where the precision of the vectors becomes a type.
fn on_device<D: Pick<f32> + Pick<f64>>(
    device: &D,
    task: &Task<'_>,
    incoming: &Arc<Csr>,
    problem: &Problem<'_>,
    observers: &mut [&mut dyn Observer],
) -> Result<Solved> {
    let narrow = || Arc::new(incoming.to_f32());
    match task.args.run.precision {
        Precision::F64 => by_power::<D, f64>(device, task, incoming, problem, observers),
        Precision::Mixed => by_power::<D, f64>(device, task, &narrow(), problem, observers),
        Precision::F32 => by_power::<D, f32>(device, task, &narrow(), problem, observers),
    }
}

fn by_power<D: Pick<T>, T: Scalar>(
    device: &D,
    task: &Task<'_>,
    matrix: &Arc<Csr>,
    problem: &Problem<'_>,
    observers: &mut [&mut dyn Observer],
) -> Result<Solved> {
    let began = Instant::now();
    let (backend, why) = during("choosing a backend", || {
        task.running.settled.backend.settle(matrix, size_of::<T>(), device.resident_rows())
    })?;
    if let Some(why) = &why {
        log::info!("backend {}: {why}", backend.label());
    }
    let vectors = (VECTORS * matrix.rows() * size_of::<T>()) as u64;
    let operator = backend.build::<D, T>(device, matrix, vectors)?;
    let before = began.elapsed().as_secs_f64();
    let mut stationary = power::<D, T>(device, operator, problem, &task.rule, observers)?;
    stationary.seconds_setup += before;
    Ok(found(device, stationary, backend.label(), why))
}

type Writer = fn(&Path, &Ids, usize, &[Closed], &[Vec<f64>]) -> Result<()>;

/// The endings of files of distributions, and who writes them.
const WRITERS: &[(&str, Writer)] = &[(".npy", write_columns), (".csv", write_table)];

fn writer(path: &Path) -> Result<Writer> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let found = WRITERS.iter().find(|(ending, _)| name.ends_with(ending));
    found.map(|(_, write)| *write).ok_or_else(|| {
        let endings: Vec<_> = WRITERS.iter().map(|(ending, _)| *ending).collect();
        bad("--output", path.display(), format!("its ending must be one of {}", endings.join(", ")))
    })
}

/// A probability for every state, 0 outside of the class.
fn spread(states: usize, class: &Closed, probabilities: &[f64]) -> Result<Vec<f64>> {
    let mut all = zeros(states)?;
    class.states.iter().zip(probabilities).for_each(|(&state, &p)| all[state as usize] = p);
    Ok(all)
}

fn write_columns(path: &Path, _: &Ids, states: usize, classes: &[Closed], all: &[Vec<f64>]) -> Result<()> {
    let columns = classes.iter().zip(all).map(|(class, p)| spread(states, class, p));
    let columns: Vec<Vec<f64>> = columns.collect::<Result<_>>()?;
    npy::write(path, &Dense::from_columns(states, &columns)?)
}

/// The states that are returned to, by class and falling probability.
fn write_table(path: &Path, ids: &Ids, _: usize, classes: &[Closed], all: &[Vec<f64>]) -> Result<()> {
    write_file_with(path, |out| {
        let (labels, numbers) = (ids.has_labels(), ids.has_ids());
        let first = if numbers { "state" } else { "label" };
        writeln!(out, "{first},probability,class{}", if labels && numbers { ",label" } else { "" })?;
        for (number, (class, probabilities)) in classes.iter().zip(all).enumerate() {
            for place in by_rank(probabilities) {
                let (state, p) = (class.states[place] as usize, probabilities[place]);
                let label = quoted(ids.label(state).unwrap_or_default());
                match ids.id(state) {
                    None => write!(out, "{label},{p:e},{}", number + 1)?,
                    Some(id) => write!(out, "{id},{p:e},{}", number + 1)?,
                }
                writeln!(out, "{}", if labels && numbers { format!(",{label}") } else { String::new() })?;
            }
        }
        Ok(())
    })
}
