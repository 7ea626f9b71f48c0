//! The live line of a solve: iteration, residual, rate and the time left.

use super::monitor::Monitor;
use super::{REFRESH, TaskHandle, so_far};
use crate::cli::{duration, thousands};
use crate::observe::{Batch, Forecast, Observer};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The limits that end a solve that does not converge.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of iterations.
    pub iterations: usize,
    /// Maximum time.
    pub time: Option<Duration>,
}

impl Limits {
    /// Makes the limits of iterations that begin now, in a solve whose setup began at this moment.
    pub fn new(iterations: usize, time_limit: Option<Duration>, began: Instant) -> Limits {
        Limits { iterations, time: time_limit.map(|limit| limit.saturating_sub(began.elapsed())) }
    }

    /// Returns the seconds until the first limit is reached, and the option that sets this limit.
    fn left(self, iteration: usize, seconds: f64, per_iteration: f64) -> (f64, &'static str) {
        let iterations = self.iterations.saturating_sub(iteration) as f64 * per_iteration;
        let time = self.time.map_or(f64::INFINITY, |limit| limit.as_secs_f64() - seconds).max(0.0);
        if time < iterations { (time, "--time-limit") } else { (iterations, "--max-iters") }
    }
}

/// The text shown now, and the time since which it is shown if the elapsed time is part of the line.
type Shown = (String, Option<Instant>);

/// Shows the progress of a solve.
pub struct Live {
    name: &'static str,
    limits: Limits,
    forecast: Forecast,
    iteration: usize,
    shown: Arc<Mutex<Shown>>,
    /// When the shown text was last updated.
    updated: Instant,
    monitor: Option<Monitor>,
    task: TaskHandle,
}

impl Live {
    /// Starts with the preparation of the first iteration. `monitor` is the number of iterations from one printed residual to the
    /// next, and `what` describes the residuals.
    pub fn new(name: &'static str, limits: Limits, monitor: Option<usize>, what: &'static str) -> Live {
        let shown: Arc<Mutex<Shown>> =
            Arc::new(Mutex::new((format!("{name}: preparing the first iteration"), Some(Instant::now()))));
        let current = Arc::clone(&shown);
        let task = TaskHandle::start(move || {
            let (text, since) = &*current.lock().unwrap_or_else(PoisonError::into_inner);
            since.map_or_else(|| text.clone(), |since| so_far(text, since.elapsed()))
        });
        Live {
            name,
            limits,
            forecast: Forecast::default(),
            iteration: 0,
            shown,
            updated: Instant::now(),
            monitor: monitor.map(|every| Monitor::new(every, what)),
            task,
        }
    }

    /// Removes the line, and prints the last residual for `--monitor`.
    pub fn finish(mut self) {
        let last = self.monitor.as_mut().map_or(String::new(), Monitor::last);
        self.print(&last);
    }

    fn print(&self, lines: &str) {
        if !lines.is_empty() {
            self.task.print(lines);
        }
    }

    fn show(&self, text: String, since: Option<Instant>) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = (text, since);
    }

    fn text(&self, batch: &Batch<'_>, residual: f64) -> String {
        let (iteration, seconds) = (self.iteration, batch.seconds.1);
        let per_iteration = seconds / iteration.max(1) as f64;
        let left = batch.tolerance.and_then(|t| self.forecast.left(t)).map(|left| left * per_iteration);
        let eta = eta(left, self.limits.left(iteration, seconds, per_iteration));
        let tolerance = batch.tolerance.map_or(String::new(), |t| format!(" (tolerance {t:.0e})"));
        let rate = if per_iteration > 0.0 { 1.0 / per_iteration } else { 0.0 };
        let digits = usize::from(rate < 10.0);
        format!(
            "{}  iteration {}  residual {residual:.2e}{tolerance}  {rate:.digits$} iterations/s  {eta}",
            self.name,
            thousands(iteration as u64)
        )
    }
}

/// Formats the time left, which is at most the time until a limit.
fn eta(left: Option<f64>, (limit, option): (f64, &str)) -> String {
    match left {
        Some(left) if left <= limit => format!("ETA {}", duration(left)),
        Some(_) => format!("ETA {}, limited by {option}", duration(limit)),
        None => format!("ETA unknown, {option} in {}", duration(limit)),
    }
}

impl Observer for Live {
    fn batch(&mut self, batch: &Batch<'_>) {
        let Some(&residual) = batch.residuals.last() else { return };
        self.forecast.add(batch.residuals);
        if let Some(monitor) = &mut self.monitor {
            let lines = monitor.lines(batch);
            self.print(&lines);
        }
        if batch.seconds.1 == 0.0 {
            return;
        }
        self.iteration = batch.first + batch.residuals.len();
        if self.updated.elapsed() >= REFRESH {
            self.updated = Instant::now();
            // A log with the lines of `--monitor` needs no progress lines.
            let monitored = self.monitor.is_some() && self.task.is_hidden();
            self.show(if monitored { String::new() } else { self.text(batch, residual) }, None);
        }
    }

    fn phase(&mut self, what: &'static str) {
        let iterations = thousands(self.iteration as u64);
        self.show(format!("{}  iteration {iterations}: {what}", self.name), Some(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_limited_by_the_first_limit() {
        let limits = Limits { iterations: 1000, time: Some(Duration::from_secs(30)) };
        assert_eq!(limits.left(900, 9.0, 0.01), (1.0, "--max-iters"));
        assert_eq!(limits.left(100, 29.0, 0.29), (1.0, "--time-limit"));
        assert_eq!(limits.left(1200, 40.0, 0.01), (0.0, "--max-iters"));
        assert_eq!(eta(Some(0.5), (1.0, "--max-iters")), "ETA 0.50 s");
        assert_eq!(eta(Some(50.0), (1.0, "--max-iters")), "ETA 1.00 s, limited by --max-iters");
    }

    #[test]
    fn the_time_left_is_unknown_if_the_residual_does_not_fall() {
        assert_eq!(eta(None, (30.0, "--time-limit")), "ETA unknown, --time-limit in 30.00 s");
    }
}
