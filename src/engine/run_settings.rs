//! The settings of how all solves and products run, as methods of the types that describe them.

use super::device::{DeviceHandle, Request, Settled};
use super::running::Run;
use super::tune::Choosing;
use super::watch::{Closure, Phases, Progress};
use crate::observe::Observer;
use crate::scalar::Precision;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The settings of device, backend and precision, which all solves and products have.
pub trait DeviceSettings: Sized {
    /// Returns the description of the run, which the methods change.
    #[doc(hidden)]
    fn run_mut(&mut self) -> &mut Run;

    /// Sets the device by name: `auto`, `cpu`, `cuda`, `cuda:1`. The default, `auto`, takes a GPU if one is
    /// usable. Several GPUs, `cuda:0,1` or `cuda:all`, share the rows of the matrix; answers, reports and
    /// files are those of one. One such solve at a time runs in a process. Products run on one device.
    fn device(mut self, name: &str) -> Self {
        name.clone_into(&mut self.run_mut().request.device);
        self
    }

    /// Sets an open device, which several solves can share.
    fn on(mut self, device: &DeviceHandle) -> Self {
        self.run_mut().device = Some(device.clone());
        self
    }

    /// Sets the SpMV backend by name, with parameters: `auto`, `sell`, `bsr:block=3x3`.
    fn backend(mut self, name: &str) -> Self {
        name.clone_into(&mut self.run_mut().request.backend);
        self
    }

    /// Measures the backends before the solve if backend is `auto` and no choice is kept from an earlier
    /// measurement.
    fn tune(mut self, tune: bool) -> Self {
        self.run_mut().choosing = Choosing::tuning(tune);
        self
    }

    /// Chooses the backend by the model, so that a measurement does not depend on the choices kept on this
    /// machine.
    #[doc(hidden)]
    fn by_model(mut self) -> Self {
        self.run_mut().choosing = Choosing::Model;
        self
    }

    /// Sets the number of CPU threads. By default one per core.
    fn threads(mut self, threads: usize) -> Self {
        self.run_mut().request.threads = Some(threads);
        self
    }

    /// Sets the precision of matrix and vectors. By default double.
    fn precision(mut self, precision: Precision) -> Self {
        self.run_mut().request.precision = precision;
        self
    }

    /// Sets device, backend, preconditioner, precision and threads at once. `settled` is the result of
    /// `request.settle()`. For a method that runs on the CPU alone, such as Gauss-Seidel, it is that of
    /// `Request::settle_on_host`.
    // For the program, which settles a request before it reads the matrix.
    #[doc(hidden)]
    fn settled(mut self, request: Request, settled: Settled) -> Self {
        let run = self.run_mut();
        (run.request, run.settled, run.precond_fault) = (request, Some(settled), None);
        self
    }

    /// Calls `callback` with the name of each phase of the preparation, such as `building backend sell`.
    fn on_phase(mut self, callback: impl FnMut(&str) + Send + 'static) -> Self {
        self.run_mut().phases = Phases::new(callback);
        self
    }
}

/// The settings of limits and observers, which all solves have.
pub trait RunSettings: DeviceSettings {
    /// Stops once a solve has taken this long. The clock is read between batches of iterations, so a long
    /// setup is not interrupted: the solve then ends before its first iteration. For `solve` the time begins
    /// with the preparation, for a prepared solve when it is called.
    fn time_limit(mut self, time: Duration) -> Self {
        self.run_mut().watch.time_limit = Some(time);
        self
    }

    /// Sets the moment from which the time limit counts.
    fn time_from(mut self, began: Instant) -> Self {
        self.run_mut().watch.time_from = Some(began);
        self
    }

    /// Lets the time limit include the preparation.
    #[doc(hidden)]
    fn timed_from_here(mut self) -> Self {
        self.run_mut().watch.time_from.get_or_insert_with(Instant::now);
        self
    }

    /// Stops once another thread sets this flag. The flag is read between batches of iterations.
    fn cancel(mut self, flag: &Arc<AtomicBool>) -> Self {
        self.run_mut().watch.cancel = Some(Arc::clone(flag));
        self
    }

    /// Calls `callback` after each batch of iterations. The solve ends when `callback` returns false.
    fn on_progress(mut self, callback: impl FnMut(&Progress) -> bool + Send + 'static) -> Self {
        let watch = &mut self.run_mut().watch;
        let closure = Closure::new(callback, Arc::clone(&watch.ended));
        watch.observers.push(Box::new(closure));
        self
    }

    /// Adds an observer. It is called with the initial residual, after each batch of iterations, and when
    /// another phase begins.
    fn observer(mut self, observer: impl Observer + Send + 'static) -> Self {
        self.run_mut().watch.observers.push(Box::new(observer));
        self
    }
}
