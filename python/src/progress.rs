//! The progress of a solve, told to a function of Python.

use crate::interrupt::Raised;
use pyo3::prelude::*;
use solver::engine::Progress;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A function, the least time between two calls, and when it was last called.
pub struct Listener {
    function: Py<PyAny>,
    every: Duration,
    called: Instant,
}

impl Listener {
    /// Returns the function if it is time to call it.
    pub fn due(&mut self, py: Python<'_>) -> Option<Py<PyAny>> {
        if !self.is_due() {
            return None;
        }
        self.called = Instant::now();
        Some(self.function.clone_ref(py))
    }

    pub fn is_due(&self) -> bool {
        self.called.elapsed() >= self.every
    }
}

thread_local! {
    static NEXT: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

/// Sets the function that the next solve of this thread calls with iteration, residual, tolerance (or None)
/// and seconds, first after `every` seconds and then at such intervals. None removes it.
#[pyfunction]
pub fn on_progress(function: Option<Py<PyAny>>, every: f64) {
    let every = Duration::try_from_secs_f64(every).unwrap_or(Duration::MAX);
    NEXT.set(function.map(|function| Listener { function, every, called: Instant::now() }));
}

/// Returns the function that was set for the next solve of this thread, which is the one that begins now.
pub fn listener() -> Option<Listener> {
    NEXT.take()
}

/// Tells the progress if it is time, and looks for signals. Returns whether the solve continues.
pub fn tell(now: &Progress, raised: &Raised) -> bool {
    if raised.is_listener_due()
        && let Err(error) = Python::attach(|py| {
            let told = (now.iteration, now.residual, now.tolerance, now.seconds);
            raised.due_listener(py).map_or(Ok(()), |function| function.call1(py, told).map(drop))
        })
    {
        raised.keep(error);
    }
    raised.look()
}
