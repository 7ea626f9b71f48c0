//! Gauss-Seidel: each vertex in turn takes the rank that the newest ranks of all others give it.
//!
//! With a_i the links into i from others, l_i the link to itself, and m the sum over sinks, also the newest:
//!
//! ```text
//! x_i = (d (sum of a_ij x_j / out_j) + d m_i + (1 - d) v_i) / (1 - d l_i / out_i)
//! ```
//!
//! A splitting of an M-matrix, so it converges from anywhere: on crawls of the web in about half the iterations of the
//! power method, and on graphs of many sinks in more, because what sinks spread waits for its turn. One vertex waits for
//! the other, and the iterations cannot be shared among threads without losing the order that makes the result the same
//! on every run. The estimate is the same as that of the power method: it says
//! nothing certain here, and the certificate decides.

use super::{Dangling, RankProblem};

/// Vectors that a pass touches, x among them.
pub(super) const VECTORS: usize = 5;

/// What each vertex gives along a link.
pub(super) struct State {
    given: Vec<f64>,
    /// 1 - d times the share of a vertex's links that lead to itself.
    own: Vec<f64>,
}

impl State {
    pub fn new(problem: &RankProblem<'_>, x: &[f64]) -> State {
        let links = problem.links;
        let out = links.out();
        let given = (0..x.len()).map(|i| if out[i] > 0.0 { x[i] / out[i] } else { 0.0 }).collect();
        let into = links.incoming();
        let own = into.map_rows(|i| {
            let to_itself: f64 = into.row(i).filter(|(j, _)| *j == i).map(|(_, weight)| weight).sum();
            let kept = problem.dangling == Dangling::SelfLoop && out[i] == 0.0;
            let share = if out[i] > 0.0 { to_itself / out[i] } else { f64::from(u8::from(kept)) };
            1.0 - problem.damping * share
        });
        State { given, own }
    }

    /// One pass over all vertices; the l1 norm of the change.
    pub fn pass(&mut self, problem: &RankProblem<'_>, x: &mut [f64]) -> f64 {
        let (links, d) = (problem.links, problem.damping);
        let (into, out, n) = (links.incoming(), links.out(), x.len());
        // Summed anew in every pass, so that rounding does not pile up.
        let mut stranded: f64 = links.sinks().map(|vertex| x[vertex]).sum();
        let mut step = 0.0;
        for (i, out) in out.iter().enumerate() {
            let came: f64 =
                into.row(i).map(|(j, weight)| if j == i { 0.0 } else { weight * self.given[j] }).sum();
            let spread = match problem.dangling {
                Dangling::Uniform => stranded / n as f64,
                Dangling::Personalised => stranded * problem.teleport(i),
                Dangling::SelfLoop | Dangling::Drop => 0.0,
            };
            let next = (d * (came + spread) + (1.0 - d) * problem.teleport(i)) / self.own[i];
            let change = next - x[i];
            step += change.abs();
            x[i] = next;
            if *out > 0.0 {
                self.given[i] = next / out;
            } else {
                stranded += change;
            }
        }
        step
    }
}
