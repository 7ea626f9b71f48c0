//! Rules that end a solve, and the reasons why it ended.

use crate::text::{COUNTED, Index};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The code that a device writes into `done` when a step finds that it must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum StopCode {
    /// No condition has stopped this column.
    Running = 0,
    /// The residual fell to the tolerance.
    Converged = 1,
    /// A dot product is NaN or infinite.
    NotFinite = 2,
    /// The curvature p'Ap is not positive.
    IndefiniteMatrix = 3,
    /// The product r'Mr is not positive.
    IndefinitePreconditioner = 4,
    /// The residual is nearly orthogonal to the range of the matrix, which the method needs to be symmetric.
    LeastSquares = 5,
    /// The residual has grown beyond its limit.
    Diverged = 6,
    /// The requested number of iterations is done.
    Limit = 7,
    /// A number that the method divides by is zero or not finite, and rounding or the method is the cause:
    /// neither the matrix nor the preconditioner is at fault.
    Breakdown = 8,
}

impl StopCode {
    /// Converts a code to its variant; returns `None` for a number that is no code.
    pub(crate) fn from_code(code: u32) -> Option<StopCode> {
        Some(match code {
            0 => StopCode::Running,
            1 => StopCode::Converged,
            2 => StopCode::NotFinite,
            3 => StopCode::IndefiniteMatrix,
            4 => StopCode::IndefinitePreconditioner,
            5 => StopCode::LeastSquares,
            6 => StopCode::Diverged,
            7 => StopCode::Limit,
            8 => StopCode::Breakdown,
            _ => return None,
        })
    }

    /// Converts a code from a device. Panics on any other number: devices write only the codes of the sweeps.
    pub(crate) fn from_device(code: u32) -> StopCode {
        StopCode::from_code(code)
            .unwrap_or_else(|| unreachable!("the device wrote the unknown stop code {code}"))
    }
}

/// Why a solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The recomputed residual meets the tolerance.
    Converged,
    /// The right-hand side is zero, and so is the answer.
    ZeroRightHandSide,
    /// The recursive residual met the tolerance, the recomputed residual does not, and a
    /// restart from it did not help.
    ResidualGap {
        /// The recursive residual, relative to the right-hand side.
        recursive: f64,
        /// The norm of b - A x, relative to the right-hand side.
        recomputed: f64,
    },
    /// The recomputed residual meets the tolerance, but its bound with rounding does not: whether x
    /// meets it cannot be decided.
    Rounding {
        /// Norm of b - A x as computed, relative to the right-hand side.
        residual: f64,
        /// An upper bound of the exact value, with rounding included.
        at_most: f64,
    },
    /// The step lengths of an iteration met the tolerance, the recomputed value does not, and smaller
    /// steps give no information.
    RoundingGap {
        /// The estimate from the last step.
        estimate: f64,
        /// The recomputed value.
        recomputed: f64,
    },
    /// The system has no solution: x minimises the residual, which is orthogonal to the range of the matrix.
    LeastSquares {
        /// The norm of b - A x, relative to the right-hand side.
        residual: f64,
        /// Norm of A r over the Frobenius norm of A and the norm of r.
        normal: f64,
    },
    /// According to the recursion x minimises the residual, but the recomputed normal residual does not
    /// agree: rounding hides the smallest eigenvalues of the matrix.
    NearlySingular {
        /// Norm of b - A x, relative to the right-hand side.
        residual: f64,
        /// Norm of A r over the Frobenius norm of A and the norm of r.
        normal: f64,
    },
    /// No progress for a whole window of iterations.
    Stagnated {
        /// The iteration at the end of the window.
        iteration: usize,
        /// Iterations in the window.
        window: usize,
    },
    /// The residual has grown beyond the limit of divergence.
    Diverged {
        /// The iteration in which this was found.
        iteration: usize,
        /// The residual over the one that the run began with.
        growth: f64,
    },
    /// The iteration limit was reached.
    IterationLimit {
        /// The limit.
        limit: usize,
    },
    /// The time limit was reached.
    TimeLimit {
        /// The limit in seconds.
        seconds: f64,
    },
    /// A dot product, the answer or its residual became NaN or infinite.
    NotFinite {
        /// The first iteration in which this was found.
        iteration: usize,
        /// The vector that the value came from, in the words of the method; empty if all entries are finite
        /// and only their products or sums are not.
        vector: &'static str,
        /// The first row of that vector that is NaN or infinite, counted from 0.
        row: Option<usize>,
    },
    /// A column of several right-hand sides was not solved: it, or the residual of its start, is NaN,
    /// infinite, or out of range.
    NotSolved {
        /// The first row that is NaN or infinite, counted from 0; none if all entries are finite but their
        /// squares are out of range.
        row: Option<usize>,
        /// The norm of the right-hand side or of the residual.
        norm: f64,
    },
    /// The matrix is not positive definite.
    IndefiniteMatrix {
        /// The iteration in which this was found.
        iteration: usize,
        /// The curvature p'Ap found there.
        curvature: f64,
    },
    /// The curvature p'Ap fell below the range of numbers, though it is positive.
    Underflow {
        /// The iteration in which this was found.
        iteration: usize,
    },
    /// Recurrences that replace products gave a curvature that is not positive; the product
    /// itself is positive.
    Breakdown {
        /// The iteration in which this was found.
        iteration: usize,
    },
    /// The preconditioner is not positive definite.
    IndefinitePreconditioner {
        /// The iteration in which this was found.
        iteration: usize,
        /// The product r'Mr found there.
        product: f64,
    },
    /// The user or the program requested the stop.
    Interrupted,
}

impl StopReason {
    /// Returns whether the answer may be used.
    pub fn is_success(&self) -> bool {
        matches!(self, StopReason::Converged | StopReason::ZeroRightHandSide)
    }

    /// Returns the name of the reason in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            StopReason::Converged => "converged",
            StopReason::ZeroRightHandSide => "zero_right_hand_side",
            StopReason::ResidualGap { .. } => "residual_gap",
            StopReason::Rounding { .. } => "rounding",
            StopReason::RoundingGap { .. } => "rounding_gap",
            StopReason::LeastSquares { .. } => "least_squares",
            StopReason::NearlySingular { .. } => "nearly_singular",
            StopReason::Stagnated { .. } => "stagnated",
            StopReason::Diverged { .. } => "diverged",
            StopReason::IterationLimit { .. } => "iteration_limit",
            StopReason::TimeLimit { .. } => "time_limit",
            StopReason::NotFinite { .. } => "not_finite",
            StopReason::NotSolved { .. } => "not_solved",
            StopReason::IndefiniteMatrix { .. } => "indefinite_matrix",
            StopReason::Underflow { .. } => "underflow",
            StopReason::Breakdown { .. } => "breakdown",
            StopReason::IndefinitePreconditioner { .. } => "indefinite_preconditioner",
            StopReason::Interrupted => "interrupted",
        }
    }
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StopReason::Converged => write!(f, "converged"),
            StopReason::ZeroRightHandSide => write!(f, "the right-hand side is zero, so x = 0"),
            StopReason::ResidualGap { recursive, recomputed } => write!(
                f,
                "not converged: the recursive residual is {recursive:.2e} but b - A x is {recomputed:.2e}; rounding has \
                 separated the two, and a restart from b - A x did not help"
            ),
            StopReason::Rounding { residual, at_most } => write!(
                f,
                "not converged: rounding; b - A x is {residual:.2e} as computed and at most {at_most:.2e} with its rounding \
                 error, which does not prove that it meets the tolerance; use a larger tolerance, or scale the system"
            ),
            StopReason::RoundingGap { estimate, recomputed } => write!(
                f,
                "not converged: the last step gives the estimate {estimate:.2e}, but the recomputed value is {recomputed:.2e}; \
                 rounding has separated the two"
            ),
            StopReason::LeastSquares { residual, normal } => write!(
                f,
                "not converged: x is a least-squares solution, with ||b - A x|| = {residual:.3e} ||b|| and ||A r|| = \
                 {normal:.1e} ||A|| ||r||. The matrix is singular and b outside its range, or its condition number is \
                 beyond 1e7"
            ),
            StopReason::NearlySingular { residual, normal } => write!(
                f,
                "not converged: the matrix is singular to working precision, and no step lowers ||b - A x|| = {residual:.3e} \
                 ||b|| any more (||A r|| = {normal:.1e} ||A|| ||r||)"
            ),
            StopReason::Stagnated { iteration, window } => write!(
                f,
                "not converged: stagnated, neither residual nor energy has moved by 1 % in the {window} \
                 iterations before iteration {iteration}"
            ),
            StopReason::Diverged { iteration, growth } => write!(
                f,
                "not converged: diverged, the residual has grown by {growth:.1e} at iteration {iteration}; the matrix \
                 may be singular or not positive definite"
            ),
            StopReason::IterationLimit { limit } => {
                let s = if *limit == 1 { "" } else { "s" };
                write!(f, "not converged: stopped at the limit of {limit} iteration{s}")
            }
            StopReason::TimeLimit { seconds } => {
                write!(f, "not converged: stopped at the limit of {seconds} s")
            }
            StopReason::NotFinite { iteration, vector: vector @ ("x" | "b - A x"), row: Some(row) } => {
                write!(
                    f,
                    "not converged: after {iteration} iterations {vector} is NaN or infinite, first in row {} ({COUNTED}), \
                     because the answer left the range of its number type; scale the system",
                    Index(*row)
                )
            }
            StopReason::NotFinite { iteration, vector, row: Some(row) } => write!(
                f,
                "not converged: NaN or infinity appeared in iteration {iteration}, first in row {} of {vector} \
                 ({COUNTED}); check the matrix and the preconditioner there",
                Index(*row)
            ),
            StopReason::NotFinite { iteration, row: None, .. } => write!(
                f,
                "not converged: a dot product left the range of f64 in iteration {iteration}, though all entries are \
                 finite; scale the system"
            ),
            StopReason::NotSolved { row: Some(row), .. } => write!(
                f,
                "not solved: the right-hand side or the residual of its start is NaN or infinite in row {} ({COUNTED}); \
                 correct it and solve this column again",
                Index(*row)
            ),
            StopReason::NotSolved { row: None, norm } => write!(
                f,
                "not solved: the norm of the right-hand side or of the residual of its start is {norm:e}, out of range; scale it"
            ),
            StopReason::IndefiniteMatrix { iteration, curvature } => write!(
                f,
                "not converged: p'Ap = {curvature:.3e} in iteration {iteration}, so the matrix is not positive \
                 definite and conjugate gradients do not apply; MINRES is the method for such a matrix"
            ),
            StopReason::Underflow { iteration } => write!(
                f,
                "not converged: p'Ap fell below the range of numbers in iteration {iteration}, though the matrix may be \
                 positive definite; scale the matrix"
            ),
            StopReason::Breakdown { iteration } => write!(
                f,
                "not converged: rounding broke the recurrences of this variant of conjugate gradients in iteration \
                 {iteration}, though the matrix may be positive definite; use the classic variant"
            ),
            StopReason::IndefinitePreconditioner { iteration, product } => write!(
                f,
                "not converged: r'Mr = {product:.3e} in iteration {iteration}, so the preconditioner is not positive \
                 definite; try no preconditioner"
            ),
            StopReason::Interrupted => write!(f, "not converged: interrupted"),
        }
    }
}

/// The norms that tolerances are relative to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norms {
    /// Norm of the right-hand side.
    pub b: f64,
    /// Norm of the initial residual over that of the right-hand side: 1 for a start at x = 0.
    pub initial: f64,
}

/// The progress of a solve between two batches of iterations, which rules check.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Iterations done.
    pub iteration: usize,
    /// Norm of the residual over that of the right-hand side.
    pub residual: f64,
    /// The norms to which tolerances are relative.
    pub norms: Norms,
    /// Iterations done when this run began: 0, or the iteration at which the solve last
    /// restarted from the true residual.
    pub run_began: usize,
    /// The last iteration that made progress: it brought the residual 1 % below all earlier ones, or the
    /// energy x'A x to 1 % above its earlier value.
    pub improved_at: usize,
    /// Seconds since the first iteration began.
    pub elapsed: Duration,
}

/// The factor that counts as progress: a residual falls below this part of all earlier ones, or an energy
/// rises above the inverse of it.
pub(crate) const PROGRESS: f64 = 0.99;

/// Returns the number of iterations without progress after which a solve with `rows` rows counts as
/// stagnated: 5 for each row, at least 1000 and at most 20000.
///
/// Residuals of conjugate gradients do not fall steadily, and on ill-conditioned matrices they stay above the
/// initial one for thousands of iterations while the error falls. So the energy that x gains, which never
/// falls, counts as progress too. Over 13 matrices of structures, flows and networks (conditions up to 5e15,
/// with and without jacobi, two right-hand sides each), the longest stretch without progress in a solve that
/// later converged, or was close to it after 40000 iterations, was 2.6 iterations a row, 5300 in all.
pub(crate) fn stagnation_window(rows: usize) -> usize {
    rows.saturating_mul(5).clamp(1000, 20_000)
}

/// The growth of the residual over its initial value that counts as divergence. Residuals of conjugate
/// gradients on a positive definite matrix may rise by the root of its condition number, which is below 1e8
/// if f64 can distinguish the matrix from a singular one.
pub(crate) const DIVERGENCE: f64 = 1e10;

/// A condition to stop. Rules combine with [`StoppingRule::any`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) enum StoppingRule {
    /// The residual relative to the right-hand side is at most this.
    RelativeResidual(f64),
    /// The residual relative to the initial one is at most this.
    InitialResidual(f64),
    /// The norm of the residual is at most this.
    AbsoluteResidual(f64),
    /// This number of iterations is done.
    MaxIterations(usize),
    /// The moment has passed; see [`StoppingRule::within`].
    Deadline {
        /// The moment.
        at: Instant,
        /// The time limit from which it follows.
        limit: Duration,
    },
    /// No progress (see [`Progress::improved_at`]) for this number of iterations. The rule is checked once in
    /// a window, at its end, so that the answer does not depend on how a device batches iterations.
    Stagnation(usize),
    /// The residual is at least this many times the one that the run began with.
    Divergence(f64),
    /// The flag is set.
    Interrupt(Arc<AtomicBool>),
    /// The flag is set: a product of the caller has ended the solve, and its result is NaN.
    ProductEnded(Arc<AtomicBool>),
    /// The first of these rules that holds.
    Any(Vec<StoppingRule>),
}

impl StoppingRule {
    /// Makes a rule that stops as soon as one of the rules holds.
    pub(crate) fn any(rules: impl IntoIterator<Item = StoppingRule>) -> StoppingRule {
        StoppingRule::Any(rules.into_iter().collect())
    }

    /// Makes a rule that stops once this time has passed since a moment; `None` if that is
    /// beyond the range of the clock.
    pub(crate) fn within(limit: Duration, since: Instant) -> Option<StoppingRule> {
        since.checked_add(limit).map(|at| StoppingRule::Deadline { at, limit })
    }

    /// Returns the same rule for a method that counts `stride` iterations at a time: windows end at
    /// iterations that it checks.
    pub(crate) fn in_steps_of(&self, stride: usize) -> Cow<'_, StoppingRule> {
        if self.windows_fit_steps_of(stride) {
            return Cow::Borrowed(self);
        }
        let each =
            |rules: &[StoppingRule]| rules.iter().map(|rule| rule.in_steps_of(stride).into_owned()).collect();
        Cow::Owned(match self {
            StoppingRule::Stagnation(window) => {
                StoppingRule::Stagnation(window.max(&1).checked_next_multiple_of(stride).unwrap_or(*window))
            }
            StoppingRule::Any(rules) => StoppingRule::Any(each(rules)),
            other => other.clone(),
        })
    }

    /// Returns whether all windows end after a multiple of `stride` iterations.
    fn windows_fit_steps_of(&self, stride: usize) -> bool {
        match self {
            StoppingRule::Stagnation(window) => window.is_multiple_of(stride),
            StoppingRule::Any(rules) => rules.iter().all(|rule| rule.windows_fit_steps_of(stride)),
            _ => true,
        }
    }

    /// Returns the same rule without tolerances on the residual.
    pub(crate) fn without_tolerances(&self) -> StoppingRule {
        match self {
            StoppingRule::RelativeResidual(_)
            | StoppingRule::InitialResidual(_)
            | StoppingRule::AbsoluteResidual(_) => StoppingRule::Any(Vec::new()),
            StoppingRule::Any(rules) => StoppingRule::any(rules.iter().map(StoppingRule::without_tolerances)),
            other => other.clone(),
        }
    }

    /// Returns the reason to stop now, if there is one.
    pub(crate) fn check(&self, now: &Progress) -> Option<StopReason> {
        let meets = |tolerance: f64| (now.residual <= tolerance).then_some(StopReason::Converged);
        match self {
            StoppingRule::RelativeResidual(_)
            | StoppingRule::InitialResidual(_)
            | StoppingRule::AbsoluteResidual(_) => self.residual_tolerance(&now.norms).and_then(meets),
            StoppingRule::MaxIterations(limit) => {
                (now.iteration >= *limit).then_some(StopReason::IterationLimit { limit: *limit })
            }
            StoppingRule::Deadline { at, limit } => {
                (Instant::now() >= *at).then_some(StopReason::TimeLimit { seconds: limit.as_secs_f64() })
            }
            StoppingRule::Stagnation(window) => {
                let (iteration, window) = (now.iteration, (*window).max(1));
                let window_ends = (iteration - now.run_began).is_multiple_of(window);
                let stagnated = window_ends && iteration >= now.improved_at + window;
                stagnated.then_some(StopReason::Stagnated { iteration, window })
            }
            StoppingRule::Divergence(factor) => {
                let growth = now.residual / now.norms.initial;
                (growth >= *factor).then_some(StopReason::Diverged { iteration: now.iteration, growth })
            }
            StoppingRule::Interrupt(flag) | StoppingRule::ProductEnded(flag) => {
                flag.load(Ordering::Relaxed).then_some(StopReason::Interrupted)
            }
            StoppingRule::Any(rules) => rules.iter().find_map(|r| r.check(now)),
        }
    }

    /// Returns the tolerance on the residual, relative to the right-hand side, at which a solve has
    /// converged: a device may test it inside a batch. `None` if the residual is not tested.
    pub(crate) fn residual_tolerance(&self, norms: &Norms) -> Option<f64> {
        match self {
            StoppingRule::RelativeResidual(tolerance) => Some(*tolerance),
            StoppingRule::InitialResidual(tolerance) => Some(tolerance * norms.initial),
            // A quotient that overflows becomes a tolerance that every finite residual meets.
            StoppingRule::AbsoluteResidual(tolerance) => Some((tolerance / norms.b).min(f64::MAX)),
            StoppingRule::Any(rules) => {
                rules.iter().filter_map(|r| r.residual_tolerance(norms)).reduce(f64::max)
            }
            _ => None,
        }
    }

    /// Returns whether a product of the caller has ended the solve, so that NaN is its result
    /// and no evidence.
    pub(crate) fn product_has_ended(&self) -> bool {
        match self {
            StoppingRule::ProductEnded(flag) => flag.load(Ordering::Relaxed),
            StoppingRule::Any(rules) => rules.iter().any(StoppingRule::product_has_ended),
            _ => false,
        }
    }

    /// Returns the growth of the residual that suffices to stop.
    pub(crate) fn divergence(&self) -> Option<f64> {
        match self {
            StoppingRule::Divergence(factor) => Some(*factor),
            StoppingRule::Any(rules) => rules.iter().filter_map(StoppingRule::divergence).reduce(f64::min),
            _ => None,
        }
    }

    /// Returns the number of iterations that suffices to stop.
    pub(crate) fn most_iterations(&self) -> Option<usize> {
        match self {
            StoppingRule::MaxIterations(limit) => Some(*limit),
            StoppingRule::Any(rules) => rules.iter().filter_map(StoppingRule::most_iterations).min(),
            _ => None,
        }
    }

    /// Returns the most iterations that may still run before a rule that counts them must be checked again.
    pub(crate) fn iterations_left(&self, now: &Progress) -> usize {
        match self {
            StoppingRule::MaxIterations(limit) => limit.saturating_sub(now.iteration),
            StoppingRule::Stagnation(window) => {
                let window = (*window).max(1);
                window - (now.iteration - now.run_began) % window
            }
            StoppingRule::Any(rules) => {
                rules.iter().map(|r| r.iterations_left(now)).min().unwrap_or(usize::MAX)
            }
            _ => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests;
