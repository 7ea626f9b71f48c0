//! The progress of solves, told to a function of Python.

use crate::interrupt::Raised;
use pyo3::prelude::*;
use solver::engine::Progress;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A function, the least time between two calls, and when it was last called.
struct Listener {
    function: Py<PyAny>,
    every: Duration,
    called: Instant,
}

static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);

/// Sets the function that solves call with iteration, residual, tolerance (or None) and seconds, first after `every` seconds and then at
/// such intervals. None removes it.
#[pyfunction]
pub fn on_progress(function: Option<Py<PyAny>>, every: f64) {
    let every = Duration::try_from_secs_f64(every).unwrap_or(Duration::MAX);
    let listener = function.map(|function| Listener { function, every, called: Instant::now() });
    let before = std::mem::replace(&mut *LISTENER.lock().unwrap_or_else(PoisonError::into_inner), listener);
    // Dropped without the lock, because this may run code of Python.
    drop(before);
}

/// Tells the progress if it is time, and looks for signals. Returns whether the solve continues.
pub fn tell(now: &Progress, raised: &Raised) -> bool {
    if is_due()
        && let Err(error) = Python::attach(|py| {
            let function = {
                let listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
                listener.as_ref().map(|listener| listener.function.clone_ref(py))
            };
            let told = (now.iteration, now.residual, now.tolerance, now.seconds);
            function.map_or(Ok(()), |function| function.call1(py, told).map(drop))
        })
    {
        raised.keep(error);
    }
    raised.look()
}

fn is_due() -> bool {
    let mut listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Listener { every, called, .. }) = &mut *listener else { return false };
    let due = called.elapsed() >= *every;
    if due {
        *called = Instant::now();
    }
    due
}
