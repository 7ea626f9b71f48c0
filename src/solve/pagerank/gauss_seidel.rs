//! Gauss-Seidel: updates the rank of each vertex in turn from the newest ranks of the other vertices.
//!
//! With a_ij the weights of the links into i from other vertices, l_i the weight of the link from i to itself, and m the sum over
//! sinks, also the newest:
//!
//! ```text
//! x_i = (d (sum of a_ij x_j / out_j) + d m_i + (1 - d) v_i) / (1 - d l_i / out_i)
//! ```
//!
//! This is a splitting of an M-matrix, so it converges from any start: on web crawls in about half the iterations of the power
//! method, and on graphs with many sinks in more, because updates of sinks reach the other vertices late. The updates depend on
//! each other, so threads cannot share an iteration without losing the order that makes results reproducible. The estimate is the
//! same as that of the power method; it is no bound here, so the certificate decides.

use super::{Dangling, RankProblem};

/// Number of vectors that a pass accesses, including x.
pub(super) const VECTORS: usize = 5;

/// The contribution of each vertex along a link.
pub(super) struct State {
    contributions: Vec<f64>,
    /// 1 - d times the fraction of a vertex's links that lead to itself.
    diagonal: Vec<f64>,
}

impl State {
    pub fn new(problem: &RankProblem<'_>, x: &[f64]) -> State {
        let links = problem.links;
        let out = links.out();
        let contributions = (0..x.len()).map(|i| if out[i] > 0.0 { x[i] / out[i] } else { 0.0 }).collect();
        let into = links.incoming();
        let diagonal = into.map_rows(|i| {
            let to_itself: f64 = into.row(i).filter(|(j, _)| *j == i).map(|(_, weight)| weight).sum();
            let kept = problem.dangling == Dangling::SelfLoop && out[i] == 0.0;
            let share = if out[i] > 0.0 { to_itself / out[i] } else { f64::from(u8::from(kept)) };
            1.0 - problem.damping * share
        });
        State { contributions, diagonal }
    }

    /// Performs one pass over all vertices. Returns the l1 norm of the change.
    pub fn pass(&mut self, problem: &RankProblem<'_>, x: &mut [f64]) -> f64 {
        let (links, d) = (problem.links, problem.damping);
        let (into, out, n) = (links.incoming(), links.out(), x.len());
        // Recomputed in every pass, so that rounding errors do not accumulate.
        let mut stranded: f64 = links.sinks().map(|vertex| x[vertex]).sum();
        let mut step = 0.0;
        for (i, out) in out.iter().enumerate() {
            let inflow: f64 = into
                .row(i)
                .map(|(j, weight)| if j == i { 0.0 } else { weight * self.contributions[j] })
                .sum();
            let spread = match problem.dangling {
                Dangling::Uniform => stranded / n as f64,
                Dangling::Personalised => stranded * problem.teleport(i),
                Dangling::SelfLoop | Dangling::Drop => 0.0,
            };
            let next = (d * (inflow + spread) + (1.0 - d) * problem.teleport(i)) / self.diagonal[i];
            let change = next - x[i];
            step += change.abs();
            x[i] = next;
            if *out > 0.0 {
                self.contributions[i] = next / out;
            } else {
                stranded += change;
            }
        }
        step
    }
}
