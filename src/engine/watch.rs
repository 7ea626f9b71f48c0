//! Progress callbacks, phases of the preparation, and the observer that forwards to all observers of a solve.

use crate::observe::profile::{self, Span};
use crate::observe::{Batch, Observer, Phase, Recorder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The progress of a solve.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The column of several right-hand sides, counted from 0.
    pub column: usize,
    /// Iterations done.
    pub iteration: usize,
    /// The recursive residual relative to the right-hand side.
    pub residual: f64,
    /// The residual to reach, if there is one.
    pub tolerance: Option<f64>,
    /// Seconds since the first iteration.
    pub seconds: f64,
}

/// Announces the phases of a preparation to a closure of the caller.
pub(super) struct Phases(Box<dyn FnMut(&str) + Send>);

impl Phases {
    pub(crate) fn new(callback: impl FnMut(&str) + Send + 'static) -> Phases {
        Phases(Box::new(callback))
    }

    /// Passes a description to the closure, within a phase.
    pub(crate) fn announce(&mut self, what: &str) {
        (self.0)(what);
    }

    /// Begins a phase with a description for the closure.
    pub(crate) fn begin(&mut self, phase: Phase, what: &str) -> Span {
        (self.0)(what);
        profile::begin(phase)
    }
}

/// Calls no closure.
impl Default for Phases {
    fn default() -> Phases {
        Phases::new(|_| ())
    }
}

/// An observer that calls a closure of the caller. The closure returns whether the solve continues.
pub(super) struct Closure<F> {
    callback: F,
    /// Set to end the solve.
    cancel: Arc<AtomicBool>,
}

impl<F: FnMut(&Progress) -> bool + Send> Closure<F> {
    pub(crate) fn new(callback: F, cancel: Arc<AtomicBool>) -> Closure<F> {
        Closure { callback, cancel }
    }
}

impl<F: FnMut(&Progress) -> bool + Send> Observer for Closure<F> {
    fn batch(&mut self, batch: &Batch<'_>) {
        let Some(&residual) = batch.residuals.last() else { return };
        let (first, start) = (batch.first, batch.seconds.1 == 0.0 && batch.first == 0);
        let iteration = if start { 0 } else { first + batch.residuals.len() };
        let (tolerance, seconds) = (batch.tolerance, batch.seconds.1);
        if !(self.callback)(&Progress { column: batch.column, iteration, residual, tolerance, seconds }) {
            self.cancel.store(true, Ordering::Relaxed);
        }
    }
}

/// An observer that calls a closure of the caller with x.
pub(super) struct OnIterate<F>(pub F);

impl<F: FnMut(usize, &[f64]) + Send> Observer for OnIterate<F> {
    fn batch(&mut self, _: &Batch<'_>) {}

    fn wants_iterates(&self) -> bool {
        true
    }

    fn iterate(&mut self, iteration: usize, x: &[f64]) {
        (self.0)(iteration, x);
    }
}

/// Forwards to the recorder, to the observers of the prepared solve, and to those passed to this solve.
pub(super) struct FanOut<'a, 'o> {
    /// A recorder for each column, or none.
    pub recorders: &'a mut [Recorder],
    pub prepared: &'a mut [Box<dyn Observer + Send>],
    pub passed: &'a mut [&'o mut dyn Observer],
}

impl Observer for FanOut<'_, '_> {
    fn batch(&mut self, batch: &Batch<'_>) {
        if let Some(recorder) = self.recorders.get_mut(batch.column) {
            recorder.batch(batch);
        }
        self.prepared.iter_mut().for_each(|o| o.batch(batch));
        self.passed.iter_mut().for_each(|o| o.batch(batch));
    }

    fn phase(&mut self, what: &'static str) {
        self.prepared.iter_mut().for_each(|o| o.phase(what));
        self.passed.iter_mut().for_each(|o| o.phase(what));
    }

    fn wants_iterates(&self) -> bool {
        self.prepared.iter().any(|o| o.wants_iterates()) || self.passed.iter().any(|o| o.wants_iterates())
    }

    fn iterate(&mut self, iteration: usize, x: &[f64]) {
        self.prepared.iter_mut().filter(|o| o.wants_iterates()).for_each(|o| o.iterate(iteration, x));
        self.passed.iter_mut().filter(|o| o.wants_iterates()).for_each(|o| o.iterate(iteration, x));
    }
}
