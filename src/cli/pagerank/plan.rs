//! What will be done: every option resolved before the graph is read.

use super::args::{DanglingName, MethodName, PagerankArgs, Repeated, SelfLoops};
use super::numbers::{Numbers, Others};
use crate::cli::dry::Decisions;
use crate::cli::ids::Ids;
use crate::cli::memory;
use crate::cli::running::{Running, bad, file};
use crate::error::Result;
use crate::format::Csr;
use crate::precond::Preconditioner;
use crate::solve::pagerank::{Dangling, Method};
use crate::source::catalog::Entry;
use crate::source::fields::{Field, Fields, Separator};
use std::ffi::OsStr;
use std::path::Path;

/// A ranking, ready to run.
pub(super) struct Plan {
    pub method: Method,
    pub dangling: Dangling,
    pub teleport: Option<Teleport>,
    pub start: Option<Numbers>,
    pub fetch: Option<&'static Entry>,
    pub running: Running,
    damping: f64,
    tolerance: f64,
    self_loops: SelfLoops,
    duplicates: Repeated,
}

/// Where the surfer jumps to.
pub(super) enum Teleport {
    /// By id or label.
    Vertices(Vec<String>),
    File(Numbers),
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
        let inputs = [
            ("--graph", file(&args.graph)),
            ("--labels", args.labels.as_deref()),
            ("--personalise", args.personalise.as_deref().and_then(file)),
            ("--x0", args.x0.as_deref()),
        ];
        args.run.check_files(&inputs, &[("--output", args.output.as_deref())])?;
        args.output.as_deref().map(super::output::check).transpose()?;
        let method = match args.method {
            MethodName::Power => Method::Power,
            MethodName::Extrapolated => Method::Extrapolated,
            MethodName::GaussSeidel => Method::GaussSeidel,
        };
        let running = args
            .run
            .resolve((method == Method::GaussSeidel).then_some(method.name()), Preconditioner::None)?;
        let teleport = args.personalise.as_deref().map(Teleport::resolve).transpose()?;
        let start = args.x0.as_deref().map(|path| Numbers::read("--x0", path)).transpose()?;
        let fetch = crate::cli::fetch::missing(&args.graph)?;
        let dangling = match args.dangling {
            DanglingName::Uniform => Dangling::Uniform,
            DanglingName::Personalised => Dangling::Personalised,
            DanglingName::SelfLoop => Dangling::SelfLoop,
            DanglingName::Drop => Dangling::Drop,
        };
        let (damping, tolerance) = (args.damping, args.tol);
        let (self_loops, duplicates) = (args.self_loops, args.duplicates);
        Ok(Plan {
            method,
            dangling,
            teleport,
            start,
            fetch,
            running,
            damping,
            tolerance,
            self_loops,
            duplicates,
        })
    }

    /// The plan in words, a line for each decision.
    pub fn describe(&self, args: &PagerankArgs) -> Result<Decisions> {
        let mut plan = Decisions::default();
        plan.add("solver", "pagerank");
        plan.source("graph", &args.graph, self.fetch);
        plan.add_if("columns", args.columns);
        plan.add_if("labels", args.labels.as_ref().map(|path| path.display()));
        plan.add("method", self.method.name());
        plan.add("damping", self.damping);
        plan.add("dangling", format!("{}: {}", self.dangling.name(), self.dangling.formula()));
        let personalise = args.personalise.as_deref().unwrap_or(OsStr::new("every vertex"));
        plan.add("personalise", personalise.display());
        plan.add_if("x0", self.start.as_ref());
        plan.add("self-loops", if self.self_loops == SelfLoops::Keep { "keep" } else { "remove" });
        plan.add("duplicates", if self.duplicates == Repeated::Keep { "keep" } else { "once" });
        plan.add("tol", format!("{:e}, of all ranks together", self.tolerance));
        plan.running(&args.run, &self.running, args.max_iters);
        plan.outputs(&args.run, args.output.as_deref());
        plan.add("memory", memory::at_least(&args.graph, args.columns, 2, "the graph and its transpose")?);
        Ok(plan)
    }

    /// Iterations in which the error must have fallen by 1 %, several times over.
    pub fn stagnation(&self) -> usize {
        let each = -1.0 / self.damping.max(0.5).ln();
        (20.0 * each) as usize + 20
    }

    /// Whether an order of vertices that makes iterations faster may be worth the time that it takes to find, where they
    /// take no time to speak of: by the most iterations that the damping lets a tolerance take.
    pub fn may_take_long(&self) -> bool {
        const MANY: f64 = 300.0;
        self.tolerance.ln() / self.damping.ln() > MANY
    }

    /// The graph without the links that were asked away.
    pub fn kept(&self, graph: Csr) -> Result<Csr> {
        let (loops, repeats) = (self.self_loops == SelfLoops::Keep, self.duplicates == Repeated::Keep);
        if loops && repeats { Ok(graph) } else { graph.simplified(loops, repeats) }
    }
}

impl Teleport {
    fn resolve(typed: &OsStr) -> Result<Teleport> {
        if Path::new(typed).is_file() {
            return Numbers::read("--personalise", Path::new(typed)).map(Teleport::File);
        }
        let reason = "it must be a file, or vertices separated by commas such as 3,17";
        let fault = || bad("--personalise", typed.display(), reason);
        let line = typed.to_str().ok_or_else(fault)?;
        let word = |field: std::result::Result<Field, usize>| {
            let word = field.ok().and_then(|field| String::from_utf8(field.bytes().into_owned()).ok());
            word.filter(|word| !word.is_empty())
        };
        let words = Fields::new(line.as_bytes(), 0, Separator::Comma).map(word);
        words.collect::<Option<_>>().map(Teleport::Vertices).ok_or_else(fault)
    }

    /// The distribution over so many vertices.
    pub fn over(&self, n: usize, vertices: &Ids) -> Result<Vec<f64>> {
        match self {
            Teleport::File(file) => file.over(n, vertices, Others::Nothing, false),
            Teleport::Vertices(words) => {
                let search = vertices.search(n)?;
                let mut v = vec![0.0; n];
                for word in words {
                    let found = search.find(word).map_err(|reason| bad("--personalise", word, reason))?;
                    let vertex =
                        found.ok_or_else(|| bad("--personalise", word, no_vertex(word, n, vertices)))?;
                    v[vertex] += 1.0 / words.len() as f64;
                }
                Ok(v)
            }
        }
    }
}

/// Why a word names no vertex of the graph.
fn no_vertex(word: &str, n: usize, vertices: &Ids) -> String {
    let Some(last) = n.checked_sub(1) else { return "the graph has no vertices".to_owned() };
    let range = match (vertices.id(0), vertices.id(last)) {
        (Some(first), Some(last)) => format!("; ids go from {first} to {last}"),
        _ => String::new(),
    };
    if vertices.has_labels() {
        let ids = if vertices.has_ids() { " or id" } else { "" };
        return format!("the graph has no vertex with that label{ids}, and there is no such file{range}");
    }
    if word.parse::<u64>().is_err() {
        return "it must be a file, or vertices separated by commas such as 3,17".to_owned();
    }
    format!("the graph has no vertex with that id{range}")
}
