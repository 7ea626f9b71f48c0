//! What will be done: every option resolved before the graph is read.

use super::Vertices;
use super::args::{DanglingName, MethodName, PagerankArgs, Repeated, SelfLoops};
use crate::backend::{Choice, Host};
use crate::cli::places::{Named, check_apart, check_writable};
pub(super) use crate::cli::plan::Place;
use crate::cli::plan::{check_threads, place};
use crate::cli::vectors::FromFile;
use crate::device::{Cpu, Cuda};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::observe::history::Layout;
use crate::plot::Format;
use crate::solve::pagerank::{Dangling, Method};
use crate::source::catalog::Entry;
use std::path::Path;
use std::time::Duration;

/// A ranking, ready to run.
pub(super) struct Plan {
    pub method: Method,
    pub dangling: Dangling,
    pub teleport: Option<Teleport>,
    pub start: Option<FromFile>,
    pub fetch: Option<&'static Entry>,
    pub place: Place,
    /// Why there, if nobody asked for it.
    pub why: Option<String>,
    pub backend: Choice,
    pub time_limit: Option<Duration>,
    damping: f64,
    self_loops: SelfLoops,
    duplicates: Repeated,
}

/// Where the surfer jumps to.
pub(super) enum Teleport {
    Vertices(Vec<u64>),
    File(FromFile),
}

fn bad(option: &'static str, value: impl ToString, reason: impl Into<String>) -> Error {
    Error::BadOption { option, value: value.to_string(), reason: reason.into() }
}

impl Plan {
    /// Reads the vectors that are named, and opens nothing else.
    pub fn resolve(args: &PagerankArgs) -> Result<Plan> {
        if !(0.0..1.0).contains(&args.damping) {
            return Err(bad("--damping", args.damping, "it must be at least 0 and less than 1"));
        }
        if !(args.tol > 0.0 && args.tol < 2.0) {
            return Err(bad("--tol", args.tol, "it must lie between 0 and 2, the largest error there is"));
        }
        check_threads(args.threads)?;
        check_files(args)?;
        args.plot.as_deref().map(Format::of).transpose()?;
        args.history.as_deref().map(Layout::of).transpose()?;
        args.output.as_deref().map(super::output::check).transpose()?;
        let time_limit = args.time_limit.map(Duration::try_from_secs_f64).transpose();
        let time_limit =
            time_limit.map_err(|e| bad("--time-limit", args.time_limit.unwrap_or(0.0), e.to_string()))?;
        let method = match args.method {
            MethodName::Power => Method::Power,
            MethodName::GaussSeidel => Method::GaussSeidel,
        };
        let (place, why) = match method {
            Method::Power => place(&args.device, &args.backend, Default::default(), args.threads)?,
            Method::GaussSeidel => {
                check_serial(args)?;
                (Place::Cpu(Some(1)), Some("gauss-seidel runs on one thread of the CPU".to_owned()))
            }
        };
        let backend = match place {
            Place::Cpu(_) => Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, &args.backend)?,
            Place::Cuda(_) => Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, &args.backend)?,
        };
        backend.check_precision(args.precision)?;
        let teleport = args.personalise.as_deref().map(Teleport::resolve).transpose()?;
        let start = args.x0.as_deref().map(|path| FromFile::read("--x0", path)).transpose()?;
        let fetch = crate::cli::fetch::missing(&args.graph, args.fetch, true)?;
        let dangling = match args.dangling {
            DanglingName::Uniform => Dangling::Uniform,
            DanglingName::Personalised => Dangling::Personalised,
            DanglingName::SelfLoop => Dangling::SelfLoop,
            DanglingName::Drop => Dangling::Drop,
        };
        let (damping, self_loops, duplicates) = (args.damping, args.self_loops, args.duplicates);
        Ok(Plan {
            method,
            dangling,
            teleport,
            start,
            fetch,
            place,
            why,
            backend,
            time_limit,
            damping,
            self_loops,
            duplicates,
        })
    }

    /// Iterations in which the error must have fallen by 1 %, several times over.
    pub fn stagnation(&self) -> usize {
        let each = -1.0 / self.damping.max(0.5).ln();
        (20.0 * each) as usize + 20
    }

    /// The graph without the links that were asked away.
    pub fn kept(&self, graph: Csr) -> Result<Csr> {
        let (loops, repeats) = (self.self_loops == SelfLoops::Keep, self.duplicates == Repeated::Keep);
        if loops && repeats { Ok(graph) } else { graph.simplified(loops, repeats) }
    }
}

/// Gauss-Seidel has no choice of devices, backends and precisions.
fn check_serial(args: &PagerankArgs) -> Result<()> {
    let why = "gauss-seidel runs in f64 on one thread of the CPU, and needs no backend";
    if !matches!(args.device.as_str(), "auto" | "cpu") {
        return Err(bad("--device", &args.device, why));
    }
    if args.backend != "auto" {
        return Err(bad("--backend", &args.backend, why));
    }
    if args.precision != crate::scalar::Precision::F64 {
        return Err(bad("--precision", args.precision.name(), why));
    }
    Ok(())
}

/// Every file that is written can be, and is none that is read or written otherwise.
fn check_files(args: &PagerankArgs) -> Result<()> {
    let outputs = [("--output", &args.output), ("--history", &args.history), ("--plot", &args.plot)];
    let file = |text: &str| Path::new(text).is_file();
    let inputs = [
        ("--graph", Some(args.graph.as_str()).filter(|text| file(text)).map(Path::new)),
        ("--personalise", args.personalise.as_deref().filter(|text| file(text)).map(Path::new)),
        ("--x0", args.x0.as_deref()),
    ];
    let outputs: Vec<Named<'_>> =
        outputs.into_iter().filter_map(|(o, file)| Some((o, file.as_deref()?))).collect();
    let inputs: Vec<Named<'_>> = inputs.into_iter().filter_map(|(o, file)| Some((o, file?))).collect();
    check_apart(&inputs, &outputs)?;
    outputs.into_iter().try_for_each(check_writable)
}

impl Teleport {
    fn resolve(typed: &str) -> Result<Teleport> {
        if Path::new(typed).is_file() {
            return FromFile::read("--personalise", Path::new(typed)).map(Teleport::File);
        }
        let vertices: Option<Vec<u64>> = typed.split(',').map(|word| word.trim().parse().ok()).collect();
        let reason = "it must be a file, or vertices apart by commas such as 3,17";
        vertices.map(Teleport::Vertices).ok_or_else(|| bad("--personalise", typed, reason))
    }

    /// The distribution over so many vertices.
    pub fn over(&self, n: usize, numbers: &Vertices) -> Result<Vec<f64>> {
        match self {
            Teleport::File(file) => distribution("--personalise", file.values(n)?),
            Teleport::Vertices(vertices) => {
                let mut v = vec![0.0; n];
                for &id in vertices {
                    let vertex = numbers.number(id, n).ok_or_else(|| {
                        bad("--personalise", id, "the graph has no vertex with that id; ids count from 0")
                    })?;
                    v[vertex] += 1.0 / vertices.len() as f64;
                }
                Ok(v)
            }
        }
    }
}

/// Numbers that are not negative, divided by their sum.
pub(super) fn distribution(option: &'static str, values: &[f64]) -> Result<Vec<f64>> {
    if let Some(at) = values.iter().position(|v| !(*v >= 0.0 && v.is_finite())) {
        let reason =
            format!("the number of vertex {at} is {}, and must be finite and not negative", values[at]);
        return Err(bad(option, "the file", reason));
    }
    let sum: f64 = values.iter().sum();
    if !sum.is_normal() && !values.is_empty() {
        return Err(bad(option, "the file", format!("its numbers sum to {sum}")));
    }
    Ok(values.iter().map(|v| v / sum).collect())
}
