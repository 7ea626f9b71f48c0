//! Python code that a solve calls: the check for Ctrl-C, products and preconditioners of the caller. What they raise ends the
//! solve and is raised again after it.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::{PyClass, PyClassInitializer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What Python code has raised during a solve, and the flag that ends the solve.
#[derive(Clone, Default)]
pub struct Raised {
    error: Arc<Mutex<Option<PyErr>>>,
    pub ended: Arc<AtomicBool>,
}

impl Raised {
    /// Keeps the first exception, and ends the solve.
    pub fn keep(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Returns the exception and forgets it.
    pub fn take(&self) -> Option<PyErr> {
        self.ended.store(false, Ordering::Relaxed);
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Looks for signals. Returns whether the solve continues.
    pub fn look(&self) -> bool {
        if let Err(error) = Python::attach(|py| py.check_signals()) {
            self.keep(error);
        }
        !self.ended.load(Ordering::Relaxed)
    }

    /// Calls `function` with an array of x.
    pub fn tell(&self, function: &Py<PyAny>, x: &[f64]) {
        if self.ended.load(Ordering::Relaxed) {
            return;
        }
        let call = |py: Python<'_>| function.bind(py).call1((PyArray1::from_slice(py, x),)).map(drop);
        if let Err(error) = Python::attach(call) {
            self.keep(error);
        }
    }

    /// Calls `function` with an array of x, and copies the array that it returns to y.
    pub fn call(&self, function: &Py<PyAny>, x: &[f64], y: &mut [f64]) {
        if self.ended.load(Ordering::Relaxed) {
            y.fill(f64::NAN);
            return;
        }
        let outcome = Python::attach(|py| -> PyResult<()> {
            let returned = function.bind(py).call1((PyArray1::from_slice(py, x),))?;
            let returned: PyReadonlyArray1<'_, f64> = returned.extract()?;
            let values = returned.as_slice()?;
            if values.len() != y.len() {
                let message =
                    format!("the function returned {} numbers for a vector of {}", values.len(), y.len());
                return Err(crate::errors::exception(py, "DimensionError", message));
            }
            y.copy_from_slice(values);
            py.check_signals()
        });
        if let Err(error) = outcome {
            self.keep(error);
            y.fill(f64::NAN);
        }
    }
}

/// Returns the answer of a solve, or what Python code has raised in it, with the answer so far as its attribute `answer`.
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
            let _ = error.value(py).setattr("answer", Bound::new(py, answer(found)?)?);
            Err(error)
        }
        // What Python code has raised is the cause of an error of the library.
        (Err(_), Some(error)) | (Err(error), None) => Err(error),
    }
}
