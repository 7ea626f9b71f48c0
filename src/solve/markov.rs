//! The stationary distribution of a Markov chain: x = P' x, x >= 0, with sum 1, for a matrix whose rows are distributions.
//!
//! # Method
//! A chain is looked at first (`chain.rs`): it has one stationary distribution for each class of states that is never
//! left, and states outside of them have probability 0. Within a class, power iteration (`power.rs`) runs on any device,
//! Gauss-Seidel and aggregation with disaggregation (`gauss_seidel.rs`) on the CPU. A class that returns with a period
//! greater than 1 has no limit for power iteration, which then takes the lazy chain (I + P) / 2: it has the same
//! distribution.
//!
//! # Stopping
//! ||P' x - x|| in the l1 norm, recomputed in double precision with each sum rounded about once. No bound on the error
//! follows from it without knowing how fast the chain mixes.

pub mod chain;
mod gauss_seidel;
pub mod power;

use crate::backend::Operator;
use crate::device::{Device, RING};
use crate::error::Result;
use crate::format::Csr;
use crate::observe::{Batch, Observer};
use crate::scalar::Scalar;
use crate::solve::pace::Pace;
use crate::solve::rounding::sum;
use crate::stop::{Norms, Progress, StopCode, StopReason, StoppingRule};
use gauss_seidel::{Groups, normalise};
use std::time::{Duration, Instant};

/// A way to the distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// x = P' x, again and again.
    Power,
    /// Each state in turn.
    GaussSeidel,
    /// Groups that are seldom left as one chain, and Gauss-Seidel between.
    Aggregation,
}

/// What is asked of a class.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// Entry (i, j) is the probability of the step from j to i, as [`Chain::within`](chain::Chain::within) gives it.
    pub incoming: &'a Csr,
    /// The period of the class.
    pub period: usize,
    /// Where iteration begins; without it every state is as likely as the other.
    pub start: Option<&'a [f64]>,
}

/// The distribution, and the truth about it.
#[derive(Clone, Debug)]
pub struct Stationary {
    /// The probability of each state of the class.
    pub probabilities: Vec<f64>,
    /// Why iteration ended.
    pub reason: StopReason,
    /// Iterations done.
    pub iterations: usize,
    /// The l1 norm of P' x - x, recomputed.
    pub residual: f64,
    /// The same by the iteration.
    pub residual_recursive: f64,
    /// Whether the lazy chain was taken.
    pub lazy: bool,
    /// Groups of states, and the probability below which steps lead from one to another.
    pub groups: Option<(usize, f64)>,
    /// Seconds to make the workspace.
    pub seconds_setup: f64,
    /// Seconds from the first iteration to the last.
    pub seconds_solve: f64,
    /// Bytes that an iteration must move.
    pub bytes_per_iteration: u64,
    /// Bytes of the operator's arrays.
    pub operator_bytes: u64,
    /// Bytes of the vectors.
    pub vector_bytes: u64,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 3] = [Method::Power, Method::GaussSeidel, Method::Aggregation];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Method::Power => "power",
            Method::GaussSeidel => "gauss-seidel",
            Method::Aggregation => "aggregation",
        }
    }
}

impl Problem<'_> {
    fn beginning(&self) -> Vec<f64> {
        let n = self.incoming.rows();
        self.start.map_or_else(|| vec![1.0 / n as f64; n], <[f64]>::to_vec)
    }
}

/// ||P' x - x|| in the l1 norm, each sum rounded about once.
pub fn residual(incoming: &Csr, x: &[f64]) -> f64 {
    let rows = incoming.map_rows(|j| {
        let came = incoming.row(j).map(|(i, p)| p * x[i]);
        sum(came.chain([-x[j]])).abs()
    });
    sum(rows.into_iter())
}

/// How far a computation has come, and what watches it.
struct Run<'a, 'o> {
    rule: &'a StoppingRule,
    observers: &'a mut [&'o mut dyn Observer],
    tolerance: f64,
    began: Instant,
    now: Progress,
    residuals: Vec<f64>,
}

/// How much lower the next residual is aimed at, where the recomputed one has missed the tolerance.
const LOWER: f64 = 0.5;
/// Below this many roundings a residual says nothing.
const FLOOR: f64 = 2.0;

impl<'a, 'o> Run<'a, 'o> {
    fn new(rule: &'a StoppingRule, observers: &'a mut [&'o mut dyn Observer]) -> Run<'a, 'o> {
        let norms = Norms { b: 1.0, initial: 1.0 };
        let elapsed = Duration::ZERO;
        let now = Progress { iteration: 0, residual: 2.0, norms, run_began: 0, improved_at: 0, elapsed };
        let tolerance = rule.residual_tolerance(&norms).unwrap_or(0.0);
        Run { rule, observers, tolerance, began: Instant::now(), now, residuals: Vec::with_capacity(RING) }
    }

    fn begin(&mut self) {
        self.began = Instant::now();
        self.tell(0, &[2.0], (0.0, 0.0));
    }

    fn tell(&mut self, first: usize, residuals: &[f64], seconds: (f64, f64)) {
        let batch = Batch { first, residuals, seconds, tolerance: Some(self.tolerance) };
        self.observers.iter_mut().for_each(|o| o.batch(&batch));
    }

    /// Takes in the residuals of iterations that have just been done.
    fn take_in(&mut self, residuals: impl Iterator<Item = f64>) {
        let (first, before) = (self.now.iteration, self.now.elapsed);
        let mut all = std::mem::take(&mut self.residuals);
        all.clear();
        for residual in residuals {
            all.push(residual);
            self.now.iteration += 1;
            if residual < 0.99 * self.now.residual {
                self.now.improved_at = self.now.iteration;
            }
            self.now.residual = residual;
        }
        self.now.elapsed = self.began.elapsed();
        if !all.is_empty() {
            self.tell(first, &all, (before.as_secs_f64(), self.now.elapsed.as_secs_f64()));
        }
        self.residuals = all;
    }

    /// A rule that holds, other than that of the tolerance.
    fn must_stop(&self) -> Option<StopReason> {
        self.rule.check(&self.now).filter(|reason| *reason != StopReason::Converged)
    }

    /// What the recomputed residual makes of an end: the reason to believe, or a lower aim to go on with.
    fn judge(
        &self,
        reason: StopReason,
        residual: f64,
        aim: f64,
        rounding: f64,
    ) -> std::result::Result<StopReason, f64> {
        if residual <= self.tolerance {
            return Ok(StopReason::Converged);
        }
        if reason != StopReason::Converged {
            return Ok(reason);
        }
        let lower = aim * LOWER * (self.tolerance / residual).min(1.0);
        if lower < FLOOR * rounding {
            return Ok(StopReason::ResidualGap { recursive: self.now.residual, recomputed: residual });
        }
        Err(lower)
    }

    fn not_finite(&self) -> StopReason {
        StopReason::NotFinite { iteration: self.now.iteration + 1, vector: "the distribution", row: None }
    }
}

/// The distribution by power iteration with the operator of a backend, which multiplies `problem.incoming`.
pub fn power<D: Device, T: Scalar>(
    device: &D,
    operator: Operator<D, T>,
    problem: &Problem<'_>,
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Stationary> {
    let began = Instant::now();
    let n = problem.incoming.rows();
    let vector_bytes = (power::Work::<D, T>::VECTORS * n * size_of::<T>()) as u64;
    let bytes_per_iteration = operator.cost().bytes + power::Work::<D, T>::sweep_bytes(n);
    let operator_bytes = operator.storage();
    device.require_memory("the vectors of a solve", vector_bytes)?;
    let lazy = if problem.period > 1 { 0.5 } else { 1.0 };
    let (work, mut state) = power::Work::start(device, operator, &problem.beginning(), lazy)?;
    let mut recorded = device.record(work, power::Work::<D, T>::step)?;
    device.synchronize()?;
    let seconds_setup = began.elapsed().as_secs_f64();
    let mut run = Run::new(rule, observers);
    let (mut pace, mut aim, mut host) = (Pace::default(), run.tolerance, vec![T::default(); n]);
    run.begin();
    let (reason, probabilities, residual) = loop {
        state.set(power::TARGET, 0, aim);
        state.done[0] = StopCode::Running as u32;
        let mut work = recorded.into_work();
        device.write(&state, &mut work.slots)?;
        recorded = device.record(work, power::Work::<D, T>::step)?;
        let stop = loop {
            let stop = match StopCode::from_device(state.done[0]) {
                StopCode::Converged => Some(StopReason::Converged),
                StopCode::NotFinite => Some(run.not_finite()),
                _ => run.must_stop(),
            };
            if device.agree(stop.is_some()) {
                break stop.unwrap_or(StopReason::Interrupted);
            }
            let longest = D::BATCH.min(rule.iterations_left(&run.now)).max(1);
            device.replay(&mut recorded, pace.next(&run.now, Some(aim), longest))?;
            device.read(&recorded.work().slots, &mut state)?;
            let counted = run.now.iteration..state.counts[0] as usize;
            run.take_in(counted.map(|i| state.counted(i, 0)));
        };
        device.download(recorded.work().answer(), &mut host)?;
        let mut x: Vec<f64> = host.iter().map(|v| v.to_f64()).collect();
        normalise(&mut x);
        let found = residual(problem.incoming, &x);
        match run.judge(stop, found, aim, T::EPSILON) {
            Ok(reason) => break (reason, x, found),
            Err(lower) => aim = lower,
        }
    };
    Ok(Stationary {
        probabilities,
        reason,
        iterations: run.now.iteration,
        residual,
        residual_recursive: run.now.residual,
        lazy: lazy < 1.0,
        groups: None,
        seconds_setup,
        seconds_solve: run.now.elapsed.as_secs_f64(),
        bytes_per_iteration,
        operator_bytes,
        vector_bytes,
    })
}

/// The distribution by Gauss-Seidel, with aggregation or without, on the CPU and by one thread.
pub fn serial(
    problem: &Problem<'_>,
    aggregation: bool,
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Stationary> {
    let began = Instant::now();
    let incoming = problem.incoming;
    let groups = if aggregation { Groups::find(incoming) } else { None };
    if aggregation && groups.is_none() {
        log::warn!("no groups of states are seldom left: aggregation is gauss-seidel here");
    }
    let mut x = problem.beginning();
    let (mut before, n) = (vec![0.0; x.len()], x.len());
    let seconds_setup = began.elapsed().as_secs_f64();
    let mut run = Run::new(rule, observers);
    let mut aim = run.tolerance;
    run.begin();
    let (reason, residual) = loop {
        let stop = loop {
            if let Some(stop) = run.must_stop() {
                break stop;
            }
            before.copy_from_slice(&x);
            match &groups {
                Some(groups) => groups.pass(incoming, &mut x),
                None => gauss_seidel::pass(incoming, &mut x),
            }
            let change: f64 = x.iter().zip(&before).map(|(x, b)| (x - b).abs()).sum();
            if !change.is_finite() {
                break run.not_finite();
            }
            run.take_in(std::iter::once(change));
            if change <= aim {
                break StopReason::Converged;
            }
        };
        let found = residual(incoming, &x);
        match run.judge(stop, found, aim, f64::EPSILON) {
            Ok(reason) => break (reason, found),
            Err(lower) => aim = lower,
        }
    };
    let passes = if groups.is_some() { 3 } else { 1 };
    Ok(Stationary {
        probabilities: x,
        reason,
        iterations: run.now.iteration,
        residual,
        residual_recursive: run.now.residual,
        lazy: false,
        groups: groups.map(|groups| (groups.count(), groups.seldom)),
        seconds_setup,
        seconds_solve: run.now.elapsed.as_secs_f64(),
        bytes_per_iteration: passes * incoming.storage_bytes() + 16 * n as u64,
        operator_bytes: incoming.storage_bytes(),
        vector_bytes: 16 * n as u64,
    })
}
