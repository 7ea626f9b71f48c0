//! The plan of a linear solve: every option resolved against the registry and this machine,
//! before the matrix is read.

use super::args::{CgArgs, Variant};
use super::dry_run::Decisions;
use super::flags::bad;
use super::interval::Interval;
use super::running::{Running, file};
use super::summary::Line;
use crate::engine::{Matrix, Partition, RhsName, Stopping, VectorFile};
use crate::error::{Error, Result};
use crate::files::Reserved;
use crate::format::Coordinates;
use crate::observe::phrases::count;
use crate::precond::{NearNull, Preconditioner};
use crate::solve::Method;
use crate::solve::checkpoint::{self, Checkpoints, Saved};
use crate::source::catalog::Entry;
use crate::source::read_vectors;
use crate::source::vector::{most_bytes, writer};
use crate::stop::StoppingRule;
use std::ffi::OsStr;
use std::path::Path;

/// A solve that is ready to run.
pub(crate) struct Plan {
    pub method: Method,
    /// The options as typed.
    pub args: CgArgs,
    pub rhs: RhsName,
    /// The start vector.
    pub x0: Option<VectorFile>,
    /// The coordinates of the nodes, if a file of them is named.
    pub coordinates: Option<Coordinates>,
    /// The matrix of the catalog to download first.
    pub fetch: Option<&'static Entry>,
    /// The options of every solve, resolved.
    pub running: Running,
    /// Tolerances and limits.
    pub stopping: Stopping,
    /// The checkpoint files to write and to resume from.
    pub checkpoints: Checkpoints,
}

impl Plan {
    /// Resolves the options, looks for a GPU if the device needs it, and reads the named
    /// vectors, but not the matrix.
    pub(crate) fn resolve(args: CgArgs, minres: bool) -> Result<Plan> {
        let method = match (minres, args.variant) {
            (false, None | Some(Variant::Classic)) => Method::Cg,
            (false, Some(Variant::Pipelined)) => Method::PipelinedCg,
            (false, Some(Variant::Block)) => Method::BlockCg,
            (true, None) => Method::Minres,
            (true, Some(variant)) => {
                return Err(bad("--variant", variant.name(), "minres has no variants; remove this option"));
            }
        };
        let CgArgs { rtol, rtol_initial, atol, max_iters, .. } = args;
        let stopping = Stopping { rtol, rtol_initial, atol, max_iters, ..Stopping::default() };
        stopping.tolerances(args.run.precision)?;
        let inputs = [
            ("--matrix", file(&args.matrix)),
            ("--rhs", args.rhs.as_deref().and_then(RhsName::file)),
            ("--x0", args.x0.as_deref()),
            ("--coords", args.coords.as_deref()),
            ("--near-null", args.near_null.as_deref()),
            ("--resume", args.resume.as_deref()),
        ];
        let outputs = [("--output", args.output.as_deref()), ("--checkpoint", args.checkpoint.as_deref())];
        args.run.check_files(&inputs, &outputs)?;
        let checkpoints = checkpoints(&args)?;
        args.output.as_deref().map_or(Ok(()), check_ending)?;
        let over_ranks = super::launch::ranks().is_some();
        let resolve = if over_ranks { RhsName::resolve_on_rank } else { RhsName::resolve };
        let rhs = args.rhs.as_deref().map(resolve).transpose()?;
        let rhs = match args.rhs_count {
            None => rhs.unwrap_or_default(),
            Some(count) => RhsName::with_count(rhs, count)?,
        };
        let (precond, coordinates) =
            nodes(&args.precond, (args.coords.as_deref(), args.near_null.as_deref()), over_ranks)?;
        let running = args.run.resolve(None, precond, rhs.columns())?;
        let x0 = args.x0.as_deref().map(|path| start(path, rhs.columns(), over_ranks)).transpose()?;
        check_partition(&args.partition, &args.matrix)?;
        let divided = over_ranks || !running.settled.shares.is_empty();
        args.partition.check_divided(divided)?;
        let fetch = super::fetch::missing(&args.matrix)?;
        let stopping = Stopping { time_limit: running.time_limit, ..stopping };
        Ok(Plan { method, args, rhs, x0, coordinates, fetch, running, stopping, checkpoints })
    }

    /// Reserves disk space for the answer.
    pub(crate) fn reserve(&self, rows: usize, columns: usize) -> Result<Option<Reserved>> {
        super::launch::reserve(self.args.output.as_deref(), |path| most_bytes(path, rows, columns))
    }

    /// Returns the report's line of written files. A solve that fails early writes no checkpoint.
    pub(crate) fn files(&self) -> Option<Line> {
        let checkpoint = self.checkpoints.save.as_ref().map(|(path, _)| path.as_path());
        let saved = checkpoint.filter(|path| path.is_file());
        self.args.run.files(&[("answer", self.args.output.as_deref()), ("checkpoint", saved)])
    }

    /// Describes the plan, a line for each decision.
    pub(crate) fn describe(&self) -> Result<Decisions> {
        let mut plan = Decisions::default();
        plan.add("solver", self.method.name());
        plan.source("matrix", &self.args.matrix, self.fetch);
        plan.ranks(&self.args.matrix, false, &self.args.partition)?;
        plan.add("rhs", &self.rhs);
        plan.add_if("x0", self.x0.as_ref());
        plan.add("preconditioner", self.running.request.precond.label());
        plan.add_if("partition", Some(&self.args.partition).filter(|partition| !partition.is_in_order()));
        for tolerance in &self.stopping.tolerances(self.args.run.precision)? {
            match tolerance {
                StoppingRule::RelativeResidual(t) => plan.add("rtol", format!("{t:e}")),
                StoppingRule::InitialResidual(t) => plan.add("rtol-initial", format!("{t:e}")),
                StoppingRule::AbsoluteResidual(t) => plan.add("atol", format!("{t:e}")),
                _ => {}
            }
        }
        let max_iters = self
            .stopping
            .max_iters
            .map_or("10 per row, at least 1000, at most 100000".to_owned(), |n| n.to_string());
        plan.running(&self.args.run, &self.running, max_iters);
        plan.kept(&self.args.matrix, &self.running);
        if let Some((file, every)) = &self.checkpoints.save {
            plan.add("checkpoint", format!("{}, every {}", file.display(), Interval(*every)));
        }
        plan.add_if("resume", self.checkpoints.resume.as_ref().map(|file| file.display()));
        plan.outputs(&self.args.run, self.args.output.as_deref());
        let more = (self.x0.is_some(), self.args.run.plot.is_some());
        let memory = super::memory::describe(
            self.method,
            &self.args.matrix,
            &self.running,
            more,
            self.needs_whole_matrix(),
        )?;
        plan.add("memory", memory);
        if let Some((rows, _)) = crate::source::preview(&*self.args.matrix)? {
            self.check_lengths(rows as usize)?;
        }
        Ok(plan)
    }

    /// Returns whether one process must read the whole matrix, also over ranks.
    pub(crate) fn needs_whole_matrix(&self) -> bool {
        self.rhs == RhsName::Attached || self.args.as_stored || self.args.first_index.is_some()
    }

    /// Checks that the vectors of files fit a matrix with this number of rows.
    fn check_lengths(&self, rows: usize) -> Result<()> {
        if let RhsName::File(b) = &self.rhs {
            b.check_rows(rows, None)?;
        }
        self.x0.as_ref().map_or(Ok(()), |x0| x0.check_rows(rows, None))
    }
}

/// Checks that this build has a partition, and that the coordinates of the matrix are known if it needs them.
pub(super) fn check_partition(partition: &Partition, matrix: &OsStr) -> Result<()> {
    partition.check()?;
    partition.check_coordinates(matrix)
}

/// Returns the matrix with the coordinates of a file, if one is named.
pub(super) fn located(matrix: Matrix, coordinates: Option<&Coordinates>) -> Result<Matrix> {
    match coordinates {
        Some(coordinates) => matrix.with_coordinates(coordinates.clone()),
        None => Ok(matrix),
    }
}

/// Reads the coordinates of the nodes, and the near-null vectors, which the preconditioner gets.
pub(super) fn nodes(
    precond: &Preconditioner,
    (coords, near_null): (Option<&Path>, Option<&Path>),
    over_ranks: bool,
) -> Result<(Preconditioner, Option<Coordinates>)> {
    let named = [("--coords", coords), ("--near-null", near_null)];
    if let Some((option, path)) = named.into_iter().find_map(|(option, path)| Some((option, path?))) {
        if !precond.takes_near_null() {
            let reason =
                format!("preconditioner {precond} does not use it; name --precond amg, or remove it");
            return Err(bad(option, path.display(), reason));
        }
        if over_ranks {
            let reason = "over ranks it is not used yet; remove it, or solve in one process";
            return Err(bad(option, path.display(), reason));
        }
    }
    let precond = match near_null {
        Some(path) => {
            let named = |fault| Error::InFile { path: path.to_owned(), fault: Box::new(fault) };
            let vectors = read_vectors(path).and_then(|vectors| NearNull::new(vectors).map_err(named))?;
            precond.clone().with_near_null(vectors)?
        }
        None => precond.clone(),
    };
    let coordinates = coords.map(Coordinates::open).transpose()?;
    Ok((precond, coordinates))
}

/// Reads the start, which has as many columns as there are right-hand sides. Over ranks, only checks it.
fn start(path: &Path, columns: usize, over_ranks: bool) -> Result<VectorFile> {
    let x0 = match (over_ranks, columns) {
        (true, _) => VectorFile::check("x0", path, columns > 1)?,
        (false, 1) => VectorFile::read("x0", path)?,
        (false, _) => VectorFile::read_columns("x0", path)?,
    };
    match x0.columns() {
        found if found == columns => Ok(x0),
        found => Err(bad(
            "--x0",
            path.display(),
            format!("it has {}, but there are {columns} right-hand sides", count(found as u64, "column")),
        )),
    }
}

/// Checks that answers can be written to files with the ending of `--output`.
fn check_ending(path: &Path) -> Result<()> {
    writer(path).map(drop).map_err(|error| match error {
        Error::Unwritable { path, reason } => bad("--output", path.display(), reason),
        other => other,
    })
}

/// Resolves the checkpoint options, and checks the checkpoint to resume from before the matrix is read.
fn checkpoints(args: &CgArgs) -> Result<Checkpoints> {
    if let Some(interval) = args.checkpoint_every.filter(|_| args.checkpoint.is_none()) {
        return Err(bad("--checkpoint-every", interval, "it needs --checkpoint FILE"));
    }
    if let Some(path) = &args.checkpoint {
        checkpoint::check_place(path).map_err(|reason| bad("--checkpoint", path.display(), reason))?;
    }
    if let Some(path) = &args.resume {
        Saved::read(path)?;
    }
    let every = args.checkpoint_every.unwrap_or_default().0;
    let save = args.checkpoint.clone().map(|path| (path, every));
    Ok(Checkpoints { save, resume: args.resume.clone(), labels: Vec::new() })
}
