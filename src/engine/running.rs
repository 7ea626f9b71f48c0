//! What the iterations for ranks and for distributions have in common: where and how long they run, and who watches them.

use super::device::{DeviceHandle, Request, Settled};
use super::memory;
use super::shared::Shared;
use super::watch::Fan;
use crate::backend::{Choice, Operator, Pick};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::observe::{Observer, Recorder};
use crate::scalar::Scalar;
use crate::stop::{StopReason, StoppingRule};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Iterations for whose history there is room from the start.
const ROOM: usize = 1 << 16;

/// Settings of where and how long iterations run.
pub(super) struct Running {
    pub request: Request,
    pub settled: Option<Settled>,
    pub device: Option<DeviceHandle>,
    pub watch: Watch,
    pub phase: Box<dyn FnMut(&str) + Send>,
}

impl Default for Running {
    fn default() -> Running {
        let (request, watch) = (Request::default(), Watch::default());
        Running { request, settled: None, device: None, watch, phase: Box::new(|_| ()) }
    }
}

/// Defines the methods of a builder that change its field `running`.
macro_rules! running_settings {
    () => {
        /// The device by name: `auto`, `cpu`, `cuda`, `cuda:1`. By default a GPU where there is one.
        pub fn device(mut self, name: &str) -> Self {
            self.running.request.device = name.to_owned();
            self
        }

        /// A device that is open already, which solves share.
        pub fn on(mut self, device: &DeviceHandle) -> Self {
            self.running.device = Some(device.clone());
            self
        }

        /// The backend of the products by name, with parameters: `auto`, `sell`.
        pub fn backend(mut self, name: &str) -> Self {
            self.running.request.backend = name.to_owned();
            self
        }

        /// Threads on the CPU. By default one for each core.
        pub fn threads(mut self, threads: usize) -> Self {
            self.running.request.threads = Some(threads);
            self
        }

        /// The precision of matrix and vectors. By default double.
        pub fn precision(mut self, precision: Precision) -> Self {
            self.running.request.precision = precision;
            self
        }

        /// All of device, backend, precision and threads, with the device that they were compared with already.
        pub fn settled(mut self, request: Request, settled: Settled) -> Self {
            (self.running.request, self.running.settled) = (request, Some(settled));
            self
        }

        /// Stops once the iterations have taken this long.
        pub fn time_limit(mut self, time: Duration) -> Self {
            self.running.watch.time_limit = Some(time);
            self
        }

        /// Stops once another thread sets this flag.
        pub fn cancel(mut self, flag: &Arc<AtomicBool>) -> Self {
            self.running.watch.cancel = Some(Arc::clone(flag));
            self
        }

        /// Calls `see` after each batch of iterations; the solve goes on as long as it returns true.
        pub fn on_progress(mut self, see: impl FnMut(&Progress) -> bool + Send + 'static) -> Self {
            let closure = Closure::new(see, Arc::clone(&self.running.watch.ended));
            self.running.watch.observers.push(Box::new(closure));
            self
        }

        /// An observer of all iterations.
        pub fn observer(mut self, observer: impl Observer + Send + 'static) -> Self {
            self.running.watch.observers.push(Box::new(observer));
            self
        }

        /// Calls `begin` with the name of each phase of the preparation, such as `building backend sell`.
        pub fn on_phase(mut self, begin: impl FnMut(&str) + Send + 'static) -> Self {
            self.running.phase = Box::new(begin);
            self
        }
    };
}

pub(super) use running_settings;

impl Running {
    /// Opens the device, and returns the backend that was asked for there. A method that runs in f64 on one thread of the CPU is
    /// `serial`, by its name.
    pub fn open(&mut self, serial: Option<&str>) -> Result<(DeviceHandle, Choice)> {
        if let Some(device) = &self.device {
            self.request.device = device.instead_of(&self.request.device)?;
        }
        let settled = match (self.settled.take(), serial) {
            (Some(settled), _) => settled,
            (None, None) => self.request.settle()?,
            (None, Some(method)) => self.request.settle_serially(method)?,
        };
        settled.check_device()?;
        let device = match self.device.take() {
            Some(device) => device,
            None => DeviceHandle::shared(settled.device)?,
        };
        Ok((device, settled.backend))
    }
}

/// Limits of iterations besides their number, and their observers.
#[derive(Default)]
pub(super) struct Watch {
    pub time_limit: Option<Duration>,
    pub cancel: Option<Arc<AtomicBool>>,
    pub observers: Vec<Box<dyn Observer + Send>>,
    /// Set by observers that end the solve.
    pub ended: Arc<AtomicBool>,
}

impl Watch {
    /// Iterates by `solve` until the residual is at most `tol`, or until a limit; returns its outcome and the history.
    pub fn run<R>(
        &mut self,
        (tol, max_iters, stagnation): (f64, usize, usize),
        others: &mut [&mut dyn Observer],
        solve: impl FnOnce(&StoppingRule, &mut [&mut dyn Observer]) -> Result<R>,
    ) -> Result<(R, Recorder)> {
        let mut rules = vec![
            StoppingRule::AbsoluteResidual(tol),
            StoppingRule::MaxIterations(max_iters),
            StoppingRule::Stagnation(stagnation),
            StoppingRule::Interrupt(Arc::clone(&self.ended)),
        ];
        rules.extend(self.cancel.clone().map(StoppingRule::Interrupt));
        rules.extend(self.time_limit.map(StoppingRule::TimeLimit));
        let mut recorder = Recorder::with_capacity(max_iters.min(ROOM));
        let mut fan = Fan { recorder: Some(&mut recorder), prepared: &mut self.observers, others };
        let outcome = solve(&StoppingRule::any(rules), &mut [&mut fan])?;
        Ok((outcome, recorder))
    }

    /// Forgets that an observer has ended a solve.
    pub fn begin(&self) {
        self.ended.store(false, Ordering::Relaxed);
    }
}

/// A backend that was chosen for a matrix: its name with parameters, and why it was chosen.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub backend: String,
    pub because: Option<String>,
}

impl Chosen {
    /// For a method that needs no backend.
    pub fn none() -> Chosen {
        Chosen { backend: "none".to_owned(), because: None }
    }
}

/// Chooses a backend for a matrix and builds the operator; memory for `vectors` vectors stays free.
pub(super) fn operator<D: Pick<T>, T: Scalar>(
    device: &Shared<D>,
    backend: &Choice,
    matrix: &Arc<Csr>,
    vectors: usize,
    phase: &mut dyn FnMut(&str),
) -> Result<(Operator<D, T>, Chosen)> {
    let device = device.turn()?;
    device.enter()?;
    phase("choosing a backend");
    let backend = backend.settle(matrix, size_of::<T>(), device.resident_rows())?;
    if let Some(why) = backend.because() {
        log::info!("backend {}: {why}", backend.label());
    }
    phase(&format!("building backend {}", backend.label()));
    let reserve = memory::vectors(vectors, matrix.rows(), size_of::<T>());
    let operator = backend.build::<D, T>(&*device, matrix, reserve)?;
    let because = backend.because().map(str::to_owned);
    Ok((operator, Chosen { backend: backend.label(), because }))
}

/// Refuses a tolerance on the l1 norm of the difference of two distributions; `largest` is what the largest is called.
pub(super) fn check_tolerance(tol: f64, largest: &str) -> Result<()> {
    match tol > 0.0 && tol < 2.0 {
        true => Ok(()),
        false => Err(Error::setting("tol", tol, format!("it must lie between 0 and 2, {largest}"))),
    }
}

/// The reason as a sentence in the words of these solves.
pub(super) fn message(reason: &StopReason) -> String {
    match reason {
        StopReason::Stagnated { iteration, window } => format!(
            "not converged: stagnated, nothing has fallen by 1 % in the {window} iterations before iteration {iteration}"
        ),
        StopReason::NotFinite { iteration, .. } => format!(
            "not converged: NaN or infinity appeared in iteration {iteration}; weights or vectors leave the range of the \
             precision"
        ),
        other => other.to_string(),
    }
}

/// The places by falling number; of equal ones the lower place first.
pub(super) fn by_rank(ranks: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_unstable_by(|&a, &b| ranks[b].total_cmp(&ranks[a]).then(a.cmp(&b)));
    order
}
