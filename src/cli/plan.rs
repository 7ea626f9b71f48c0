//! What will be done: every option resolved against the registry and this machine, before the matrix is read.

use super::args::{CgArgs, Variant};
use super::every::Every;
use super::places::{Named, check_apart, check_writable};
use super::vectors::{FromFile, RightHandSide, writer};
use crate::backend::{Choice, Host, REGISTRY};
use crate::device::{Cpu, Cuda, cuda};
use crate::error::{Error, Result};
use crate::observe::history::Layout;
use crate::plot::Format;
use crate::precond::Preconditioner;
use crate::scalar::Precision;
use crate::solve::Method;
use crate::solve::checkpoint::{self, Checkpoints, Saved};
use crate::source::{self, catalog::Entry};
use crate::stop::StoppingRule;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a solve runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// The CPU, with so many threads or as many as there are cores.
    Cpu(Option<usize>),
    /// The GPU with this index.
    Cuda(usize),
}

/// A solve, ready to run.
pub struct Plan {
    /// The method.
    pub method: Method,
    /// The matrix as named.
    pub matrix: String,
    /// The right-hand side.
    pub rhs: RightHandSide,
    /// Where to start.
    pub x0: Option<FromFile>,
    /// Whether a symmetric file is read as the triangle that it stores.
    pub as_stored: bool,
    /// The entry of the catalog that must be fetched first.
    pub fetch: Option<&'static Entry>,
    /// The device.
    pub place: Place,
    /// Why this device, if nobody asked for it.
    pub why: Option<String>,
    /// The backend.
    pub backend: Choice,
    /// The precision.
    pub precision: Precision,
    /// The preconditioner.
    pub precond: Preconditioner,
    /// The tolerances on the residual; the first met counts.
    pub tolerances: Vec<StoppingRule>,
    /// The iteration limit; by default it depends on the matrix.
    pub max_iters: Option<usize>,
    /// The time limit.
    pub time_limit: Option<Duration>,
    /// Whether the symmetry check is skipped.
    pub assume_symmetric: bool,
    /// Where the solve is saved, and what it goes on from.
    pub checkpoints: Checkpoints,
    /// Where the solution goes.
    pub output: Option<PathBuf>,
    /// Where the history goes.
    pub history: Option<PathBuf>,
    /// Where the picture goes.
    pub plot: Option<PathBuf>,
}

/// More threads than any machine has cores for is a slip of the keyboard.
const MOST_THREADS: usize = 1024;

fn bad(option: &'static str, value: impl ToString, reason: impl Into<String>) -> Error {
    Error::BadOption { option, value: value.to_string(), reason: reason.into() }
}

/// Reads the configuration file that was named, under what was typed.
pub fn with_config(typed: CgArgs) -> Result<CgArgs> {
    let Some(path) = typed.config.clone() else { return Ok(typed) };
    let text = std::fs::read_to_string(&path).map_err(|source| Error::Io {
        action: "read",
        path: path.clone(),
        source,
    })?;
    let file: CgArgs = toml::from_str(&text).map_err(|e| Error::Config { path, message: e.to_string() })?;
    Ok(typed.over(file))
}

impl Plan {
    /// Resolves options; asks the machine for a GPU where that matters, reads the vectors that are named, and opens
    /// nothing else.
    pub fn resolve(args: CgArgs, minres: bool) -> Result<Plan> {
        let method = match (minres, args.variant) {
            (false, None | Some(Variant::Classic)) => Method::Cg,
            (false, Some(Variant::Pipelined)) => Method::PipelinedCg,
            (true, None) => Method::Minres,
            (true, Some(_)) => {
                return Err(bad("--variant", "", "minres has one form only; leave the option out"));
            }
        };
        let matrix = args.matrix.clone().ok_or_else(|| {
            let what = "a matrix is needed: a file, a name or a generator (solver matrices lists both)";
            bad("--matrix", "", format!("{what}, for example --matrix poisson2d:1000x1000"))
        })?;
        let typed = args.backend.as_deref().unwrap_or("auto");
        let precision = args.precision.unwrap_or(Precision::F64);
        let tolerances = tolerances(&args, precision)?;
        let time_limit = args.time_limit.map(Duration::try_from_secs_f64).transpose();
        let time_limit =
            time_limit.map_err(|e| bad("--time-limit", args.time_limit.unwrap_or(0.0), e.to_string()))?;
        check_threads(args.threads)?;
        check_files(&args, &matrix)?;
        let checkpoints = checkpoints(&args)?;
        args.plot.as_deref().map(Format::of).transpose()?;
        args.history.as_deref().map(Layout::of).transpose()?;
        args.output.as_deref().map(writer).transpose()?;
        let (place, why) = place(
            args.device.as_deref().unwrap_or("auto"),
            typed,
            args.precond.unwrap_or_default(),
            args.threads,
        )?;
        let backend = match place {
            Place::Cpu(_) => Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, typed)?,
            Place::Cuda(_) => Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, typed)?,
        };
        backend.check_precision(precision)?;
        let rhs = args.rhs.as_deref().map(RightHandSide::resolve).transpose()?.unwrap_or_default();
        let x0 = args.x0.as_deref().map(|path| FromFile::read("--x0", path)).transpose()?;
        let fetch = super::fetch::missing(&matrix, args.fetch.unwrap_or(false), !args.dry_run)?;
        Ok(Plan {
            method,
            matrix,
            rhs,
            x0,
            as_stored: args.as_stored.unwrap_or(false),
            fetch,
            place,
            why,
            backend,
            precision,
            precond: args.precond.unwrap_or_default(),
            tolerances,
            max_iters: args.max_iters,
            time_limit,
            assume_symmetric: args.assume_symmetric.unwrap_or(false),
            checkpoints,
            output: args.output,
            history: args.history,
            plot: args.plot,
        })
    }

    /// The iteration limit for a matrix of `rows` rows.
    pub fn max_iters(&self, rows: usize) -> usize {
        self.max_iters.unwrap_or_else(|| rows.saturating_mul(10).clamp(1000, 100_000))
    }

    /// What is said after the name of a matrix that only imitates another.
    fn stand_in(&self) -> String {
        let real = source::imitated(&self.matrix);
        real.map_or(String::new(), |real| format!(", a stand-in for {}", real.name))
    }

    /// The plan in words, a line for each decision.
    pub fn describe(&self) -> Result<String> {
        let place = match self.place {
            Place::Cpu(None) => "cpu, a thread for each core".to_owned(),
            Place::Cpu(Some(threads)) => format!("cpu, threads: {threads}"),
            Place::Cuda(index) => format!("cuda:{index}"),
        };
        let mut lines = vec![
            ("solver", self.method.name().to_owned()),
            ("matrix", format!("{}{}", self.matrix, self.stand_in())),
            ("rhs", self.rhs.to_string()),
            ("device", place),
            ("backend", format!("{} ({})", self.backend.label(), self.backend.entry.summary)),
            ("precision", self.precision.name().to_owned()),
            ("preconditioner", self.precond.to_string()),
            ("max-iters", self.max_iters.map_or("10 a row, 1000 to 100000".to_owned(), |n| n.to_string())),
        ];
        if let Some(x0) = &self.x0 {
            lines.push(("x0", x0.to_string()));
        }
        if let Some(entry) = self.fetch {
            lines.push(("fetch", entry.url(super::fetch::default_mirror().as_deref())));
        }
        for tolerance in &self.tolerances {
            lines.extend(match tolerance {
                StoppingRule::RelativeResidual(t) => Some(("rtol", format!("{t:e}"))),
                StoppingRule::InitialResidual(t) => Some(("rtol-initial", format!("{t:e}"))),
                StoppingRule::AbsoluteResidual(t) => Some(("atol", format!("{t:e}"))),
                _ => None,
            });
        }
        if let Some(why) = &self.why {
            lines.push(("because", why.clone()));
        }
        if let Some(limit) = self.time_limit {
            lines.push(("time-limit", format!("{} s", limit.as_secs_f64())));
        }
        if let Ok(file) = std::fs::metadata(&self.matrix) {
            lines.push(("file", format!("{:.1} MB", file.len() as f64 / 1e6)));
        }
        if let Some((file, every)) = &self.checkpoints.save {
            lines.push(("checkpoint", format!("{}, every {}", file.display(), Every(*every))));
        }
        if let Some(file) = &self.checkpoints.resume {
            lines.push(("resume", file.display().to_string()));
        }
        for (name, file) in [("output", &self.output), ("history", &self.history), ("plot", &self.plot)] {
            if let Some(file) = file {
                lines.push((name, file.display().to_string()));
            }
        }
        lines.push(("memory", super::memory::describe(self)?));
        Ok(lines.iter().map(|(name, value)| format!("{name:<15} {value}\n")).collect())
    }
}

/// What was typed of checkpoints. A file that cannot be gone on from is better known before the matrix is read.
fn checkpoints(args: &CgArgs) -> Result<Checkpoints> {
    if let Some(every) = args.every.filter(|_| args.checkpoint.is_none()) {
        return Err(bad("--every", every, "nothing is saved without --checkpoint FILE"));
    }
    if let Some(path) = &args.checkpoint {
        checkpoint::check_place(path).map_err(|reason| bad("--checkpoint", path.display(), reason))?;
    }
    if let Some(path) = &args.resume {
        Saved::read(path)?;
    }
    let every = args.every.unwrap_or_default().0;
    let save = args.checkpoint.clone().map(|path| (path, every));
    Ok(Checkpoints { save, resume: args.resume.clone(), labels: Vec::new() })
}

/// The tolerances that were typed; without any, the default of the precision relative to the right-hand side.
fn tolerances(args: &CgArgs, precision: Precision) -> Result<Vec<StoppingRule>> {
    let relative = |option, tolerance: f64| match tolerance > 0.0 && tolerance < 1.0 {
        true => Ok(tolerance),
        false => Err(bad(option, tolerance, "it must lie between 0 and 1")),
    };
    let mut rules = Vec::new();
    if let Some(rtol) = args.rtol {
        rules.push(StoppingRule::RelativeResidual(relative("--rtol", rtol)?));
    }
    if let Some(rtol) = args.rtol_initial {
        rules.push(StoppingRule::InitialResidual(relative("--rtol-initial", rtol)?));
    }
    if let Some(atol) = args.atol {
        if !(atol > 0.0 && atol.is_finite()) {
            return Err(bad("--atol", atol, "it must be a positive number"));
        }
        rules.push(StoppingRule::AbsoluteResidual(atol));
    }
    if rules.is_empty() {
        let default = if precision == Precision::F32 { 1e-5 } else { 1e-8 };
        rules.push(StoppingRule::RelativeResidual(default));
    }
    Ok(rules)
}

/// Refuses numbers of threads that make no sense.
pub fn check_threads(threads: Option<usize>) -> Result<()> {
    match threads.filter(|threads| !(1..=MOST_THREADS).contains(threads)) {
        Some(threads) => Err(bad("--threads", threads, format!("it must lie between 1 and {MOST_THREADS}"))),
        None => Ok(()),
    }
}

/// Every file that is written can be, and is none that is read or written otherwise.
fn check_files(args: &CgArgs, matrix: &str) -> Result<()> {
    let outputs = [
        ("--output", &args.output),
        ("--history", &args.history),
        ("--plot", &args.plot),
        ("--checkpoint", &args.checkpoint),
    ];
    let inputs = [
        ("--matrix", Some(Path::new(matrix)).filter(|path| path.is_file())),
        ("--rhs", args.rhs.as_deref().and_then(RightHandSide::file)),
        ("--x0", args.x0.as_deref()),
        ("--resume", args.resume.as_deref()),
        ("--config", args.config.as_deref()),
    ];
    let outputs: Vec<Named<'_>> =
        outputs.into_iter().filter_map(|(o, file)| Some((o, file.as_deref()?))).collect();
    let inputs: Vec<Named<'_>> = inputs.into_iter().filter_map(|(o, file)| Some((o, file?))).collect();
    check_apart(&inputs, &outputs)?;
    outputs.into_iter().try_for_each(check_writable)
}

/// The device that was asked for, or the best there is for this backend, with the reason for the choice.
pub fn place(
    device: &str,
    backend: &str,
    precond: Preconditioner,
    threads: Option<usize>,
) -> Result<(Place, Option<String>)> {
    match device {
        "cpu" => return Ok((Place::Cpu(threads), None)),
        "cuda" => return Ok((Place::Cuda(0), None)),
        "auto" => {}
        other => {
            let index = other.strip_prefix("cuda:").and_then(|n| n.parse().ok());
            let index =
                index.ok_or_else(|| bad("--device", other, "the devices are auto, cpu, cuda and cuda:N"))?;
            return Ok((Place::Cuda(index), None));
        }
    }
    let name = backend.split(':').next().unwrap_or_default();
    let kinds: Vec<_> = REGISTRY.iter().filter(|e| e.name == name).map(|e| e.device()).collect();
    match kinds[..] {
        // A backend asked for by name runs where it exists, or fails there.
        ["cpu"] => Ok((Place::Cpu(threads), Some(format!("{name} is a backend of the cpu")))),
        ["cuda"] => Ok((Place::Cuda(0), Some(format!("{name} is a backend of cuda")))),
        _ if precond.needs_cpu() => {
            Ok((Place::Cpu(threads), Some(format!("{} runs on the CPU only so far", precond.name()))))
        }
        _ => Ok(match cuda::usable() {
            Ok(()) => (Place::Cuda(0), Some("there is a GPU, and all that it needs".to_owned())),
            Err(e) => {
                if cuda::count().is_ok_and(|count| count > 0) {
                    log::warn!("running on the CPU although there is a GPU: {e}");
                }
                (Place::Cpu(threads), Some(format!("no GPU can be used: {e}")))
            }
        }),
    }
}
