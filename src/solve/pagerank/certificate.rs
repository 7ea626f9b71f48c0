//! What is certain of a vector of ranks, however it was computed.
//!
//! With F(x) = d P x + (1 - d) v the ranks are the one x* = F(x*). F brings any two vectors nearer to each other in the
//! l1 norm by the factor d at least, because no column of P sums to more than 1. So
//!
//! ```text
//! ||x - x*|| <= ||x - F(x)|| + ||F(x) - F(x*)|| <= ||F(x) - x|| + d ||x - x*||,
//! ||x - x*|| <= ||F(x) - x|| / (1 - d).
//! ```
//!
//! F(x) - x is computed here in double precision from the graph itself, each sum rounded about once however long it is,
//! and what its rounding may come to is added. Whatever arithmetic has found x has no part in it.

use super::{Dangling, Inside, RankProblem};
use crate::error::{Error, Result};
use crate::format::Values;
use crate::solve::rounding::sum;

/// The unit of rounding in double precision.
const ROUNDING: f64 = f64::EPSILON / 2.0;

/// What was found of a vector of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certificate {
    /// The l1 norm of F(x) - x.
    pub residual: f64,
    /// No more than this lies between x and the ranks in the l1 norm.
    pub error_bound: f64,
    /// The sum of x.
    pub sum: f64,
}

impl Certificate {
    /// Before anything was looked at.
    pub(super) const NONE: Certificate =
        Certificate { residual: f64::INFINITY, error_bound: f64::INFINITY, sum: f64::NAN };
}

/// Looks at x, which holds a rank for each vertex of the graph.
pub fn certify(problem: &RankProblem<'_>, x: &[f64]) -> Result<Certificate> {
    problem.check()?;
    let (what, expected, got) = ("the ranks", problem.links.vertices(), x.len());
    if got != expected {
        return Err(Error::Dimension { what, expected, got });
    }
    let inside = Inside::new(problem);
    Ok(look(&inside.problem(problem), &problem.links.taken_in(x)))
}

/// The same under the numbers of [`Links`](super::links::Links).
pub(super) fn look(problem: &RankProblem<'_>, x: &[f64]) -> Certificate {
    let links = problem.links;
    let (n, d) = (links.vertices(), problem.damping);
    if n == 0 {
        return Certificate { residual: 0.0, error_bound: 0.0, sum: 0.0 };
    }
    // What each vertex gives along a link of weight 1: one rounding.
    let given: Vec<f64> =
        x.iter().zip(links.out()).map(|(x, out)| if *out > 0.0 { x / out } else { 0.0 }).collect();
    let stranded = sum(links.sinks().map(|vertex| x[vertex]));
    let incoming = links.incoming();
    let rows = incoming.map_rows(|i| {
        let columns = incoming.row_columns(i);
        // One rounding for each product, a few for the sum.
        let came = match incoming.values() {
            Values::Ones => total(columns, |_, j| given[j as usize]),
            values => {
                let start = incoming.row_range(i).start;
                total(columns, |at, j| values.get(start + at) * given[j as usize])
            }
        };
        let kept = match problem.dangling {
            Dangling::SelfLoop if links.out()[i] == 0.0 => x[i],
            _ => 0.0,
        };
        let spread = match problem.dangling {
            Dangling::Uniform => stranded / n as f64,
            Dangling::Personalised => stranded * problem.teleport(i),
            Dangling::SelfLoop | Dangling::Drop => 0.0,
        };
        let jump = (1.0 - d) * problem.teleport(i);
        let image = d * (came + kept + spread) + jump;
        // Of magnitude `image` at most, each; x itself is exact.
        (image - x[i], image.abs() + d * (came.abs() + kept.abs() + spread.abs()) + jump.abs())
    });
    let residual = sum(rows.iter().map(|(difference, _)| difference.abs()));
    let magnitude = sum(rows.iter().map(|(_, magnitude)| *magnitude));
    // Weights of links (their sum, the division, the product, the sum of products) 8 roundings, the spread and the jump
    // likewise, their sum 3, the difference and both norms 4; twice as many are granted.
    let rounding = 32.0 * ROUNDING * (magnitude + residual);
    Certificate { residual, error_bound: (residual + rounding) / (1.0 - d), sum: sum(x.iter().copied()) }
}

/// Sums that share a row, so that one need not wait for the other.
const SUMS: usize = 4;

/// The sum over a row, with what rounding takes off each partial sum kept beside it (D. Knuth's two-sum).
fn total(columns: &[u32], term: impl Fn(usize, u32) -> f64) -> f64 {
    let (mut sums, mut lost) = ([0.0; SUMS], [0.0; SUMS]);
    for (group, columns) in columns.chunks(SUMS).enumerate() {
        for (lane, &column) in columns.iter().enumerate() {
            let term = term(group * SUMS + lane, column);
            let next = sums[lane] + term;
            let taken = next - sums[lane];
            lost[lane] += (sums[lane] - (next - taken)) + (term - taken);
            sums[lane] = next;
        }
    }
    sum(sums.into_iter().chain(lost))
}
