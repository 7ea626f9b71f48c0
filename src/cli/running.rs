//! The options that all solves have in common: device, limits, and output files.

use super::flags::bad;
use super::launch;
use super::paths::{Named, check_apart, check_writable};
use super::summary::{Line, files};
use crate::engine::{HostMethod, Request, Settled};
use crate::error::Result;
use crate::observe::History;
use crate::observe::history::Layout;
use crate::parallel::start_pool;
use crate::plot::{Captions, Format, Style};
use crate::precond::Preconditioner;
use crate::scalar::Precision;
use clap::Args;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of every solve.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Multiply the matrix with this backend, with parameters after a colon, as in vector:threads=8 [default:
    /// auto; see solver backends]
    #[arg(long, value_name = "NAME", value_parser = super::backends::BackendParser, hide_possible_values = true)]
    #[arg(default_value = "auto", hide_default_value = true)]
    pub backend: String,
    /// Measure the backends before the solve, unless a choice is kept from an earlier
    /// measurement; see solver tune
    #[arg(long)]
    pub tune: bool,
    /// Run on this device: auto, cpu, cuda or cuda:N, or on several GPUs: cuda:0,1 or cuda:all [default:
    /// auto, a GPU if there is one; over the ranks of a launcher the CPU]
    #[arg(long, value_name = "DEVICE", default_value = "auto", hide_default_value = true)]
    pub device: String,
    /// Store matrix and vectors in this precision
    #[arg(long, value_enum, default_value = "f64")]
    pub precision: Precision,
    /// Use N threads on the CPU, 1 to 1024 [default: the cores this process may use]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Stop when setup and iterations, after the matrix has been read, have taken this many seconds; a
    /// setup is not interrupted
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<f64>,
    /// Write the report and the residual history to this file: .json (read by solver plot) or .csv
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Plot the convergence to this file: .svg, .png or .pdf
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Set the title of the plot [default: method, matrix, backend, precision and device]
    #[arg(long, value_name = "TEXT", requires = "plot")]
    pub title: Option<String>,
    /// Print every N-th residual and the last one on stderr
    #[arg(long, value_name = "N")]
    pub monitor: Option<usize>,
    /// Print the report as JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Print the wall time by phase after the report: reading, analysing, building, iterating, verifying,
    /// writing; in JSON the object profile
    #[arg(long)]
    pub profile: bool,
    /// Read options from a TOML file, as key = value with the long names of the options; typed
    /// options take precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the backends that auto chose from, with their estimates or measured times
    #[arg(long)]
    pub explain: bool,
    /// Print the plan and exit without solving
    #[arg(long)]
    pub dry_run: bool,
}

/// The resolved options of every solve.
pub(super) struct Running {
    pub request: Request,
    pub settled: Settled,
    /// Whether the method needs no backend.
    pub on_host: bool,
    pub time_limit: Option<Duration>,
}

/// An option, and the file that it names, if any.
pub(super) type MaybeNamed<'a> = (&'static str, Option<&'a Path>);

/// Returns the options that name a file.
fn given<'a>(all: &[MaybeNamed<'a>]) -> Vec<Named<'a>> {
    all.iter().filter_map(|(option, file)| Some((*option, (*file)?))).collect()
}

/// Returns the typed path if it is an existing file.
pub(super) fn file(typed: &OsStr) -> Option<&Path> {
    Some(Path::new(typed)).filter(|path| path.is_file())
}

impl RunArgs {
    /// Resolves the options, and looks for a GPU if the device needs it. `on_host` is a method that needs no
    /// backend, and `columns` the number of vectors that are multiplied at once.
    pub(crate) fn resolve(
        &self,
        on_host: Option<HostMethod>,
        precond: Preconditioner,
        columns: usize,
    ) -> Result<Running> {
        if self.monitor == Some(0) {
            return Err(bad("--monitor", 0, "it must be at least 1, which prints every residual"));
        }
        self.plot.as_deref().map(Format::of).transpose()?;
        self.history.as_deref().map(Layout::of).transpose()?;
        let time_limit = self.time_limit.map(Duration::try_from_secs_f64).transpose();
        let time_limit =
            time_limit.map_err(|e| bad("--time-limit", self.time_limit.unwrap_or(0.0), e.to_string()))?;
        if self.tune && columns > 1 {
            let reason = "it measures products with one vector; leave it out for several columns";
            return Err(bad("--tune", "", reason));
        }
        if self.tune && self.backend != "auto" {
            let reason = "--tune chooses the backend by measurement; leave out one of the two";
            return Err(bad("--backend", &self.backend, reason));
        }
        let request = Request {
            device: self.device.clone(),
            backend: self.backend.clone(),
            precond,
            precision: self.precision,
            threads: self.threads,
            columns,
        };
        let settled = match on_host {
            None => request.settle()?,
            Some(method) => request.settle_on_host(method)?,
        };
        Ok(Running { request, settled, on_host: on_host.is_some(), time_limit })
    }

    /// Checks that every output can be written, and that outputs differ from each other and from the inputs.
    pub(crate) fn check_files(&self, inputs: &[MaybeNamed<'_>], outputs: &[MaybeNamed<'_>]) -> Result<()> {
        let ours = [("--history", self.history.as_deref()), ("--plot", self.plot.as_deref())];
        let inputs = given(&[inputs, &[("--config", self.config.as_deref())]].concat());
        let outputs = given(&[&ours, outputs].concat());
        check_apart(&inputs, &outputs)?;
        outputs.into_iter().try_for_each(check_writable)
    }

    /// Returns the report's line of written files: `outputs`, the history and the plot.
    pub(crate) fn files(&self, outputs: &[(&str, Option<&Path>)]) -> Option<Line> {
        let ours = [("history", self.history.as_deref()), ("plot", self.plot.as_deref())];
        files(&[outputs, &ours].concat())
    }

    /// Starts the thread pool that reads and checks the matrix, with the same limit as that of the solve.
    pub(super) fn start_pool(&self) {
        start_pool(self.threads);
    }

    /// Writes the history and the plot, if requested, whatever the outcome of earlier writing. Over ranks,
    /// the first one writes.
    pub(crate) fn write_results(&self, written: Result<()>, history: impl FnOnce() -> History) -> Result<()> {
        launch::then_on_first(launch::ranks(), written, || self.write_history(&history()))
    }

    /// Attempts to write both, and returns the first error.
    fn write_history(&self, history: &History) -> Result<()> {
        let saved = self.history.as_deref().map_or(Ok(()), |path| {
            history.save(path)?;
            log::info!("history written to {}", path.display());
            Ok(())
        });
        let drawn = self.plot.as_deref().map_or(Ok(()), |path| {
            let captions = Captions { title: self.title.clone(), labels: Vec::new() };
            crate::plot::captioned(std::slice::from_ref(history), &captions, Style::default(), path)?;
            log::info!("plot written to {}", path.display());
            Ok(())
        });
        saved.and(drawn)
    }
}
