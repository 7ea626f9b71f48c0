//! Restores a solve from a checkpoint.

use super::Solve;
use super::saving::{ENDED, carried, is_cut};
use crate::device::{Device, Recorded, SlotState, Workspace};
use crate::error::Result;
use crate::observe::Batch;
use crate::scalar::Scalar;
use crate::solve::checkpoint::{Reader, Saved};
use crate::solve::pace::Pace;
use crate::solve::recurrence::{Operators, Recurrence, rest_of_step};
use crate::solve::run::{Run, Stop, Track};
use crate::spectrum::MOST_COEFFICIENTS;
use crate::stop::{StopCode, StopReason};
use std::time::Duration;

/// The longest time in seconds that a checkpoint may record.
const LONGEST: f64 = 1e12;

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

impl<M: Recurrence, D: Device, T: Scalar> Solve<'_, M, D, T> {
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
                // The right-hand side is 0, or the column cannot be solved.
                if self.answer.is_nonzero(index) {
                    let column = index + 1;
                    return Err(saved.fault(format!("its x must be 0 in column {column}, and is not")));
                }
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
            // Columns that ended after whole steps wait, because the rest of a step would exchange
            // the roles of their vectors.
            for (done, track) in state.done.iter_mut().zip(&*run.tracks) {
                if StopCode::from_device(*done) == StopCode::Running && !is_cut::<M>(track) {
                    *done = StopCode::Limit as u32;
                }
            }
            work.write(state)?;
            // Recorded like a whole step, because recording affects rounding. A step has at
            // most two iterations.
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

    /// Decides what happens to a column that had ended when the solve was saved: if it meets the goal, it has
    /// ended permanently; otherwise it waits until columns start again.
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
