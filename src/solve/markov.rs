//! The stationary distribution of a Markov chain: x = P' x, x >= 0, with sum 1, for a matrix
//! whose rows are distributions.
//!
//! # Method
//! A chain is analysed first (`chain.rs`, or `over_ranks.rs` if each rank has rows of it): it has
//! one stationary distribution for each class of states that is never left, and the other states
//! have probability 0. Within a class, power iteration (`power.rs`) runs on any device, Gauss-Seidel
//! and aggregation with disaggregation (`gauss_seidel.rs`) on the CPU. Power iteration does not
//! converge on a class with a period greater than 1; it then uses the lazy chain (I + P) / 2, which
//! has the same distribution.
//!
//! # Stopping
//! ||P' x - x|| in the l1 norm, recomputed in double precision with each sum rounded about once. This implies
//! no bound on the error unless it is known how fast the chain mixes.

pub(crate) mod chain;
mod gauss_seidel;
pub(crate) mod over_ranks;
pub(crate) mod power;
mod rows;

use crate::backend::Operator;
use crate::device::{Device, Recorded};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::observe::Observer;
use crate::scalar::Scalar;
use crate::solve::Effort;
use crate::solve::fixed::{self, Found, Terms, check_distribution};
use crate::solve::part::Part;
use crate::solve::rounding::sum;
use crate::stop::{StopReason, StoppingRule};
use gauss_seidel::{Groups, leaving, scale};
use std::ops::Deref;
use std::time::Instant;

/// A method for the stationary distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChainMethod {
    /// Power iteration.
    Power,
    /// Updates one state after the other.
    GaussSeidel,
    /// For chains of groups that are seldom left: solves the chain of the groups, with
    /// Gauss-Seidel passes in between.
    Aggregation,
}

/// A class of states, whose distribution is to be found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StationaryProblem<'a> {
    /// Entry (i, j) is the probability of the step from j to i, as
    /// [`Chain::within`](chain::Chain::within) returns it.
    pub incoming: &'a Csr,
    /// The part of the states that this process has. Over ranks, the rows of `incoming` are those of this
    /// rank, and its columns those of a complete vector.
    pub part: Part<'a>,
    /// The period of the class.
    pub period: usize,
    /// The start of the iteration; if absent, all states have the same probability.
    pub start: Option<&'a [f64]>,
}

/// The distribution, and how accurate it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stationary {
    /// The probability of each state of the class.
    pub probabilities: Vec<f64>,
    /// Why iteration ended.
    pub reason: StopReason,
    /// What the solve has taken; its fields can be read directly from this type.
    pub effort: Effort,
    /// The l1 norm of P' x - x, recomputed.
    pub residual: f64,
    /// The number that the last iteration counted: the l1 norm of P' x - x before it (power), or of the
    /// change of x (other methods).
    pub residual_recursive: f64,
    /// Whether the lazy chain was used.
    pub lazy: bool,
    /// The number of groups of states, and the probability below which steps lead from one group to another.
    pub groups: Option<(usize, f64)>,
}

impl Deref for Stationary {
    type Target = Effort;

    fn deref(&self) -> &Effort {
        &self.effort
    }
}

impl ChainMethod {
    /// All methods.
    pub const ALL: [ChainMethod; 3] =
        [ChainMethod::Power, ChainMethod::GaussSeidel, ChainMethod::Aggregation];

    /// Returns the name of the method.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ChainMethod::Power => "power",
            ChainMethod::GaussSeidel => "gauss-seidel",
            ChainMethod::Aggregation => "aggregation",
        }
    }
}

impl StationaryProblem<'_> {
    fn check(&self) -> Result<()> {
        let (rows, cols) = (self.incoming.rows(), self.incoming.cols());
        if rows != cols && self.part.total(rows) == rows {
            return Err(Error::NotSquare { rows, cols, solver: "markov" });
        }
        self.start.map_or(Ok(()), |x| check_distribution("the start", x, (self.part, rows), false))
    }

    fn beginning(&self) -> Vec<f64> {
        let rows = self.incoming.rows();
        let even = 1.0 / self.part.total(rows) as f64;
        self.start.map_or_else(|| vec![even; rows], <[f64]>::to_vec)
    }
}

/// Computes ||P' x - x|| in the l1 norm, with a bound on its rounding added. Each sum is rounded about once,
/// so the bound covers the rounding of the products: half a unit of each.
pub(crate) fn residual(incoming: &Csr, x: &[f64]) -> f64 {
    residual_of_part(incoming, Part::default(), x)
}

/// Computes the residual if this process has a part of the states.
fn residual_of_part(incoming: &Csr, part: Part<'_>, x: &[f64]) -> f64 {
    let complete = part.complete(x);
    let rows = incoming.map_rows(|j| {
        let inflow = incoming.row(j).map(|(i, p)| p * complete[i]);
        let magnitude = x[j].abs() + incoming.row(j).map(|(i, p)| (p * complete[i]).abs()).sum::<f64>();
        (sum(inflow.chain([-x[j]])).abs(), magnitude)
    });
    let magnitude = part.sum(rows.iter().map(|(_, magnitude)| *magnitude));
    part.sum(rows.iter().map(|(difference, _)| *difference)) + f64::EPSILON * magnitude
}

/// Computes the distribution by power iteration with the operator of a backend, which
/// multiplies `problem.incoming`.
pub(crate) fn power<D: Device, T: Scalar>(
    operator: Operator<D, T>,
    problem: &StationaryProblem<'_>,
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Stationary> {
    let began = Instant::now();
    problem.check()?;
    let n = problem.incoming.rows();
    let vector_bytes = (power::VECTORS * n * size_of::<T>()) as u64;
    let operator_bytes = operator.storage();
    let device = operator.device().clone();
    let power = power::Power(operator);
    let bytes_per_iteration = power.bytes();
    device.require_memory("the vectors of a solve", vector_bytes)?;
    let lazy = if problem.period > 1 { 0.5 } else { 1.0 };
    let (workspace, state) = power.workspace(&problem.beginning(), lazy)?;
    let recorded = Recorded::new(workspace, power, power::Power::step)?;
    device.synchronize()?;
    let seconds_setup = began.elapsed().as_secs_f64();
    let terms = Terms { rule, factor: 1.0, vector: "the distribution" };
    let mut truth = f64::INFINITY;
    let found = fixed::on_device(recorded, state, &terms, observers, |mut x| {
        let total = problem.part.sum(x.iter().copied());
        scale(&mut x, total);
        truth = residual_of_part(problem.incoming, problem.part, &x);
        (x, truth)
    })?;
    let setup =
        Effort { seconds_setup, bytes_per_iteration, operator_bytes, vector_bytes, ..Effort::default() };
    Ok(Stationary { lazy: lazy < 1.0, ..stationary(found, truth, setup.of_all(device.ranks())) })
}

/// Number of Gauss-Seidel passes without progress after which passes are damped. A pass makes progress if its
/// step is less than the fraction `PROGRESS` of the smallest step so far.
const PATIENCE: usize = 25;
const PROGRESS: f64 = 0.9999;

/// Computes the distribution by Gauss-Seidel, with aggregation or without, on one CPU thread.
pub(crate) fn serial(
    problem: &StationaryProblem<'_>,
    aggregation: bool,
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Stationary> {
    let began = Instant::now();
    problem.check()?;
    let incoming = problem.incoming;
    let groups = if aggregation { Groups::find(incoming) } else { None };
    if aggregation && groups.is_none() {
        log::warn!("no groups of states are seldom left: aggregation runs gauss-seidel instead");
    }
    let leaving = leaving(incoming);
    let x = problem.beginning();
    let (mut before, n) = (vec![0.0; x.len()], x.len());
    let (mut lowest, mut lowest_at, mut damped) = (f64::INFINITY, 0, false);
    let seconds_setup = began.elapsed().as_secs_f64();
    let pass = |x: &mut Vec<f64>, iteration: usize| {
        before.copy_from_slice(x);
        match &groups {
            Some(groups) => groups.pass(incoming, &leaving, x),
            None => gauss_seidel::pass(incoming, &leaving, x),
        }
        // Passes may oscillate even if the chain itself does not; averaging x before and after a pass damps
        // this. Oscillations that decay faster than the fraction above are not damped, as the size of a step
        // does not distinguish them from slow progress.
        damped |= iteration >= lowest_at + PATIENCE;
        if damped {
            x.iter_mut().zip(&before).for_each(|(x, before)| *x = 0.5 * (*x + before));
        }
        let step = x.iter().zip(&before).map(|(x, before)| (x - before).abs()).sum();
        if step < PROGRESS * lowest {
            (lowest, lowest_at) = (step, iteration);
        }
        step
    };
    let terms = Terms { rule, factor: 1.0, vector: "the distribution" };
    let mut truth = f64::INFINITY;
    let found = fixed::on_host(x, (pass, |x: &Vec<f64>| Ok(x.clone())), &terms, observers, |x| {
        truth = residual(incoming, &x);
        (x, truth)
    })?;
    let passes = if groups.is_some() { 3 } else { 1 };
    let setup = Effort {
        seconds_setup,
        bytes_per_iteration: passes * incoming.storage_bytes() + 16 * n as u64,
        operator_bytes: incoming.storage_bytes(),
        vector_bytes: 16 * n as u64,
        ..Effort::default()
    };
    let groups = groups.map(|groups| (groups.count(), groups.threshold));
    Ok(Stationary { groups, ..stationary(found, truth, setup) })
}

/// Converts the result of a run.
fn stationary(found: Found, residual: f64, setup: Effort) -> Stationary {
    Stationary {
        probabilities: found.x,
        reason: found.reason,
        effort: setup.after(found.iterations, found.seconds.0),
        residual,
        residual_recursive: found.estimate,
        lazy: false,
        groups: None,
    }
}
