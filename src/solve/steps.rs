//! Fixed-point iterations: x becomes the next x until the step is small, and what is true of x, computed anew, decides.
//!
//! PageRank and Markov chains share this frame: what is counted is the l1 norm of a step, times what an error may be for
//! each of it. Where the device, or a pass on the host, says that the tolerance is met, x is looked at; if the truth is
//! worse, because of rounding, iteration goes on to a lower aim, until steps say nothing any more.

use super::recurrence::Recorded;
use super::rounding::sum;
use crate::device::{Device, RING, Slot, SlotState};
use crate::error::{ChainError, Error, Result};
use crate::observe::{Batch, Observer};
use crate::scalar::Scalar;
use crate::solve::pace::Pace;
use crate::stop::{Norms, PROGRESS, Progress, StopCode, StopReason, StoppingRule};
use std::time::{Duration, Instant};

/// How much lower the next aim is than the tolerance, where the truth has missed it.
const LOWER: f64 = 0.5;
/// Below so many roundings a step says nothing.
const FLOOR: f64 = 4.0;
/// How far from 1 a distribution may sum.
const SLACK: f64 = 1e-9;

/// The workspace of such an iteration on a device.
pub(super) trait Steps<D: Device, T: Scalar>: Sized {
    /// The slot of the step to reach.
    const TARGET: Slot;

    /// One iteration, which counts the l1 norm of its step.
    fn step(device: &D, work: &mut Self) -> Result<()>;

    /// What is done beside iterations, before the one after so many; whether it has changed x.
    fn beside(&mut self, _device: &D, _iterations: usize) -> Result<bool> {
        Ok(false)
    }

    /// How many iterations there are until something may have to be done beside them.
    fn undisturbed(&self, _iterations: usize) -> usize {
        usize::MAX
    }

    /// The scalars.
    fn slots(&self) -> &D::Slots;

    /// The scalars.
    fn slots_mut(&mut self) -> &mut D::Slots;

    /// x, or what x is made of.
    fn answer(&self) -> &D::Vector<T>;
}

/// How far an iteration has come, and what watches it.
pub(super) struct Run<'a, 'o> {
    /// All but the tolerance, which is met only in truth.
    rule: StoppingRule,
    observers: &'a mut [&'o mut dyn Observer],
    tolerance: f64,
    /// The error for each of a step.
    factor: f64,
    began: Instant,
    /// Time that looking at x has taken.
    looking: Duration,
    pub now: Progress,
    /// What [`Progress::improved_at`] is measured by.
    lowest: f64,
    /// How often x was changed beside iterations.
    pub jumps: usize,
    values: Vec<f64>,
}

impl<'a, 'o> Run<'a, 'o> {
    pub fn new(rule: &StoppingRule, factor: f64, observers: &'a mut [&'o mut dyn Observer]) -> Run<'a, 'o> {
        let norms = Norms { b: 1.0, initial: 1.0 };
        let elapsed = Duration::ZERO;
        // No two distributions lie farther apart.
        let now = Progress { iteration: 0, residual: 2.0, norms, run_began: 0, improved_at: 0, elapsed };
        Run {
            tolerance: rule.residual_tolerance(&norms).unwrap_or(0.0),
            rule: rule.without_tolerances(),
            observers,
            factor,
            began: Instant::now(),
            looking: Duration::ZERO,
            lowest: now.residual,
            now,
            jumps: 0,
            values: Vec::with_capacity(RING),
        }
    }

    /// Seconds of iterating, and of looking at x.
    pub fn seconds(&self) -> (f64, f64) {
        (self.now.elapsed.as_secs_f64(), self.looking.as_secs_f64())
    }

    fn begin(&mut self) {
        self.began = Instant::now();
        self.tell(0, &[self.now.residual], (0.0, 0.0));
    }

    fn tell(&mut self, first: usize, residuals: &[f64], seconds: (f64, f64)) {
        let batch = Batch { first, residuals, seconds, tolerance: Some(self.tolerance) };
        self.observers.iter_mut().for_each(|o| o.batch(&batch));
    }

    /// Takes in the steps of iterations that have just been done.
    fn take_in(&mut self, steps: impl Iterator<Item = f64>) {
        let (first, before) = (self.now.iteration, self.now.elapsed);
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        for step in steps {
            let value = step * self.factor;
            values.push(value);
            self.now.iteration += 1;
            if value < PROGRESS * self.lowest {
                (self.lowest, self.now.improved_at) = (value, self.now.iteration);
            }
            self.now.residual = value;
        }
        self.now.elapsed = self.began.elapsed().saturating_sub(self.looking);
        if !values.is_empty() {
            self.tell(first, &values, (before.as_secs_f64(), self.now.elapsed.as_secs_f64()));
        }
        self.values = values;
    }

    /// What the truth makes of an end: the reason to believe, or a lower aim to go on with.
    fn judge(
        &self,
        reason: StopReason,
        truth: f64,
        aim: f64,
        rounding: f64,
    ) -> std::result::Result<StopReason, f64> {
        if truth <= self.tolerance {
            return Ok(StopReason::Converged);
        }
        if reason != StopReason::Converged {
            return Ok(reason);
        }
        let lower = aim * LOWER * (self.tolerance / truth).min(1.0);
        // Without an error for a step there is nothing to aim at.
        if self.factor > 0.0 && lower >= self.factor * FLOOR * rounding {
            return Err(lower);
        }
        Ok(StopReason::RoundingGap { estimate: self.now.residual, recomputed: truth })
    }

    fn not_finite(&self, vector: &'static str) -> StopReason {
        StopReason::NotFinite { iteration: self.now.iteration + 1, vector, row: None }
    }

    fn look<R>(&mut self, look: impl FnOnce() -> R) -> R {
        self.observers.iter_mut().for_each(|o| o.phase("checking the answer"));
        let began = Instant::now();
        let seen = look();
        self.looking += began.elapsed();
        seen
    }

    /// Iterates on a device. `look` makes of the answer what is handed back, and computes what is true of it; `vector` is what x
    /// is called.
    pub fn on_device<W: Steps<D, T>, D: Device, T: Scalar>(
        &mut self,
        device: &D,
        mut recorded: Recorded<D, W>,
        mut state: SlotState,
        (n, rounding, vector): (usize, f64, &'static str),
        mut look: impl FnMut(Vec<f64>) -> (Vec<f64>, f64),
    ) -> Result<(StopReason, Vec<f64>)> {
        let (mut pace, mut aim, mut host) = (Pace::default(), self.tolerance, vec![T::default(); n]);
        self.begin();
        loop {
            // With no error for a step, any step will do.
            state.set(W::TARGET, 0, if self.factor > 0.0 { aim / self.factor } else { f64::INFINITY });
            state.done[0] = StopCode::Running as u32;
            let mut work = recorded.into_work();
            device.write(&state, work.slots_mut())?;
            recorded = Recorded::new(device, work, W::step)?;
            let stop = loop {
                let stop = match StopCode::from_device(state.done[0]) {
                    StopCode::Converged => Some(StopReason::Converged),
                    StopCode::NotFinite => Some(self.not_finite(vector)),
                    _ => self.rule.check(&self.now),
                };
                if device.agree(stop.is_some()) {
                    break stop.unwrap_or(StopReason::Interrupted);
                }
                let iterations = self.now.iteration;
                self.jumps += usize::from(recorded.work_mut().beside(device, iterations)?);
                let undisturbed = recorded.work().undisturbed(iterations);
                let longest = D::BATCH.min(self.rule.iterations_left(&self.now)).min(undisturbed).max(1);
                let batch = pace.next(&self.now, Some(aim), longest, recorded.ends_by_itself(device));
                recorded.replay(device, batch)?;
                device.read(recorded.work().slots(), &mut state)?;
                let counted = self.now.iteration..state.counts[0] as usize;
                self.take_in(counted.map(|i| state.counted(i, 0)));
            };
            device.download(recorded.work().answer(), &mut host)?;
            let x = host.iter().map(|v| v.to_f64()).collect();
            let (x, truth) = self.look(|| look(x));
            match self.judge(stop, truth, aim, rounding) {
                Ok(reason) => return Ok((reason, x)),
                Err(lower) => aim = lower,
            }
        }
    }

    /// Iterates on the host; `pass` makes the next x and tells its step.
    pub fn on_host(
        &mut self,
        mut x: Vec<f64>,
        vector: &'static str,
        mut pass: impl FnMut(&mut Vec<f64>, &Progress) -> f64,
        mut look: impl FnMut(Vec<f64>) -> (Vec<f64>, f64),
    ) -> (StopReason, Vec<f64>) {
        let mut aim = self.tolerance;
        self.begin();
        loop {
            let stop = loop {
                if let Some(stop) = self.rule.check(&self.now) {
                    break stop;
                }
                let step = pass(&mut x, &self.now);
                if !step.is_finite() {
                    break self.not_finite(vector);
                }
                self.take_in(std::iter::once(step));
                if self.now.residual <= aim {
                    break StopReason::Converged;
                }
            };
            let (seen, truth) = self.look(|| look(x.clone()));
            match self.judge(stop, truth, aim, f64::EPSILON) {
                Ok(reason) => return (reason, seen),
                Err(lower) => aim = lower,
            }
        }
    }
}

/// Refuses what is no distribution over so many places. Where something may be lost, its sum may be less than 1.
pub(super) fn check_distribution(what: &'static str, vector: &[f64], n: usize, lost: bool) -> Result<()> {
    if vector.len() != n {
        return Err(Error::Dimension { what, expected: n, got: vector.len() });
    }
    let total = sum(vector.iter().copied());
    let whole = if lost { total > 0.0 && total <= 1.0 + SLACK } else { (total - 1.0).abs() <= SLACK };
    if n > 0 && !(whole && vector.iter().all(|v| *v >= 0.0)) {
        return Err(ChainError::NoDistribution { what, sum: total }.into());
    }
    Ok(())
}
