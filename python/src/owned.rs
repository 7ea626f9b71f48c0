//! A value that one thread uses at a time.

use crate::errors::{detached, exception, is_forked, refuse_forked};
use crate::interrupt::Raised;
use crate::progress::{self, Listener};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use std::thread::{ThreadId, current};

/// A value of the library behind a lock. A thread that already uses it, as a callback does, gets an exception
/// instead of waiting for itself.
pub struct Owned<T: Send> {
    /// Empty only while it is dropped.
    value: Option<Mutex<T>>,
    user: Mutex<Option<ThreadId>>,
}

impl<T: Send> Owned<T> {
    pub fn new(value: T) -> Owned<T> {
        Owned { value: Some(Mutex::new(value)), user: Mutex::new(None) }
    }

    fn set_user(&self, user: Option<ThreadId>) {
        *self.user.lock().unwrap_or_else(PoisonError::into_inner) = user;
    }

    /// Runs work with the value, without the interpreter.
    pub fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> solver::Result<R> + Send,
    ) -> PyResult<R> {
        self.run(py, &Raised::default(), None, work).0
    }

    /// Runs a solve, which may call Python; also returns what that has raised.
    pub fn raising<R: Send>(
        &self,
        py: Python<'_>,
        raised: &Raised,
        work: impl FnOnce(&mut T) -> solver::Result<R> + Send,
    ) -> (PyResult<R>, Option<PyErr>) {
        self.run(py, raised, progress::listener(), work)
    }

    /// Runs work with the value, for one thread at a time, and passes the progress to `listener`.
    fn run<R: Send>(
        &self,
        py: Python<'_>,
        raised: &Raised,
        listener: Option<Listener>,
        work: impl FnOnce(&mut T) -> solver::Result<R> + Send,
    ) -> (PyResult<R>, Option<PyErr>) {
        if let Err(refused) = refuse_forked(py) {
            return (Err(refused), None);
        }
        if *self.user.lock().unwrap_or_else(PoisonError::into_inner) == Some(current().id()) {
            let message = "it is in use by this thread, which a callback or a signal has interrupted; prepare another one";
            return (Err(exception(py, "BadSettingError", message.to_owned())), None);
        }
        let mut error = None;
        let outcome = detached(py, || {
            let Some(value) = &self.value else { unreachable!("it is not dropped yet") };
            let mut value = value.lock().unwrap_or_else(PoisonError::into_inner);
            self.set_user(Some(current().id()));
            raised.set_listener(listener);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&mut value)));
            // Taken before another thread begins.
            error = raised.take();
            raised.set_listener(None);
            self.set_user(None);
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        (outcome, error)
    }
}

impl<T: Send> Drop for Owned<T> {
    /// Frees the value without the interpreter: memory of a device is freed only after a solve of another
    /// thread on that device, whose callback needs the interpreter. A forked process keeps the value: the
    /// threads that the value would end are those of the parent.
    fn drop(&mut self) {
        let value = self.value.take();
        if is_forked() {
            std::mem::forget(value);
            return;
        }
        // While the interpreter ends, this thread cannot attach to it; the value is then
        // dropped with the closure.
        Python::try_attach(move |py| py.detach(move || drop(value)));
    }
}
