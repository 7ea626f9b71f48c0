//! Observers of a solve, as one observer.

use crate::observe::{Batch, Observer, Recorder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How far a solve has come.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Iterations done.
    pub iteration: usize,
    /// The residual of the recursion relative to the right-hand side.
    pub residual: f64,
    /// The residual to reach, where there is one.
    pub tolerance: Option<f64>,
    /// Seconds since the first iteration.
    pub seconds: f64,
}

/// A caller's closure as an observer; it returns whether the solve goes on.
pub(super) struct Closure<F> {
    see: F,
    /// Ends the solve.
    cancel: Arc<AtomicBool>,
}

impl<F: FnMut(&Progress) -> bool + Send> Closure<F> {
    pub fn new(see: F, cancel: Arc<AtomicBool>) -> Closure<F> {
        Closure { see, cancel }
    }
}

impl<F: FnMut(&Progress) -> bool + Send> Observer for Closure<F> {
    fn batch(&mut self, batch: &Batch<'_>) {
        let Some(&residual) = batch.residuals.last() else { return };
        let (first, start) = (batch.first, batch.seconds.1 == 0.0 && batch.first == 0);
        let iteration = if start { 0 } else { first + batch.residuals.len() };
        let (tolerance, seconds) = (batch.tolerance, batch.seconds.1);
        if !(self.see)(&Progress { iteration, residual, tolerance, seconds }) {
            self.cancel.store(true, Ordering::Relaxed);
        }
    }
}

/// All that watch a solve: the history, the observers that were prepared with it, and those of this solve alone.
pub(super) struct Fan<'a, 'o> {
    pub recorder: Option<&'a mut Recorder>,
    pub prepared: &'a mut [Box<dyn Observer + Send>],
    pub others: &'a mut [&'o mut dyn Observer],
}

impl Observer for Fan<'_, '_> {
    fn batch(&mut self, batch: &Batch<'_>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.batch(batch);
        }
        self.prepared.iter_mut().for_each(|o| o.batch(batch));
        self.others.iter_mut().for_each(|o| o.batch(batch));
    }

    fn phase(&mut self, what: &'static str) {
        self.prepared.iter_mut().for_each(|o| o.phase(what));
        self.others.iter_mut().for_each(|o| o.phase(what));
    }
}
