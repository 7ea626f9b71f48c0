//! Exceptions of Python code that a solve calls: the check for Ctrl-C, and functions of the caller. What they
//! raise ends the solve and is raised again after it.

use crate::progress::Listener;
use pyo3::prelude::*;
use pyo3::{PyClass, PyClassInitializer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time between two looks for signals: to look waits for the other threads of Python, which let go of
/// the interpreter every 5 ms.
const PAUSE: Duration = Duration::from_millis(50);

/// What Python code has raised during a solve, and the flag that ends the solve.
#[derive(Clone, Default)]
pub struct Raised {
    error: Arc<Mutex<Option<PyErr>>>,
    pub ended: Arc<AtomicBool>,
    /// When it last looked for signals.
    looked: Arc<Mutex<Option<Instant>>>,
    listener: Arc<Mutex<Option<Listener>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Raised {
    /// Keeps the first exception, and ends the solve.
    pub fn keep(&self, error: PyErr) {
        locked(&self.error).get_or_insert(error);
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Returns the exception and forgets it.
    pub fn take(&self) -> Option<PyErr> {
        self.ended.store(false, Ordering::Relaxed);
        locked(&self.error).take()
    }

    /// Sets the function that the solve tells its progress.
    pub fn set_listener(&self, listener: Option<Listener>) {
        let before = std::mem::replace(&mut *locked(&self.listener), listener);
        // Dropped without the lock, because this may run code of Python.
        drop(before);
    }

    /// Returns whether it is time to tell the progress.
    pub fn is_listener_due(&self) -> bool {
        locked(&self.listener).as_ref().is_some_and(Listener::is_due)
    }

    /// Returns the function that is to be told the progress now, if it is time.
    pub fn due_listener(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        locked(&self.listener).as_mut()?.due(py)
    }

    /// Looks for signals, if it has not done so for a while. Returns whether the solve continues.
    pub fn look(&self) -> bool {
        let mut looked = locked(&self.looked);
        if looked.is_none_or(|at| at.elapsed() >= PAUSE) {
            if let Err(error) = Python::attach(|py| py.check_signals()) {
                self.keep(error);
            }
            *looked = Some(Instant::now());
        }
        !self.has_ended()
    }

    /// Returns whether the solve is to end.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Returns the answer of a solve, or what Python code has raised in it, with the answer so far
/// as its attribute `answer`.
pub fn answered<A, C: PyClass + Into<PyClassInitializer<C>>>(
    py: Python<'_>,
    outcome: PyResult<A>,
    raised: Option<PyErr>,
    answer: impl FnOnce(A) -> PyResult<C>,
) -> PyResult<C> {
    match (outcome, raised) {
        (Ok(found), None) => answer(found),
        (Ok(found), Some(error)) => {
            // An exception of a class without attributes stays as it is.
            if let Ok(answer) = answer(found).and_then(|answer| Bound::new(py, answer)) {
                let _ = error.value(py).setattr("answer", answer);
            }
            Err(error)
        }
        // What Python code has raised is the cause of an error of the library.
        (Err(_), Some(error)) | (Err(error), None) => Err(error),
    }
}
