//! A verified error bound for a vector of ranks, independent of how the vector was computed.
//!
//! With F(x) = d P x + (1 - d) v the ranks are the unique x* = F(x*). F reduces the l1 distance of any two
//! vectors at least by the factor d, because no column of P sums to more than 1. So
//!
//! ```text
//! ||x - x*|| <= ||x - F(x)|| + ||F(x) - F(x*)|| <= ||F(x) - x|| + d ||x - x*||,
//! ||x - x*|| <= ||F(x) - x|| / (1 - d).
//! ```
//!
//! F(x) - x is computed here in double precision from the graph itself. Each sum is rounded about once
//! regardless of its length, and a bound on the rounding is added. The certificate does not depend on the
//! arithmetic that computed x. A GPU that has the links computes all sums itself, by code other than that of
//! its backends; the bits are those of the host. Over ranks, each rank computes F(x) - x in its own rows, and
//! the sums of the ranks are added in their order.

use super::{Dangling, RankProblem};
use crate::format::Values;
use crate::operator::RankMap;
use crate::parallel::collected;
use crate::solve::rounding::sum;

/// The unit of rounding in double precision.
const ROUNDING: f64 = f64::EPSILON / 2.0;

/// The verified measures of a vector of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certificate {
    /// The l1 norm of F(x) - x.
    pub residual: f64,
    /// An upper bound of the l1 distance between x and the ranks.
    pub error_bound: f64,
    /// The sum of x.
    pub sum: f64,
}

impl Certificate {
    /// The certificate before any vector has been checked.
    pub(super) const NONE: Certificate =
        Certificate { residual: f64::INFINITY, error_bound: f64::INFINITY, sum: f64::NAN };
}

/// Certifies x, which contains a rank for each vertex of the graph, or of the part of it that
/// this process has.
#[cfg(test)]
pub(crate) fn certify(problem: &RankProblem<'_>, x: &[f64]) -> crate::error::Result<Certificate> {
    use super::Renumbered;
    use crate::error::Error;
    problem.check()?;
    let (what, expected, got) = ("the ranks", problem.links.rows(), x.len());
    if got != expected {
        return Err(Error::Dimension { what, expected, got });
    }
    let renumbered = Renumbered::new(problem);
    Ok(certify_renumbered(&renumbered.problem(problem), &problem.links.to_internal_order(x)))
}

/// Certifies x in the vertex order of [`Links`](super::links::Links).
pub(super) fn certify_renumbered(problem: &RankProblem<'_>, x: &[f64]) -> Certificate {
    let links = problem.links;
    if links.vertices() == 0 {
        return Certificate { residual: 0.0, error_bound: 0.0, sum: 0.0 };
    }
    let [residual, magnitude, sum] = measured_there(problem, x).unwrap_or_else(|| measured_here(problem, x));
    // Weights of links (their sum, the division, the product, the sum of products) take 8 roundings, the
    // spread and the jump also 8, their sum 3, the difference and both norms 4. Twice that total is allowed.
    let rounding = 32.0 * ROUNDING * (magnitude + residual);
    Certificate { residual, error_bound: (residual + rounding) / (1.0 - problem.damping), sum }
}

/// Computes the norm of F(x) - x, the sum of the magnitudes of the terms that are rounded, and the sum of x.
fn measured_here(problem: &RankProblem<'_>, x: &[f64]) -> [f64; 3] {
    let links = problem.links;
    let (part, n, out, incoming) = (links.part(), links.rows(), links.out(), links.incoming());
    // The contribution of each vertex along a link of weight 1: one rounding.
    let contributions = collected(n, |j| if out[j] > 0.0 { x[j] / out[j] } else { 0.0 });
    let stranded = part.sum_of(n, |vertex| if out[vertex] == 0.0 { x[vertex] } else { 0.0 });
    let contributions = part.complete(&contributions);
    let there = links.inflow_there(&contributions);
    // One rounding for each product, a few for the sum.
    let inflow_of = |i: usize| match (&there, incoming.values()) {
        (Some(inflow), _) => inflow[i],
        (None, Values::Ones) => total(incoming.row_columns(i), |_, j| contributions[j as usize]),
        (None, values) => {
            let start = incoming.row_range(i).start;
            total(incoming.row_columns(i), |at, j| values.get(start + at) * contributions[j as usize])
        }
    };
    let map = rank_map(problem, stranded);
    // F(x) - x of a vertex, the magnitude of the terms that are rounded, and x.
    part.sums_of(n, |i| {
        let (v, inflow) = (map.teleport.map_or(map.even, |v| v[i]), inflow_of(i));
        let kept = if map.keeps && out[i] == 0.0 { x[i] } else { 0.0 };
        let spread = if map.by_teleport { map.spread * v } else { map.spread };
        let jump = (1.0 - map.damping) * v;
        let image = map.damping * (inflow + kept + spread) + jump;
        // The rounded terms have at most the magnitude of `image`; x itself is exact.
        let terms = map.damping * (inflow.abs() + kept.abs() + spread.abs());
        [(image - x[i]).abs(), image.abs() + terms + jump.abs(), x[i]]
    })
}

/// Computes the same three numbers on the device that has the links; none if the host must do it.
fn measured_there(problem: &RankProblem<'_>, x: &[f64]) -> Option<[f64; 3]> {
    let (links, part) = (problem.links, problem.links.part());
    links.on_device(|there| {
        let [stranded, sum] = there.begin(x, links.out())?.map(|chunks| part.sum_of_chunks(chunks));
        let sums = there.finish(&rank_map(problem, stranded))?;
        let [residual, magnitude] = sums.map(|chunks| part.sum_of_chunks(chunks));
        Ok([residual, magnitude, sum])
    })
}

/// Returns F without the links. The ranks of the vertices without links sum to `stranded`.
fn rank_map<'a>(problem: &RankProblem<'a>, stranded: f64) -> RankMap<'a> {
    let vertices = problem.links.vertices() as f64;
    let spread = match problem.dangling {
        Dangling::Uniform => stranded / vertices,
        Dangling::Personalised => stranded,
        Dangling::SelfLoop | Dangling::Drop => 0.0,
    };
    RankMap {
        damping: problem.damping,
        teleport: problem.teleport,
        even: 1.0 / vertices,
        spread,
        by_teleport: problem.dangling == Dangling::Personalised,
        keeps: problem.dangling == Dangling::SelfLoop,
    }
}

/// Independent partial sums of a row, which shorten the chain of dependent additions.
const SUMS: usize = 4;

/// Computes the sum over a row, with the rounding error of each partial sum accumulated
/// separately (D. Knuth's two-sum).
fn total(columns: &[u32], term: impl Fn(usize, u32) -> f64) -> f64 {
    if columns.len() <= SUMS {
        // Each partial sum is one term, and exact.
        return sum(columns.iter().enumerate().map(|(at, &column)| term(at, column)));
    }
    long_total(columns, term)
}

fn long_total(columns: &[u32], term: impl Fn(usize, u32) -> f64) -> f64 {
    let (mut sums, mut lost) = ([0.0; SUMS], [0.0; SUMS]);
    let mut add = |lane: usize, term: f64| {
        let next = sums[lane] + term;
        let taken = next - sums[lane];
        lost[lane] += (sums[lane] - (next - taken)) + (term - taken);
        sums[lane] = next;
    };
    let (groups, rest) = columns.as_chunks::<SUMS>();
    for (group, columns) in groups.iter().enumerate() {
        let terms: [f64; SUMS] = std::array::from_fn(|lane| term(group * SUMS + lane, columns[lane]));
        (0..SUMS).for_each(|lane| add(lane, terms[lane]));
    }
    let whole = groups.len() * SUMS;
    rest.iter().enumerate().for_each(|(lane, &column)| add(lane, term(whole + lane, column)));
    sum(sums.into_iter().chain(lost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::generate::random::Random;

    #[test]
    fn the_sum_of_a_short_row_has_the_bits_of_the_general_sum() {
        for length in 0..=SUMS {
            for case in 0..200 {
                let term = |at: usize, _| match Random::at(case, at as u64).bits() % 5 {
                    0 => -0.0,
                    1 => 0.0,
                    2 => -1e-9,
                    3 => f64::MIN_POSITIVE / 8.0,
                    bits => (bits as f64).sqrt() * 1e-3 * (1 + at) as f64,
                };
                let columns = vec![0; length];
                assert_eq!(
                    total(&columns, term).to_bits(),
                    long_total(&columns, term).to_bits(),
                    "{length}, {case}"
                );
            }
        }
    }
}
