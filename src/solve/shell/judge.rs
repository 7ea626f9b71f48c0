//! Whether a run is believed, and what its end means for the solve.

use super::scales::scale;
use super::space::Space;
use super::{Outcome, Solve};
use crate::device::{Device, SlotState};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::solve::given::MatrixRef;
use crate::solve::recurrence::Recurrence;
use crate::solve::verdict::{self, Measured, normal_residual};
use crate::spectrum::Spectrum;
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
fn has_underflown<T: Scalar>(matrix: MatrixRef<'_>, p: &[T]) -> bool {
    let scaled = |mut v: Vec<f64>| {
        let by = scale(&v);
        v.iter_mut().for_each(|v| *v /= by);
        (v, by)
    };
    let (p, by_p) = scaled(p.iter().map(|p| p.to_f64()).collect());
    let (q, by_q) = scaled(matrix.multiply(&p));
    let curvature: f64 = p.iter().zip(&q).map(|(p, q)| p * q).sum();
    let sum = curvature * by_q * by_p * by_p;
    let entry = T::from_f64(by_q * by_p * T::EPSILON).to_f64();
    curvature > 0.0 && (sum < f64::MIN_POSITIVE || entry == 0.0)
}

impl<T: Scalar> Solve<'_, '_, T> {
    /// Brings home what a run has found: the reason as its numbers let it stand, and whether they are better than what
    /// was there.
    pub(super) fn collect<M: Recurrence<D, T>, D: Device>(
        &mut self,
        device: &D,
        work: &mut M,
        state: &mut SlotState,
        reason: StopReason,
    ) -> Result<(StopReason, bool)> {
        let (first_run, recursive) = (self.restarts == 0, self.now.residual);
        work.finish(device, state, self.now.run_began)?;
        let space = &mut *self.space;
        device.download(work.answer(), &mut space.host)?;
        let by = self.scale * self.sigma;
        let grown = |d: f64| if by.is_normal() { d * by } else { d * self.scale * self.sigma };
        let next = space.next_x.iter_mut().zip(&space.x).zip(&space.host);
        next.for_each(|((next, x), d)| *next = x + grown(d.to_f64()));
        let found = self.measure(device);
        let truth = found.norm / self.now.norms.b;
        if !truth.is_finite() {
            let (x, r) = (&self.space.next_x, &self.space.next_r);
            return Ok((out_of_range(reason, self.now.iteration, x, r), false));
        }
        // Residuals of a first run may end above the start, but not by rounding alone.
        let lost = truth > LOST * recursive.max(self.truth);
        let better = truth < self.truth || (first_run && !lost);
        if better {
            self.recursive = recursive;
            self.take(&found);
        }
        Ok((reason, better))
    }

    /// The residual of the next x: plain where that certifies the goal, and otherwise compensated.
    fn measure<D: Device>(&mut self, device: &D) -> Measured {
        let (system, norm_b) = (self.system, self.now.norms.b);
        match system.matrix {
            MatrixRef::Stored(matrix) => {
                let space = &mut *self.space;
                let (x, r) = (&space.next_x, &mut space.next_r);
                space.judge.measure(device, (matrix, system.b, x), norm_b, self.goal, r)
            }
            MatrixRef::Applied(product) => {
                let norm_a = self.largest_eigenvalue().unwrap_or(0.0);
                let space = &mut *self.space;
                verdict::of_product(product, (system.b, &space.next_x), norm_a, &mut space.next_r)
            }
        }
    }

    /// The normal residual; where the matrix is known by its products alone, with the largest eigenvalue that was seen as its
    /// norm.
    fn normal_residual(&mut self) -> f64 {
        match self.system.matrix {
            MatrixRef::Stored(matrix) => normal_residual(matrix, &self.space.r),
            MatrixRef::Applied(_) => {
                let product = verdict::norm(&self.system.matrix.multiply(&self.space.r));
                let r = verdict::norm(&self.space.r);
                // A lower bound of the norm where a preconditioner hides the eigenvalues of A.
                let norm_a = self.largest_eigenvalue().unwrap_or(product / r);
                product / norm_a / r
            }
        }
    }

    /// The magnitude of the largest eigenvalue of A that the first run has seen; none with a preconditioner.
    fn largest_eigenvalue(&mut self) -> Option<f64> {
        let Space { coefficients, projection, .. } = &mut *self.space;
        let project = self.project.filter(|_| !coefficients.is_empty())?;
        project(coefficients, projection);
        projection.extremes().map(|s| s.smallest.abs().max(s.largest.abs()) / self.sigma)
    }

    /// The next x and its residual become x and r.
    fn take(&mut self, found: &Measured) {
        let (norm_b, space) = (self.now.norms.b, &mut *self.space);
        std::mem::swap(&mut space.x, &mut space.next_x);
        std::mem::swap(&mut space.r, &mut space.next_r);
        self.backward_error = found.backward_error(self.system.b, &space.x, &space.r);
        (self.truth, self.at_most) = (found.norm / norm_b, found.at_most / norm_b);
    }

    /// Measures the residual of x as it is now.
    pub(super) fn measure_again<D: Device>(&mut self, device: &D) {
        self.space.next_x.copy_from_slice(&self.space.x);
        let found = self.measure(device);
        self.take(&found);
    }

    /// A curvature that is zero because its products fell below the range of numbers is not blamed on the matrix; other
    /// evidence is told in the units of the system.
    pub(super) fn underflown<M: Recurrence<D, T>, D: Device>(
        &mut self,
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
                if !curvature.is_normal()
                    && let Some(direction) = work.direction()
                {
                    device.download(direction, &mut self.space.host)?;
                    if has_underflown(self.system.matrix, &self.space.host) {
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
    pub(super) fn measured(&mut self, reason: StopReason) -> StopReason {
        match reason {
            StopReason::LeastSquares { .. } => {
                StopReason::LeastSquares { residual: self.truth, normal: self.normal_residual() }
            }
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
        misled && !self.meets()
    }

    /// The rule that stands against another run.
    pub(super) fn rule_against_restart(&self) -> Option<StopReason> {
        let iteration = self.now.iteration;
        let next =
            Progress { residual: self.at_most, improved_at: iteration, run_began: iteration, ..self.now };
        self.rule.check(&next)
    }

    /// The reason, corrected by the residual of x. An x that meets the goal has converged, whatever rounding made a run
    /// end. Otherwise a rule that forbade another run is the reason, unless x is a least-squares solution.
    pub(super) fn believe(&self, reason: StopReason, against: Option<StopReason>) -> StopReason {
        if self.meets() {
            return StopReason::Converged;
        }
        match reason {
            StopReason::LeastSquares { normal, .. } if normal <= NORMAL => reason,
            StopReason::LeastSquares { residual, normal } if self.recursive > self.goal => {
                against.unwrap_or(StopReason::NearlySingular { residual, normal })
            }
            StopReason::Converged | StopReason::LeastSquares { .. } => against.unwrap_or_else(|| self.gap()),
            other => against.unwrap_or(other),
        }
    }

    /// Why an x that the recursion calls converged is not.
    fn gap(&self) -> StopReason {
        if self.truth <= self.goal {
            return StopReason::Rounding { residual: self.truth, at_most: self.at_most };
        }
        // Where the last run made nothing better, x is that of a run before it, but the last one was said to converge.
        let recursive = if self.recursive <= self.goal { self.recursive } else { self.now.residual };
        StopReason::ResidualGap { recursive, recomputed: self.truth }
    }

    /// An estimate of the error of x, where the matrix was seen to be positive definite.
    pub(super) fn error_estimate<M: Recurrence<D, T>, D: Device>(
        &mut self,
        device: &D,
        work: &mut M,
        spectrum: Option<Spectrum>,
    ) -> Result<Option<f64>> {
        let Some(smallest) = spectrum.map(|s| s.smallest).filter(|smallest| *smallest > 0.0) else {
            return Ok(None);
        };
        let Some(matrix) = self.system.matrix.stored() else { return Ok(None) };
        let Space { x, r, next_x, next_r: z, host, estimator, .. } = &mut *self.space;
        z.copy_from_slice(r);
        if let Some((m, [from, to])) = work.preconditioner() {
            let by = scale(r);
            host.iter_mut().zip(&*r).for_each(|(host, r)| *host = T::from_f64(r / by));
            device.upload(host, from)?;
            m.apply(1.0, from, 0.0, to)?;
            device.download(to, host)?;
            z.iter_mut().zip(&*host).for_each(|(z, host)| *z = host.to_f64() * by);
        }
        Ok(estimator.estimate(matrix, x, r, z, smallest, next_x))
    }

    /// The outcome with the verdict; the answer goes to `x`.
    pub(super) fn judged(self, mut outcome: Outcome, x: &mut [f64]) -> Outcome {
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
        outcome.residual_at_most = self.at_most;
        outcome.backward_error = self.backward_error;
        x.copy_from_slice(&self.space.x);
        outcome
    }
}
