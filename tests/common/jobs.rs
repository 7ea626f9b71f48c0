//! Solves that run in every [`Place`]: systems, rankings and chains by the library, and
//! commands of the program.

use super::places::{Found, Job, Kind, Place};
use super::process::{errors, mpirun, program, solver, word};
use super::ranks::over_ranks;
use serde_json::{Value, json, to_value};
use solver::device::Ranks;
use solver::engine::DeviceSettings;
use solver::engine::markov::Distributions;
use solver::engine::{
    DeviceName, Matrix, Partition, Purpose, RankChain, RankGraph, RankMatrix, Request, RightHandSide,
    RightHandSides, Settled, Solver, SystemSettings,
};
use solver::error::{Error, Result};
use solver::prelude::{Markov, Pagerank};
use solver::scalar::Precision;
use solver::solve::Method;
use solver::solve::problem::Problem;
use solver::source::read_vectors;
use std::ffi::OsStr;

/// Returns a request for several CPUs, each with one thread.
pub fn on_cpus(count: usize, request: Request) -> (Request, Settled) {
    let request = Request { device: "cpu".to_owned(), threads: Some(1), ..request };
    let settled = request.settle().unwrap();
    (request, Settled { shares: vec![DeviceName::Cpu(Some(1)); count], ..settled })
}

/// A system with a right-hand side, or several, and how it is solved.
#[derive(Clone, Copy)]
pub struct System<'a> {
    /// The name of the matrix.
    pub matrix: &'a str,
    pub rhs: &'a str,
    pub columns: usize,
    pub method: Method,
    pub precond: &'a str,
    /// The backend of ranks; one process has that of `auto`.
    pub backend: &'a str,
    pub precision: Precision,
    pub partition: &'a Partition,
    /// Threads of each CPU.
    pub threads: usize,
}

impl Default for System<'_> {
    fn default() -> Self {
        System {
            matrix: "poisson2d:40x37",
            rhs: "random:7",
            columns: 1,
            method: Method::Cg,
            precond: "none",
            backend: "auto",
            precision: Precision::F64,
            partition: &Partition::Entries,
            threads: 1,
        }
    }
}

impl System<'_> {
    pub fn purpose(&self) -> Purpose {
        Purpose {
            method: self.method,
            precond: self.precond.parse().unwrap(),
            precision: self.precision,
            assume_symmetric: false,
            partition: self.partition.clone(),
        }
    }

    /// Returns the rows of this rank of a matrix that the first rank has.
    pub fn distribute(&self, ranks: &Ranks, matrix: &Matrix) -> Result<RankMatrix> {
        RankMatrix::distribute(ranks, ranks.is_first().then_some(matrix), &self.purpose())
    }

    /// Returns the solver for the rows of a rank of CPUs.
    pub fn over(&self, rows: &RankMatrix) -> Solver {
        self.set(Solver::over_ranks(self.method, rows), "cpu", self.backend)
    }

    /// Returns the solver of one process.
    pub fn alone(&self, matrix: &Matrix) -> Solver {
        self.set(Solver::new(self.method, matrix), "cpu", "auto")
    }

    fn set(&self, solver: Solver, device: &str, backend: &str) -> Solver {
        let solver = solver.device(device).precision(self.precision).backend(backend);
        let solver = if device == "cpu" { solver.threads(self.threads) } else { solver };
        solver.precond(self.precond)
    }

    fn problem(&self, matrix: &Matrix) -> Result<Problem> {
        match self.columns {
            1 => matrix.problem(self.rhs),
            columns => matrix.problems(self.rhs, columns),
        }
    }

    fn solved(&self, solver: Solver, problem: &Problem) -> Result<(Value, Vec<f64>)> {
        Ok(match self.columns {
            1 => {
                let answer = solver.solve(RightHandSide::of(problem))?;
                (to_value(answer.report()).unwrap(), answer.x().to_vec())
            }
            _ => {
                let answers = solver.solve_many(RightHandSides::from(problem))?;
                (to_value(answers.report()).unwrap(), answers.x().to_vec())
            }
        })
    }

    /// Solves in a place. Ranks have the same report, except for times; an error is that of the first
    /// rank that fails by itself.
    pub fn try_run(&self, matrix: &Matrix, place: Place) -> Result<Found> {
        let whole = self.problem(matrix)?;
        let (report, x) = match place {
            Place::Alone => self.solved(self.alone(matrix), &whole)?,
            Place::Cpus(count) => {
                assert_eq!(self.threads, 1, "each CPU of several has one thread");
                let (precond, precision) = (self.precond.parse()?, self.precision);
                let backend = self.backend.to_owned();
                let (request, settled) =
                    on_cpus(count, Request { precond, precision, backend, ..Request::default() });
                let solver = Solver::new(self.method, matrix).settled(request, settled);
                self.solved(solver.partition(self.partition.clone()), &whole)?
            }
            Place::Gpus(_) => {
                let solver = self.set(Solver::new(self.method, matrix), &place.device(0), self.backend);
                self.solved(solver.partition(self.partition.clone()), &whole)?
            }
            Place::Ranks(size) | Place::RanksOnGpus(size) => {
                let found = over_ranks(size, |ranks| {
                    let rows = self.distribute(ranks, matrix)?;
                    let problem = rows.problem(ranks.is_first().then_some(&whole))?;
                    let device = place.device(ranks.rank());
                    let solver = self.set(Solver::over_ranks(self.method, &rows), &device, self.backend);
                    let (report, x) = self.solved(solver, &problem)?;
                    Ok((report, rows.collect(&x)?))
                });
                let all = of_all(found)?;
                for field in ["residual_true", "iterations"] {
                    assert!(all.iter().all(|(report, _)| report[field] == all[0].0[field]), "{field}");
                }
                let (report, x) = all.into_iter().next().unwrap();
                (report, x.unwrap())
            }
            Place::Processes(_) => unreachable!("a command runs in processes"),
        };
        Ok(Found { report, parts: vec![x.len()], x })
    }
}

impl Job for System<'_> {
    fn kind(&self) -> Kind {
        Kind::System
    }

    fn name(&self) -> String {
        let (method, precision) = (self.method.name(), self.precision.name());
        let columns = self.columns;
        format!(
            "{}, {method}, {}, {}, {precision}, {columns} columns",
            self.matrix, self.precond, self.backend
        )
    }

    fn run(&self, place: Place) -> Found {
        self.try_run(&Matrix::open(self.matrix).unwrap(), place).unwrap()
    }

    fn within(&self) -> Option<f64> {
        (self.precision != Precision::F64).then_some(1e-2)
    }

    fn by(&self) -> String {
        match self.partition {
            Partition::Entries => String::new(),
            partition => format!(" by {partition}"),
        }
    }

    fn is_schwarz(&self) -> bool {
        matches!(self.precond, "ic0" | "ssor")
    }
}

/// Returns the results of all ranks, or the error of the first rank that fails by itself.
pub fn of_all<T>(found: Vec<Result<T>>) -> Result<Vec<T>> {
    let (mut all, mut causes) = (Vec::new(), Vec::new());
    for outcome in found {
        match outcome {
            Ok(result) => all.push(result),
            Err(error) => causes.push(error),
        }
    }
    causes.sort_by_key(|cause| matches!(cause, Error::OtherRank { .. }));
    causes.into_iter().next().map_or(Ok(all), Err)
}

/// Returns the links of a rank.
type PartOf<'a> = &'a (dyn Fn(&Ranks) -> Result<RankGraph> + Sync);

/// A ranking of a graph.
pub struct Ranking<'a, S> {
    pub what: String,
    pub graph: &'a Matrix,
    pub precision: Precision,
    /// None if the first rank has the graph.
    pub part: Option<PartOf<'a>>,
    /// The settings, which may depend on the rank; those of other places are those of the first rank.
    pub settings: S,
    /// Whether there are several personalisations.
    pub each: bool,
}

/// Returns a ranking of a graph that the first rank has.
pub fn ranking<S: Fn(Pagerank) -> Pagerank + Sync>(
    what: impl Into<String>,
    graph: &Matrix,
    settings: S,
) -> Ranking<'_, S> {
    Ranking { what: what.into(), graph, precision: Precision::F64, part: None, settings, each: false }
}

/// Joins the rankings of all ranks: their reports, and the ranks of each personalisation.
fn joined(mut all: Vec<(Value, Vec<Vec<f64>>)>) -> Found {
    for field in ["error_bound", "top", "iterations"] {
        assert!(all.iter().all(|part| part.0[field] == all[0].0[field]), "{field}");
    }
    let (report, mut columns) = all.remove(0);
    for (_, more) in all {
        columns.iter_mut().zip(more).for_each(|(column, more)| column.extend(more));
    }
    Found { report, parts: columns.iter().map(Vec::len).collect(), x: columns.concat() }
}

impl<S: Fn(Pagerank) -> Pagerank + Sync> Ranking<'_, S> {
    fn solved(&self, pagerank: Pagerank) -> Result<(Value, Vec<Vec<f64>>)> {
        if !self.each {
            let ranks = pagerank.solve()?;
            return Ok((to_value(ranks.report()).unwrap(), vec![ranks.into_ranks()]));
        }
        let all = pagerank.solve_each()?;
        let ranks = all.columns().iter().map(|column| column.ranks().to_vec()).collect();
        Ok((to_value(all.report()).unwrap(), ranks))
    }

    pub fn try_run(&self, place: Place) -> Result<Found> {
        let set = |pagerank: Pagerank| (self.settings)(pagerank.precision(self.precision));
        let one = match place {
            Place::Alone => set(Pagerank::new(self.graph)).device("cpu").backend("auto"),
            Place::Gpus(_) => set(Pagerank::new(self.graph)).device(&place.device(0)),
            Place::Cpus(count) => {
                let request = Request { precision: self.precision, ..Request::default() };
                let (request, settled) = on_cpus(count, request);
                (self.settings)(Pagerank::new(self.graph).settled(request, settled))
            }
            Place::Ranks(size) | Place::RanksOnGpus(size) => {
                let found = over_ranks(size, |ranks| {
                    let part = match self.part {
                        Some(part) => part(ranks)?,
                        None => RankGraph::distribute(ranks, ranks.is_first().then_some(self.graph))?,
                    };
                    let pagerank = Pagerank::over_ranks(&part).device(&place.device(ranks.rank()));
                    let pagerank = if place.has_gpus() { pagerank } else { pagerank.threads(1) };
                    Ok((self.solved(set(pagerank))?, part.vertices()))
                });
                let (parts, vertices): (Vec<_>, Vec<_>) = of_all(found)?.into_iter().unzip();
                assert!(vertices.into_iter().flatten().eq(0..self.graph.rows()));
                return Ok(joined(parts));
            }
            Place::Processes(_) => unreachable!("a command runs in processes"),
        };
        Ok(joined(vec![self.solved(one)?]))
    }
}

impl<S: Fn(Pagerank) -> Pagerank + Sync> Job for Ranking<'_, S> {
    fn kind(&self) -> Kind {
        Kind::Ranking
    }

    fn name(&self) -> String {
        format!("{}, {}", self.what, self.precision.name())
    }

    fn run(&self, place: Place) -> Found {
        self.try_run(place).unwrap()
    }
}

/// A chain.
pub struct Chain<'a, S> {
    pub what: &'a str,
    pub chain: &'a Matrix,
    /// The name of the chain, if each rank reads or makes its own rows; none if the first rank has the chain.
    pub by_rows: Option<&'a OsStr>,
    pub precision: Precision,
    pub settings: S,
    /// The sum of the differences from one process, if it is not that of the table.
    pub within: Option<f64>,
}

impl<'a, S: Fn(Markov) -> Markov + Sync> Chain<'a, S> {
    pub fn of(what: &'a str, chain: &'a Matrix, settings: S) -> Self {
        Chain { what, chain, by_rows: None, precision: Precision::F64, settings, within: None }
    }

    pub fn try_run(&self, place: Place) -> Result<Found> {
        let set = |markov: Markov| (self.settings)(markov.precision(self.precision));
        let found = match place {
            Place::Alone => set(Markov::new(self.chain)).device("cpu").solve()?,
            Place::Gpus(_) => set(Markov::new(self.chain)).device(&place.device(0)).solve()?,
            Place::Cpus(count) => {
                let request = Request { precision: self.precision, ..Request::default() };
                let (request, settled) = on_cpus(count, request);
                (self.settings)(Markov::new(self.chain).settled(request, settled)).solve()?
            }
            Place::Ranks(size) | Place::RanksOnGpus(size) => {
                let found = over_ranks(size, |ranks| {
                    let whole = ranks.is_first().then_some(self.chain);
                    let chain = match self.by_rows {
                        Some(name) => RankChain::open(ranks, name)?.expect("a chain by rows"),
                        None => RankChain::distribute(ranks, whole),
                    };
                    assert_eq!(chain.is_by_rows(), self.by_rows.is_some());
                    let markov = Markov::over_ranks(&chain);
                    let markov = markov.device(&place.device(ranks.rank()));
                    set(if place.has_gpus() { markov } else { markov.threads(1) }).solve()
                });
                let all = of_all(found)?;
                let residuals = |found: &Distributions| -> Vec<u64> {
                    found.classes().iter().map(|class| class.outcome().residual.to_bits()).collect()
                };
                assert!(all.iter().all(|found| residuals(found) == residuals(&all[0])));
                all.into_iter().next().unwrap()
            }
            Place::Processes(_) => unreachable!("a command runs in processes"),
        };
        let mut report = to_value(found.report()).unwrap();
        let parts: Vec<&[f64]> = found.classes().iter().map(|class| class.probabilities()).collect();
        for (index, class) in found.classes().iter().enumerate() {
            report["classes"][index]["members"] = json!(class.states());
        }
        Ok(Found { report, parts: parts.iter().map(|part| part.len()).collect(), x: parts.concat() })
    }
}

impl<S: Fn(Markov) -> Markov + Sync> Job for Chain<'_, S> {
    fn kind(&self) -> Kind {
        Kind::Chain
    }

    fn name(&self) -> String {
        format!("{}, {}", self.what, self.precision.name())
    }

    fn run(&self, place: Place) -> Found {
        self.try_run(place).unwrap()
    }

    fn within(&self) -> Option<f64> {
        self.within
    }
}

/// A command of the program that writes its answer to a file.
pub struct Command<'a> {
    pub args: &'a [&'a str],
    /// Arguments over ranks only.
    pub over: &'a [&'a str],
    /// The ending of the name of the file.
    pub file: &'a str,
    pub within: Option<f64>,
}

impl<'a> Command<'a> {
    pub fn new(args: &'a [&'a str]) -> Command<'a> {
        Command { args, over: &[], file: "npy", within: None }
    }
}

impl Job for Command<'_> {
    fn kind(&self) -> Kind {
        match self.args[0] {
            "pagerank" => Kind::Ranking,
            "markov" => Kind::Chain,
            _ => Kind::System,
        }
    }

    fn name(&self) -> String {
        format!("{} {}, {}", self.args.join(" "), self.over.join(" "), self.file)
    }

    fn run(&self, place: Place) -> Found {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join(format!("x.{}", self.file));
        let (device, size) = (place.device(0), place.size().to_string());
        let mut command = match place {
            Place::Processes(_) => mpirun(),
            _ => solver(),
        };
        match place {
            Place::Processes(_) => command.args(["-n", &size]).arg(program()).args(self.args).args(self.over),
            _ => command.args(self.args).args(["--device", &device]),
        };
        if !place.has_gpus() {
            command.args(["--threads", "1"]);
        }
        let done = command.args(["--json", "--output", word(&output)]).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}, {place:?}: {}", self.name(), errors(&done));
        let mut report: Value = serde_json::from_slice(&done.stdout).unwrap();
        let x = read_vectors(&output).unwrap();
        report["shape"] = json!([x.rows(), x.cols()]);
        Found { report, parts: vec![x.values().len()], x: x.values().to_vec() }
    }

    fn within(&self) -> Option<f64> {
        self.within
    }

    fn by(&self) -> String {
        let partition = self.over.iter().position(|arg| *arg == "--partition").map(|at| self.over[at + 1]);
        partition.filter(|name| *name != "entries").map_or_else(String::new, |name| format!(" by {name}"))
    }
}
