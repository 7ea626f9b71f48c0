//! Settings that PageRank and Markov chains share: device, limits and observers.

use super::device::{DeviceHandle, DeviceName, HostMethod, Request, Settled};
use super::memory;
use super::shared::Shared;
use super::team::NO_TUNING;
use super::tune::{Choosing, Context, Explanation, choose};
use super::watch::{FanOut, Phases};
use crate::backend::{Choice, Entry, Operator, Pick};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::observe::profile::{self, Phase};
use crate::observe::{Observer, Recorder};
use crate::scalar::{Precision, Scalar};
use crate::stop::{StopReason, StoppingRule};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Largest number of iterations whose history is allocated before the solve.
pub(super) const HISTORY_CAPACITY: usize = 1 << 16;

/// Device, limits and observers of a solve.
pub(super) struct Running {
    pub request: Request,
    pub settled: Option<Settled>,
    pub device: Option<DeviceHandle>,
    pub watch: Watch,
    pub choosing: Choosing,
    pub phases: Phases,
    /// Whether the device is not shared with other solves of this process. Ranks that are threads of one process must not wait for the
    /// device of another rank.
    pub separate: bool,
}

impl Default for Running {
    fn default() -> Running {
        let (request, watch) = (Request::default(), Watch::default());
        let choosing = Choosing::default();
        let phases = Phases::default();
        Running { request, settled: None, device: None, watch, choosing, phases, separate: false }
    }
}

/// Defines the builder methods that choose device and backend in the field `running`.
macro_rules! device_settings {
    () => {
        /// Sets the device by name: `auto`, `cpu`, `cuda`, `cuda:1`. The default, `auto`, takes a GPU if one is usable. Products run on one
        /// device; rankings and chains also take lists of GPUs, `cuda:0,1` or `cuda:all`.
        pub fn device(mut self, name: &str) -> Self {
            self.running.request.device = name.to_owned();
            self
        }

        /// Sets an open device, which several solves can share.
        pub fn on(mut self, device: &DeviceHandle) -> Self {
            self.running.device = Some(device.clone());
            self
        }

        /// Sets the SpMV backend by name, with parameters: `auto`, `sell`.
        pub fn backend(mut self, name: &str) -> Self {
            self.running.request.backend = name.to_owned();
            self
        }

        /// Measures the backends before the solve if backend is `auto` and no choice is kept from an earlier measurement.
        pub fn tune(mut self, tune: bool) -> Self {
            self.running.choosing = $crate::engine::tune::Choosing::tuning(tune);
            self
        }

        /// Sets the number of CPU threads. By default one per core.
        pub fn threads(mut self, threads: usize) -> Self {
            self.running.request.threads = Some(threads);
            self
        }

        /// Sets the precision of matrix and vectors. By default double.
        pub fn precision(mut self, precision: Precision) -> Self {
            self.running.request.precision = precision;
            self
        }

        /// Sets device, backend, precision and threads at once. `settled` is the result of `request.settle()`. For a method that runs
        /// on the CPU alone, such as Gauss-Seidel, it is that of [`Request::settle_on_host`].
        // For the program, which settles a request before it reads the graph.
        #[doc(hidden)]
        pub fn settled(mut self, request: Request, settled: Settled) -> Self {
            (self.running.request, self.running.settled) = (request, Some(settled));
            self
        }

        /// Chooses the backend by the model, so that a measurement does not depend on the choices kept on
        /// this machine.
        pub(crate) fn by_model(mut self) -> Self {
            self.running.choosing = $crate::engine::tune::Choosing::Model;
            self
        }

        /// Calls `callback` with the name of each phase of the preparation, such as `building backend sell`.
        pub fn on_phase(mut self, callback: impl FnMut(&str) + Send + 'static) -> Self {
            self.running.phases = Phases::new(callback);
            self
        }
    };
}

/// Defines the builder methods that change the field `running`.
macro_rules! running_settings {
    () => {
        $crate::engine::running::device_settings!();

        /// Stops once a solve has taken this long. The clock is read between batches of iterations, so a long setup
        /// is not interrupted: the solve then ends before its first iteration. For `solve` the time begins with the
        /// preparation, for a prepared solve when it is called.
        pub fn time_limit(mut self, time: Duration) -> Self {
            self.running.watch.time_limit = Some(time);
            self
        }

        /// Sets the moment from which the time limit counts.
        pub fn time_from(mut self, began: std::time::Instant) -> Self {
            self.running.watch.time_from = Some(began);
            self
        }

        /// Lets the time limit include the preparation.
        fn timed_from_here(self) -> Self {
            let began = self.running.watch.time_from.unwrap_or_else(std::time::Instant::now);
            self.time_from(began)
        }

        /// Stops once another thread sets this flag.
        pub fn cancel(mut self, flag: &Arc<AtomicBool>) -> Self {
            self.running.watch.cancel = Some(Arc::clone(flag));
            self
        }

        /// Calls `callback` after each batch of iterations. The solve ends when `callback` returns false.
        pub fn on_progress(mut self, callback: impl FnMut(&Progress) -> bool + Send + 'static) -> Self {
            let closure = Closure::new(callback, Arc::clone(&self.running.watch.ended));
            self.running.watch.observers.push(Box::new(closure));
            self
        }

        /// Adds an observer of all iterations.
        pub fn observer(mut self, observer: impl Observer + Send + 'static) -> Self {
            self.running.watch.observers.push(Box::new(observer));
            self
        }
    };
}

pub(super) use device_settings;
pub(super) use running_settings;

impl Running {
    /// Settles the request, unless the caller has done so. `on_host` is the method if it needs no backend.
    fn settle(&mut self, on_host: Option<HostMethod>) -> Result<Settled> {
        let given = self.settled.take();
        let Some(method) = on_host else {
            return given.map_or_else(|| self.request.settle(), Ok);
        };
        match given {
            Some(Settled { device: device @ DeviceName::Cuda(_), .. }) => {
                Err(method.refuse("device", device))
            }
            // Checks the device of a handle, too.
            _ => self.request.settle_on_host(method),
        }
    }

    /// Opens the device, and returns it with the backend of the request. `on_host` is the method if it needs no
    /// backend.
    pub fn open(&mut self, on_host: Option<HostMethod>) -> Result<(DeviceHandle, Choice)> {
        if let Some(device) = &self.device {
            self.request.device = device.instead_of(&self.request.device)?;
        }
        let settled = self.settle(on_host)?;
        settled.require_one("a product runs")?;
        settled.check_device()?;
        let device = match self.device.take() {
            Some(device) => device,
            None if self.separate => DeviceHandle::open(settled.device)?,
            None => DeviceHandle::shared(settled.device)?,
        };
        Ok((device, settled.backend))
    }
}

impl Running {
    /// Settles the request, and returns the devices that share the solve; none if there is one device. `on_host` is as for
    /// [`open`](Self::open).
    pub fn shares(&mut self, on_host: Option<HostMethod>) -> Result<Vec<DeviceName>> {
        if self.device.is_some() || self.separate {
            return Ok(Vec::new());
        }
        let settled = self.settle(on_host)?;
        let shares = settled.shares.clone();
        if !shares.is_empty() {
            settled.check_device()?;
            if self.choosing == Choosing::Measure {
                return Err(Error::setting("tune", "", NO_TUNING));
            }
        }
        self.settled = Some(settled);
        Ok(shares)
    }

    /// Returns the settings of each device that shares the solve. Those of the first rank have the observers.
    pub fn split(mut self, devices: &[DeviceHandle]) -> Vec<Running> {
        let settled = self.settled.take();
        let (phases, watch) = (std::mem::take(&mut self.phases), std::mem::take(&mut self.watch));
        let mut split: Vec<Running> = (devices.iter().enumerate())
            .map(|(rank, device)| Running {
                request: Request { device: device.name().to_owned(), ..self.request.clone() },
                settled: settled.as_ref().map(|settled| settled.of_share(rank)),
                device: Some(device.clone()),
                watch: Watch {
                    time_limit: watch.time_limit,
                    time_from: watch.time_from,
                    cancel: watch.cancel.clone(),
                    ..Watch::default()
                },
                choosing: self.choosing,
                phases: Phases::default(),
                separate: true,
            })
            .collect();
        if let Some(first) = split.first_mut() {
            (first.phases, first.watch) = (phases, watch);
        }
        split
    }
}

/// Observers of the iterations, and their limits except the iteration limit.
#[derive(Default)]
pub(super) struct Watch {
    pub time_limit: Option<Duration>,
    /// The moment from which the time limit counts; by default the beginning of each solve.
    pub time_from: Option<Instant>,
    /// The beginning of the solve.
    pub began: Option<Instant>,
    pub cancel: Option<Arc<AtomicBool>>,
    pub observers: Vec<Box<dyn Observer + Send>>,
    /// Set by observers that end the solve.
    pub ended: Arc<AtomicBool>,
}

impl Watch {
    /// Runs `solve` until the residual is at most `tol` or a limit is reached; returns the outcome and the history.
    pub fn run<R>(
        &mut self,
        limits: (f64, usize, usize),
        passed: &mut [&mut dyn Observer],
        solve: impl FnOnce(&StoppingRule, &mut [&mut dyn Observer]) -> Result<R>,
    ) -> Result<(R, Recorder)> {
        let (outcome, recorders) = self.run_columns(limits, 1, passed, solve)?;
        Ok((outcome, recorders.into_iter().next().unwrap_or_default()))
    }

    /// Does the same for `columns` columns; returns the history of each.
    pub fn run_columns<R>(
        &mut self,
        (tol, max_iters, stagnation): (f64, usize, usize),
        columns: usize,
        passed: &mut [&mut dyn Observer],
        solve: impl FnOnce(&StoppingRule, &mut [&mut dyn Observer]) -> Result<R>,
    ) -> Result<(R, Vec<Recorder>)> {
        let mut rules = vec![
            StoppingRule::AbsoluteResidual(tol),
            StoppingRule::MaxIterations(max_iters),
            StoppingRule::Stagnation(stagnation),
            StoppingRule::Interrupt(Arc::clone(&self.ended)),
        ];
        rules.extend(self.cancel.clone().map(StoppingRule::Interrupt));
        let since = self.time_from.or(self.began).unwrap_or_else(Instant::now);
        rules.extend(self.time_limit.and_then(|limit| StoppingRule::within(limit, since)));
        let capacity = max_iters.min(HISTORY_CAPACITY / columns.max(1));
        let mut recorders = Recorder::of_columns(columns, capacity);
        let mut observer = FanOut { recorders: &mut recorders, prepared: &mut self.observers, passed };
        let _span = profile::begin(Phase::Build);
        let outcome = solve(&StoppingRule::any(rules), &mut [&mut observer])?;
        Ok((outcome, recorders))
    }

    /// Starts the clock of a solve, and resets the flag by which an observer ended an earlier one.
    pub fn begin(&mut self) {
        self.began = Some(Instant::now());
        self.ended.store(false, Ordering::Relaxed);
    }
}

/// The backend chosen for a matrix, with its parameters, and the reason for the choice.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// The registry row; none for a method that needs no backend.
    pub entry: Option<&'static Entry>,
    pub backend: String,
    pub because: Option<String>,
    pub explanation: Explanation,
}

impl Chosen {
    /// Refuses several columns if the backend multiplies one vector at a time.
    pub fn check_columns(&self, k: usize) -> Result<()> {
        self.entry.map_or(Ok(()), |entry| entry.check_columns(k))
    }

    /// Returns the value for a method that needs no backend.
    pub fn none() -> Chosen {
        Chosen { entry: None, backend: "none".to_owned(), because: None, explanation: Explanation::default() }
    }
}

/// Waits for the work of the device if a profile is active, so that the work counts for the phase that requested it.
pub(super) fn finish_work<D: Device>(device: &D) -> Result<()> {
    if profile::is_active() { device.synchronize() } else { Ok(()) }
}

/// The backend that the user named, and how `auto` chooses.
#[derive(Clone, Copy)]
pub(super) struct BackendOrder<'a> {
    pub backend: &'a Choice,
    pub precision: Precision,
    pub choosing: Choosing,
    /// Number of vectors that are multiplied at once.
    pub columns: usize,
    /// Whether products run one by one, so that no iterations share a launch.
    pub one_by_one: bool,
}

/// Chooses a backend for a matrix and builds the operator. Leaves memory for `vectors` vectors free.
pub(super) fn operator<D: Pick<T>, T: Scalar>(
    device: &Shared<D>,
    order: &BackendOrder<'_>,
    matrix: &Arc<Csr>,
    vectors: usize,
    phases: &mut Phases,
) -> Result<(Operator<D, T>, Chosen)> {
    let device = device.acquire()?;
    device.enter()?;
    let analysing = phases.begin(Phase::Analyse, "choosing a backend");
    let BackendOrder { backend, precision, choosing, columns, one_by_one } = *order;
    let size = device.gpu_size();
    let size = if one_by_one { size.without_shared_launches() } else { size };
    let context = Context { precision, size, choosing, columns };
    let selected = choose::<D, T>(&device, backend, matrix, &context, &mut |what| phases.announce(what))?;
    let (explanation, backend) = (selected.explanation(), selected.backend);
    if let Some(why) = backend.because() {
        log::info!("backend {}: {why}", backend.label());
    }
    drop(analysing);
    let _building = phases.begin(Phase::Build, &format!("building backend {}", backend.label()));
    let reserve = memory::vectors(vectors, matrix.rows(), size_of::<T>());
    let operator = backend.build_for::<D, T>(&*device, matrix, reserve, columns)?;
    finish_work(&*device)?;
    let because = backend.because().map(str::to_owned);
    Ok((operator, Chosen { entry: Some(backend.entry()), backend: backend.label(), because, explanation }))
}

/// Checks a tolerance on the l1 norm of the difference of two distributions. The norm is at most 2; `largest` names that bound
/// in the error.
pub(super) fn check_tolerance(tol: f64, largest: &str) -> Result<()> {
    match tol > 0.0 && tol < 2.0 {
        true => Ok(()),
        false => Err(Error::setting("tol", tol, format!("it must lie between 0 and 2, {largest}"))),
    }
}

/// Describes the stop reason of a PageRank or Markov solve.
pub(super) fn message(reason: &StopReason) -> String {
    match reason {
        StopReason::Stagnated { iteration, window } => format!(
            "not converged: stagnated, no decrease by 1 % in the {window} iterations before iteration {iteration}"
        ),
        StopReason::NotFinite { iteration, .. } => format!(
            "not converged: NaN or infinity appeared in iteration {iteration}; weights or vectors are out of range for the \
             precision"
        ),
        other => other.to_string(),
    }
}

/// Orders indices by decreasing rank, and among equal ranks by increasing index.
fn by_rank_of(ranks: &[f64]) -> impl Fn(&usize, &usize) -> std::cmp::Ordering {
    |&a, &b| ranks[b].total_cmp(&ranks[a]).then(a.cmp(&b))
}

/// Returns the indices in order of decreasing rank, and among equal ranks in increasing order.
pub(super) fn by_rank(ranks: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_unstable_by(by_rank_of(ranks));
    order
}

/// Returns the first `count` indices of [`by_rank`], in one pass.
pub(super) fn highest(ranks: &[f64], count: usize) -> Vec<usize> {
    let mut kept = Vec::new();
    let keep_first = |kept: &mut Vec<usize>| {
        if kept.len() > count {
            kept.select_nth_unstable_by(count, by_rank_of(ranks));
            kept.truncate(count);
        }
    };
    // The lowest of `count` ranks with smaller indices: no later rank up to it is among the first.
    let mut floor: Option<f64> = None;
    for (index, rank) in ranks.iter().enumerate() {
        if floor.is_some_and(|floor| rank.total_cmp(&floor).is_le()) {
            continue;
        }
        kept.push(index);
        if kept.len() > count.saturating_mul(2) {
            keep_first(&mut kept);
            floor = kept.iter().map(|&index| ranks[index]).min_by(f64::total_cmp);
        }
    }
    keep_first(&mut kept);
    kept.sort_unstable_by(by_rank_of(ranks));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_ranks_are_the_first_of_all_in_order() {
        // Many equal ranks, zeros of both signs, and one that is not a number.
        let mut ranks: Vec<f64> = (0..1000_u64).map(|i| (i * 7919 % 97) as f64).collect();
        (ranks[500], ranks[600], ranks[700]) = (f64::NAN, -0.0, f64::NEG_INFINITY);
        let all = by_rank(&ranks);
        for count in [0, 1, 2, 10, 499, 999, 1000, 5000, usize::MAX] {
            assert_eq!(highest(&ranks, count), all[..count.min(1000)], "{count}");
        }
        assert!(highest(&[], 3).is_empty());
    }
}
