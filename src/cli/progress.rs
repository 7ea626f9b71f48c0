//! Progress on stderr: one live line on a terminal, or a line every few seconds in a log.
//! Short work shows no progress.

mod largest;
mod live;
mod monitor;

pub(crate) use largest::Largest;
pub(crate) use live::{Limits, Live};

use super::{duration, launch};
use crate::observe::Meter;
use crate::observe::meter::Reading;
use crate::parallel::start_thread;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

/// Time between two updates of the live line.
const REFRESH: Duration = Duration::from_millis(100);
/// Time between two lines if there is no terminal.
const LOG_EVERY: Duration = Duration::from_secs(5);
/// Time before the first line if there is no terminal.
const LOG_FIRST: Duration = Duration::from_secs(2);

/// When the next line is due if there is no terminal; all phases of a run share this schedule.
static NEXT_LINE: Mutex<Option<Instant>> = Mutex::new(None);

/// Returns whether a line is due if there is no terminal, and schedules the next one.
pub(super) fn line_is_due() -> bool {
    is_due(&mut NEXT_LINE.lock().unwrap_or_else(PoisonError::into_inner), Instant::now())
}

fn is_due(next: &mut Option<Instant>, now: Instant) -> bool {
    let due = now >= *next.get_or_insert(now + LOG_FIRST);
    if due {
        *next = Some(now + LOG_EVERY);
    }
    due
}

/// Whether progress is hidden.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Hides progress from now on.
pub(crate) fn silence() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Returns whether progress is hidden, on all threads or on this one, which is a rank that does not print.
fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed) || !super::launch::prints()
}

/// Returns the target for progress bars.
pub(super) fn target() -> ProgressDrawTarget {
    if is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(10) }
}

/// Returns how many characters a live line may have after its spinner, so that the last column of
/// the terminal stays free.
fn room() -> usize {
    /// The width of a terminal that does not tell it.
    const USUAL: u16 = 80;
    /// The columns of the spinner, of the blank after it, and of the end of the line.
    const OTHER: usize = 3;
    let width = terminal_size::terminal_size_of(std::io::stderr()).map_or(USUAL, |(width, _)| width.0);
    usize::from(width).saturating_sub(OTHER)
}

/// Prints one line of a log, unless progress is hidden.
pub(super) fn log_line(text: &str) {
    if !is_quiet() {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Runs `work` while a thread shows the reading of the meter: phase, share, rate and time left. Shows `phase`
/// until the meter has one. Shows no progress if the thread cannot be started.
pub(crate) fn metered<R>(phase: &'static str, name: &str, meter: &Arc<Meter>, work: impl FnOnce() -> R) -> R {
    let (name, meter, began) = (name.to_owned(), Arc::clone(meter), Instant::now());
    let _task = TaskHandle::start(move || {
        let mut now = meter.read();
        if now.phase.is_empty() {
            (now.phase, now.time) = (phase, began.elapsed());
        }
        describe(&name, &now)
    });
    work()
}

/// Runs `work` while a thread shows its name and the elapsed time.
pub(crate) fn during<R>(what: impl Into<String>, work: impl FnOnce() -> R) -> R {
    let (what, began) = (what.into(), Instant::now());
    let _task = TaskHandle::start(move || so_far(&what, began.elapsed()));
    work()
}

/// Returns a closure that shows the phase it is called with, until the next call or until it is dropped.
pub(crate) fn show_phases() -> impl FnMut(&str) + Send + 'static {
    let mut task = None;
    move |what: &str| {
        let (what, began) = (what.to_owned(), Instant::now());
        // The previous phase ends first.
        drop(task.take());
        task = Some(TaskHandle::start(move || so_far(&what, began.elapsed())));
    }
}

fn so_far(what: &str, time: Duration) -> String {
    match time.as_secs() {
        0 => what.to_owned(),
        seconds => format!("{what}: {seconds} s so far"),
    }
}

/// Work in progress, with the text to show for it.
struct Task {
    number: u64,
    bar: ProgressBar,
    text: Box<dyn Fn() -> String + Send>,
}

/// The work in progress; the last task is shown. One thread shows progress for the whole run, because
/// starting a thread takes 0.1 ms.
static TASKS: Mutex<Vec<Task>> = Mutex::new(Vec::new());
static THREAD: Once = Once::new();
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

fn tasks() -> MutexGuard<'static, Vec<Task>> {
    TASKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the progress of a task until it is dropped.
struct TaskHandle {
    bar: ProgressBar,
    number: u64,
}

impl TaskHandle {
    fn start(text: impl Fn() -> String + Send + 'static) -> TaskHandle {
        let style = ProgressStyle::with_template("{spinner} {msg}");
        let bar =
            ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_draw_target(target());
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        if !is_quiet() {
            // The schedule of log lines starts with the first phase.
            line_is_due();
            tasks().push(Task { number, bar: bar.clone(), text: Box::new(text) });
            THREAD.call_once(|| {
                if let Err(e) = start_thread("solver-progress".to_owned(), show_tasks) {
                    log::debug!("progress is not shown: {e}");
                }
            });
        }
        TaskHandle { bar, number }
    }

    /// Returns whether there is no terminal for a live line.
    fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Prints the lines of `--monitor` above the live line, also with -q; over ranks only the first prints.
    fn print(&self, lines: &str) {
        if !launch::prints() {
            return;
        }
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{}", lines.trim_end());
        });
    }
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        tasks().retain(|task| task.number != self.number);
        self.bar.finish_and_clear();
    }
}

/// Shows the last task in a loop. Without a task it prints nothing, so that no output follows
/// the results of the run.
fn show_tasks() {
    loop {
        std::thread::sleep(REFRESH);
        let tasks = tasks();
        let Some(Task { bar, text, .. }) = tasks.last() else { continue };
        if !bar.is_hidden() {
            bar.set_message(text().chars().take(room()).collect::<String>());
            bar.tick();
        } else {
            let text = text();
            if !text.is_empty() && line_is_due() {
                log_line(&text);
            }
        }
    }
}

/// Formats a number of bytes with its unit.
pub(super) use crate::error::in_words as bytes;

fn describe(name: &str, now: &Reading) -> String {
    let (what, seconds) = (format!("{} {name}", now.phase), now.time.as_secs_f64());
    if now.done == 0 || seconds == 0.0 {
        return so_far(&what, now.time);
    }
    let rate = now.done as f64 / seconds;
    let (done, speed) = (bytes(now.done), bytes(rate as u64));
    match now.total {
        0 => format!("{what}: {done} so far, {speed}/s"),
        total if now.done >= total => format!("{what}: {done} done, finishing"),
        total => {
            let left = (total - now.done) as f64 / rate;
            format!("{what}: {done} of {}, {speed}/s, ETA {}", bytes(total), duration(left))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_share_rate_and_time_left() {
        let time = Duration::from_secs(4);
        let text = |done, total| describe("a.mtx", &Reading { phase: "reading", time, done, total });
        assert_eq!(
            text(200_000_000, 600_000_000),
            "reading a.mtx: 200.0 MB of 600.0 MB, 50.0 MB/s, ETA 8.00 s"
        );
        assert_eq!(text(2000, 0), "reading a.mtx: 2.0 kB so far, 500 bytes/s");
        assert_eq!(text(2000, 2000), "reading a.mtx: 2.0 kB done, finishing");
        assert_eq!(text(0, 2000), "reading a.mtx: 4 s so far");
    }

    #[test]
    fn log_lines_start_after_two_seconds_and_repeat_at_intervals() {
        let (mut next, now) = (None, Instant::now());
        assert!(!is_due(&mut next, now));
        assert!(!is_due(&mut next, now + LOG_FIRST / 2));
        assert!(is_due(&mut next, now + LOG_FIRST) && !is_due(&mut next, now + LOG_FIRST));
        assert!(!is_due(&mut next, now + LOG_EVERY) && is_due(&mut next, now + LOG_FIRST + LOG_EVERY));
    }
}
