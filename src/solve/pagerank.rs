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
use crate::device::{Device, Recorded};
use crate::error::{Error, Result};
use crate::observe::Observer;
use crate::scalar::Scalar;
use crate::solve::fixed::{self, Found, Terms, check_distribution};
use crate::solve::rounding::sum;
use crate::stop::{StopReason, StoppingRule};
use certificate::look;
pub use certificate::{Certificate, certify};
use links::Links;
use std::time::Instant;

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
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum RankMethod {
    /// Power iteration
    Power,
    /// Power iteration, moved ahead now and then by what its last steps have in common
    Extrapolated,
    /// Gauss-Seidel in a fixed order, on the CPU
    GaussSeidel,
}

/// What is ranked, and how.
#[derive(Clone, Copy, Debug)]
pub struct RankProblem<'a> {
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
#[non_exhaustive]
pub struct Ranking {
    /// The rank of each vertex.
    pub ranks: Vec<f64>,
    /// Why iteration ended.
    pub reason: StopReason,
    /// Iterations done.
    pub iterations: usize,
    /// How often the ranks were moved ahead.
    pub extrapolations: usize,
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

impl RankProblem<'_> {
    /// v at a vertex.
    pub fn teleport(&self, vertex: usize) -> f64 {
        self.teleport.map_or_else(|| 1.0 / self.links.vertices() as f64, |v| v[vertex])
    }

    /// Refuses what has no ranks, or whose vectors do not fit.
    fn check(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.damping) {
            let reason = "it must be at least 0 and less than 1".to_owned();
            return Err(Error::BadSetting { setting: "damping", value: self.damping.to_string(), reason });
        }
        let n = self.links.vertices();
        let lost = !self.dangling.conserves();
        self.teleport.map_or(Ok(()), |v| check_distribution("the personalisation", v, n, false))?;
        self.start.map_or(Ok(()), |x| check_distribution("the start", x, n, lost))
    }

    /// The error that a step of 1 leaves, in the l1 norm.
    fn error_of_step(&self) -> f64 {
        self.damping / (1.0 - self.damping)
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
    fn new(problem: &RankProblem<'_>) -> Inside {
        let taken_in = |vector: Option<&[f64]>| vector.map(|values| problem.links.taken_in(values));
        Inside { teleport: taken_in(problem.teleport), start: taken_in(problem.start) }
    }

    fn problem<'a>(&'a self, outside: &RankProblem<'a>) -> RankProblem<'a> {
        RankProblem { teleport: self.teleport.as_deref(), start: self.start.as_deref(), ..*outside }
    }
}

impl RankMethod {
    /// Every method.
    pub const ALL: [RankMethod; 3] = [RankMethod::Power, RankMethod::Extrapolated, RankMethod::GaussSeidel];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            RankMethod::Power => "power",
            RankMethod::Extrapolated => "extrapolated",
            RankMethod::GaussSeidel => "gauss-seidel",
        }
    }
}

/// Ranks by power iteration, moved ahead now and then or not, with the operator of a backend, which multiplies
/// [`Links::incoming`].
pub fn power<D: Device, T: Scalar>(
    operator: Operator<D, T>,
    problem: &RankProblem<'_>,
    extrapolate: bool,
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Ranking> {
    let began = Instant::now();
    problem.check()?;
    let inside = Inside::new(problem);
    let problem = &inside.problem(problem);
    let n = problem.links.vertices();
    let vector_bytes = (power::vectors(problem.dangling, problem.teleport.is_some(), extrapolate)
        * n
        * size_of::<T>()) as u64;
    let operator_bytes = operator.storage();
    let device = operator.device().clone();
    let power = power::Power::new(operator, problem, extrapolate);
    let bytes_per_iteration = power.bytes();
    let x = problem.beginning();
    if n == 0 {
        return Ok(Ranking { bytes_per_iteration, operator_bytes, vector_bytes, ..nothing() });
    }
    device.require_memory("the vectors of a solve", vector_bytes)?;
    let (workspace, state) = power.workspace(problem, &x)?;
    let recorded = Recorded::new(workspace, power, power::Power::step)?;
    device.synchronize()?;
    let seconds_setup = began.elapsed().as_secs_f64();
    let terms = Terms { rule, factor: problem.error_of_step(), vector: "the ranks" };
    let mut certificate = Certificate::NONE;
    let found = fixed::on_device(recorded, state, &terms, observers, |c| {
        seen(problem, power::ranks(problem, c), &mut certificate)
    })?;
    Ok(Ranking {
        bytes_per_iteration,
        operator_bytes,
        vector_bytes,
        seconds_setup,
        ..ranking(problem, found, certificate)
    })
}

/// Ranks by Gauss-Seidel, on the CPU and by one thread.
pub fn gauss_seidel(
    problem: &RankProblem<'_>,
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Ranking> {
    let began = Instant::now();
    problem.check()?;
    let inside = Inside::new(problem);
    let problem = &inside.problem(problem);
    let (n, incoming) = (problem.links.vertices(), problem.links.incoming());
    let operator_bytes = incoming.storage_bytes();
    let vector_bytes = (gauss_seidel::VECTORS * n * size_of::<f64>()) as u64;
    let bytes_per_iteration = operator_bytes + vector_bytes;
    let x = problem.beginning();
    if n == 0 {
        return Ok(Ranking { bytes_per_iteration, operator_bytes, vector_bytes, ..nothing() });
    }
    let mut state = gauss_seidel::State::new(problem, &x);
    let seconds_setup = began.elapsed().as_secs_f64();
    let terms = Terms { rule, factor: problem.error_of_step(), vector: "the ranks" };
    let mut certificate = Certificate::NONE;
    let pass = |x: &mut Vec<f64>, _| state.pass(problem, x);
    let found = fixed::on_host(x, pass, &terms, observers, |x| seen(problem, x, &mut certificate))?;
    Ok(Ranking {
        bytes_per_iteration,
        operator_bytes,
        vector_bytes,
        seconds_setup,
        ..ranking(problem, found, certificate)
    })
}

/// What a run has come to.
fn ranking(problem: &RankProblem<'_>, found: Found, certificate: Certificate) -> Ranking {
    let (seconds_solve, seconds_certify) = found.seconds;
    Ranking {
        ranks: problem.links.handed_out(found.x),
        reason: found.reason,
        iterations: found.iterations,
        extrapolations: found.jumps,
        estimate: found.estimate,
        certificate,
        seconds_solve,
        seconds_certify,
        ..nothing()
    }
}

/// The ranks of no vertex.
fn nothing() -> Ranking {
    Ranking {
        ranks: Vec::new(),
        reason: StopReason::Converged,
        iterations: 0,
        extrapolations: 0,
        certificate: Certificate { residual: 0.0, error_bound: 0.0, sum: 0.0 },
        estimate: 0.0,
        seconds_setup: 0.0,
        seconds_solve: 0.0,
        seconds_certify: 0.0,
        bytes_per_iteration: 0,
        operator_bytes: 0,
        vector_bytes: 0,
    }
}

/// The ranks that are handed back, and the bound on their error; the certificate is kept.
fn seen(problem: &RankProblem<'_>, x: Vec<f64>, certificate: &mut Certificate) -> (Vec<f64>, f64) {
    let x = normalised(problem, x);
    *certificate = look(problem, &x);
    (x, certificate.error_bound)
}

/// Takes off what rounding has added to the sum, where that is known to be 1.
fn normalised(problem: &RankProblem<'_>, mut x: Vec<f64>) -> Vec<f64> {
    let sum = sum(x.iter().copied());
    if problem.dangling.conserves() && sum.is_normal() {
        x.iter_mut().for_each(|x| *x /= sum);
    }
    x
}
