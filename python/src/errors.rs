//! Errors of the library as Python exceptions: a class for each cause, from `solver._errors`.

use crate::names::name_of;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use solver::Error;
use solver::error::ChainError;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the name of the class: that of the variant, with the ending `Error`. An error on one of several
/// devices has the class of its cause.
fn class_of(error: &Error) -> String {
    if let Error::OnDevice { source, .. } = error {
        return class_of(source);
    }
    let variant = format!("{error:?}");
    let name = variant.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    format!("{name}Error")
}

/// Returns an exception of a class of `solver._errors`.
pub fn exception(py: Python<'_>, class: &str, message: String) -> PyErr {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let make = || -> PyResult<PyErr> {
        let module = MODULE.get_or_try_init(py, || py.import("solver._errors").map(Bound::unbind))?;
        let module = module.bind(py);
        // A cause that the package does not know yet.
        let class = module.getattr(class).or_else(|_| module.getattr("SolverError"))?;
        Ok(PyErr::from_value(class.call1((message,))?))
    };
    make().unwrap_or_else(|error| error)
}

/// Returns the message of an error, with the names and arguments of Python.
fn message(error: &Error) -> String {
    match error {
        Error::BadSetting { setting, value, reason } => {
            let setting = name_of(setting);
            // The library's word for an array.
            let value = if value == "given" { String::new() } else { value.clone() };
            Error::BadSetting { setting, value, reason: reason.clone() }.to_string()
        }
        Error::Chain(ChainError::RowSum { .. } | ChainError::NamedSum { .. }) => {
            format!("{error} (normalize=True)")
        }
        Error::RightHandSideNotFinite { row } => {
            format!(
                "b[{row}] is NaN or infinite; the entries of b must be finite numbers, so find out where this value comes from"
            )
        }
        error => error.to_string(),
    }
}

/// Returns the exception of an error.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, &class_of(error), message(error))
}

/// Returns the exception for a setting with an invalid value.
pub fn bad_setting(py: Python<'_>, setting: &str, value: impl Display, reason: &str) -> PyErr {
    exception(py, "BadSettingError", format!("{setting} {value}: {reason}"))
}

/// The process in which the library worked first; 0 before.
static HOME: AtomicU32 = AtomicU32::new(0);

/// Returns whether this process was forked from the one in which the library worked first: its threads are
/// not in this process, and a lock that one of them held is held forever.
pub fn is_forked() -> bool {
    let home = HOME.load(Ordering::Relaxed);
    home != 0 && home != std::process::id()
}

/// Refuses the use of the library in a process that was forked after the library had worked in its parent.
pub fn refuse_forked(py: Python<'_>) -> PyResult<()> {
    if !is_forked() {
        return Ok(());
    }
    let message = "this process was forked after solver had started its threads, which a fork does not copy, so neither calls nor \
                   prepared objects work here; use the start method spawn of multiprocessing, or call solver only in the children";
    Err(exception(py, "ThreadsError", message.to_owned()))
}

/// Runs work of the library without the interpreter. An error and a panic become exceptions.
pub fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> solver::Result<R> + Send) -> PyResult<R> {
    refuse_forked(py)?;
    HOME.store(std::process::id(), Ordering::Relaxed);
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(outcome) => outcome.map_err(|error| raised(py, &error)),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let text = text.unwrap_or_else(|| "no message".to_owned());
            Err(exception(py, "InternalError", format!("solver has a fault: {text}; please report it")))
        }
    }
}
