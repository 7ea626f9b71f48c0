//! Saves a solve to a checkpoint.

use super::{Column, Solve, Task};
use crate::device::{Device, Name, Ranks, SlotState, Work};
use crate::error::Result;
use crate::files;
use crate::observe::profile::{self, Phase};
use crate::scalar::Scalar;
use crate::solve::checkpoint::{Identity, Saved, Writer, identity};
use crate::solve::recurrence::{Operators, Recurrence};
use crate::solve::run::{Log, Run, Stop, Track};
use crate::stop::{StopCode, StopReason, StoppingRule};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Iterations for which the history reserves memory at the start.
const RESERVED: usize = 1 << 16;

/// The codes that ended columns may have in a checkpoint.
pub(super) const ENDED: [StopCode; 3] = [StopCode::Converged, StopCode::LeastSquares, StopCode::Limit];

/// Saves checkpoints of a solve.
pub(super) struct Saver {
    path: PathBuf,
    every: Duration,
    identity: Identity,
    /// When the last checkpoint was due, on the clock of the solve.
    pub(super) last: Duration,
    /// The newest complete checkpoint that could not be renamed to `path`.
    kept: Option<PathBuf>,
    /// The iteration of the newest checkpoint that this process has written to `path`.
    saved: Option<usize>,
    /// Why the newest checkpoint was not written.
    fault: Option<String>,
}

impl Saver {
    /// Returns why the newest checkpoint was not written, if it was not.
    pub(crate) fn into_fault(self) -> Option<String> {
        self.fault
    }

    /// Keeps the outcome of writing the checkpoint of an iteration, and reports a failure.
    fn note(&mut self, iteration: usize, written: io::Result<()>) {
        // Only the newest complete checkpoint is kept.
        let kept = written.as_ref().err().and_then(files::kept).map(Path::to_owned);
        if (written.is_ok() || kept.is_some())
            && let Some(older) = std::mem::replace(&mut self.kept, kept.clone())
        {
            let _ = std::fs::remove_file(older);
        }
        let Err(error) = written else {
            (self.saved, self.fault) = (Some(iteration), None);
            return;
        };
        let remains = match self.saved {
            // The error names the file.
            _ if kept.is_some() => String::new(),
            Some(earlier) => format!("; that of iteration {earlier} is kept"),
            None if self.path.is_file() => "; the file from before this run is kept".to_owned(),
            None => "; this run has no checkpoint".to_owned(),
        };
        let path = self.path.display();
        let fault = format!(
            "the checkpoint of iteration {iteration} could not be written to {path}: {error}{remains}"
        );
        log::warn!("{fault}");
        self.fault = Some(fault);
    }
}

/// Reserves memory for the history of a column in a solve with checkpoints.
pub(super) fn reserve(log: &mut Log, rule: &StoppingRule) {
    let capacity = rule.most_iterations().unwrap_or(RESERVED).min(RESERVED) + 1;
    log.residuals.reserve(capacity);
    log.batches.reserve(2 * capacity);
}

/// Prepares saving and reads the checkpoint to resume from, as far as they are requested.
pub(super) fn prepare<M: Recurrence, D: Device, T: Scalar>(
    operators: &Operators<D, T>,
    task: &Task<'_>,
) -> Result<(Option<Saver>, Option<Saved>)> {
    let checkpoints = task.checkpoints;
    if checkpoints.save.is_none() && checkpoints.resume.is_none() {
        return Ok((None, None));
    }
    let device = operators.a.device();
    let name = device.name();
    let kind = name.split(':').next().unwrap_or_default().to_owned();
    let preconditioned = if operators.m.is_some() { "preconditioned" } else { "not preconditioned" };
    let vectors = format!("{}, {preconditioned}", T::NAME);
    let state = format!("version {}", M::FACTS.state);
    let own = [
        ("method", M::FACTS.name.to_owned()),
        ("state of the method", state),
        ("device", kind),
        ("hardware", device.hardware()),
        ("vectors", vectors),
    ];
    let identity = identity(task.system, own, checkpoints)?;
    let read = |path| Saved::read_on(device.ranks(), path);
    let saved = checkpoints.resume.as_deref().map(read).transpose()?;
    saved.as_ref().map(|saved| saved.check(&identity)).transpose()?;
    if let Some((path, _)) = checkpoints.save.as_ref().filter(|_| device.ranks().is_none_or(Ranks::is_first))
    {
        files::remove_leftovers(path);
    }
    let saver = checkpoints.save.clone().map(|(path, every)| Saver {
        path,
        every,
        identity,
        last: Duration::ZERO,
        kept: None,
        saved: None,
        fault: None,
    });
    Ok((saver, saved))
}

/// Returns whether a column has ended in the middle of a step.
pub(super) fn is_cut<M: Recurrence>(track: &Track) -> bool {
    !(track.now.iteration - track.now.run_began).is_multiple_of(M::FACTS.stride)
}

/// Returns whether a limit is the reason for an end.
fn is_limit(reason: &StopReason) -> bool {
    matches!(
        reason,
        StopReason::IterationLimit { .. } | StopReason::TimeLimit { .. } | StopReason::Interrupted
    )
}

/// Returns whether a column has stopped at a limit.
fn is_at_limit(stop: Option<Stop>) -> bool {
    matches!(stop, Some(Stop::Rule(reason)) if is_limit(&reason))
}

/// Returns whether a limit has stopped a column of a block while others went on: the directions of a block
/// belong to all its columns, so this column could not continue with them.
fn is_uneven<M: Recurrence>(run: &Run<'_, '_>) -> bool {
    let progress = |track: &Track| track.now.iteration - track.now.run_began;
    let most = run.tracks.iter().map(progress).max().unwrap_or(0);
    M::FACTS.dense.is_some()
        && run.tracks.iter().any(|track| is_at_limit(track.stop) && progress(track) < most)
}

/// Returns the vectors that one step passes to the next.
pub(super) fn carried<M: Recurrence, D: Device, T: Scalar>(operators: &Operators<D, T>) -> &'static [Name] {
    M::FACTS.carried[usize::from(operators.m.is_some())]
}

/// Returns whether a checkpoint at this end is useful: iterations may continue, or the verdict can be
/// reproduced. After a failure the previous checkpoint is kept.
fn worth_saving(stop: Option<Stop>) -> bool {
    match stop {
        Some(Stop::Code(code)) => ENDED.contains(&code),
        Some(Stop::Rule(reason)) => {
            let ended = matches!(
                reason,
                StopReason::Converged
                    | StopReason::ZeroRightHandSide
                    | StopReason::NotSolved { .. }
                    | StopReason::LeastSquares { .. }
                    | StopReason::Stagnated { .. }
            );
            ended || is_limit(&reason)
        }
        None => false,
    }
}

impl<M: Recurrence, D: Device, T: Scalar> Solve<'_, M, D, T> {
    /// Returns whether the solve must be saved between two batches, because an interval has passed.
    pub(super) fn is_due(&self, run: &Run<'_, '_>, state: &SlotState) -> bool {
        let running = state.done.iter().any(|done| StopCode::from_device(*done) == StopCode::Running);
        let now = run.elapsed();
        let due = self.saver.as_ref().is_some_and(|saver| now >= saver.last.saturating_add(saver.every));
        due && running && !self.is_limited() && !is_uneven::<M>(run)
    }

    /// Saves the solve at the end of a run, unless the run failed.
    pub(super) fn save_at_end(
        &mut self,
        run: &Run<'_, '_>,
        operators: &Operators<D, T>,
        work: &mut Work<'_, D, T>,
        state: &SlotState,
    ) {
        let useful = run.tracks.iter().all(|track| worth_saving(track.stop));
        if self.saver.is_some() && useful && !self.is_limited() && !is_uneven::<M>(run) {
            self.save(run, operators, work, state);
        }
        let at_limit = run.tracks.iter().any(|track| is_at_limit(track.stop));
        let untold = |saver: &&mut Saver| at_limit && saver.saved.is_none() && saver.fault.is_none();
        if let Some(saver) = self.saver.as_mut().filter(untold) {
            let fault = "no checkpoint is written: a column has ended in a state from which the solve could not resume \
                         with the same result";
            log::warn!("{fault}");
            saver.fault = Some(fault.to_owned());
        }
    }

    /// Returns whether a limit has ended a column permanently while columns have started again. The
    /// checkpoint before the restart contains the run of the ended column, so it is kept: the column can be
    /// resumed from it once the limit is raised.
    fn is_limited(&self) -> bool {
        // The reason for a column's end is not saved: after resuming, a column that has not met
        // its goal would start again.
        let failed = |column: &Column| {
            !column.meets_goal() && !matches!(column.end, None | Some(StopReason::NotSolved { .. }))
        };
        self.columns.len() > 1 && self.columns.iter().any(failed)
            || self.columns.iter().any(|column| column.end.as_ref().is_some_and(is_limit))
    }

    pub(super) fn save(
        &mut self,
        run: &Run<'_, '_>,
        operators: &Operators<D, T>,
        work: &mut Work<'_, D, T>,
        state: &SlotState,
    ) {
        let Some(mut saver) = self.saver.take() else { return };
        let _span = profile::begin(Phase::Write);
        let began = Instant::now();
        let mut length = 0;
        let device = operators.a.device();
        let ranks = device.ranks();
        let with_numbers = || Some((ranks?.clone(), device.row_numbers().clone()));
        let carried = carried::<M, D, T>(operators);
        let mut collected = false;
        let mut written = Ok(());
        if ranks.is_none_or(Ranks::is_first) {
            written = files::replace(&saver.path, files::Content::Result, true, |file| {
                collected = true;
                let to = Writer::new(file, with_numbers(), &saver.identity)?;
                length = self.write(to, run, (carried, work), state)?;
                Ok(())
            });
        }
        if ranks.is_some() && !collected {
            // This rank sends its rows to the first rank, or the first rank receives them without a file.
            let sent = Writer::new(io::sink(), with_numbers(), &saver.identity)
                .and_then(|to| self.write(to, run, (carried, work), state));
            written = written.and(sent.map(drop));
        }
        let iteration = run.tracks.iter().map(|track| track.now.iteration).max().unwrap_or(0);
        if written.is_ok() {
            log::info!(
                "checkpoint of iteration {iteration}: {length} bytes to {} in {:.2} s",
                saver.path.display(),
                began.elapsed().as_secs_f64()
            );
        }
        saver.note(iteration, written);
        // If writing takes longer than the interval, iterations still run between two checkpoints.
        saver.last = run.elapsed();
        self.saver = Some(saver);
    }

    fn write(
        &mut self,
        mut to: Writer<impl Write>,
        run: &Run<'_, '_>,
        (carried, work): (&[Name], &mut Work<'_, D, T>),
        state: &SlotState,
    ) -> io::Result<u64> {
        let several = self.columns.len() > 1;
        for (index, (column, track)) in self.columns.iter().zip(&*run.tracks).enumerate() {
            let now = &track.now;
            for count in [now.iteration, now.run_began, now.improved_at, column.restarts] {
                to.count(count)?;
            }
            let Column { recursive, initial_rr, energy, energy_mark, .. } = *column;
            to.vector(&[now.residual, recursive, initial_rr, track.lowest, energy, energy_mark])?;
            to.vector(&[now.elapsed.as_secs_f64()])?;
            let coefficients: Vec<f64> = column.coefficients.iter().flat_map(|c| [c.0, c.1]).collect();
            to.vector(&coefficients)?;
            to.vector(&track.log.residuals)?;
            to.vector(&track.log.batches)?;
            self.answer.save(index, &mut to)?;
            if several {
                to.count(usize::from(column.end.is_some() || column.idle))?;
            }
        }
        to.vector(&state.values)?;
        for (done, count) in state.done.iter().zip(&state.counts) {
            to.count(*done as usize)?;
            to.count(*count as usize)?;
        }
        for name in carried {
            self.answer.save_vector(work, *name, &mut to)?;
        }
        to.finish()
    }
}
