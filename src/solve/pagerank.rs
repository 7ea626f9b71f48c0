//! PageRank: the probability of finding a surfer at each vertex. The surfer follows a link with probability
//! d, chosen by its weight, and otherwise jumps to a vertex drawn from v.
//!
//! # Method
//! The ranks are the unique vector x with x = d P x + (1 - d) v, where column j of P is the distribution over
//! the links out of vertex j. The policy [`Dangling`] defines the columns of vertices without links. Power
//! iteration (`power.rs`) runs on any device, Gauss-Seidel (`gauss_seidel.rs`) on the CPU.
//!
//! # Stopping
//! The error is bounded by d / (1 - d) times the last step, both in the l1 norm: that estimate is tested in
//! every iteration. The reported error is a certificate (`certificate.rs`): a bound computed anew from the
//! graph, including the rounding of the computation. If it exceeds the tolerance, iteration continues.
//!
//! # Reference
//! L. Page, S. Brin, R. Motwani and T. Winograd, The PageRank citation ranking: bringing order to the
//! Web, Stanford InfoLab, 1999.

pub(crate) mod certificate;
pub(crate) mod gauss_seidel;
pub(crate) mod links;
pub(crate) mod power;

use crate::backend::Operator;
use crate::device::{Cpu, Device, Recorded};
use crate::error::{Error, Result};
use crate::observe::Observer;
use crate::scalar::Scalar;
use crate::solve::Effort;
use crate::solve::fixed::{self, Found, Terms, check_distribution, check_probabilities};
use crate::solve::part::Part;
use crate::stop::{StopReason, StoppingRule};
pub(crate) use certificate::Certificate;
#[cfg(test)]
pub(crate) use certificate::certify;
use certificate::certify_renumbered;
use gauss_seidel::{Parts, State};
use links::Links;
use rayon::prelude::*;
use std::ops::Deref;
use std::time::Instant;

/// The policy for a surfer at a vertex without links (a sink).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dangling {
    /// It jumps to any vertex with equal probability.
    Uniform,
    /// It jumps to a vertex drawn from v.
    Personalised,
    /// It stays.
    SelfLoop,
    /// It disappears, and the ranks sum to less than 1, as in the GAP benchmark.
    Drop,
}

/// A method for the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RankMethod {
    /// Power iteration.
    Power,
    /// Power iteration with periodic extrapolation from its last steps.
    Extrapolated,
    /// Gauss-Seidel in a fixed order, on the CPU.
    GaussSeidel,
}

/// The graph to rank, and the parameters of PageRank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankProblem<'a> {
    /// The graph.
    pub links: &'a Links,
    /// The probability d that the surfer follows a link: at least 0, less than 1.
    pub damping: f64,
    /// The policy for a surfer at a sink.
    pub dangling: Dangling,
    /// The distribution v of its other jumps, which sums to 1; if absent, all vertices are equally likely.
    pub teleport: Option<&'a [f64]>,
    /// The start of the iteration: ranks of an earlier solve, such as of an older graph. If absent, v.
    pub start: Option<&'a [f64]>,
}

/// The ranks, and how accurate they are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ranking {
    /// The rank of each vertex.
    pub ranks: Vec<f64>,
    /// Why iteration ended.
    pub reason: StopReason,
    /// What the solve has taken; its fields can be read directly from this type.
    pub effort: Effort,
    /// Number of extrapolations of the ranks.
    pub extrapolations: usize,
    /// The verified residual and error bound of the ranks.
    pub certificate: Certificate,
    /// The error estimated from the last step alone: d / (1 - d) times its l1 norm.
    pub estimate: f64,
    /// Seconds to compute the certificate, or all certificates if the first exceeded the tolerance.
    pub seconds_certify: f64,
}

impl Deref for Ranking {
    type Target = Effort;

    fn deref(&self) -> &Effort {
        &self.effort
    }
}

impl Dangling {
    /// All policies.
    pub const ALL: [Dangling; 4] =
        [Dangling::Uniform, Dangling::Personalised, Dangling::SelfLoop, Dangling::Drop];

    /// Returns the name of the policy.
    pub fn name(self) -> &'static str {
        match self {
            Dangling::Uniform => "uniform",
            Dangling::Personalised => "personalised",
            Dangling::SelfLoop => "self-loop",
            Dangling::Drop => "drop",
        }
    }

    /// Returns the formula of the ranks for messages: `m` is the sum of the ranks of the sinks.
    pub(crate) fn formula(self) -> &'static str {
        match self {
            Dangling::Uniform => {
                "x = d (P x + m / n) + (1 - d) v, m being the sum of x over vertices without links"
            }
            Dangling::Personalised => {
                "x = d (P x + m v) + (1 - d) v, m being the sum of x over vertices without links"
            }
            Dangling::SelfLoop => {
                "x = d P x + (1 - d) v, with a link from each vertex without links to itself"
            }
            Dangling::Drop => {
                "x = d P x + (1 - d) v, with a zero column of P for each vertex without links: sum of x < 1"
            }
        }
    }

    /// Returns whether the ranks sum to 1.
    pub(crate) fn conserves(self) -> bool {
        self != Dangling::Drop
    }
}

impl RankProblem<'_> {
    /// Returns the entry of v for a vertex.
    pub(crate) fn teleport(&self, vertex: usize) -> f64 {
        self.teleport.map_or_else(|| 1.0 / self.links.vertices() as f64, |v| v[vertex])
    }

    /// Checks the damping factor and the sizes and sums of the vectors.
    fn check(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.damping) {
            let reason = "it must be at least 0 and less than 1".to_owned();
            return Err(Error::BadSetting { setting: "damping", value: self.damping.to_string(), reason });
        }
        let own = (self.links.part(), self.links.rows());
        let lost = !self.dangling.conserves();
        self.teleport.map_or(Ok(()), |v| check_distribution("the personalisation", v, own, false))?;
        self.start.map_or(Ok(()), |x| check_distribution("the start", x, own, lost))
    }

    /// Returns the bound on the l1 error per unit of step length.
    fn error_of_step(&self) -> f64 {
        self.damping / (1.0 - self.damping)
    }

    /// Returns the entry of the start for a vertex.
    fn start(&self, vertex: usize) -> f64 {
        self.start.map_or_else(|| self.teleport(vertex), |start| start[vertex])
    }

    /// Returns the entry of the start for all vertices, if it is equal for all.
    fn even_start(&self) -> Option<f64> {
        (self.start.is_none() && self.teleport.is_none()).then(|| 1.0 / self.links.vertices() as f64)
    }
}

/// A distribution of the surfer's jumps.
#[derive(Clone, Debug)]
pub(crate) enum Jumps {
    /// The probability of each of these vertices, which are all different; it is 0 for the other vertices.
    /// Over ranks, every rank has the same list.
    Few(Vec<(usize, f64)>),
    /// The probability of every vertex; over ranks, of the vertices of this rank.
    All(Vec<f64>),
}

impl Jumps {
    /// Calls `each` with the vertices whose probability may differ from 0.
    fn for_each(&self, mut each: impl FnMut(usize, f64)) {
        match self {
            Jumps::Few(entries) => entries.iter().for_each(|&(vertex, v)| each(vertex, v)),
            Jumps::All(values) => values.iter().enumerate().for_each(|(vertex, &v)| each(vertex, v)),
        }
    }

    /// Returns the probabilities of all `n` vertices.
    fn all(self, n: usize) -> Vec<f64> {
        match self {
            Jumps::All(values) => values,
            Jumps::Few(entries) => {
                let mut values = vec![0.0; n];
                entries.into_iter().for_each(|(vertex, v)| values[vertex] = v);
                values
            }
        }
    }

    /// Checks that this is a distribution over the vertices, of which this process has a part of `own`.
    fn check(&self, part: Part<'_>, own: usize) -> Result<()> {
        const WHAT: &str = "the personalisation";
        let n = part.total(own);
        match self {
            Jumps::All(values) => check_distribution(WHAT, values, (part, own), false),
            Jumps::Few(entries) => match entries.iter().find(|(vertex, _)| *vertex >= n) {
                Some((vertex, _)) => Err(Error::Dimension { what: WHAT, expected: n, got: vertex + 1 }),
                None if n == 0 => Ok(()),
                None => {
                    let values: Vec<f64> = entries.iter().map(|(_, v)| *v).collect();
                    check_probabilities(WHAT, &values, false)
                }
            },
        }
    }

    /// Keeps the vertices of this process, and renumbers them as the links have them; `numbers` are the new
    /// numbers, if they differ.
    fn renumbered(self, links: &Links, numbers: Option<&[u32]>) -> Jumps {
        let rows = links.part().rows(links.rows());
        let number = |row: usize| numbers.map_or(row, |numbers| numbers[row] as usize);
        match self {
            Jumps::Few(mut entries) => {
                entries.retain(|(vertex, _)| rows.contains(vertex));
                entries.iter_mut().for_each(|(vertex, _)| *vertex = number(*vertex - rows.start));
                Jumps::Few(entries)
            }
            Jumps::All(values) if numbers.is_none() => Jumps::All(values),
            Jumps::All(values) => Jumps::All(links.to_internal_order(&values)),
        }
    }
}

/// The vectors of a problem in the vertex order of [`Links`].
struct Renumbered {
    teleport: Option<Vec<f64>>,
    start: Option<Vec<f64>>,
}

impl Renumbered {
    fn new(problem: &RankProblem<'_>) -> Renumbered {
        let to_internal_order =
            |vector: Option<&[f64]>| vector.map(|values| problem.links.to_internal_order(values));
        Renumbered { teleport: to_internal_order(problem.teleport), start: to_internal_order(problem.start) }
    }

    fn problem<'a>(&'a self, outside: &RankProblem<'a>) -> RankProblem<'a> {
        RankProblem { teleport: self.teleport.as_deref(), start: self.start.as_deref(), ..*outside }
    }
}

impl RankMethod {
    /// All methods.
    pub const ALL: [RankMethod; 3] = [RankMethod::Power, RankMethod::Extrapolated, RankMethod::GaussSeidel];

    /// Returns the name of the method.
    pub fn name(self) -> &'static str {
        match self {
            RankMethod::Power => "power",
            RankMethod::Extrapolated => "extrapolated",
            RankMethod::GaussSeidel => "gauss-seidel",
        }
    }
}

/// Computes ranks by power iteration, with or without extrapolation, with the operator of a backend, which
/// multiplies [`Links::incoming`].
pub(crate) fn power<D: Device, T: Scalar>(
    operator: Operator<D, T>,
    problem: &RankProblem<'_>,
    extrapolate: bool,
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Ranking> {
    power_each(operator, problem, (extrapolate, None), rule, observers).map(|mut one| one.swap_remove(0))
}

/// Several distributions of the jumps: their number, and a function that returns one. It is called several
/// times for each, so that the distributions need not be in memory together.
pub(crate) type Each<'a> = (usize, &'a dyn Fn(usize) -> Result<Jumps>);

/// Computes the ranks of the problem, or those for each of several distributions of the jumps, all in one
/// run: one product of the links with all columns in an iteration. Each column has its own end and
/// certificate, and starts at its distribution; those of the problem are then not used.
pub(crate) fn power_each<D: Device, T: Scalar>(
    operator: Operator<D, T>,
    problem: &RankProblem<'_>,
    (extrapolate, each): (bool, Option<Each<'_>>),
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Vec<Ranking>> {
    let began = Instant::now();
    let (links, n, k) = (problem.links, problem.links.rows(), each.map_or(1, |(k, _)| k));
    if k == 0 {
        return Err(Error::setting("personalise-each", 0, "there must be at least one personalisation"));
    }
    let own = |vector| if each.is_some() { None } else { vector };
    let problem = RankProblem { teleport: own(problem.teleport), start: own(problem.start), ..*problem };
    problem.check()?;
    let renumbered = Renumbered::new(&problem);
    let numbers = each.and_then(|_| links.internal_numbers());
    let inside = |column: usize, (_, teleport): Each<'_>| {
        let jumps = teleport(column)?;
        jumps.check(links.part(), n)?;
        Ok(jumps.renumbered(links, numbers.as_deref()))
    };
    let all = |column| each.map(|each| inside(column, each).map(|jumps| jumps.all(n))).transpose();
    let first = all(0)?;
    let problem = renumbered.problem(&problem);
    let problem = RankProblem { teleport: first.as_deref().or(problem.teleport), ..problem };
    let narrow = if problem.dangling == Dangling::SelfLoop { 2 } else { 1 };
    let wide = power::vectors(problem.dangling, problem.teleport.is_some(), extrapolate) - narrow;
    let vector_bytes = (wide as u64 * k as u64 + narrow as u64).saturating_mul((n * size_of::<T>()) as u64);
    let (operator_bytes, device) = (operator.storage(), operator.device().clone());
    let power = power::Power::new(operator, &problem, extrapolate);
    let bytes_per_iteration = power.bytes(k);
    if links.vertices() == 0 {
        let effort = Effort { bytes_per_iteration, operator_bytes, vector_bytes, ..Effort::default() };
        return Ok(vec![Ranking { effort, ..empty_ranking() }; k]);
    }
    device.require_memory("the vectors of a solve", vector_bytes)?;
    let (workspace, state) = match each {
        None => power.workspace(&problem)?,
        Some(each) => power.workspace_each(&problem, k, &|column| inside(column, each))?,
    };
    let recorded = Recorded::new(workspace, power, power::Power::step)?;
    device.synchronize()?;
    let seconds_setup = began.elapsed().as_secs_f64();
    let terms = Terms { rule, factor: problem.error_of_step(), vector: "the ranks" };
    let mut certificates = vec![Certificate::NONE; k];
    let found = fixed::on_device_columns(recorded, state, &terms, observers, |column, c| {
        let v = all(column)?;
        let problem = RankProblem { teleport: v.as_deref().or(problem.teleport), ..problem };
        Ok(checked_ranks(&problem, power::ranks(&problem, c), &mut certificates[column]))
    })?;
    let setup =
        Effort { bytes_per_iteration, operator_bytes, vector_bytes, seconds_setup, ..Effort::default() };
    let setup = setup.of_all(device.ranks());
    let column = |(found, certificate)| ranking(&problem, found, certificate, setup);
    Ok(found.into_iter().zip(certificates).map(column).collect())
}

/// Computes ranks by Gauss-Seidel, on up to four threads. `parts` must be made from the links of the problem.
pub(crate) fn gauss_seidel(
    device: &Cpu,
    parts: &Parts,
    problem: &RankProblem<'_>,
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Ranking> {
    let began = Instant::now();
    problem.check()?;
    if problem.links.vertices() == 0 {
        return Ok(empty_ranking());
    }
    let renumbered = Renumbered::new(problem);
    let problem = &renumbered.problem(problem);
    let state = State::new(parts, problem)?;
    let (operator_bytes, vector_bytes) = (parts.bytes(), state.vector_bytes());
    let bytes_per_iteration = state.bytes_of_pass();
    let seconds_setup = began.elapsed().as_secs_f64();
    let terms = Terms { rule, factor: problem.error_of_step(), vector: "the ranks" };
    let mut certificate = Certificate::NONE;
    let passes = (|state: &mut State<'_>, _| state.pass(device), State::ranks);
    let found =
        fixed::on_host(state, passes, &terms, observers, |x| checked_ranks(problem, x, &mut certificate))?;
    let setup =
        Effort { bytes_per_iteration, operator_bytes, vector_bytes, seconds_setup, ..Effort::default() };
    Ok(ranking(problem, found, certificate, setup))
}

/// Converts the result of a run, with the ranks in the order of the graph.
fn ranking(problem: &RankProblem<'_>, found: Found, certificate: Certificate, setup: Effort) -> Ranking {
    let (seconds_solve, seconds_certify) = found.seconds;
    Ranking {
        ranks: problem.links.to_graph_order(found.x),
        reason: found.reason,
        effort: setup.after(found.iterations, seconds_solve),
        extrapolations: found.jumps,
        estimate: found.estimate,
        certificate,
        seconds_certify,
    }
}

/// Returns the ranking of a graph without vertices.
fn empty_ranking() -> Ranking {
    Ranking {
        ranks: Vec::new(),
        reason: StopReason::Converged,
        effort: Effort::default(),
        extrapolations: 0,
        certificate: Certificate { residual: 0.0, error_bound: 0.0, sum: 0.0 },
        estimate: 0.0,
        seconds_certify: 0.0,
    }
}

/// Normalises the ranks, and returns them with the bound on their error; stores the certificate.
fn checked_ranks(problem: &RankProblem<'_>, x: Vec<f64>, certificate: &mut Certificate) -> (Vec<f64>, f64) {
    let x = normalised(problem, x);
    *certificate = certify_renumbered(problem, &x);
    (x, certificate.error_bound)
}

/// Scales the ranks to sum 1 if the policy conserves the sum.
fn normalised(problem: &RankProblem<'_>, mut x: Vec<f64>) -> Vec<f64> {
    let sum = problem.links.part().sum_of(x.len(), |i| x[i]);
    if problem.dangling.conserves() && sum.is_normal() {
        x.par_chunks_mut(1 << 14).for_each(|x| x.iter_mut().for_each(|x| *x /= sum));
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_to_few_vertices_are_checked_like_those_to_all() {
        assert!(Jumps::Few(vec![(0, 0.25), (2, 0.75)]).check(Part::default(), 3).is_ok());
        for (few, all) in [
            (vec![], [0.0, 0.0, 0.0]),
            (vec![(1, 0.5)], [0.0, 0.5, 0.0]),
            (vec![(0, 1.5), (1, -0.5)], [1.5, -0.5, 0.0]),
            (vec![(0, f64::NAN)], [f64::NAN, 0.0, 0.0]),
        ] {
            let refused = |jumps: Jumps| jumps.check(Part::default(), 3).unwrap_err().to_string();
            assert_eq!(refused(Jumps::Few(few)), refused(Jumps::All(all.to_vec())));
        }
        assert!(matches!(Jumps::Few(vec![(3, 1.0)]).check(Part::default(), 3), Err(Error::Dimension { .. })));
    }
}
