//! What solves of graphs and chains have in common on the command line: where they run, for how long, and what they
//! leave behind.

use super::interrupt;
use super::places::{Named, check_apart, check_writable};
pub(super) use super::plan::Place;
use super::plan::{check_threads, place};
use crate::backend::{Choice, Host};
use crate::device::{Cpu, Cuda};
use crate::error::{Error, Result};
use crate::observe::history::Layout;
use crate::observe::{History, Recorder, Report};
use crate::plot::Format;
use crate::scalar::Precision;
use crate::solve::rounding::sum;
use crate::stop::{StopReason, StoppingRule};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of every such solve.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Stop after so many iterations
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub max_iters: usize,
    /// Stop after so many seconds of iterating
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<f64>,
    /// How the matrix is multiplied; parameters ride on the name [default: auto; see solver backends]
    #[arg(long, value_name = "NAME", default_value = "auto", hide_default_value = true)]
    pub backend: String,
    /// Where to run: auto, cpu, cuda or cuda:N [default: auto, a GPU if there is one]
    #[arg(long, value_name = "DEVICE", default_value = "auto", hide_default_value = true)]
    pub device: String,
    /// Vectors and matrix in f64, in f32, or mixed: matrix f32, vectors f64
    #[arg(long, value_enum, default_value = "f64")]
    pub precision: Precision,
    /// Threads on the CPU, 1 to 1024 [default: the cores this process may use]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Download what is named first if it is of the catalog and not here yet
    #[arg(long)]
    pub fetch: bool,
    /// Write report and history here: .json, of which solver plot draws, or .csv
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Draw the convergence here: .svg or .png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Print the report as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Where and how it runs.
pub(super) struct Running {
    pub place: Place,
    /// Why there, if nobody asked for it.
    pub why: Option<String>,
    pub backend: Choice,
    pub time_limit: Option<Duration>,
}

pub(super) fn bad(option: &'static str, value: impl ToString, reason: impl Into<String>) -> Error {
    Error::BadOption { option, value: value.to_string(), reason: reason.into() }
}

/// The reason as a sentence in the words of these solves.
pub(super) fn message(reason: &StopReason) -> String {
    match reason {
        StopReason::Stagnated { iteration, window } => format!(
            "not converged: stagnated, nothing has fallen by 1 % in the {window} iterations before iteration {iteration}; \
             ask for a larger --tol or a higher --precision"
        ),
        StopReason::NotFinite { iteration, .. } => format!(
            "not converged: NaN or infinity appeared in iteration {iteration}; weights or vectors leave the range of the \
             precision"
        ),
        other => other.to_string(),
    }
}

/// Numbers that are not negative, divided by their sum; a sum below 1 may stay where something is lost by intent.
/// `name` is what the entry at a place is called.
pub(super) fn distribution(
    option: &'static str,
    values: &[f64],
    lost: bool,
    name: impl Fn(usize) -> String,
) -> Result<Vec<f64>> {
    if let Some(at) = values.iter().position(|v| !(*v >= 0.0 && v.is_finite())) {
        let reason =
            format!("the number of {} is {}, and must be finite and not negative", name(at), values[at]);
        return Err(bad(option, "the file", reason));
    }
    let total = sum(values.iter().copied());
    if !total.is_normal() && !values.is_empty() {
        return Err(bad(option, "the file", format!("its numbers sum to {total}")));
    }
    let by = if lost && total <= 1.0 { 1.0 } else { total };
    Ok(values.iter().map(|v| v / by).collect())
}

/// Those of the options that name a file.
fn given<'a>(all: &[(&'static str, Option<&'a Path>)]) -> Vec<Named<'a>> {
    all.iter().filter_map(|(option, file)| Some((*option, (*file)?))).collect()
}

/// The file that was typed, if it is one.
pub(super) fn file(typed: &str) -> Option<&Path> {
    Some(Path::new(typed)).filter(|path| path.is_file())
}

impl RunArgs {
    /// Resolves options without opening anything. A method that runs in f64 on one thread of the CPU says so by its name.
    pub fn resolve(&self, serial: Option<&str>) -> Result<Running> {
        check_threads(self.threads)?;
        self.plot.as_deref().map(Format::of).transpose()?;
        self.history.as_deref().map(Layout::of).transpose()?;
        let time_limit = self.time_limit.map(Duration::try_from_secs_f64).transpose();
        let time_limit =
            time_limit.map_err(|e| bad("--time-limit", self.time_limit.unwrap_or(0.0), e.to_string()))?;
        let (place, why) = match serial {
            None => place(&self.device, &self.backend, Default::default(), self.threads)?,
            Some(method) => {
                self.check_serial(method)?;
                (Place::Cpu(Some(1)), Some(format!("{method} runs on one thread of the CPU")))
            }
        };
        let backend = match place {
            Place::Cpu(_) => Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, &self.backend)?,
            Place::Cuda(_) => Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, &self.backend)?,
        };
        backend.check_precision(self.precision)?;
        Ok(Running { place, why, backend, time_limit })
    }

    /// What has no choice of devices, backends and precisions is not given one.
    fn check_serial(&self, method: &str) -> Result<()> {
        let why = format!("{method} runs in f64 on one thread of the CPU, and needs no backend");
        if !matches!(self.device.as_str(), "auto" | "cpu") {
            return Err(bad("--device", &self.device, why));
        }
        if self.backend != "auto" {
            return Err(bad("--backend", &self.backend, why));
        }
        if self.precision != Precision::F64 {
            return Err(bad("--precision", self.precision.name(), why));
        }
        Ok(())
    }

    /// Every file that is written can be, and is none that is read or written otherwise.
    pub fn check_files(&self, inputs: &[(&'static str, Option<&Path>)], output: Option<&Path>) -> Result<()> {
        let outputs =
            [("--output", output), ("--history", self.history.as_deref()), ("--plot", self.plot.as_deref())];
        let (inputs, outputs) = (given(inputs), given(&outputs));
        check_apart(&inputs, &outputs)?;
        outputs.into_iter().try_for_each(check_writable)
    }

    /// Reading and checking obey the same limit as solving.
    pub fn limit_threads(&self) -> Result<()> {
        let Some(threads) = self.threads else { return Ok(()) };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        pool.map_err(|e| Error::Threads { threads, reason: e.to_string() })
    }

    /// When to stop, Ctrl-C included: from now on it ends the solve, and no longer the program.
    pub fn rule(&self, running: &Running, tolerance: f64, stagnation: usize) -> StoppingRule {
        let mut rules = vec![
            StoppingRule::AbsoluteResidual(tolerance),
            StoppingRule::MaxIterations(self.max_iters),
            StoppingRule::Stagnation(stagnation),
            StoppingRule::Interrupt(interrupt::catch()),
        ];
        rules.extend(running.time_limit.map(StoppingRule::TimeLimit));
        StoppingRule::any(rules)
    }

    /// Room for a history of the longest solve.
    pub fn recorder(&self) -> Recorder {
        Recorder::with_capacity(self.max_iters.min(1 << 16))
    }

    /// History and picture, each where it was asked for. What cannot be written keeps nothing else from it; the first
    /// fault is the error, and that of the answer comes before both.
    pub fn write_results(&self, report: Report, recorder: Recorder, written: Result<()>) -> Result<()> {
        let history = History::new(report, recorder);
        let saved = self.history.as_deref().map_or(Ok(()), |path| history.save(path));
        let drawn = self.plot.as_deref().map_or(Ok(()), |path| crate::plot::convergence(&[history], path));
        written.and(saved).and(drawn)
    }
}
