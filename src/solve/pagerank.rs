//! PageRank: how often a surfer is at each vertex who follows a link with probability d, chosen by its weight, and
//! otherwise jumps to a vertex drawn from v.
//!
//! # Method
//! The ranks are the one vector x with x = d P x + (1 - d) v, where column j of P says where the links out of vertex j
//! lead; what P does with a vertex without links is a policy with a name ([`Dangling`]). Power iteration (`power.rs`)
//! runs on any device, Gauss-Seidel (`gauss_seidel.rs`) on the CPU.
//!
//! # Stopping
//! The error is bounded by d / (1 - d) times the last step, both in the l1 norm: that estimate is tested in every
//! iteration. What is reported is a certificate (`certificate.rs`): a bound computed anew from the graph, the rounding of
//! the computation included. Where it misses the tolerance, iteration goes on.
//!
//! # Reference
//! L. Page, S. Brin, R. Motwani and T. Winograd, The PageRank citation ranking: bringing order to the Web, Stanford
//! InfoLab, 1999.

pub mod certificate;
mod gauss_seidel;
pub mod links;
pub mod power;

use crate::backend::Operator;
use crate::device::{Device, RING};
use crate::error::{Error, Result};
use crate::observe::{Batch, Observer};
use crate::scalar::Scalar;
use crate::solve::pace::Pace;
use crate::solve::rounding::sum;
use crate::stop::{Norms, Progress, StopCode, StopReason, StoppingRule};
use certificate::look;
pub use certificate::{Certificate, certify};
use links::Links;
use std::time::{Duration, Instant};

/// What becomes of a surfer at a vertex without links (a sink).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dangling {
    /// It goes to any vertex, each as likely as the other.
    Uniform,
    /// It jumps as v says.
    Personalised,
    /// It stays.
    SelfLoop,
    /// It is gone, and the ranks sum to less than 1, as in the GAP benchmark.
    Drop,
}

/// A way to the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// x = F(x), again and again.
    Power,
    /// Each vertex in turn, with the newest ranks of all others; in the order of their numbers, and so the same bits on
    /// every run.
    GaussSeidel,
}

/// What is ranked, and how.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// The graph.
    pub links: &'a Links,
    /// The probability d that the surfer follows a link: at least 0, less than 1.
    pub damping: f64,
    /// What becomes of it at a sink.
    pub dangling: Dangling,
    /// Where it jumps to otherwise: v, which sums to 1. Without it, to any vertex.
    pub teleport: Option<&'a [f64]>,
    /// Where iteration begins: ranks of an earlier solve, such as of an older graph. Without them at v.
    pub start: Option<&'a [f64]>,
}

/// The ranks, and the truth about them.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The rank of each vertex.
    pub ranks: Vec<f64>,
    /// Why iteration ended.
    pub reason: StopReason,
    /// Iterations done.
    pub iterations: usize,
    /// What is certain of the ranks.
    pub certificate: Certificate,
    /// The error by the last step alone: d / (1 - d) times its l1 norm.
    pub estimate: f64,
    /// Seconds to make the workspace.
    pub seconds_setup: f64,
    /// Seconds from the first iteration to the last.
    pub seconds_solve: f64,
    /// Seconds for the certificate, or the several where the first missed the tolerance.
    pub seconds_certify: f64,
    /// Bytes that an iteration must move.
    pub bytes_per_iteration: u64,
    /// Bytes of the operator's arrays.
    pub operator_bytes: u64,
    /// Bytes of the vectors.
    pub vector_bytes: u64,
}

impl Dangling {
    /// Every policy.
    pub const ALL: [Dangling; 4] =
        [Dangling::Uniform, Dangling::Personalised, Dangling::SelfLoop, Dangling::Drop];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Dangling::Uniform => "uniform",
            Dangling::Personalised => "personalised",
            Dangling::SelfLoop => "self-loop",
            Dangling::Drop => "drop",
        }
    }

    /// What is computed, for people: `m` is the sum of the ranks of the sinks.
    pub fn formula(self) -> &'static str {
        match self {
            Dangling::Uniform => {
                "x = d (P x + m / n) + (1 - d) v, m being the sum of x over vertices without links"
            }
            Dangling::Personalised => {
                "x = d (P x + m v) + (1 - d) v, m being the sum of x over vertices without links"
            }
            Dangling::SelfLoop => "x = d P x + (1 - d) v, where a vertex without links has one to itself",
            Dangling::Drop => {
                "x = d P x + (1 - d) v, where a vertex without links gives nothing: sum of x < 1"
            }
        }
    }

    /// Whether the ranks sum to 1.
    pub fn conserves(self) -> bool {
        self != Dangling::Drop
    }
}

impl Problem<'_> {
    /// v at a vertex.
    pub fn teleport(&self, vertex: usize) -> f64 {
        self.teleport.map_or_else(|| 1.0 / self.links.vertices() as f64, |v| v[vertex])
    }

    /// Refuses what has no ranks, or whose vectors do not fit.
    fn check(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.damping) {
            let reason = "the damping is at least 0 and less than 1".to_owned();
            return Err(Error::BadOption { option: "--damping", value: self.damping.to_string(), reason });
        }
        let n = self.links.vertices();
        for (what, vector) in
            [("entries of the personalisation", self.teleport), ("entries of the start", self.start)]
        {
            let Some(vector) = vector else { continue };
            if vector.len() != n {
                return Err(Error::Dimension { what, expected: n, got: vector.len() });
            }
            let total: f64 = vector.iter().sum();
            let well = vector.iter().all(|v| *v >= 0.0) && (total - 1.0).abs() <= 1e-9;
            if n > 0 && !well {
                return Err(Error::NoDistribution { what, sum: total });
            }
        }
        Ok(())
    }

    /// Where iteration begins.
    fn beginning(&self) -> Vec<f64> {
        self.start
            .map_or_else(|| (0..self.links.vertices()).map(|i| self.teleport(i)).collect(), <[f64]>::to_vec)
    }
}

/// The vectors of a problem under the numbers of [`Links`].
struct Inside {
    teleport: Option<Vec<f64>>,
    start: Option<Vec<f64>>,
}

impl Inside {
    fn new(problem: &Problem<'_>) -> Inside {
        let taken_in = |vector: Option<&[f64]>| vector.map(|values| problem.links.taken_in(values));
        Inside { teleport: taken_in(problem.teleport), start: taken_in(problem.start) }
    }

    fn problem<'a>(&'a self, outside: &Problem<'a>) -> Problem<'a> {
        Problem { teleport: self.teleport.as_deref(), start: self.start.as_deref(), ..*outside }
    }
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 2] = [Method::Power, Method::GaussSeidel];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Method::Power => "power",
            Method::GaussSeidel => "gauss-seidel",
        }
    }
}

/// How far a computation has come, and what watches it.
pub(super) struct Run<'a, 'o> {
    problem: &'a Problem<'a>,
    rule: &'a StoppingRule,
    observers: &'a mut [&'o mut dyn Observer],
    /// The bound on the l1 error that is asked for.
    tolerance: f64,
    began: Instant,
    now: Progress,
    estimates: Vec<f64>,
    /// Time that certificates have taken.
    certifying: Duration,
}

impl<'a, 'o> Run<'a, 'o> {
    fn new(
        problem: &'a Problem<'a>,
        rule: &'a StoppingRule,
        observers: &'a mut [&'o mut dyn Observer],
    ) -> Run<'a, 'o> {
        let norms = Norms { b: 1.0, initial: 1.0 };
        let elapsed = Duration::ZERO;
        let now = Progress { iteration: 0, residual: 2.0, norms, run_began: 0, improved_at: 0, elapsed };
        let tolerance = rule.residual_tolerance(&norms).unwrap_or(0.0);
        Run {
            problem,
            rule,
            observers,
            tolerance,
            began: Instant::now(),
            now,
            estimates: Vec::with_capacity(RING),
            certifying: Duration::ZERO,
        }
    }

    /// The error that a step leaves.
    fn estimate(&self, step: f64) -> f64 {
        step * self.problem.damping / (1.0 - self.problem.damping)
    }

    /// The step that leaves such an error.
    fn step_for(&self, error: f64) -> f64 {
        if self.problem.damping == 0.0 {
            f64::INFINITY
        } else {
            error * (1.0 - self.problem.damping) / self.problem.damping
        }
    }

    /// Takes in the steps of iterations that have just been done.
    fn take_in(&mut self, steps: impl Iterator<Item = f64>) {
        let (first, before) = (self.now.iteration, self.now.elapsed);
        self.estimates.clear();
        for step in steps {
            let estimate = self.estimate(step);
            self.estimates.push(estimate);
            self.now.iteration += 1;
            if estimate < 0.99 * self.now.residual {
                self.now.improved_at = self.now.iteration;
            }
            self.now.residual = estimate;
        }
        self.now.elapsed = self.began.elapsed().saturating_sub(self.certifying);
        if !self.estimates.is_empty() {
            let seconds = (before.as_secs_f64(), self.now.elapsed.as_secs_f64());
            let batch = Batch { first, residuals: &self.estimates, seconds, tolerance: Some(self.tolerance) };
            self.observers.iter_mut().for_each(|o| o.batch(&batch));
        }
    }

    fn certify(&mut self, ranks: &[f64]) -> Certificate {
        let began = Instant::now();
        let certificate = look(self.problem, ranks);
        self.certifying += began.elapsed();
        certificate
    }

    /// Up to now, without the time that certificates have taken.
    fn seconds_iterating(&self) -> f64 {
        self.began.elapsed().saturating_sub(self.certifying).as_secs_f64()
    }

    /// Tells the observers where it begins.
    fn begin(&mut self) {
        self.began = Instant::now();
        let batch =
            Batch { first: 0, residuals: &[2.0], seconds: (0.0, 0.0), tolerance: Some(self.tolerance) };
        self.observers.iter_mut().for_each(|o| o.batch(&batch));
    }
}

/// How much nearer the next certificate is aimed at than the tolerance, where one has missed it.
const NEARER: f64 = 0.5;
/// Below this many roundings a step says nothing.
const FLOOR: f64 = 4.0;

/// Ranks by power iteration with the operator of a backend, which multiplies [`Links::incoming`].
pub fn power<D: Device, T: Scalar>(
    device: &D,
    operator: Operator<D, T>,
    problem: &Problem<'_>,
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Ranking> {
    let began = Instant::now();
    problem.check()?;
    let inside = Inside::new(problem);
    let problem = &inside.problem(problem);
    let n = problem.links.vertices();
    let vector_bytes = (power::Work::<D, T>::vectors(problem) * n * size_of::<T>()) as u64;
    let bytes_per_iteration = operator.cost().bytes + power::Work::<D, T>::sweep_bytes(problem);
    let operator_bytes = operator.storage();
    let mut run = Run::new(problem, rule, observers);
    let x = problem.beginning();
    if n == 0 {
        return Ok(Ranking { bytes_per_iteration, operator_bytes, vector_bytes, ..nothing(problem) });
    }
    device.require_memory("the vectors of a solve", vector_bytes)?;
    let (work, mut state) = power::Work::start(device, operator, problem, &x)?;
    let mut recorded = device.record(work, power::Work::<D, T>::step)?;
    device.synchronize()?;
    let seconds_setup = began.elapsed().as_secs_f64();
    let (mut pace, mut aim, mut host) = (Pace::default(), run.tolerance, vec![T::default(); n]);
    run.begin();
    let (reason, ranks, certificate) = loop {
        state.set(power::TARGET, 0, run.step_for(aim));
        state.done[0] = StopCode::Running as u32;
        let mut work = recorded.into_work();
        device.write(&state, &mut work.slots)?;
        recorded = device.record(work, power::Work::<D, T>::step)?;
        let stop = loop {
            let code = StopCode::from_device(state.done[0]);
            let stop = match code {
                StopCode::Converged => Some(StopReason::Converged),
                StopCode::NotFinite => {
                    let iteration = run.now.iteration + 1;
                    Some(StopReason::NotFinite { iteration, vector: "the ranks", row: None })
                }
                _ => rule.check(&run.now).filter(|reason| *reason != StopReason::Converged),
            };
            if device.agree(stop.is_some()) {
                break stop.unwrap_or(StopReason::Interrupted);
            }
            let longest = D::BATCH.min(rule.iterations_left(&run.now)).max(1);
            let batch = pace.next(&run.now, Some(aim), longest);
            device.replay(&mut recorded, batch)?;
            device.read(&recorded.work().slots, &mut state)?;
            let counted = run.now.iteration..state.counts[0] as usize;
            run.take_in(counted.map(|i| state.counted(i, 0)));
        };
        device.download(recorded.work().answer(), &mut host)?;
        let ranks = normalised(problem, host.iter().map(|v| v.to_f64()).collect());
        let certificate = run.certify(&ranks);
        if stop != StopReason::Converged || certificate.error_bound <= run.tolerance {
            break (stop, ranks, certificate);
        }
        // Rounding of long sums is not in the step: aim lower, while steps still say something.
        aim *= NEARER * (run.tolerance / certificate.error_bound).min(1.0);
        if run.step_for(aim) < FLOOR * T::EPSILON {
            let estimate = run.now.residual;
            break (
                StopReason::BoundGap { estimate, certified: certificate.error_bound },
                ranks,
                certificate,
            );
        }
    };
    Ok(Ranking {
        ranks: problem.links.handed_out(ranks),
        reason: believed(reason, &certificate, run.tolerance),
        iterations: run.now.iteration,
        certificate,
        estimate: run.now.residual,
        seconds_setup,
        seconds_solve: run.seconds_iterating(),
        seconds_certify: run.certifying.as_secs_f64(),
        bytes_per_iteration,
        operator_bytes,
        vector_bytes,
    })
}

/// Ranks by Gauss-Seidel, on the CPU and by one thread.
pub fn gauss_seidel(
    problem: &Problem<'_>,
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Ranking> {
    problem.check()?;
    let inside = Inside::new(problem);
    gauss_seidel::solve(Run::new(&inside.problem(problem), rule, observers))
}

/// The certificate has the last word: a limit that was reached with ranks that are good enough is no failure.
fn believed(reason: StopReason, certificate: &Certificate, tolerance: f64) -> StopReason {
    if certificate.error_bound <= tolerance { StopReason::Converged } else { reason }
}

/// The ranks of no vertex.
fn nothing(problem: &Problem<'_>) -> Ranking {
    Ranking {
        ranks: Vec::new(),
        reason: StopReason::Converged,
        iterations: 0,
        certificate: look(problem, &[]),
        estimate: 0.0,
        seconds_setup: 0.0,
        seconds_solve: 0.0,
        seconds_certify: 0.0,
        bytes_per_iteration: 0,
        operator_bytes: 0,
        vector_bytes: 0,
    }
}

/// Takes off what rounding has added to the sum, where that is known to be 1.
fn normalised(problem: &Problem<'_>, mut x: Vec<f64>) -> Vec<f64> {
    let sum = sum(x.iter().copied());
    if problem.dangling.conserves() && sum.is_normal() {
        x.iter_mut().for_each(|x| *x /= sum);
    }
    x
}
