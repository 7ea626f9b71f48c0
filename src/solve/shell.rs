//! The shell round every method: runs it, judges what it finds, and starts it again where rounding has misled it.
//!
//! # Restarts
//! A recurrence goes on to fall when the residual b - A x that it stands for no longer does: rounding parts the two. So
//! when the recursion meets the tolerance (or a run stagnates), r = b - A x is computed on the host in double precision
//! with the matrix as its source gave it. If that misses the tolerance, A d = r is solved from d = 0 and x + d is the
//! next x, kept in double precision: residual replacement for vectors in double precision, iterative refinement for
//! vectors in single. This goes on as long as each run at least halves the true residual; a run that does not is the
//! last, and one that makes it larger is undone. A least-squares solution is tried the same way: it stands if a second
//! run finds nothing better. A run is not asked for more than [`FLOOR`] of what it began with: below that a
//! recursion says nothing. Iterations count on over restarts.
//!
//! # Range
//! Every run solves for a residual that is divided by a power of two near its largest entry, which rounds nothing: so
//! products of the vectors stay in range whatever the scale of b. Where a small matrix takes p'Ap out of it all the same,
//! the next run begins with a large residual again. A method that squares entries of A runs on sigma A, with a power of
//! two sigma, where A is very large or very small.
//!
//! # Reference
//! C. B. Moler, Iterative refinement in floating point, J. ACM 14, 1967; H. A. van der Vorst and Q. Ye, Residual
//! replacement strategies for Krylov subspace iterative methods, SIAM J. Sci. Comput. 22, 2000.

mod begin;
mod judge;
mod saving;
mod scales;
mod space;

use super::checkpoint::Checkpoints;
use super::pace::Pace;
use super::recurrence::{CEILING, FIRST, Operators, RR, Recorded, Recurrence, SECOND, TARGET};
use super::verdict::{largest_magnitude, norm};
use super::{Outcome, System};
use crate::device::{Device, SlotState};
use crate::error::{Error, Result};
use crate::observe::{Batch, Observer};
use crate::scalar::Scalar;
use crate::spectrum::{MOST_COEFFICIENTS, Tridiagonal};
use crate::stop::{Norms, PROGRESS, Progress, StopCode, StopReason, StoppingRule};
use begin::{check, outcome, tell_start};
use saving::{Keeper, Log};
use scales::{matrix_scale, scale};
use space::Space;
use std::time::{Duration, Instant};

/// The most that a run reduces a recursive residual by, in units of the vectors' rounding.
const FLOOR: f64 = 64.0;
/// A run must bring the true residual below this part of what it was, or it is the last.
const GAIN: f64 = 0.5;

/// A method made ready for a matrix. Vectors, the recorded step and the memory of the host stay from one solve to the next: a
/// solve after the first allocates nothing where it converges, but for a factor that estimates its error the first time it is
/// needed.
pub(super) struct Shell<M: Recurrence<D, T>, D: Device, T: Scalar> {
    operators: Operators<D, T>,
    /// From the first solve on.
    recorded: Option<Recorded<D, M>>,
    /// The host's copy of the scalars.
    state: SlotState,
    space: Space<T>,
}

/// A [`Shell`] of any method.
pub(super) trait Solves<D: Device, T: Scalar>: Send {
    /// Solves a system and leaves the answer in `x`; see the module.
    fn solve(
        &mut self,
        device: &D,
        task: &Task<'_>,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Outcome>;
}

/// Sets a projection out of the coefficients of iterations.
type Project = fn(&[(f64, f64)], &mut Tridiagonal);

/// A solve in hand: the answer so far, what watches it, and how far it has come.
struct Solve<'a, 'o, T> {
    system: &'a System<'a>,
    rule: &'a StoppingRule,
    observers: &'a mut [&'o mut dyn Observer],
    /// x, b - A x and all other memory of the host.
    space: &'a mut Space<T>,
    /// Norm of that residual, relative to b, and a bound on it that includes rounding.
    truth: f64,
    at_most: f64,
    /// The normwise backward error of x.
    backward_error: f64,
    /// What the residual of this run was divided by, and the square of the norm that the device saw at its beginning.
    scale: f64,
    began_with: f64,
    /// The power of two that the method multiplies A by.
    sigma: f64,
    /// The norm that the device sees for a residual as large as b.
    unit: f64,
    /// Norm of the recursive residual at the end of the run that has found x, relative to b.
    recursive: f64,
    /// Makes the projection of A out of coefficients; none where they belong to M A.
    project: Option<Project>,
    /// Runs before this one.
    restarts: usize,
    /// The residual to reach, relative to b.
    goal: f64,
    now: Progress,
    pace: Pace,
    /// When this process began to iterate, and the time that others have spent on the solve before.
    began: Instant,
    earlier: Duration,
    /// Iterations that they had done.
    earlier_iterations: usize,
    /// What [`Progress::improved_at`] is measured by.
    lowest: f64,
    energy: f64,
    energy_mark: f64,
    /// What observers were told, kept where the solve is saved, and what saves it.
    log: Log,
    keeper: Option<Keeper>,
}

/// What is solved, and when it ends.
pub(super) struct Task<'a> {
    pub name: &'static str,
    pub system: &'a System<'a>,
    pub rule: &'a StoppingRule,
    pub checkpoints: &'a Checkpoints,
}

impl<M: Recurrence<D, T>, D: Device, T: Scalar> Shell<M, D, T> {
    /// A shell that allocates when it first solves.
    pub fn new(operators: Operators<D, T>) -> Shell<M, D, T> {
        Shell { operators, recorded: None, state: SlotState::new(M::SLOTS, 1), space: Space::default() }
    }
}

impl<M: Recurrence<D, T>, D: Device, T: Scalar> Solves<D, T> for Shell<M, D, T> {
    fn solve(
        &mut self,
        device: &D,
        task: &Task<'_>,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Outcome> {
        let began = Instant::now();
        let Shell { operators, recorded, state, space } = self;
        let Task { system, rule, .. } = *task;
        let rule = &*rule.in_steps_of(M::STRIDE);
        let n = check(task.name, operators.a.shape(), system, x)?;
        let (keeper, saved) = saving::prepare::<M, D, T>(device, operators, task)?;
        let mut outcome = outcome::<M, D, T>(operators, n);
        let largest = largest_magnitude(system.b.iter().copied());
        if largest == 0.0 {
            x.fill(0.0);
            tell_start(observers, 0.0, None);
            return Ok(outcome);
        }
        if recorded.is_none() {
            device.require_memory("the vectors of a solve", outcome.vector_bytes)?;
        }
        let norm_b = norm(system.b);
        if !norm_b.is_normal() {
            return Err(Error::RightHandSideScale { largest, norm_squared: norm_b * norm_b });
        }
        space.make_ready(n, rule.most_iterations())?;
        let mut solve = Solve::new(device, system, rule, observers, norm_b, space)?;
        solve.project = operators.m.is_none().then_some(M::project as Project);
        let norms = solve.now.norms;
        outcome.goal = rule.goal(&norms);
        if solve.meets() {
            outcome.reason = StopReason::Converged;
            tell_start(solve.observers, norms.initial, rule.residual_tolerance(&norms));
            return Ok(solve.judged(outcome, x));
        }
        if M::SCALES && operators.m.is_none() {
            solve.sigma = system.matrix.stored().map_or(1.0, matrix_scale::<T>);
        }
        let recorded = match &saved {
            Some(saved) => {
                let work = recorded.take().map(Recorded::into_work);
                let work = work.map_or_else(|| M::new(device, operators.clone(), n), Ok)?;
                let work = solve.go_on(device, work, state, saved)?;
                recorded.insert(Recorded::new(device, work, M::step)?)
            }
            None => {
                let recorded = match recorded {
                    Some(recorded) => {
                        recorded.work_mut().clear(device)?;
                        recorded
                    }
                    None => {
                        let work = M::new(device, operators.clone(), n)?;
                        recorded.insert(Recorded::new(device, work, M::step)?)
                    }
                };
                solve.begin(device, recorded.work_mut(), state)?;
                recorded
            }
        };
        if saved.is_none() && !state.get(RR, 0).is_normal() {
            return Err(Error::RightHandSideScale { largest, norm_squared: state.get(RR, 0) });
        }
        drop(saved);
        device.synchronize()?;
        outcome.seconds_setup = began.elapsed().as_secs_f64();
        solve.keep_by(keeper);
        solve.began = Instant::now();
        solve.run(device, recorded, state, &mut outcome)?;
        Ok(solve.judged(outcome, x))
    }
}

impl<T: Scalar> Solve<'_, '_, T> {
    /// Runs and starts again until the answer meets the goal, or no further run may bring it there.
    fn run<M: Recurrence<D, T>, D: Device>(
        &mut self,
        device: &D,
        recorded: &mut Recorded<D, M>,
        state: &mut SlotState,
        outcome: &mut Outcome,
    ) -> Result<()> {
        loop {
            let before = self.truth;
            let reason = self.iterate(device, recorded, state)?;
            self.observers.iter_mut().for_each(|o| o.phase("checking the answer"));
            let work = recorded.work_mut();
            let reason = work.verify(device, reason, state, self.now.run_began)?;
            let reason = self.locate(device, reason, work)?;
            let reason = self.underflown(device, reason, work)?;
            let (reason, better) = self.collect(device, work, state, reason)?;
            let reason = self.measured(reason);
            let gained = better && (self.restarts == 0 || self.truth <= GAIN * before);
            let restart = gained && self.may_restart(&reason);
            let against = if restart { self.rule_against_restart() } else { None };
            if !restart || against.is_some() {
                outcome.reason = self.believe(reason, against);
                break;
            }
            self.restarts += 1;
            work.clear(device)?;
            self.begin(device, work, state)?;
        }
        let Space { coefficients, projection, .. } = &mut *self.space;
        M::project(coefficients, projection);
        outcome.spectrum = projection.extremes().map(|s| s.of_multiple(self.sigma));
        if outcome.reason == StopReason::Converged {
            self.observers.iter_mut().for_each(|o| o.phase("estimating the error"));
            let estimate = self.error_estimate(device, recorded.work_mut(), outcome.spectrum);
            // The answer is worth more than an estimate of its error.
            outcome.error_estimate = estimate.unwrap_or_else(|e| {
                log::warn!("the error of x could not be estimated: {e}");
                None
            });
        }
        Ok(())
    }

    /// Where NaN or infinity stands, if that is why the run ended.
    fn locate<M: Recurrence<D, T>, D: Device>(
        &mut self,
        device: &D,
        reason: StopReason,
        work: &M,
    ) -> Result<StopReason> {
        let StopReason::NotFinite { iteration, .. } = reason else { return Ok(reason) };
        let host = &mut self.space.host;
        for (vector, suspect) in work.suspects() {
            device.download(suspect, host)?;
            if let Some(row) = host.iter().position(|v| !v.to_f64().is_finite()) {
                return Ok(StopReason::NotFinite { iteration, vector, row: Some(row) });
            }
        }
        Ok(reason)
    }
}

impl<'a, 'o, T: Scalar> Solve<'a, 'o, T> {
    /// A solve that has not begun, at the start of the system.
    fn new<D: Device>(
        device: &D,
        system: &'a System<'a>,
        rule: &'a StoppingRule,
        observers: &'a mut [&'o mut dyn Observer],
        norm_b: f64,
        space: &'a mut Space<T>,
    ) -> Result<Solve<'a, 'o, T>> {
        let elapsed = Duration::ZERO;
        let norms = Norms { b: norm_b, initial: 1.0 };
        let mut solve = Solve {
            system,
            rule,
            observers,
            space,
            truth: 1.0,
            at_most: 1.0,
            // That of x = 0, whose residual is b.
            backward_error: 1.0,
            scale: 1.0,
            began_with: 1.0,
            sigma: 1.0,
            unit: 1.0,
            recursive: 1.0,
            project: None,
            restarts: 0,
            goal: 0.0,
            now: Progress { iteration: 0, residual: 1.0, norms, run_began: 0, improved_at: 0, elapsed },
            pace: Pace::default(),
            began: Instant::now(),
            earlier: Duration::ZERO,
            earlier_iterations: 0,
            lowest: 1.0,
            energy: 0.0,
            energy_mark: 0.0,
            log: Log::default(),
            keeper: None,
        };
        solve.start(device)?;
        Ok(solve)
    }

    /// Measures the residual of the start, to which tolerances may be relative.
    fn start<D: Device>(&mut self, device: &D) -> Result<()> {
        // A tolerance relative to the residual of the start is below that residual, so the start cannot meet it.
        let unknown = Norms { initial: 0.0, ..self.now.norms };
        self.goal = self.rule.goal(&unknown).unwrap_or(0.0);
        match self.system.x0 {
            // Without rounding: b - A 0 = b.
            None => {
                // Pages that nothing has touched are zero, and take no time yet.
                if !self.space.fresh {
                    self.space.x.fill(0.0);
                }
                self.space.r.copy_from_slice(self.system.b);
            }
            Some(x0) => {
                self.space.x.copy_from_slice(x0);
                self.measure_again(device);
            }
        }
        self.space.fresh = false;
        let (initial, r) = (self.truth, &self.space.r);
        if !initial.is_finite() {
            let row = r.iter().position(|r| !r.is_finite());
            return Err(Error::StartScale { row, norm: norm(r), norm_b: self.now.norms.b });
        }
        self.now.norms.initial = initial;
        (self.now.residual, self.recursive, self.lowest) = (initial, initial, initial);
        self.goal = self.rule.goal(&self.now.norms).unwrap_or(FLOOR * f64::EPSILON);
        Ok(())
    }

    /// Whether x is known to meet the goal, rounding included.
    fn meets(&self) -> bool {
        self.at_most <= self.goal
    }

    /// Begins a run for the residual as it is, in a workspace whose vectors are clear.
    fn begin<M: Recurrence<D, T>, D: Device>(
        &mut self,
        device: &D,
        work: &mut M,
        state: &mut SlotState,
    ) -> Result<()> {
        state.clear();
        device.write(state, work.slots_mut())?;
        let (now, space) = (&mut self.now, &mut *self.space);
        self.scale = scale(&space.r);
        space.host.iter_mut().zip(&space.r).for_each(|(host, r)| *host = T::from_f64(r / self.scale));
        work.start(device, &space.host)?;
        device.read(work.slots(), state)?;
        (now.residual, now.run_began, now.improved_at) = (self.truth, now.iteration, now.iteration);
        (self.lowest, self.energy, self.energy_mark) = (self.truth, 0.0, 0.0);
        self.pace.restart();
        self.began_with = state.get(RR, 0);
        state.counts[0] = self.now.iteration as u32;
        M::prepare(state, self.sigma);
        self.bound::<M, D>(state);
        device.write(state, work.slots_mut())
    }

    /// Sets the bounds of a run as the rules have them.
    fn bound<M: Recurrence<D, T>, D: Device>(&mut self, state: &mut SlotState) {
        let (now, rr) = (&self.now, self.began_with);
        self.unit = rr.sqrt() / self.truth;
        // A residual of exactly zero ends every run: there is no direction left.
        let tolerance = self.rule.residual_tolerance(&now.norms);
        let target = tolerance.map_or(0.0, |t| (t / self.truth).max(FLOOR * T::EPSILON));
        state.set(TARGET, 0, target * target * rr);
        let ceiling = self.rule.divergence().unwrap_or(f64::INFINITY) * now.norms.initial / self.truth;
        state.set(CEILING, 0, ceiling * ceiling * rr);
        let most = self.rule.most_iterations().map_or(f64::INFINITY, |limit| limit as f64);
        M::limit(state, most - now.run_began as f64);
    }

    /// Replays the step in batches until the device or a rule says stop.
    fn iterate<M: Recurrence<D, T>, D: Device>(
        &mut self,
        device: &D,
        recorded: &mut Recorded<D, M>,
        state: &mut SlotState,
    ) -> Result<StopReason> {
        let tolerance = self.rule.residual_tolerance(&self.now.norms);
        let first = self.now.run_began;
        if self.log.is_empty() {
            self.space.residuals.push(self.now.residual);
            self.notify(0, (0.0, 0.0), tolerance);
        }
        // What completed a step when the solve went on.
        self.take_in::<M, D>(state, tolerance);
        loop {
            let reason = match StopCode::from_device(state.done[0]) {
                StopCode::Running | StopCode::Limit => None,
                StopCode::Converged => Some(StopReason::Converged),
                StopCode::Diverged => {
                    let growth = self.now.residual / self.now.norms.initial;
                    Some(StopReason::Diverged { iteration: self.now.iteration, growth })
                }
                code => Some(M::reason(code, state, first)),
            };
            let stop = reason.or_else(|| self.rule.check(&self.now));
            if device.agree(stop.is_some()) {
                let reason = stop.unwrap_or(StopReason::Interrupted);
                self.save_at_end(device, recorded.work(), state, &reason);
                return Ok(reason);
            }
            let longest = D::BATCH.min(self.rule.iterations_left(&self.now)).max(1);
            let batch = self.pace.next(&self.now, tolerance, longest, recorded.ends_by_itself(device));
            recorded.replay(device, batch.div_ceil(M::STRIDE))?;
            device.read(recorded.work().slots(), state)?;
            self.take_in::<M, D>(state, tolerance);
            self.save_in_time(device, recorded.work(), state);
        }
    }

    /// Takes in the iterations that the device has counted since the last time, and tells the observers.
    fn take_in<M: Recurrence<D, T>, D: Device>(&mut self, state: &SlotState, tolerance: Option<f64>) {
        let (before, counted) = (self.now.elapsed, self.now.iteration);
        self.now.elapsed = self.earlier + self.began.elapsed();
        self.count::<M, D>(state);
        if !self.space.residuals.is_empty() {
            let seconds = (before.as_secs_f64(), self.now.elapsed.as_secs_f64());
            self.notify(counted, seconds, tolerance);
        }
    }

    /// Takes in what the ring holds of the iterations since the last time.
    fn count<M: Recurrence<D, T>, D: Device>(&mut self, state: &SlotState) {
        self.space.residuals.clear();
        for i in self.now.iteration..state.counts[0] as usize {
            let residual = state.counted(i, 0).sqrt() / self.unit;
            let (a, b) = (state.noted(FIRST, i, 0), state.noted(SECOND, i, 0));
            self.space.residuals.push(residual);
            (self.now.iteration, self.now.residual) = (i + 1, residual);
            if self.restarts == 0 && self.space.coefficients.len() < self.space.most_coefficients {
                self.space.coefficients.push((a, b));
            }
            self.energy += M::energy(a, b);
            let (lower, higher) =
                (residual < PROGRESS * self.lowest, self.energy > self.energy_mark / PROGRESS);
            if lower {
                self.lowest = residual;
            }
            if higher {
                self.energy_mark = self.energy;
            }
            if lower || higher {
                self.now.improved_at = i + 1;
            }
        }
    }

    fn notify(&mut self, first: usize, seconds: (f64, f64), tolerance: Option<f64>) {
        let residuals = &self.space.residuals;
        self.log.add(residuals, seconds.1, self.keeper.is_some());
        let batch = Batch { first, residuals, seconds, tolerance };
        self.observers.iter_mut().for_each(|o| o.batch(&batch));
    }
}
