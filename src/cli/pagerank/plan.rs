//! The plan of a ranking: every option resolved before the graph is read.

use super::args::PagerankArgs;
use crate::cli::dry_run::Decisions;
use crate::cli::flags::bad;
use crate::cli::launch;
use crate::cli::memory;
use crate::cli::running::{Running, file};
use crate::engine::pagerank::{RankMethod, Repeated, SelfLoops, Settings, check_output};
use crate::engine::{Partition, Weights};
use crate::error::Result;
use crate::precond::Preconditioner;
use crate::source::Shared;
use crate::source::catalog::Entry;
use crate::source::fields::{Field, Fields, Separator};
use std::ffi::OsStr;
use std::path::Path;

/// A ranking that is ready to run.
pub(super) struct Plan {
    pub settings: Settings,
    pub personalise: Option<Weights>,
    pub each: Vec<Weights>,
    pub x0: Option<Weights>,
    pub fetch: Option<&'static Entry>,
    pub running: Running,
}

impl Plan {
    /// Resolves the options and reads the named vectors, but not the graph.
    pub(crate) fn resolve(args: &PagerankArgs) -> Result<Plan> {
        let settings = Settings {
            damping: args.damping,
            dangling: args.dangling,
            method: args.method,
            self_loops: args.self_loops,
            duplicates: args.duplicates,
            tol: args.tol,
            max_iters: args.max_iters,
            top: args.top,
        };
        settings.check()?;
        let inputs = [
            ("--graph", file(&args.graph)),
            ("--labels", args.labels.as_deref()),
            ("--personalise", args.personalise.as_deref().and_then(file)),
            ("--personalise-each", args.personalise_each.as_deref()),
            ("--x0", args.x0.as_deref()),
        ];
        args.run.check_files(&inputs, &[("--output", args.output.as_deref())])?;
        let each = args.personalise_each.as_deref();
        args.output.as_deref().map(check_output).transpose()?;
        let each =
            each.map(|path| Weights::read_each("personalise-each", path)).transpose()?.unwrap_or_default();
        if !each.is_empty() && args.method != RankMethod::Power {
            let reason = "several personalisations are ranked by power iteration";
            return Err(bad("--method", args.method.name(), reason));
        }
        let running = args.run.resolve(settings.host_method(), Preconditioner::NONE, each.len().max(1))?;
        // Over ranks, the first one sends each rank its part.
        let on_first = |read: &dyn Fn() -> Result<Weights>| {
            launch::read_on_first(read).map(|weights| weights.unwrap_or_else(|| Weights::from(Vec::new())))
        };
        let personalise =
            args.personalise.as_deref().map(|typed| on_first(&|| teleport(typed))).transpose()?;
        let x0 = args.x0.as_deref().map(|path| on_first(&|| Weights::read("x0", path))).transpose()?;
        let fetch = crate::cli::fetch::missing(&args.graph)?;
        Ok(Plan { settings, personalise, each, x0, fetch, running })
    }

    /// Lists the resolved settings as labelled lines for `--dry-run`, with the files that `args` names. Reads
    /// the beginning of the graph to estimate the memory, and fails if it cannot be read.
    pub(crate) fn describe(&self, args: &PagerankArgs) -> Result<Decisions> {
        let Settings { method, damping, dangling, self_loops, duplicates, tol, .. } = self.settings;
        let mut plan = Decisions::default();
        plan.add("solver", "pagerank");
        plan.source("graph", &args.graph, self.fetch);
        plan.ranks(&args.graph, args.columns.is_some(), &Partition::default())?;
        plan.add_if("columns", args.columns.as_ref());
        plan.add_if("labels", args.labels.as_ref().map(|path| path.display()));
        plan.add("method", method.name());
        plan.add("damping", damping);
        plan.add("dangling", format!("{}: {}", dangling.name(), dangling.formula()));
        let personalise = args.personalise.as_deref().unwrap_or(OsStr::new("every vertex"));
        match &args.personalise_each {
            None => plan.add("personalise", personalise.display()),
            Some(path) => {
                plan.add("personalise", format!("each of {} lines of {}", self.each.len(), path.display()))
            }
        }
        plan.add_if("x0", self.x0.as_ref());
        plan.add("self-loops", if self_loops == SelfLoops::Keep { "keep" } else { "remove" });
        plan.add("duplicates", if duplicates == Repeated::Keep { "keep" } else { "once" });
        plan.add("tol", format!("{:e}, on the l1 error of the ranks", tol));
        plan.running(&args.run, &self.running, args.max_iters);
        plan.kept(&args.graph, &self.running);
        plan.outputs(&args.run, args.output.as_deref());
        plan.add("memory", memory::at_least(&args.graph, args.columns.is_some(), Shared::Graph)?);
        Ok(plan)
    }
}

/// Parses `--personalise`: a file, or vertices.
fn teleport(typed: &OsStr) -> Result<Weights> {
    if Path::new(typed).is_file() {
        return Weights::read("personalise", Path::new(typed));
    }
    let reason = "it must be a file, or vertices separated by commas such as 3,17";
    let fault = || bad("--personalise", typed.display(), reason);
    let line = typed.to_str().ok_or_else(fault)?;
    let word = |field: std::result::Result<Field, usize>| {
        let word = field.ok().and_then(|field| String::from_utf8(field.bytes().into_owned()).ok());
        word.filter(|word| !word.is_empty())
    };
    let words = Fields::new(line.as_bytes(), 0, Separator::Comma).map(word);
    words.collect::<Option<Vec<String>>>().map(Weights::from_vertices).ok_or_else(fault)
}
