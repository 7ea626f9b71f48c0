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

use super::{Dangling, FLOOR, NEARER, Ranking, Run, believed, normalised, nothing};
use crate::error::Result;
use crate::stop::StopReason;
use std::time::Instant;

pub(super) fn solve(mut run: Run<'_, '_>) -> Result<Ranking> {
    let began = Instant::now();
    let problem = run.problem;
    let (n, d) = (problem.links.vertices(), problem.damping);
    let into = problem.links.incoming();
    let vector_bytes = (5 * n * size_of::<f64>()) as u64;
    let bytes_per_iteration = into.storage_bytes() + vector_bytes;
    let operator_bytes = into.storage_bytes();
    if n == 0 {
        return Ok(Ranking { bytes_per_iteration, operator_bytes, vector_bytes, ..nothing(problem) });
    }
    let mut state = State::new(&run);
    let seconds_setup = began.elapsed().as_secs_f64();
    let mut aim = run.tolerance;
    run.begin();
    let (reason, ranks, certificate) = loop {
        let stop = loop {
            if let Some(stop) = run.rule.check(&run.now).filter(|reason| *reason != StopReason::Converged) {
                break stop;
            }
            let step = state.sweep(&run);
            run.take_in(std::iter::once(step));
            if !step.is_finite() {
                let iteration = run.now.iteration;
                break StopReason::NotFinite { iteration, vector: "the ranks", row: None };
            }
            if step <= run.step_for(aim) {
                break StopReason::Converged;
            }
        };
        let ranks = normalised(problem, state.x.clone());
        let certificate = run.certify(&ranks);
        if stop != StopReason::Converged || certificate.error_bound <= run.tolerance {
            break (stop, ranks, certificate);
        }
        aim *= NEARER * (run.tolerance / certificate.error_bound).min(1.0);
        if d == 0.0 || run.step_for(aim) < FLOOR * f64::EPSILON {
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

/// The ranks, what each vertex gives along a link, and what is stranded at sinks.
struct State {
    x: Vec<f64>,
    given: Vec<f64>,
    /// 1 - d times the share of a vertex's links that lead to itself.
    own: Vec<f64>,
}

impl State {
    fn new(run: &Run<'_, '_>) -> State {
        let (problem, links) = (run.problem, run.problem.links);
        let x = problem.beginning();
        let out = links.out();
        let given = (0..x.len()).map(|i| if out[i] > 0.0 { x[i] / out[i] } else { 0.0 }).collect();
        let into = links.incoming();
        let own = into.map_rows(|i| {
            let to_itself: f64 = into.row(i).filter(|(j, _)| *j == i).map(|(_, weight)| weight).sum();
            let kept = problem.dangling == Dangling::SelfLoop && out[i] == 0.0;
            let share = if out[i] > 0.0 { to_itself / out[i] } else { f64::from(u8::from(kept)) };
            1.0 - problem.damping * share
        });
        State { x, given, own }
    }

    /// One pass over all vertices; the l1 norm of the change.
    fn sweep(&mut self, run: &Run<'_, '_>) -> f64 {
        let (problem, links, d) = (run.problem, run.problem.links, run.problem.damping);
        let (into, out, n) = (links.incoming(), links.out(), self.x.len());
        // Summed anew in every pass, so that rounding does not pile up.
        let mut stranded: f64 = links.sinks().map(|vertex| self.x[vertex]).sum();
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
            let change = next - self.x[i];
            step += change.abs();
            self.x[i] = next;
            if *out > 0.0 {
                self.given[i] = next / out;
            } else {
                stranded += change;
            }
        }
        step
    }
}
