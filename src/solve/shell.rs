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

use super::checkpoint::Checkpoints;
use super::pace::Pace;
use super::recurrence::{CEILING, FIRST, Operators, RR, Recurrence, SECOND, TARGET};
use super::verdict::{largest_magnitude, norm};
use super::{Outcome, System};
use crate::device::{Device, RING, Recorded, SlotState};
use crate::error::{Error, Result};
use crate::observe::{Batch, Observer};
use crate::scalar::Scalar;
use crate::spectrum::MOST_COEFFICIENTS;
use crate::stop::{Norms, PROGRESS, Progress, StopCode, StopReason, StoppingRule};
use begin::{check, outcome, tell_start};
use saving::{Keeper, Log};
use scales::{matrix_scale, scale};
use std::time::{Duration, Instant};

/// The most that a run reduces a recursive residual by, in units of the vectors' rounding.
const FLOOR: f64 = 64.0;
/// A run must bring the true residual below this part of what it was, or it is the last.
const GAIN: f64 = 0.5;

/// A solve in hand: the answer so far, what watches it, and how far it has come.
struct Solve<'a, 'o> {
    system: &'a System<'a>,
    rule: &'a StoppingRule,
    observers: &'a mut [&'o mut dyn Observer],
    /// x and b - A x, on the host.
    x: Vec<f64>,
    r: Vec<f64>,
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
    /// Residuals of a batch.
    residuals: Vec<f64>,
    /// What [`Progress::improved_at`] is measured by.
    lowest: f64,
    energy: f64,
    energy_mark: f64,
    /// The coefficients of the first run.
    coefficients: Vec<(f64, f64)>,
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

/// Solves a system by a method; see the module.
pub(super) fn solve<M, D, T>(
    device: &D,
    operators: Operators<D, T>,
    task: &Task<'_>,
    observers: &mut [&mut dyn Observer],
) -> Result<Outcome>
where
    M: Recurrence<D, T>,
    D: Device,
    T: Scalar,
{
    let began = Instant::now();
    let Task { system, rule, .. } = *task;
    let rule = &rule.clone().in_steps_of(M::STRIDE);
    let n = check(task.name, operators.a.shape(), system)?;
    let (keeper, saved) = saving::prepare::<M, D, T>(device, &operators, task)?;
    let mut outcome = outcome::<M, D, T>(&operators, n);
    let largest = largest_magnitude(system.b.iter().copied());
    if largest == 0.0 {
        tell_start(observers, 0.0, None);
        return Ok(outcome);
    }
    let vector_bytes = outcome.vector_bytes;
    device.require_memory("the vectors of a solve", vector_bytes)?;
    let norm_b = norm(system.b);
    if !norm_b.is_normal() {
        return Err(Error::RightHandSideScale { largest, norm_squared: norm_b * norm_b });
    }
    let mut solve = Solve::new(system, rule, observers, norm_b)?;
    let norms = solve.now.norms;
    outcome.goal = rule.goal(&norms);
    if solve.meets() {
        outcome.reason = StopReason::Converged;
        tell_start(solve.observers, norms.initial, rule.residual_tolerance(&norms));
        return Ok(solve.judged(outcome));
    }
    if M::SCALES && operators.m.is_none() {
        solve.sigma = matrix_scale::<T>(system.matrix);
    }
    let mut work = match &saved {
        Some(saved) => solve.go_on::<M, D, T>(device, &operators, saved)?,
        None => solve.begin::<M, D, T>(device, &operators)?,
    };
    if saved.is_none() && !work.1.get(RR, 0).is_normal() {
        return Err(Error::RightHandSideScale { largest, norm_squared: work.1.get(RR, 0) });
    }
    drop(saved);
    solve.keep_by(keeper);
    let mut set_up = false;
    loop {
        let before = solve.truth;
        let mut recorded = device.record(work.0, M::step)?;
        device.synchronize()?;
        if !set_up {
            set_up = true;
            outcome.seconds_setup = began.elapsed().as_secs_f64();
            solve.began = Instant::now();
        }
        let reason = solve.iterate(device, &mut recorded, &mut work.1)?;
        solve.observers.iter_mut().for_each(|o| o.phase("checking the answer"));
        let mut done = recorded.into_work();
        let reason = done.verify(device, reason, &work.1, solve.now.run_began)?;
        let reason = locate::<M, D, T>(device, reason, &done, n)?;
        let reason = solve.underflown(device, reason, &done)?;
        let (reason, better) = solve.collect(device, done, work.1, reason)?;
        let reason = solve.measured(reason);
        let gained = better && (solve.restarts == 0 || solve.truth <= GAIN * before);
        let restart = gained && solve.may_restart(&reason);
        let against = if restart { solve.rule_against_restart() } else { None };
        if !restart || against.is_some() {
            outcome.reason = solve.believe(reason, against);
            outcome.spectrum =
                M::projection(&solve.coefficients).extremes().map(|s| s.of_multiple(solve.sigma));
            break;
        }
        solve.restarts += 1;
        work = solve.begin::<M, D, T>(device, &operators)?;
    }
    if outcome.reason == StopReason::Converged {
        solve.observers.iter_mut().for_each(|o| o.phase("estimating the error"));
        let estimate = solve.error_estimate(device, operators.m, outcome.spectrum);
        // The answer is worth more than an estimate of its error.
        outcome.error_estimate = estimate.unwrap_or_else(|e| {
            log::warn!("the error of x could not be estimated: {e}");
            None
        });
    }
    Ok(solve.judged(outcome))
}

/// Where NaN or infinity stands, if that is why the solve ended.
fn locate<M: Recurrence<D, T>, D: Device, T: Scalar>(
    device: &D,
    reason: StopReason,
    work: &M,
    n: usize,
) -> Result<StopReason> {
    let StopReason::NotFinite { iteration, .. } = reason else { return Ok(reason) };
    let mut host = vec![T::default(); n];
    for (vector, suspect) in work.suspects() {
        device.download(suspect, &mut host)?;
        if let Some(row) = host.iter().position(|v| !v.to_f64().is_finite()) {
            return Ok(StopReason::NotFinite { iteration, vector, row: Some(row) });
        }
    }
    Ok(reason)
}

impl<'a, 'o> Solve<'a, 'o> {
    /// A solve that has not begun, at the start of the system.
    fn new(
        system: &'a System<'a>,
        rule: &'a StoppingRule,
        observers: &'a mut [&'o mut dyn Observer],
        norm_b: f64,
    ) -> Result<Solve<'a, 'o>> {
        let n = system.matrix.rows();
        let x = system.x0.map_or_else(|| vec![0.0; n], <[f64]>::to_vec);
        let elapsed = Duration::ZERO;
        let longest = rule.most_iterations().unwrap_or(MOST_COEFFICIENTS).min(MOST_COEFFICIENTS);
        let norms = Norms { b: norm_b, initial: 1.0 };
        let mut solve = Solve {
            system,
            rule,
            observers,
            x,
            r: Vec::new(),
            truth: 1.0,
            at_most: 1.0,
            // That of x = 0, whose residual is b.
            backward_error: 1.0,
            scale: 1.0,
            began_with: 1.0,
            sigma: 1.0,
            unit: 1.0,
            recursive: 1.0,
            restarts: 0,
            goal: 0.0,
            now: Progress { iteration: 0, residual: 1.0, norms, run_began: 0, improved_at: 0, elapsed },
            pace: Pace::default(),
            began: Instant::now(),
            earlier: Duration::ZERO,
            earlier_iterations: 0,
            residuals: Vec::with_capacity(RING),
            lowest: 1.0,
            energy: 0.0,
            energy_mark: 0.0,
            coefficients: Vec::with_capacity(longest),
            log: Log::default(),
            keeper: None,
        };
        solve.start()?;
        Ok(solve)
    }

    /// Measures the residual of the start, to which tolerances may be relative.
    fn start(&mut self) -> Result<()> {
        // A tolerance relative to the residual of the start is below that residual, so the start cannot meet it.
        let unknown = Norms { initial: 0.0, ..self.now.norms };
        self.goal = self.rule.goal(&unknown).unwrap_or(0.0);
        match self.system.x0 {
            // Without rounding: b - A 0 = b.
            None => self.r = self.system.b.to_vec(),
            Some(_) => self.measure_again(),
        }
        let (initial, r) = (self.truth, &self.r);
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

    /// A workspace for the residual as it is, and the host's copy of its scalars.
    fn begin<M: Recurrence<D, T>, D: Device, T: Scalar>(
        &mut self,
        device: &D,
        operators: &Operators<D, T>,
    ) -> Result<(M, SlotState)> {
        let now = &mut self.now;
        self.scale = scale(&self.r);
        let r: Vec<T> = self.r.iter().map(|r| T::from_f64(r / self.scale)).collect();
        let mut work = M::start(device, operators.clone(), &r)?;
        let mut state = SlotState::new(M::SLOTS, 1);
        device.read(work.slots(), &mut state)?;
        (now.residual, now.run_began, now.improved_at) = (self.truth, now.iteration, now.iteration);
        (self.lowest, self.energy, self.energy_mark) = (self.truth, 0.0, 0.0);
        self.pace.restart();
        self.began_with = state.get(RR, 0);
        state.counts[0] = self.now.iteration as u32;
        M::prepare(&mut state, self.sigma);
        self.bound::<M, D, T>(&mut state);
        device.write(&state, work.slots_mut())?;
        Ok((work, state))
    }

    /// Sets the bounds of a run as the rules have them.
    fn bound<M: Recurrence<D, T>, D: Device, T: Scalar>(&mut self, state: &mut SlotState) {
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
    fn iterate<M: Recurrence<D, T>, D: Device, T: Scalar>(
        &mut self,
        device: &D,
        recorded: &mut Recorded<D, M>,
        state: &mut SlotState,
    ) -> Result<StopReason> {
        let tolerance = self.rule.residual_tolerance(&self.now.norms);
        let first = self.now.run_began;
        if self.log.is_empty() {
            self.residuals.push(self.now.residual);
            self.notify(0, (0.0, 0.0), tolerance);
        }
        // What completed a step when the solve went on.
        self.take_in::<M, D, T>(state, tolerance);
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
            let batch = self.pace.next(&self.now, tolerance, longest, device.ends_by_itself(recorded));
            device.replay(recorded, batch.div_ceil(M::STRIDE))?;
            device.read(recorded.work().slots(), state)?;
            self.take_in::<M, D, T>(state, tolerance);
            self.save_in_time(device, recorded.work(), state);
        }
    }

    /// Takes in the iterations that the device has counted since the last time, and tells the observers.
    fn take_in<M: Recurrence<D, T>, D: Device, T: Scalar>(
        &mut self,
        state: &SlotState,
        tolerance: Option<f64>,
    ) {
        let (before, counted) = (self.now.elapsed, self.now.iteration);
        self.now.elapsed = self.earlier + self.began.elapsed();
        self.count::<M, D, T>(state);
        if !self.residuals.is_empty() {
            let seconds = (before.as_secs_f64(), self.now.elapsed.as_secs_f64());
            self.notify(counted, seconds, tolerance);
        }
    }

    /// Takes in what the ring holds of the iterations since the last time.
    fn count<M: Recurrence<D, T>, D: Device, T: Scalar>(&mut self, state: &SlotState) {
        self.residuals.clear();
        for i in self.now.iteration..state.counts[0] as usize {
            let residual = state.counted(i, 0).sqrt() / self.unit;
            let (a, b) = (state.noted(FIRST, i, 0), state.noted(SECOND, i, 0));
            self.residuals.push(residual);
            (self.now.iteration, self.now.residual) = (i + 1, residual);
            if self.restarts == 0 && self.coefficients.len() < self.coefficients.capacity() {
                self.coefficients.push((a, b));
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
        self.log.add(&self.residuals, seconds.1, self.keeper.is_some());
        let batch = Batch { first, residuals: &self.residuals, seconds, tolerance };
        self.observers.iter_mut().for_each(|o| o.batch(&batch));
    }
}
