//! Functions of the caller that a solve calls with a vector: products, preconditioners, callbacks.
//!
//! # Copies
//! A call copies x once, to memory that Python owns, and y once, from the array that the function returns.
//! The function gets a view of that memory. As soon as nothing refers to the view any more, the next call
//! uses the same memory; a function that keeps the array keeps its numbers, too.

use crate::errors::exception;
use crate::interrupt::Raised;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PySlice;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// A Python function of a vector, as the caller of the library passes it.
#[derive(FromPyObject)]
pub struct Given(Py<PyAny>, Py<PyAny>);

/// A function with a vector as argument. What it raises ends the solve.
pub struct Function {
    function: Py<PyAny>,
    /// Returns what the function has returned as a vector in double precision.
    convert: Py<PyAny>,
    /// The memory of the last argument.
    memory: Mutex<Option<Py<PyArray1<f64>>>>,
    raised: Raised,
}

impl Function {
    pub fn new(Given(function, convert): Given, raised: &Raised) -> Function {
        Function { function, convert, memory: Mutex::default(), raised: raised.clone() }
    }

    /// Calls the function with an array of x.
    pub fn tell(&self, x: &[f64]) {
        if self.raised.has_ended() {
            return;
        }
        let call = |py: Python<'_>| self.function.bind(py).call1((self.lend(py, x)?,)).map(drop);
        if let Err(error) = Python::attach(call) {
            self.raised.keep(error);
        }
    }

    /// Calls the function with an array of x, and copies the array that it returns to y. Breaks if Python
    /// code has raised an exception.
    pub fn call(&self, x: &[f64], y: &mut [f64]) -> ControlFlow<()> {
        let outcome = Python::attach(|py| -> PyResult<()> {
            let returned = self.function.bind(py).call1((self.lend(py, x)?,))?;
            self.copy(returned, y)?;
            py.check_signals()
        });
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised.keep(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Returns an array of x.
    fn lend<'py>(&self, py: Python<'py>, x: &[f64]) -> PyResult<Bound<'py, PyAny>> {
        let mut kept = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let free = kept.take().map(|memory| memory.into_bound(py)).filter(|memory| {
            // SAFETY: the object is alive.
            let references = unsafe { pyo3::ffi::Py_REFCNT(memory.as_ptr()) };
            references == 1 && memory.len() == x.len()
        });
        let memory = match free {
            Some(memory) => {
                memory.try_readwrite()?.as_slice_mut()?.copy_from_slice(x);
                memory
            }
            None => PyArray1::from_slice(py, x),
        };
        let view = memory.get_item(PySlice::full(py))?;
        *kept = Some(memory.unbind());
        Ok(view)
    }

    /// Copies an array that the function has returned.
    fn copy(&self, returned: Bound<'_, PyAny>, y: &mut [f64]) -> PyResult<()> {
        let py = returned.py();
        // Arrays of other classes, such as masked ones, have rules of their own.
        let returned = match returned.cast_exact::<PyArray1<f64>>() {
            Ok(array) if array.is_contiguous() && array.data().is_aligned() => returned,
            _ => self.convert.bind(py).call1((returned,))?,
        };
        let returned: PyReadonlyArray1<'_, f64> = returned.extract()?;
        let values = returned.as_slice()?;
        if values.len() != y.len() {
            let message =
                format!("the function returned {} numbers for a vector of {}", values.len(), y.len());
            return Err(exception(py, "DimensionError", message));
        }
        y.copy_from_slice(values);
        Ok(())
    }
}
