//! The live line of a solve: iteration, residual, rate and the time left.

use super::monitor::Monitor;
use super::{REFRESH, TaskHandle, room, so_far};
use crate::cli::thousands;
use crate::observe::{Batch, Forecast, Observer};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The limits that end a solve that does not converge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum number of iterations.
    pub iterations: usize,
    /// The moment at which the time limit ends the solve.
    pub until: Option<Instant>,
}

impl Limits {
    /// Makes the limits of a solve whose setup began at this moment.
    pub(crate) fn new(iterations: usize, time_limit: Option<Duration>, began: Instant) -> Limits {
        Limits { iterations, until: time_limit.and_then(|limit| began.checked_add(limit)) }
    }

    /// Returns the seconds until the first limit is reached, and the option that sets this limit.
    fn left(self, iteration: usize, per_iteration: f64) -> (f64, &'static str) {
        let iterations = self.iterations.saturating_sub(iteration) as f64 * per_iteration;
        let left = |until: Instant| until.saturating_duration_since(Instant::now()).as_secs_f64();
        let time = self.until.map_or(f64::INFINITY, left);
        if time < iterations { (time, "--time-limit") } else { (iterations, "--max-iters") }
    }
}

/// The text shown now, and the time since which it is shown if the elapsed time is part of the line.
type Shown = (String, Option<Instant>);

/// Shows the progress of a solve until it is dropped.
pub(crate) struct Live {
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
    /// Starts with the preparation of the first iteration. `monitor` is the number of iterations from one
    /// printed residual to the next, and `what` describes the residuals.
    pub(crate) fn new(
        name: &'static str,
        limits: Limits,
        monitor: Option<usize>,
        what: &'static str,
    ) -> Live {
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
        let range = batch.tolerance.and_then(|t| self.forecast.range(t));
        let range = range.map(|range| range.map(|left| left * per_iteration));
        let rate = if per_iteration > 0.0 { 1.0 / per_iteration } else { 0.0 };
        let digits = usize::from(rate < 10.0);
        let room = if self.task.is_hidden() { usize::MAX } else { room() };
        let parts = [
            (0, self.name.to_owned()),
            (1, format!("  iteration {}", thousands(iteration as u64))),
            (2, format!("  residual {residual:.2e}")),
            (4, batch.tolerance.map_or(String::new(), |t| format!(" (tolerance {t:.0e})"))),
            (5, format!("  {rate:.digits$} iterations/s")),
            (3, format!("  {}", eta(range, self.limits.left(iteration, per_iteration)))),
        ];
        fitted(parts, room)
    }
}

/// Joins the parts of a line. Leaves out the parts with the highest numbers if the line would have
/// more than `room` characters.
fn fitted(parts: [(u8, String); 6], room: usize) -> String {
    let joined = |most: u8| {
        parts.iter().filter(|(number, _)| *number <= most).map(|(_, part)| &part[..]).collect::<String>()
    };
    (1..=5).rev().map(joined).find(|line| line.chars().count() <= room).unwrap_or_else(|| joined(1))
}

/// Formats the range of the time left, which is at most the time until a limit. Without a range,
/// formats that time alone.
fn eta(range: Option<[f64; 2]>, (limit, option): (f64, &str)) -> String {
    match range {
        Some([least, most]) if most <= limit => format!("ETA {}", between(least, most)),
        Some([least, _]) if least < limit => format!("ETA {}, limited by {option}", between(least, limit)),
        Some(_) => format!("ETA {}, limited by {option}", rough(limit)),
        None => format!("at most {} ({option})", rough(limit)),
    }
}

/// Formats a range of times.
fn between(least: f64, most: f64) -> String {
    match (rough(least), rough(most)) {
        (least, most) if least == most => most,
        (least, most) => match (least.split_once(' '), most.split_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} to {most}"),
            _ => format!("{least} to {most}"),
        },
    }
}

/// Formats a time in seconds, minutes or hours; below ten with one decimal.
fn rough(seconds: f64) -> String {
    let (number, unit) = match seconds {
        s if s >= 2.0 * 3600.0 => (s / 3600.0, "h"),
        s if s >= 120.0 => (s / 60.0, "min"),
        s => (s, "s"),
    };
    let digits = usize::from(number < 9.95);
    format!("{number:.digits$} {unit}")
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

/// Prints the last residual for `--monitor`. The line is removed with its task.
impl Drop for Live {
    fn drop(&mut self) {
        let last = self.monitor.as_mut().map_or(String::new(), Monitor::last);
        self.print(&last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_limited_by_the_first_limit() {
        let limits = Limits::new(1000, Some(Duration::from_secs(3000)), Instant::now());
        assert_eq!(limits.left(900, 0.01), (1.0, "--max-iters"));
        assert_eq!(limits.left(1200, 0.01), (0.0, "--max-iters"));
        let (left, by) = limits.left(100, 10.0);
        assert!(by == "--time-limit" && (2900.0..=3000.0).contains(&left), "{left}");
        let past = Limits::new(1000, Some(Duration::ZERO), Instant::now());
        assert_eq!(past.left(100, 10.0), (0.0, "--time-limit"));
        let limit = (1.0, "--max-iters");
        assert_eq!(eta(Some([0.2, 0.5]), limit), "ETA 0.2 to 0.5 s");
        assert_eq!(eta(Some([0.2, 50.0]), limit), "ETA 0.2 to 1.0 s, limited by --max-iters");
        assert_eq!(eta(Some([20.0, 50.0]), limit), "ETA 1.0 s, limited by --max-iters");
        assert_eq!(eta(Some([20.0, 200.0]), (900.0, "--max-iters")), "ETA 20 s to 3.3 min");
        assert_eq!(eta(Some([7000.0, 20000.0]), (9e4, "--max-iters")), "ETA 117 min to 5.6 h");
    }

    #[test]
    fn without_a_forecast_only_the_limit_is_shown() {
        assert_eq!(eta(None, (30.0, "--time-limit")), "at most 30 s (--time-limit)");
    }

    #[test]
    fn a_narrow_terminal_shows_whole_parts_the_most_important_first() {
        let parts = || {
            let parts = [
                "cg",
                "  iteration 12",
                "  residual 1e-3",
                " (tolerance 1e-8)",
                "  9 iterations/s",
                "  ETA 2 s",
            ];
            [0, 1, 2, 4, 5, 3]
                .into_iter()
                .zip(parts.map(str::to_owned))
                .collect::<Vec<_>>()
                .try_into()
                .unwrap()
        };
        let whole = fitted(parts(), usize::MAX);
        assert_eq!(whole, "cg  iteration 12  residual 1e-3 (tolerance 1e-8)  9 iterations/s  ETA 2 s");
        assert_eq!(fitted(parts(), whole.len()), whole);
        assert_eq!(
            fitted(parts(), whole.len() - 1),
            "cg  iteration 12  residual 1e-3 (tolerance 1e-8)  ETA 2 s"
        );
        assert_eq!(fitted(parts(), 40), "cg  iteration 12  residual 1e-3  ETA 2 s");
        assert_eq!(fitted(parts(), 39), "cg  iteration 12  residual 1e-3");
        assert_eq!(fitted(parts(), 20), "cg  iteration 12");
    }
}
