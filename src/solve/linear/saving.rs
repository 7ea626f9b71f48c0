//! Saves a solve to a checkpoint and restores it.

use super::{Column, Solve, Task};
use crate::device::{Device, Name, Ranks, Recorded, SlotState, Work, Workspace};
use crate::error::Result;
use crate::files;
use crate::observe::Batch;
use crate::observe::profile::{self, Phase};
use crate::scalar::Scalar;
use crate::solve::answer::Answer;
use crate::solve::checkpoint::{Identity, Reader, Saved, Writer, identity};
use crate::solve::pace::Pace;
use crate::solve::recurrence::{Operators, Recurrence, rest_of_step};
use crate::solve::run::{Log, Run, Stop, Track};
use crate::spectrum::MOST_COEFFICIENTS;
use crate::stop::{StopCode, StopReason, StoppingRule};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Iterations for which the history reserves memory at the start.
const RESERVED: usize = 1 << 16;

/// The longest time in seconds that a checkpoint may record.
const LONGEST: f64 = 1e12;
/// The codes that ended columns may have in a checkpoint.
const ENDED: [StopCode; 3] = [StopCode::Converged, StopCode::LeastSquares, StopCode::Limit];

/// Saves checkpoints of a solve.
pub(super) struct Saver {
    path: PathBuf,
    every: Duration,
    identity: Identity,
    /// When the last checkpoint was due, on the clock of the solve.
    last: Duration,
    /// The newest complete checkpoint that could not be renamed to `path`.
    kept: Option<PathBuf>,
    /// Whether this process has written a checkpoint, or has said why there is none.
    told: bool,
}

/// Reserves memory for the history of a column in a solve with checkpoints.
pub(super) fn reserve(log: &mut Log, rule: &StoppingRule) {
    let capacity = rule.most_iterations().unwrap_or(RESERVED).min(RESERVED) + 1;
    log.residuals.reserve(capacity);
    log.batches.reserve(2 * capacity);
}

/// Sends the history in a checkpoint to the observers.
fn replay(run: &mut Run<'_, '_>, column: usize) -> std::result::Result<(), String> {
    let Run { tracks, observers, .. } = run;
    let Track { log, tolerance, .. } = &tracks[column];
    let (mut done, mut from) = (0, 0.0);
    for batch in log.batches.as_chunks::<2>().0 {
        let end = (batch[0] as usize).saturating_add(done);
        let residuals = log.residuals.get(done..end).ok_or("its history is incomplete")?;
        // The first batch contains only the initial residual.
        let (first, seconds) = (done.saturating_sub(1), (from, batch[1]));
        let batch = Batch { column, first, residuals, seconds, tolerance: *tolerance };
        observers.iter_mut().for_each(|o| o.batch(&batch));
        (done, from) = (end, batch.seconds.1);
    }
    if done == log.residuals.len() { Ok(()) } else { Err("its history is incomplete".to_owned()) }
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
        ("method", task.name.to_owned()),
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
        told: false,
    });
    Ok((saver, saved))
}

/// Returns whether a column has ended in the middle of a step.
fn is_cut<M: Recurrence>(track: &Track) -> bool {
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

/// Returns whether a limit has stopped a column of a block while others went on: the directions of a block belong to all its
/// columns, so this column could not continue with them.
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

/// Returns whether a checkpoint at this end is useful: iterations may continue, or the verdict can be reproduced. After a failure
/// the previous checkpoint is kept.
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

impl<A: Answer<D, T>, M: Recurrence, D: Device, T: Scalar> Solve<'_, A, M, D, T> {
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
        if let Some(saver) = self.saver.as_mut().filter(|saver| at_limit && !saver.told) {
            saver.told = true;
            log::warn!(
                "no checkpoint is written: a column has ended in a state from which the solve could not resume with the same result"
            );
        }
    }

    /// Returns whether a limit has ended a column permanently while columns have started again. The checkpoint before the restart
    /// contains the run of the ended column, so it is kept: the column can be resumed from it once the limit is raised.
    fn is_limited(&self) -> bool {
        // The reason for a column's end is not saved: after resuming, a column that has not met its goal would start again.
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
        // Only the newest complete checkpoint is kept.
        let kept = written.as_ref().err().and_then(files::kept).map(Path::to_owned);
        if (written.is_ok() || kept.is_some())
            && let Some(older) = std::mem::replace(&mut saver.kept, kept)
        {
            let _ = std::fs::remove_file(older);
        }
        let iteration = run.tracks.iter().map(|track| track.now.iteration).max().unwrap_or(0);
        let path = saver.path.display();
        match written {
            Ok(()) => log::info!(
                "checkpoint of iteration {iteration}: {length} bytes to {path} in {:.2} s",
                began.elapsed().as_secs_f64()
            ),
            Err(e) => log::warn!(
                "the checkpoint of iteration {iteration} could not be written to {path}: {e}; an earlier one \
                 is kept, and the solve continues"
            ),
        }
        saver.told = true;
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

    /// Restores a workspace, and the host's copy of its scalars, from a checkpoint.
    pub(super) fn resume(
        &mut self,
        run: &mut Run<'_, '_>,
        mut space: Workspace<D, T>,
        operators: &Operators<D, T>,
        state: &mut SlotState,
        saved: &Saved,
    ) -> Result<Workspace<D, T>> {
        let mut from = saved.state()?;
        state.clear();
        (self.read_host(&mut from, run, state).and_then(|()| self.check_counts(run, state)))
            .map_err(|reason| saved.fault(reason))?;
        for index in 0..self.columns.len() {
            if self.columns[index].end.is_some() {
                continue;
            }
            // The residual of x is computed from x and not read from the file.
            let norm_a = self.norm_of_a(index);
            let aim = self.columns[index].aim(norm_a);
            let truth = self.answer.measure_again(index, &aim);
            if !truth.residual.is_finite() {
                return Err(saved.fault("its x is not finite, or b - A x is not".to_owned()));
            }
            self.columns[index].truth = truth;
            replay(run, index).map_err(|reason| saved.fault(reason))?;
            self.leave_idle(run, index);
        }
        let mut work = space.work();
        for name in carried::<M, D, T>(operators) {
            self.answer.load_vector(&mut work, *name, &mut from).map_err(|reason| saved.fault(reason))??;
        }
        from.finish().map_err(|reason| saved.fault(reason))?;
        self.bound(run, state);
        let most = run.rule.most_iterations();
        let mut cut = false;
        for (done, track) in state.done.iter_mut().zip(&*run.tracks) {
            let more = track.stop.is_none() && most.is_none_or(|most| track.now.iteration < most);
            if more && StopCode::from_device(*done) == StopCode::Limit {
                *done = StopCode::Running as u32;
                cut |= is_cut::<M>(track);
            }
        }
        if cut {
            let all = state.done.clone();
            // Columns that ended after whole steps wait, because the rest of a step would exchange the roles of their vectors.
            for (done, track) in state.done.iter_mut().zip(&*run.tracks) {
                if StopCode::from_device(*done) == StopCode::Running && !is_cut::<M>(track) {
                    *done = StopCode::Limit as u32;
                }
            }
            work.write(state)?;
            // Recorded like a whole step, because recording affects rounding. A step has at most two iterations.
            let mut recorded = Recorded::new(space, operators.clone(), rest_of_step::<M, D, T>)?;
            recorded.replay(1)?;
            space = recorded.into_parts().0;
            space.read(state)?;
            for ((done, before), track) in state.done.iter_mut().zip(all).zip(&*run.tracks) {
                if !is_cut::<M>(track) {
                    *done = before;
                }
            }
            space.work().write(state)?;
        } else {
            work.write(state)?;
        }
        let seconds = run.earlier.as_secs_f64();
        log::info!("resuming from iteration {}, after {seconds:.2} s", run.tracks[0].now.iteration);
        Ok(space)
    }

    /// Decides what happens to a column that had ended when the solve was saved: if it meets the goal, it has ended permanently;
    /// otherwise it waits until columns start again.
    fn leave_idle(&mut self, run: &mut Run<'_, '_>, index: usize) {
        let column = &mut self.columns[index];
        if !column.idle {
            return;
        }
        run.tracks[index].stop = Some(Stop::Rule(StopReason::Converged));
        if column.meets_goal() {
            column.end = Some(StopReason::Converged);
        }
    }

    /// Reads the host's part of a checkpoint.
    fn read_host(
        &mut self,
        from: &mut Reader<'_>,
        run: &mut Run<'_, '_>,
        state: &mut SlotState,
    ) -> std::result::Result<(), String> {
        let several = self.columns.len() > 1;
        for (index, column) in self.columns.iter_mut().enumerate() {
            let track = &mut run.tracks[index];
            let now = &mut track.now;
            for count in [&mut now.iteration, &mut now.run_began, &mut now.improved_at, &mut column.restarts]
            {
                *count = from.count()?;
            }
            let numbers = [
                &mut now.residual,
                &mut column.recursive,
                &mut column.initial_rr,
                &mut track.lowest,
                &mut column.energy,
                &mut column.energy_mark,
            ];
            let read = from.vector::<f64>(numbers.len())?;
            numbers.into_iter().zip(read).for_each(|(number, saved)| *number = saved);
            let seconds = from.vector::<f64>(1)?[0];
            if !(0.0..=LONGEST).contains(&seconds) {
                return Err(format!("its time is {seconds} s"));
            }
            now.elapsed = Duration::from_secs_f64(seconds);
            run.earlier = run.earlier.max(now.elapsed);
            column.earlier_iterations = now.iteration;
            track.pace = Pace::since(now);
            let coefficients = from.list::<f64>()?;
            column.coefficients.extend(coefficients.as_chunks::<2>().0.iter().map(|c| (c[0], c[1])));
            (track.log.residuals, track.log.batches) = (from.list()?, from.list()?);
            track.log.begun = true;
            self.answer.load(index, from)?;
            column.idle = several && from.count()? > 0;
        }
        state.values = from.vector(state.values.len())?;
        let narrow = |count: usize| u32::try_from(count).map_err(|_| format!("{count} is out of range"));
        for (done, count) in state.done.iter_mut().zip(&mut state.counts) {
            *done = narrow(from.count()?)?;
            StopCode::from_code(*done).ok_or_else(|| format!("its stop code {done} is unknown"))?;
            *count = narrow(from.count()?)?;
        }
        if let Some(saver) = &mut self.saver {
            saver.last = run.earlier;
        }
        Ok(())
    }

    /// Refuses counts that no solve can have saved.
    fn check_counts(&self, run: &Run<'_, '_>, state: &SlotState) -> std::result::Result<(), String> {
        let fits = self.columns.iter().zip(&*run.tracks).enumerate().all(|(index, (column, track))| {
            let (now, code) = (&track.now, StopCode::from_device(state.done[index]));
            state.counts[index] as usize == now.iteration
                && now.run_began <= now.iteration
                && (now.run_began == 0 || column.restarts > 0)
                && (now.run_began..=now.iteration).contains(&now.improved_at)
                // Every run except the first one does iterations or is the last.
                && column.restarts <= now.iteration + 1
                && column.coefficients.len() <= now.iteration.min(MOST_COEFFICIENTS)
                && track.log.residuals.len() == now.iteration + 1
                && match code {
                    StopCode::Running => {
                        state.done[index] == 0
                            && (now.iteration - now.run_began).is_multiple_of(M::FACTS.stride)
                    }
                    // If there are several columns, one may have failed when the solve was saved.
                    _ => self.columns.len() > 1 || ENDED.iter().any(|code| *code as u32 == state.done[index]),
                }
        });
        if fits { Ok(()) } else { Err("its counts of iterations contradict each other".to_owned()) }
    }
}
