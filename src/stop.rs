//! When a solve ends, and why it did.

use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The reason codes that a device writes into `done` when a step sees that it must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum StopCode {
    /// Nothing has stopped this column.
    Running = 0,
    /// The residual fell to the tolerance.
    Converged = 1,
    /// A dot product is NaN or infinite.
    NotFinite = 2,
    /// The curvature p'Ap is not positive.
    IndefiniteMatrix = 3,
    /// The product r'Mr is not positive.
    IndefinitePreconditioner = 4,
}

impl StopCode {
    /// Reads a code back from a device.
    pub fn from_device(code: u32) -> StopCode {
        match code {
            0 => StopCode::Running,
            1 => StopCode::Converged,
            2 => StopCode::NotFinite,
            3 => StopCode::IndefiniteMatrix,
            _ => StopCode::IndefinitePreconditioner,
        }
    }
}

/// Why a solve ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum StopReason {
    /// The recomputed residual meets the tolerance.
    Converged,
    /// The right-hand side is zero, and so is the answer.
    ZeroRightHandSide,
    /// The recursion met the tolerance, the recomputed residual does not.
    ResidualGap {
        /// What the recursion says, relative to the right-hand side.
        recursive: f64,
        /// What b - A x is, relative to the right-hand side.
        recomputed: f64,
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
    /// A dot product became NaN or infinite.
    NotFinite {
        /// The iteration that saw it.
        iteration: usize,
    },
    /// The matrix is not positive definite.
    IndefiniteMatrix {
        /// The iteration that saw it.
        iteration: usize,
        /// The curvature p'Ap found there.
        curvature: f64,
    },
    /// The preconditioner is not positive definite.
    IndefinitePreconditioner {
        /// The iteration that saw it.
        iteration: usize,
        /// The product r'Mr found there.
        product: f64,
    },
    /// Somebody asked it to stop.
    Interrupted,
}

impl StopReason {
    /// Whether the answer may be used.
    pub fn is_success(&self) -> bool {
        matches!(self, StopReason::Converged | StopReason::ZeroRightHandSide)
    }

    /// The word for it in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            StopReason::Converged => "converged",
            StopReason::ZeroRightHandSide => "zero_right_hand_side",
            StopReason::ResidualGap { .. } => "residual_gap",
            StopReason::IterationLimit { .. } => "iteration_limit",
            StopReason::TimeLimit { .. } => "time_limit",
            StopReason::NotFinite { .. } => "not_finite",
            StopReason::IndefiniteMatrix { .. } => "indefinite_matrix",
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
                "not converged: the recursion says {recursive:.2e} but b - A x is {recomputed:.2e}; rounding has \
                 parted the two, so ask for a looser --rtol or a higher --precision"
            ),
            StopReason::IterationLimit { limit } => {
                write!(f, "not converged: stopped at the limit of {limit} iterations")
            }
            StopReason::TimeLimit { seconds } => {
                write!(f, "not converged: stopped at the limit of {seconds} s")
            }
            StopReason::NotFinite { iteration } => {
                write!(f, "not converged: NaN or infinity appeared in iteration {iteration}")
            }
            StopReason::IndefiniteMatrix { iteration, curvature } => write!(
                f,
                "not converged: p'Ap = {curvature:.3e} in iteration {iteration}, so the matrix is not positive \
                 definite and conjugate gradients do not apply; MINRES is the method for such a matrix"
            ),
            StopReason::IndefinitePreconditioner { iteration, product } => write!(
                f,
                "not converged: r'Mr = {product:.3e} in iteration {iteration}, so the preconditioner is not positive \
                 definite; try --precond none"
            ),
            StopReason::Interrupted => write!(f, "not converged: interrupted"),
        }
    }
}

/// What a rule looks at, between two batches of iterations.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Iterations done.
    pub iteration: usize,
    /// Norm of the residual over that of the right-hand side.
    pub residual: f64,
    /// Seconds since the first iteration began.
    pub elapsed: Duration,
}

/// When to stop. Rules combine with [`StoppingRule::any`] and [`StoppingRule::all`].
#[derive(Clone, Debug)]
pub enum StoppingRule {
    /// The residual relative to the right-hand side is at most this.
    RelativeResidual(f64),
    /// So many iterations are done.
    MaxIterations(usize),
    /// So much time has passed.
    TimeLimit(Duration),
    /// Somebody set the flag.
    Interrupt(Arc<AtomicBool>),
    /// The first of these rules that holds.
    Any(Vec<StoppingRule>),
    /// All of these rules at once; the reason is the last one's.
    All(Vec<StoppingRule>),
}

impl StoppingRule {
    /// Stops as soon as one of the rules holds.
    pub fn any(rules: impl IntoIterator<Item = StoppingRule>) -> StoppingRule {
        StoppingRule::Any(rules.into_iter().collect())
    }

    /// Stops once all of the rules hold.
    pub fn all(rules: impl IntoIterator<Item = StoppingRule>) -> StoppingRule {
        StoppingRule::All(rules.into_iter().collect())
    }

    /// The reason to stop now, if there is one.
    pub fn check(&self, now: &Progress) -> Option<StopReason> {
        match self {
            StoppingRule::RelativeResidual(tolerance) => {
                (now.residual <= *tolerance).then_some(StopReason::Converged)
            }
            StoppingRule::MaxIterations(limit) => {
                (now.iteration >= *limit).then_some(StopReason::IterationLimit { limit: *limit })
            }
            StoppingRule::TimeLimit(limit) => {
                (now.elapsed >= *limit).then_some(StopReason::TimeLimit { seconds: limit.as_secs_f64() })
            }
            StoppingRule::Interrupt(flag) => flag.load(Ordering::Relaxed).then_some(StopReason::Interrupted),
            StoppingRule::Any(rules) => rules.iter().find_map(|r| r.check(now)),
            StoppingRule::All(rules) => rules.iter().map(|r| r.check(now)).collect::<Option<Vec<_>>>()?.pop(),
        }
    }

    /// The tolerance that alone suffices to stop: a device may test it inside a batch. `None` where the residual is
    /// not tested, or only together with other rules.
    pub fn residual_tolerance(&self) -> Option<f64> {
        match self {
            StoppingRule::RelativeResidual(tolerance) => Some(*tolerance),
            StoppingRule::Any(rules) => {
                rules.iter().filter_map(StoppingRule::residual_tolerance).reduce(f64::max)
            }
            _ => None,
        }
    }

    /// The most iterations that may still run before a rule that counts them must be asked again.
    pub fn iterations_left(&self, done: usize) -> usize {
        match self {
            StoppingRule::MaxIterations(limit) => limit.saturating_sub(done),
            StoppingRule::Any(rules) => {
                rules.iter().map(|r| r.iterations_left(done)).min().unwrap_or(usize::MAX)
            }
            // A conjunction may come to hold after any iteration.
            StoppingRule::All(_) => 1,
            _ => usize::MAX,
        }
    }
}
