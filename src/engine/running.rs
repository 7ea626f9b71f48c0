//! How all solves and products run: device, backend, limits and observers.

use super::device::{DeviceHandle, DeviceName, HostMethod, Request, Settled};
use super::memory;
use super::shared::Shared;
use super::stopping::Stopping;
use super::team::NO_TUNING;
use super::tune::{Choosing, Context, Explanation, choose};
use super::watch::{FanOut, Phases};
use crate::backend::{Choice, Entry, ForColumns, MatrixAgain, Operator, Pick};
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

/// How a solve or a product runs: its device, backend and precision, its limits, and its observers.
#[derive(Default)]
pub struct Run {
    pub(super) request: Request,
    /// The fault of the name of the preconditioner, which the request then lacks.
    pub(super) precond_fault: Option<Error>,
    pub(super) settled: Option<Settled>,
    pub(super) device: Option<DeviceHandle>,
    pub(super) watch: Watch,
    pub(super) choosing: Choosing,
    pub(super) phases: Phases,
    /// Whether the device is not shared with other solves of this process. Ranks that are threads of one
    /// process must not wait for the device of another rank.
    pub(super) separate: bool,
}

impl Run {
    /// Creates the description of a run whose device is not shared.
    pub(super) fn separate() -> Run {
        Run { separate: true, ..Run::default() }
    }

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

    /// Opens the device, and returns it with the backend of the request. `on_host` is the
    /// method if it needs no backend.
    pub(super) fn open(&mut self, on_host: Option<HostMethod>) -> Result<(DeviceHandle, Choice)> {
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

    /// Settles the request, and returns the devices that share the solve; none if there is one device.
    /// `on_host` is as for [`open`](Self::open).
    pub(super) fn shares(&mut self, on_host: Option<HostMethod>) -> Result<Vec<DeviceName>> {
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
    pub(super) fn split(mut self, devices: &[DeviceHandle]) -> Vec<Run> {
        let settled = self.settled.take();
        let (phases, watch) = (std::mem::take(&mut self.phases), std::mem::take(&mut self.watch));
        let mut split: Vec<Run> = (devices.iter().enumerate())
            .map(|(rank, device)| Run {
                request: Request { device: device.name().to_owned(), ..self.request.clone() },
                precond_fault: None,
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
    /// Runs `solve` until the residual is at most `tol` or a limit is reached; returns the
    /// outcome and the history.
    pub(crate) fn run<R>(
        &mut self,
        limits: (f64, usize, usize),
        passed: &mut [&mut dyn Observer],
        solve: impl FnOnce(&StoppingRule, &mut [&mut dyn Observer]) -> Result<R>,
    ) -> Result<(R, Recorder)> {
        let (outcome, recorders) = self.run_columns(limits, 1, passed, solve)?;
        Ok((outcome, recorders.into_iter().next().unwrap_or_default()))
    }

    /// Runs `solve` for `columns` columns until their residuals are at most `tol` or a limit is reached;
    /// returns the outcome and the history of each column.
    pub(crate) fn run_columns<R>(
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

    /// Sets the limits that the tolerances of a linear system come with.
    pub(crate) fn limit(&mut self, stopping: &Stopping) {
        let Stopping { time_limit, time_from, cancel, .. } = stopping;
        (self.time_limit, self.time_from, self.cancel) = (*time_limit, *time_from, cancel.clone());
    }

    /// Returns tolerances with these limits.
    pub(crate) fn stopping(&self, tolerances: Stopping) -> Stopping {
        let Watch { time_limit, time_from, cancel, .. } = self;
        Stopping { time_limit: *time_limit, time_from: *time_from, cancel: cancel.clone(), ..tolerances }
    }

    /// Starts the clock of a solve, and resets the flag by which an observer ended an earlier one.
    pub(crate) fn begin(&mut self) {
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
    pub(crate) fn check_columns(&self, k: usize) -> Result<()> {
        self.entry.map_or(Ok(()), |entry| entry.check_columns(k))
    }

    /// Returns the value for a method that needs no backend.
    pub(crate) fn none() -> Chosen {
        Chosen { entry: None, backend: "none".to_owned(), because: None, explanation: Explanation::default() }
    }
}

/// Waits for the work of the device if a profile is active, so that the work counts for the
/// phase that requested it.
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

/// Chooses a backend for a matrix and builds the operator. Leaves memory for `vectors` vectors free. `again`
/// returns the matrix once more, for several columns.
pub(super) fn operator<D: Pick<T>, T: Scalar>(
    device: &Shared<D>,
    order: &BackendOrder<'_>,
    (matrix, again): (&Arc<Csr>, MatrixAgain),
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
    let several = ForColumns {
        auto: order.backend.clone(),
        size: size.without_shared_launches(),
        matrix: again,
        reserve: reserve / columns.max(1) as u64,
    };
    let operator = several.after(operator, &backend);
    finish_work(&*device)?;
    let because = backend.because().map(str::to_owned);
    Ok((operator, Chosen { entry: Some(backend.entry()), backend: backend.label(), because, explanation }))
}

/// Checks a tolerance on the l1 norm of the difference of two distributions. The norm is at most 2; `largest`
/// names that bound in the error.
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
