//! Stopping criteria of a solve of a linear system.

use crate::error::{Error, Result};
use crate::scalar::Precision;
use crate::stop::{DIVERGENCE, StoppingRule, stagnation_window};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The default tolerance relative to the right-hand side.
const RTOL: f64 = 1e-8;
/// The default tolerance relative to the right-hand side for vectors in single precision.
const RTOL_F32: f64 = 1e-5;

/// Tolerances and limits of a solve. The solve ends when it meets the first of them.
#[derive(Clone, Debug, Default)]
pub struct Stopping {
    /// Tolerance on the residual relative to the right-hand side; between 0 and 1.
    pub rtol: Option<f64>,
    /// Tolerance on the residual relative to the initial residual; between 0 and 1.
    pub rtol_initial: Option<f64>,
    /// Tolerance on the norm of the residual.
    pub atol: Option<f64>,
    /// Iteration limit; by default 10 per row, at least 1000 and at most 100,000.
    pub max_iters: Option<usize>,
    /// Time limit. It is checked between batches of iterations.
    pub time_limit: Option<Duration>,
    /// The moment from which the time limit counts, such as the beginning of the preparation. By
    /// default each solve begins anew.
    pub time_from: Option<Instant>,
    /// Flag that ends the solve once it is set.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl Stopping {
    /// Returns the tolerances that are set, or the default tolerance of the precision.
    pub(crate) fn tolerances(&self, precision: Precision) -> Result<Vec<StoppingRule>> {
        let relative = |setting, tolerance: f64| match tolerance > 0.0 && tolerance < 1.0 {
            true => Ok(tolerance),
            false => Err(Error::setting(setting, tolerance, "it must lie between 0 and 1")),
        };
        let mut rules = Vec::new();
        if let Some(rtol) = self.rtol {
            rules.push(StoppingRule::RelativeResidual(relative("rtol", rtol)?));
        }
        if let Some(rtol) = self.rtol_initial {
            rules.push(StoppingRule::InitialResidual(relative("rtol-initial", rtol)?));
        }
        if let Some(atol) = self.atol {
            if !(atol > 0.0 && atol.is_finite()) {
                return Err(Error::setting("atol", atol, "it must be a positive number"));
            }
            rules.push(StoppingRule::AbsoluteResidual(atol));
        }
        if rules.is_empty() {
            let default = if precision == Precision::F32 { RTOL_F32 } else { RTOL };
            rules.push(StoppingRule::RelativeResidual(default));
        }
        Ok(rules)
    }

    /// Returns the iteration limit for a matrix with `rows` rows.
    pub(crate) fn most_iterations(&self, rows: usize) -> usize {
        self.max_iters.unwrap_or_else(|| rows.saturating_mul(10).clamp(1000, 100_000))
    }

    /// Returns the stopping rule, except for the time limit, for a matrix with `rows` rows and a method that
    /// counts `stride` iterations at a time.
    pub(super) fn rule(&self, rows: usize, precision: Precision, stride: usize) -> Result<StoppingRule> {
        let mut rules = self.tolerances(precision)?;
        rules.extend([
            StoppingRule::MaxIterations(self.most_iterations(rows)),
            StoppingRule::Stagnation(stagnation_window(rows)),
            StoppingRule::Divergence(DIVERGENCE),
        ]);
        rules.extend(self.cancel.clone().map(StoppingRule::Interrupt));
        Ok(StoppingRule::any(rules).in_steps_of(stride).into_owned())
    }

    /// Adds the time limit of a solve that begins now to its rule.
    pub(super) fn timed<'a>(&self, rule: &'a StoppingRule) -> Cow<'a, StoppingRule> {
        let since = self.time_from.unwrap_or_else(Instant::now);
        match self.time_limit.and_then(|limit| StoppingRule::within(limit, since)) {
            Some(deadline) => Cow::Owned(StoppingRule::any([rule.clone(), deadline])),
            None => Cow::Borrowed(rule),
        }
    }
}
