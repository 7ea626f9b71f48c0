//! Whether a run is believed, and what its end means for the solve.

use super::{Outcome, Solve, scale};
use crate::device::{Device, SlotState};
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
use crate::solve::recurrence::Recurrence;
use crate::solve::verdict::{backward_error, norm, normal_residual, residual};
use crate::stop::{Progress, StopReason};

/// A true residual so many times the recursive one, and the one before the run, is rounding and nothing else.
const LOST: f64 = 10.0;
/// The normal residual below which a least-squares solution is believed.
const NORMAL: f64 = 1e-6;

/// The reason where x or b - A x has left the range of numbers, by the first row that shows it; a vector of the method
/// that had done so before is the better evidence.
fn out_of_range(reason: StopReason, iteration: usize, x: &[f64], r: &[f64]) -> StopReason {
    if matches!(reason, StopReason::NotFinite { .. }) {
        return reason;
    }
    let found = [("x", x), ("b - A x", r)]
        .into_iter()
        .find_map(|(vector, values)| Some((vector, values.iter().position(|v| !v.is_finite())?)));
    let (vector, row) = found.map_or(("", None), |(vector, row)| (vector, Some(row)));
    StopReason::NotFinite { iteration, vector, row }
}

/// Whether p'Ap is positive, but it or entries of A p are below the range of numbers. Both are scaled by powers of two to
/// see that.
fn has_underflown<T: Scalar>(matrix: &Csr, p: &[T]) -> bool {
    let scaled = |mut v: Vec<f64>| {
        let by = scale(&v);
        v.iter_mut().for_each(|v| *v /= by);
        (v, by)
    };
    let (p, by_p) = scaled(p.iter().map(|p| p.to_f64()).collect());
    let (q, by_q) = scaled(matrix.multiply_reference(&p));
    let curvature: f64 = p.iter().zip(&q).map(|(p, q)| p * q).sum();
    let sum = curvature * by_q * by_p * by_p;
    let entry = T::from_f64(by_q * by_p * T::EPSILON).to_f64();
    curvature > 0.0 && (sum < f64::MIN_POSITIVE || entry == 0.0)
}

impl Solve<'_, '_> {
    /// Brings home what a run has found: the reason as its numbers let it stand, and whether they are better than what
    /// was there.
    pub(super) fn collect<M: Recurrence<D, T>, D: Device, T: Scalar>(
        &mut self,
        device: &D,
        mut work: M,
        state: SlotState,
        reason: StopReason,
    ) -> Result<(StopReason, bool)> {
        let (first_run, recursive) = (self.restarts == 0, self.now.residual);
        work.finish(device, state, self.now.run_began)?;
        let mut d = vec![T::default(); self.x.len()];
        device.download(work.answer(), &mut d)?;
        let x: Vec<f64> = self.x.iter().zip(&d).map(|(x, d)| x + d.to_f64() * self.scale).collect();
        let r = residual(self.system.matrix, self.system.b, &x);
        let truth = norm(&r) / self.now.norms.b;
        if !truth.is_finite() {
            return Ok((out_of_range(reason, self.now.iteration, &x, &r), false));
        }
        // Residuals of a first run may end above the start, but not by rounding alone.
        let lost = truth > LOST * recursive.max(self.truth);
        let better = truth < self.truth || (first_run && !lost);
        if better {
            (self.x, self.r, self.truth, self.recursive) = (x, r, truth, recursive);
        }
        Ok((reason, better))
    }

    /// A curvature that is zero because its products fell below the range of numbers is not blamed on the matrix; other
    /// evidence is told in the units of the system.
    pub(super) fn underflown<M: Recurrence<D, T>, D: Device, T: Scalar>(
        &self,
        device: &D,
        reason: StopReason,
        work: &M,
    ) -> Result<StopReason> {
        let evidence = |product: f64| {
            let product_of_system = product * self.scale * self.scale;
            if product_of_system.is_normal() { product_of_system } else { product }
        };
        Ok(match reason {
            StopReason::IndefiniteMatrix { iteration, curvature } => {
                let mut p = vec![T::default(); self.x.len()];
                if !curvature.is_normal()
                    && let Some(direction) = work.direction()
                {
                    device.download(direction, &mut p)?;
                    if has_underflown(self.system.matrix, &p) {
                        return Ok(StopReason::Underflow { iteration });
                    }
                }
                StopReason::IndefiniteMatrix { iteration, curvature: evidence(curvature) }
            }
            StopReason::IndefinitePreconditioner { iteration, product } => {
                StopReason::IndefinitePreconditioner { iteration, product: evidence(product) }
            }
            other => other,
        })
    }

    /// A reason of least squares with its numbers.
    pub(super) fn measured(&self, reason: StopReason) -> StopReason {
        match reason {
            StopReason::LeastSquares { .. } => StopReason::LeastSquares {
                residual: self.truth,
                normal: normal_residual(self.system.matrix, &self.r),
            },
            other => other,
        }
    }

    /// Whether starting again from the true residual may bring the solve to its goal.
    pub(super) fn may_restart(&self, reason: &StopReason) -> bool {
        let misled = matches!(
            reason,
            StopReason::Converged
                | StopReason::Stagnated { .. }
                | StopReason::LeastSquares { .. }
                | StopReason::Breakdown { .. }
                | StopReason::Underflow { .. }
        );
        misled && self.truth > self.goal
    }

    /// The rule that stands against another run.
    pub(super) fn rule_against_restart(&self) -> Option<StopReason> {
        let iteration = self.now.iteration;
        let next =
            Progress { residual: self.truth, improved_at: iteration, run_began: iteration, ..self.now };
        self.rule.check(&next)
    }

    /// The reason as the true residual lets it stand. Where a rule alone stood against another run, the rule is the
    /// reason, unless x is known to be the best there is.
    pub(super) fn believe(&self, reason: StopReason, against: Option<StopReason>) -> StopReason {
        let meets = self.truth <= self.goal;
        let gap = StopReason::ResidualGap { recursive: self.recursive, recomputed: self.truth };
        match reason {
            StopReason::Stagnated { .. }
            | StopReason::Diverged { .. }
            | StopReason::LeastSquares { .. }
            | StopReason::Underflow { .. }
                if meets =>
            {
                StopReason::Converged
            }
            StopReason::LeastSquares { normal, .. } if normal <= NORMAL => reason,
            StopReason::Converged | StopReason::LeastSquares { .. } if !meets => against.unwrap_or(gap),
            other => against.unwrap_or(other),
        }
    }

    /// The outcome with the verdict.
    pub(super) fn judged(self, mut outcome: Outcome) -> Outcome {
        outcome.iterations = self.now.iteration;
        outcome.restarts = self.restarts;
        outcome.residual = self.recursive;
        outcome.seconds_solve = self.now.elapsed.as_secs_f64();
        // Those before a checkpoint may have run elsewhere.
        let here = self.now.iteration - self.earlier_iterations;
        let (seconds, iterations) = match here {
            0 => (self.now.elapsed, self.now.iteration),
            _ => (self.now.elapsed.saturating_sub(self.earlier), here),
        };
        outcome.seconds_each = seconds.as_secs_f64() / iterations.max(1) as f64;
        outcome.residual_true = self.truth;
        outcome.backward_error = backward_error(self.system.matrix, self.system.b, &self.x, &self.r);
        outcome.x = self.x;
        outcome
    }
}
