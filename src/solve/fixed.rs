//! Fixed-point iterations: x is replaced by the next x until the step is small; then the error of
//! x, computed anew, decides.
//!
//! PageRank and Markov chains share this family of the loop (`run.rs`). The counted quantity is the l1 norm
//! of a step, times the error bound per unit of step length. When the device, or a pass on the host, reports
//! that the tolerance is met, the error of x is computed. If rounding has made it larger than the tolerance,
//! iteration continues with a lower target, until steps consist of rounding alone.

use super::agree;
use super::part::Part;
use super::rounding::sum;
use super::run::{Family, Iterations, Run, Stop, Tracks};
use crate::device::{Device, Name, Recorded, Slot, SlotState, Work};
use crate::error::{ChainError, Error, Result};
use crate::observe::{Observer, Phase};
use crate::parallel::{collected, zeros};
use crate::scalar::Scalar;
use crate::stop::{Norms, Progress, StopCode, StopReason, StoppingRule};
use std::any::Any;
use std::borrow::Cow;
use std::mem;
use std::time::{Duration, Instant};

/// Factor by which the target falls below the tolerance after the computed error has missed it.
const LOWER: f64 = 0.5;
/// Steps smaller than this many roundings do not estimate the error.
const FLOOR: f64 = 4.0;
/// How much the sum of a distribution may differ from 1.
const SLACK: f64 = 1e-9;

/// The slot of the step length to reach, in every method.
const TARGET: Slot = Slot(1);

/// A fixed-point iteration on a device: the part that is the same in every step. Each step counts a norm: the
/// l1 norm of the change of x, or of P' x - x for a Markov chain by power iteration.
pub(super) trait Steps<D: Device, T: Scalar>: Sized {
    /// x, or the vector that x is computed from.
    const ANSWER: Name;

    /// Performs work between iterations, before the next one. Returns whether it has changed x.
    fn between(&self, _work: &mut Work<'_, D, T>, _iterations: usize) -> Result<bool> {
        Ok(false)
    }

    /// Returns the number of iterations until [`between`](Self::between) may have to do work.
    fn until_next_work(&self, _iterations: usize) -> usize {
        usize::MAX
    }
}

/// How the steps of an iteration are judged.
pub(super) struct Terms<'a> {
    pub rule: &'a StoppingRule,
    /// The error bound per unit of step length.
    pub factor: f64,
    /// The name of x in messages.
    pub vector: &'static str,
}

/// The result of a run.
pub(super) struct Found {
    pub x: Vec<f64>,
    pub reason: StopReason,
    pub iterations: usize,
    /// The error estimated from the last step.
    pub estimate: f64,
    /// How often x was changed between iterations.
    pub jumps: usize,
    /// Seconds of iterating, and of checking x.
    pub seconds: (f64, f64),
}

/// An executor of iterations that stores x.
trait Executor: Iterations {
    /// The unit of rounding of x.
    const ROUNDING: f64;

    /// x on the host, of all columns.
    type Host;

    /// Sets the estimated error that a column must reach, in the state and not yet on the device.
    fn aim(&mut self, column: usize, aim: f64, factor: f64, state: &mut SlotState);

    /// Copies x to the host.
    fn fetch(&self) -> Result<Self::Host>;

    /// Takes x of a column. Each column is taken once.
    fn column(host: &mut Self::Host, column: usize) -> Vec<f64>;
}

/// Iterations on a device.
struct OnDevice<D: Device, T: Scalar, P> {
    recorded: Recorded<D, T, P>,
    jumps: usize,
}

impl<D: Device, T: Scalar, P: Steps<D, T>> Iterations for OnDevice<D, T, P> {
    fn prepare(&mut self, iteration: usize, _: &SlotState) -> Result<usize> {
        let (mut work, steps) = self.recorded.open();
        self.jumps += usize::from(steps.between(&mut work, iteration)?);
        Ok(D::BATCH.min(steps.until_next_work(iteration)))
    }

    fn stops_early(&self) -> bool {
        self.recorded.stops_early()
    }

    fn agree(&self, stop: Option<Stop>) -> Option<Stop> {
        agree::stop(self.recorded.workspace().device(), stop)
    }

    fn least(&self, iterations: usize) -> usize {
        self.recorded.workspace().device().least(iterations)
    }

    fn advance(&mut self, iterations: usize, state: &mut SlotState) -> Result<()> {
        self.recorded.replay(iterations)?;
        self.recorded.workspace().read(state)
    }

    fn write(&mut self, state: &SlotState) -> Result<()> {
        self.recorded.open().0.write(state)
    }
}

impl<D: Device, T: Scalar, P: Steps<D, T>> Executor for OnDevice<D, T, P> {
    const ROUNDING: f64 = T::EPSILON;

    /// The numbers, row-major, and the number of columns.
    type Host = (Vec<T>, usize);

    fn aim(&mut self, column: usize, aim: f64, factor: f64, state: &mut SlotState) {
        // If a step implies no error, any step meets the target.
        state.set(TARGET, column, if factor > 0.0 { aim / factor } else { f64::INFINITY });
    }

    fn fetch(&self) -> Result<(Vec<T>, usize)> {
        let workspace = self.recorded.workspace();
        let (n, k) = workspace.shape();
        let mut host = zeros(n * k)?;
        workspace.download(P::ANSWER, &mut host)?;
        Ok((host, k))
    }

    fn column((host, k): &mut (Vec<T>, usize), column: usize) -> Vec<f64> {
        let whole: &mut dyn Any = host;
        match whole.downcast_mut::<Vec<f64>>() {
            Some(whole) if *k == 1 => mem::take(whole),
            _ => collected(host.len() / *k, |row| host[row * *k + column].to_f64()),
        }
    }
}

/// Passes on the host, which change a state; `answer` returns x.
struct OnHost<X, P, A> {
    state: X,
    pass: P,
    answer: A,
    aim: f64,
    factor: f64,
}

impl<X, P: FnMut(&mut X, usize) -> f64, A> Iterations for OnHost<X, P, A> {
    fn prepare(&mut self, _: usize, _: &SlotState) -> Result<usize> {
        Ok(1)
    }

    fn stops_early(&self) -> bool {
        false
    }

    fn agree(&self, stop: Option<Stop>) -> Option<Stop> {
        stop
    }

    fn least(&self, iterations: usize) -> usize {
        iterations
    }

    fn advance(&mut self, iterations: usize, state: &mut SlotState) -> Result<()> {
        for _ in 0..iterations {
            let step = (self.pass)(&mut self.state, state.counts[0] as usize);
            if !step.is_finite() {
                state.done[0] = StopCode::NotFinite as u32;
                break;
            }
            state.count(0, step);
            if step * self.factor <= self.aim {
                state.done[0] = StopCode::Converged as u32;
                break;
            }
        }
        Ok(())
    }

    fn write(&mut self, _: &SlotState) -> Result<()> {
        Ok(())
    }
}

impl<X, P: FnMut(&mut X, usize) -> f64, A: Fn(&X) -> Result<Vec<f64>>> Executor for OnHost<X, P, A> {
    const ROUNDING: f64 = f64::EPSILON;

    type Host = Vec<f64>;

    fn aim(&mut self, _: usize, aim: f64, factor: f64, _: &mut SlotState) {
        (self.aim, self.factor) = (aim, factor);
    }

    fn fetch(&self) -> Result<Vec<f64>> {
        (self.answer)(&self.state)
    }

    fn column(host: &mut Vec<f64>, _: usize) -> Vec<f64> {
        mem::take(host)
    }
}

/// The family: checks x of each column when iteration ends, and lowers the target if the computed
/// error exceeds the tolerance.
struct Fixed<C> {
    tolerance: f64,
    factor: f64,
    vector: &'static str,
    /// Converts x of a column to the result and computes its error.
    check: C,
    /// The result of each column that needs no more iterations, and the seconds of all its checks.
    found: Vec<Checked>,
}

/// The result of a column, once it needs no more iterations, and the seconds of its checks.
type Checked = (Option<(Vec<f64>, StopReason)>, f64);

impl<C: FnMut(usize, Vec<f64>) -> Result<(Vec<f64>, f64)>> Fixed<C> {
    /// Returns the reason for the end, or a lower target with which iteration continues.
    fn verdict(
        &self,
        reason: StopReason,
        (estimate, truth): (f64, f64),
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
        // If a step implies no error, there is no lower target.
        if self.factor > 0.0 && lower >= self.factor * FLOOR * rounding {
            return Err(lower);
        }
        Ok(StopReason::RoundingGap { estimate, recomputed: truth })
    }

    /// Returns the reason for which the iterations of a column have ended.
    fn reason(&self, run: &Run<'_, '_>, column: usize) -> StopReason {
        let (stop, now) = (run.tracks[column].stop, run.tracks[column].now);
        match stop {
            Some(Stop::Rule(reason)) => reason,
            Some(Stop::Code(StopCode::NotFinite)) => {
                let (iteration, vector) = (now.iteration + 1, self.vector);
                StopReason::NotFinite { iteration, vector, row: None }
            }
            _ => StopReason::Converged,
        }
    }
}

impl<S: Executor, C: FnMut(usize, Vec<f64>) -> Result<(Vec<f64>, f64)>> Family<S> for Fixed<C> {
    fn counted(&mut self, column: usize, iteration: usize, state: &SlotState) -> (f64, bool) {
        (state.counted(iteration, column) * self.factor, false)
    }

    fn judge(&mut self, run: &mut Run<'_, '_>, source: &mut S, state: &mut SlotState) -> Result<bool> {
        let mut host = source.fetch()?;
        let mut again = false;
        for column in 0..run.tracks.len() {
            if self.found[column].0.is_none() {
                let reason = self.reason(run, column);
                let span = run.phase(Phase::Verify, "checking the answer");
                let began = Instant::now();
                let (x, truth) = (self.check)(column, S::column(&mut host, column))?;
                let checking = began.elapsed();
                (run.checking, self.found[column].1) =
                    (run.checking + checking, self.found[column].1 + checking.as_secs_f64());
                drop(span);
                let track = &mut run.tracks[column];
                let (aim, estimate) = (track.aim.unwrap_or(self.tolerance), track.now.residual);
                match self.verdict(reason, (estimate, truth), aim, S::ROUNDING) {
                    Ok(reason) => self.found[column].0 = Some((x, reason)),
                    Err(lower) => {
                        (track.aim, track.stop, again) = (Some(lower), None, true);
                        state.done[column] = StopCode::Running as u32;
                        source.aim(column, lower, self.factor, state);
                        continue;
                    }
                }
            }
            // A rule of the host may have ended the column: it must not continue with the other columns.
            if state.done[column] == StopCode::Running as u32 {
                state.done[column] = StopCode::Limit as u32;
            }
        }
        if again {
            source.write(state)?;
        }
        Ok(again)
    }
}

/// Iterates on a device with a recorded step. `check` converts the answer to the result and
/// computes its error.
pub(super) fn on_device<P: Steps<D, T>, D: Device, T: Scalar>(
    recorded: Recorded<D, T, P>,
    state: SlotState,
    terms: &Terms<'_>,
    observers: &mut [&mut dyn Observer],
    mut check: impl FnMut(Vec<f64>) -> (Vec<f64>, f64),
) -> Result<Found> {
    on_device_columns(recorded, state, terms, observers, |_, x| Ok(check(x))).map(only)
}

/// Iterates all columns of a workspace with a recorded step. `check` converts the answer of a column to the
/// result and computes its error.
pub(super) fn on_device_columns<P: Steps<D, T>, D: Device, T: Scalar>(
    recorded: Recorded<D, T, P>,
    state: SlotState,
    terms: &Terms<'_>,
    observers: &mut [&mut dyn Observer],
    check: impl FnMut(usize, Vec<f64>) -> Result<(Vec<f64>, f64)>,
) -> Result<Vec<Found>> {
    let mut executor = OnDevice { recorded, jumps: 0 };
    let found = iterate(&mut executor, state, terms, observers, check)?;
    Ok(found.into_iter().map(|found| Found { jumps: executor.jumps, ..found }).collect())
}

/// Returns the result of the only column.
fn only(mut found: Vec<Found>) -> Found {
    found.swap_remove(0)
}

/// Iterates on the host; `pass` changes the state to that of the next x, and returns the length of the step,
/// given the number of iterations before. `answer` returns x.
pub(super) fn on_host<X>(
    state: X,
    (pass, answer): (impl FnMut(&mut X, usize) -> f64, impl Fn(&X) -> Result<Vec<f64>>),
    terms: &Terms<'_>,
    observers: &mut [&mut dyn Observer],
    mut check: impl FnMut(Vec<f64>) -> (Vec<f64>, f64),
) -> Result<Found> {
    let mut executor = OnHost { state, pass, answer, aim: 0.0, factor: terms.factor };
    iterate(&mut executor, SlotState::new(0, 1), terms, observers, |_, x| Ok(check(x))).map(only)
}

fn iterate<S: Executor>(
    executor: &mut S,
    mut state: SlotState,
    terms: &Terms<'_>,
    observers: &mut [&mut dyn Observer],
    check: impl FnMut(usize, Vec<f64>) -> Result<(Vec<f64>, f64)>,
) -> Result<Vec<Found>> {
    let Terms { rule, factor, vector } = *terms;
    let norms = Norms { b: 1.0, initial: 1.0 };
    let tolerance = rule.residual_tolerance(&norms).unwrap_or(0.0);
    let elapsed = Duration::ZERO;
    // The largest l1 distance between two distributions.
    let now = Progress { iteration: 0, residual: 2.0, norms, run_began: 0, improved_at: 0, elapsed };
    let (k, mut tracks) = (state.k, Tracks::default());
    // Only the computed error can meet the tolerance.
    let mut run = Run::new(&mut tracks, k, Cow::Owned(rule.without_tolerances()), observers);
    // Smaller steps consist of rounding alone in any precision, and may repeat forever.
    let aim = tolerance.max(factor * FLOOR * f64::EPSILON);
    for column in 0..k {
        run.tracks[column].begin(now, Some(aim));
        executor.aim(column, aim, factor, &mut state);
    }
    executor.write(&state)?;
    let mut family = Fixed { tolerance, factor, vector, check, found: vec![(None, 0.0); k] };
    run.start_clock();
    run.drive(executor, &mut family, &mut state)?;
    let result = |(column, (found, checking)): (usize, Checked)| {
        let now = run.tracks[column].now;
        let (x, reason) = found.unwrap_or_else(|| (Vec::new(), StopReason::Interrupted));
        let seconds = (now.elapsed.as_secs_f64(), checking);
        Found { x, reason, iterations: now.iteration, estimate: now.residual, jumps: 0, seconds }
    };
    Ok(family.found.into_iter().enumerate().map(result).collect())
}

/// Checks that a vector, of which this process has a part of n entries, is a distribution. If probability may
/// be lost, its sum may be less than 1.
pub(super) fn check_distribution(
    what: &'static str,
    vector: &[f64],
    (part, n): (Part<'_>, usize),
    lost: bool,
) -> Result<()> {
    if vector.len() != n {
        return Err(Error::Dimension { what, expected: n, got: vector.len() });
    }
    if part.total(n) == 0 {
        return Ok(());
    }
    let total = part.sum(vector.iter().copied());
    let refused = part.any(!vector.iter().all(|v| *v >= 0.0));
    check_total(what, total, refused, lost)
}

/// Checks that these are the probabilities of a distribution, except those that are 0. If probability may be
/// lost, their sum may be less than 1.
pub(super) fn check_probabilities(what: &'static str, values: &[f64], lost: bool) -> Result<()> {
    check_total(what, sum(values.iter().copied()), !values.iter().all(|v| *v >= 0.0), lost)
}

/// Checks the sum of a distribution; `refused`: one of its numbers is not a probability.
fn check_total(what: &'static str, total: f64, refused: bool, lost: bool) -> Result<()> {
    let whole = if lost { total > 0.0 && total <= 1.0 + SLACK } else { (total - 1.0).abs() <= SLACK };
    if whole && !refused {
        return Ok(());
    }
    Err(ChainError::NoDistribution { what, sum: total }.into())
}
