//! What all solves have in common on the command line: where they run, for how long, and what they leave behind.

pub(super) use super::flags::bad;
use super::places::{Named, check_apart, check_writable};
use super::progress::Limits;
use super::summary::{Line, files};
use crate::engine::{Request, Settled};
use crate::error::Result;
use crate::observe::History;
use crate::observe::history::Layout;
use crate::parallel::start_pool;
use crate::plot::{Captions, Format};
use crate::precond::Preconditioner;
use crate::scalar::Precision;
use clap::Args;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of every solve.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// How the matrix is multiplied; parameters ride on the name, as in vector:threads=8 [default: auto; see solver backends]
    #[arg(long, value_name = "NAME", value_parser = super::backends::Typed, hide_possible_values = true)]
    #[arg(default_value = "auto", hide_default_value = true)]
    pub backend: String,
    /// Where to run: auto, cpu, cuda or cuda:N [default: auto, a GPU if there is one]
    #[arg(long, value_name = "DEVICE", default_value = "auto", hide_default_value = true)]
    pub device: String,
    /// Matrix and vectors in f64, in f32, or mixed: matrix f32, vectors f64
    #[arg(long, value_enum, default_value = "f64")]
    pub precision: Precision,
    /// Threads on the CPU, 1 to 1024 [default: the cores this process may use]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Stop when the iterations have taken this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<f64>,
    /// Kept for scripts: a matrix of the catalog is fetched without it
    #[arg(long, hide = true)]
    pub fetch: bool,
    /// Write report and history here: .json, of which solver plot draws, or .csv
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Draw the convergence here: .svg or .png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// The title of the plot [default: method, matrix, backend, precision and device]
    #[arg(long, value_name = "TEXT", requires = "plot")]
    pub title: Option<String>,
    /// Print every N-th residual and the last on stderr, also where that is no terminal
    #[arg(long, value_name = "N")]
    pub monitor: Option<usize>,
    /// Print the report as JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Read options from a TOML file, as key = value with the names of the options here; what is typed wins
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print what would be done, and stop
    #[arg(long)]
    pub dry_run: bool,
}

/// Where and how it runs.
pub(super) struct Running {
    pub request: Request,
    pub settled: Settled,
    /// Whether the method needs no backend, and runs on one thread.
    pub serial: bool,
    pub time_limit: Option<Duration>,
}

impl Running {
    /// What ends a solve that does not converge.
    pub fn limits(&self, max_iters: usize) -> Limits {
        Limits { iterations: max_iters, time: self.time_limit }
    }
}

/// A file that an option may name.
pub(super) type MaybeNamed<'a> = (&'static str, Option<&'a Path>);

/// Those of the options that name a file.
fn given<'a>(all: &[MaybeNamed<'a>]) -> Vec<Named<'a>> {
    all.iter().filter_map(|(option, file)| Some((*option, (*file)?))).collect()
}

/// The file that was typed, if it is one.
pub(super) fn file(typed: &OsStr) -> Option<&Path> {
    Some(Path::new(typed)).filter(|path| path.is_file())
}

impl RunArgs {
    /// Resolves options; asks the machine for a GPU where that matters, and opens nothing. A method that runs in f64 on one
    /// thread of the CPU says so by its name.
    pub fn resolve(&self, serial: Option<&str>, precond: Preconditioner) -> Result<Running> {
        if self.monitor == Some(0) {
            return Err(bad("--monitor", 0, "it must be at least 1, which prints every residual"));
        }
        self.plot.as_deref().map(Format::of).transpose()?;
        self.history.as_deref().map(Layout::of).transpose()?;
        let time_limit = self.time_limit.map(Duration::try_from_secs_f64).transpose();
        let time_limit =
            time_limit.map_err(|e| bad("--time-limit", self.time_limit.unwrap_or(0.0), e.to_string()))?;
        let request = Request {
            device: self.device.clone(),
            backend: self.backend.clone(),
            precond,
            precision: self.precision,
            threads: self.threads,
        };
        let settled = match serial {
            None => request.settle()?,
            Some(method) => request.settle_serially(method)?,
        };
        Ok(Running { request, settled, serial: serial.is_some(), time_limit })
    }

    /// Every file that is written can be, and is none that is read or written otherwise.
    pub fn check_files(&self, inputs: &[MaybeNamed<'_>], outputs: &[MaybeNamed<'_>]) -> Result<()> {
        let ours = [("--history", self.history.as_deref()), ("--plot", self.plot.as_deref())];
        let inputs = given(&[inputs, &[("--config", self.config.as_deref())]].concat());
        let outputs = given(&[&ours, outputs].concat());
        check_apart(&inputs, &outputs)?;
        outputs.into_iter().try_for_each(check_writable)
    }

    /// The line of a report that names the files of a solve; `others` are those besides history and picture.
    pub fn files(&self, others: &[(&str, Option<&Path>)]) -> Option<Line> {
        let ours = [("history", self.history.as_deref()), ("plot", self.plot.as_deref())];
        files(&[others, &ours].concat())
    }

    /// Starts the threads that read and check. They obey the same limit as those that solve.
    pub fn start_pool(&self) {
        start_pool(self.threads);
    }

    /// Writes history and picture, each where it was asked for. What cannot be written keeps nothing else from it; the first
    /// fault is the error.
    pub fn write_results(&self, history: &History) -> Result<()> {
        let saved = self.history.as_deref().map_or(Ok(()), |path| {
            history.save(path)?;
            log::info!("history written to {}", path.display());
            Ok(())
        });
        let drawn = self.plot.as_deref().map_or(Ok(()), |path| {
            let captions = Captions { title: self.title.clone(), labels: Vec::new() };
            crate::plot::captioned(std::slice::from_ref(history), &captions, path)?;
            log::info!("plot written to {}", path.display());
            Ok(())
        });
        saved.and(drawn)
    }
}
