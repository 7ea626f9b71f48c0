//! Fixed-point iterations: x becomes the next x until the step is small, and what is true of x, computed anew, decides.
//!
//! PageRank and Markov chains share this family of the loop (`run.rs`): what is counted is the l1 norm of a step, times the
//! error bound per unit of step length. Where the device, or a pass on the host, says that the tolerance is met, x is
//! measured; if the truth is worse, because of rounding, iteration goes on to a lower aim, until steps are all rounding.

use super::rounding::sum;
use super::run::{Family, Iterations, Run, Stop, Tracks};
use crate::device::{Device, Name, Recorded, Slot, SlotState, Work};
use crate::error::{ChainError, Error, Result};
use crate::observe::Observer;
use crate::scalar::Scalar;
use crate::stop::{Norms, Progress, StopCode, StopReason, StoppingRule};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// How much lower the next aim is than the tolerance, where the truth has missed it.
const LOWER: f64 = 0.5;
/// Steps smaller than this many roundings do not estimate the error.
const FLOOR: f64 = 4.0;
/// How far from 1 a distribution may sum.
const SLACK: f64 = 1e-9;

/// The slot of the step to reach, in every method.
const TARGET: Slot = Slot(1);

/// Such an iteration on a device: what stays the same from step to step. A step counts the l1 norm of its own length.
pub(super) trait Steps<D: Device, T: Scalar>: Sized {
    /// x, or what x is made of.
    const ANSWER: Name;

    /// Does what is due between iterations, before the next one. Returns whether it has changed x.
    fn between(&self, _work: &mut Work<'_, D, T>, _iterations: usize) -> Result<bool> {
        Ok(false)
    }

    /// How many iterations there are until something may be due between them.
    fn undisturbed(&self, _iterations: usize) -> usize {
        usize::MAX
    }
}

/// How the steps of an iteration are judged.
pub(super) struct Terms<'a> {
    pub rule: &'a StoppingRule,
    /// The error bound per unit of step length.
    pub factor: f64,
    /// What x is called.
    pub vector: &'static str,
}

/// What a run has come to.
pub(super) struct Found {
    pub x: Vec<f64>,
    pub reason: StopReason,
    pub iterations: usize,
    /// The error by the last step.
    pub estimate: f64,
    /// How often x was changed between iterations.
    pub jumps: usize,
    /// Seconds of iterating, and of looking at x.
    pub seconds: (f64, f64),
}

/// Where x lies and iterations are done.
trait Place: Iterations {
    /// The unit of rounding of x.
    const ROUNDING: f64;

    /// Sets the estimated error to reach.
    fn aim(&mut self, aim: f64, factor: f64, state: &mut SlotState) -> Result<()>;

    /// x on the host.
    fn fetch(&self) -> Result<Vec<f64>>;
}

/// Iterations on a device.
struct OnDevice<D: Device, T: Scalar, P> {
    recorded: Recorded<D, T, P>,
    jumps: usize,
}

impl<D: Device, T: Scalar, P: Steps<D, T>> Iterations for OnDevice<D, T, P> {
    fn prepare(&mut self, iteration: usize) -> Result<usize> {
        let (mut work, steps) = self.recorded.open();
        self.jumps += usize::from(steps.between(&mut work, iteration)?);
        Ok(D::BATCH.min(steps.undisturbed(iteration)))
    }

    fn ends_by_itself(&self) -> bool {
        self.recorded.ends_by_itself()
    }

    fn agree(&self, stop: bool) -> bool {
        self.recorded.workspace().device().agree(stop)
    }

    fn advance(&mut self, iterations: usize, state: &mut SlotState) -> Result<()> {
        self.recorded.replay(iterations)?;
        self.recorded.workspace().read(state)
    }

    fn write(&mut self, state: &SlotState) -> Result<()> {
        self.recorded.open().0.write(state)
    }
}

impl<D: Device, T: Scalar, P: Steps<D, T>> Place for OnDevice<D, T, P> {
    const ROUNDING: f64 = T::EPSILON;

    fn aim(&mut self, aim: f64, factor: f64, state: &mut SlotState) -> Result<()> {
        // With no error for a step, any step will do.
        state.set(TARGET, 0, if factor > 0.0 { aim / factor } else { f64::INFINITY });
        self.write(state)
    }

    fn fetch(&self) -> Result<Vec<f64>> {
        let workspace = self.recorded.workspace();
        let mut host = vec![T::default(); workspace.shape().0];
        workspace.download(P::ANSWER, &mut host)?;
        Ok(host.iter().map(|v| v.to_f64()).collect())
    }
}

/// Passes on the host.
struct OnHost<P> {
    x: Vec<f64>,
    pass: P,
    aim: f64,
    factor: f64,
}

impl<P: FnMut(&mut Vec<f64>, usize) -> f64> Iterations for OnHost<P> {
    fn prepare(&mut self, _: usize) -> Result<usize> {
        Ok(1)
    }

    fn ends_by_itself(&self) -> bool {
        false
    }

    fn agree(&self, stop: bool) -> bool {
        stop
    }

    fn advance(&mut self, iterations: usize, state: &mut SlotState) -> Result<()> {
        for _ in 0..iterations {
            let step = (self.pass)(&mut self.x, state.counts[0] as usize);
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

impl<P: FnMut(&mut Vec<f64>, usize) -> f64> Place for OnHost<P> {
    const ROUNDING: f64 = f64::EPSILON;

    fn aim(&mut self, aim: f64, factor: f64, _: &mut SlotState) -> Result<()> {
        (self.aim, self.factor) = (aim, factor);
        Ok(())
    }

    fn fetch(&self) -> Result<Vec<f64>> {
        Ok(self.x.clone())
    }
}

/// The family: looks at x where iteration ends, and lowers the aim where the truth has missed the tolerance.
struct Fixed<L> {
    tolerance: f64,
    factor: f64,
    vector: &'static str,
    /// Makes of x what is handed back, and computes what is true of it.
    look: L,
    found: Option<(Vec<f64>, StopReason)>,
}

impl<L: FnMut(Vec<f64>) -> (Vec<f64>, f64)> Fixed<L> {
    /// What the truth makes of an end: the reason to believe, or a lower aim to go on with.
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
        // Without an error for a step there is nothing to aim at.
        if self.factor > 0.0 && lower >= self.factor * FLOOR * rounding {
            return Err(lower);
        }
        Ok(StopReason::RoundingGap { estimate, recomputed: truth })
    }
}

impl<S: Place, L: FnMut(Vec<f64>) -> (Vec<f64>, f64)> Family<S> for Fixed<L> {
    fn counted(&mut self, column: usize, iteration: usize, state: &SlotState) -> (f64, bool) {
        (state.counted(iteration, column) * self.factor, false)
    }

    fn judge(&mut self, run: &mut Run<'_, '_>, source: &mut S, state: &mut SlotState) -> Result<bool> {
        let (stop, now) = (run.tracks[0].stop, run.tracks[0].now);
        let reason = match stop {
            Some(Stop::Rule(reason)) => reason,
            Some(Stop::Code(StopCode::NotFinite)) => {
                let (iteration, vector) = (now.iteration + 1, self.vector);
                StopReason::NotFinite { iteration, vector, row: None }
            }
            _ => StopReason::Converged,
        };
        let x = source.fetch()?;
        run.phase("checking the answer");
        let began = Instant::now();
        let (x, truth) = (self.look)(x);
        run.looking += began.elapsed();
        let aim = run.tracks[0].aim.unwrap_or(self.tolerance);
        match self.verdict(reason, (now.residual, truth), aim, S::ROUNDING) {
            Ok(reason) => {
                self.found = Some((x, reason));
                Ok(false)
            }
            Err(lower) => {
                run.tracks[0].aim = Some(lower);
                run.tracks[0].stop = None;
                state.done[0] = StopCode::Running as u32;
                source.aim(lower, self.factor, state)?;
                Ok(true)
            }
        }
    }
}

/// Iterates on a device with a step that has been recorded. `look` makes of the answer what is handed
/// back, and computes what is true of it.
pub(super) fn on_device<P: Steps<D, T>, D: Device, T: Scalar>(
    recorded: Recorded<D, T, P>,
    state: SlotState,
    terms: &Terms<'_>,
    observers: &mut [&mut dyn Observer],
    look: impl FnMut(Vec<f64>) -> (Vec<f64>, f64),
) -> Result<Found> {
    let mut place = OnDevice { recorded, jumps: 0 };
    let found = iterate(&mut place, state, terms, observers, look)?;
    Ok(Found { jumps: place.jumps, ..found })
}

/// Iterates on the host; `pass` makes the next x and returns its step, given the number of iterations before.
pub(super) fn on_host(
    x: Vec<f64>,
    pass: impl FnMut(&mut Vec<f64>, usize) -> f64,
    terms: &Terms<'_>,
    observers: &mut [&mut dyn Observer],
    look: impl FnMut(Vec<f64>) -> (Vec<f64>, f64),
) -> Result<Found> {
    let mut place = OnHost { x, pass, aim: 0.0, factor: terms.factor };
    iterate(&mut place, SlotState::new(0, 1), terms, observers, look)
}

fn iterate<S: Place>(
    place: &mut S,
    mut state: SlotState,
    terms: &Terms<'_>,
    observers: &mut [&mut dyn Observer],
    look: impl FnMut(Vec<f64>) -> (Vec<f64>, f64),
) -> Result<Found> {
    let Terms { rule, factor, vector } = *terms;
    let norms = Norms { b: 1.0, initial: 1.0 };
    let tolerance = rule.residual_tolerance(&norms).unwrap_or(0.0);
    let elapsed = Duration::ZERO;
    // No two distributions lie farther apart.
    let now = Progress { iteration: 0, residual: 2.0, norms, run_began: 0, improved_at: 0, elapsed };
    let mut tracks = Tracks::default();
    // The tolerance is met only in truth.
    let mut run = Run::new(&mut tracks, 1, Cow::Owned(rule.without_tolerances()), observers);
    run.tracks[0].begin(now, Some(tolerance));
    place.aim(tolerance, factor, &mut state)?;
    let mut family = Fixed { tolerance, factor, vector, look, found: None };
    run.start_clock();
    run.drive(place, &mut family, &mut state)?;
    let (now, looking) = (run.tracks[0].now, run.looking);
    let (x, reason) = family.found.unwrap_or_else(|| (Vec::new(), StopReason::Interrupted));
    let seconds = (now.elapsed.as_secs_f64(), looking.as_secs_f64());
    Ok(Found { x, reason, iterations: now.iteration, estimate: now.residual, jumps: 0, seconds })
}

/// Refuses a vector that is no distribution over n places. Where probability may be lost, its sum may be less than 1.
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
