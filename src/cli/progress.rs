//! Progress on stderr: one live line on a terminal, a line every few seconds in a log, nothing for work that is over in a moment.

mod live;
mod monitor;

pub use live::{Limits, Live};

use super::duration;
use crate::observe::Meter;
use crate::observe::meter::Reading;
use crate::parallel::start_thread;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

/// Between two updates of the live line.
const REFRESH: Duration = Duration::from_millis(100);
/// Between two lines where there is no terminal.
const LOG_EVERY: Duration = Duration::from_secs(5);
/// Before the first of them: what is over sooner needs none.
const LOG_FIRST: Duration = Duration::from_secs(2);

/// When the next line is due where there is no terminal: one schedule for all phases of a run.
static NEXT_LINE: Mutex<Option<Instant>> = Mutex::new(None);

/// Whether a line is due where there is no terminal; the next one is then not for a while.
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

/// Whether progress is shown at all.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on no progress is shown.
pub fn silence() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Where progress is drawn.
pub(super) fn target() -> ProgressDrawTarget {
    if QUIET.load(Ordering::Relaxed) {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr_with_hz(10)
    }
}

/// One line in a log; nothing when silenced.
pub(super) fn log_line(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Runs `work` while a thread shows what the meter says: phase, share, rate and time left. Until the meter says anything, `phase`
/// is shown. Where no thread can be had, nothing is shown.
pub fn metered<R>(phase: &'static str, name: &str, meter: &Arc<Meter>, work: impl FnOnce() -> R) -> R {
    let (name, meter, began) = (name.to_owned(), Arc::clone(meter), Instant::now());
    let _watcher = Watcher::start(move || {
        let mut now = meter.read();
        if now.phase.is_empty() {
            (now.phase, now.time) = (phase, began.elapsed());
        }
        measure(&name, &now)
    });
    work()
}

/// Runs `work` while a thread shows what is done, and for how long.
pub fn during<R>(what: impl Into<String>, work: impl FnOnce() -> R) -> R {
    let (what, began) = (what.into(), Instant::now());
    let _watcher = Watcher::start(move || so_far(&what, began.elapsed()));
    work()
}

/// Shows each phase that it is called with, until the next one or until it is dropped.
pub fn shown() -> impl FnMut(&str) + Send + 'static {
    let mut watcher = None;
    move |what: &str| {
        let (what, began) = (what.to_owned(), Instant::now());
        // The phase before ends first.
        drop(watcher.take());
        watcher = Some(Watcher::start(move || so_far(&what, began.elapsed())));
    }
}

fn so_far(what: &str, time: Duration) -> String {
    match time.as_secs() {
        0 => what.to_owned(),
        seconds => format!("{what}: {seconds} s so far"),
    }
}

/// Work that is under way, with what to show of it.
struct Task {
    number: u64,
    bar: ProgressBar,
    text: Box<dyn Fn() -> String + Send>,
}

/// The work that is under way; the last one is shown. One thread shows it for the whole run: to start one takes 0.1 ms.
static TASKS: Mutex<Vec<Task>> = Mutex::new(Vec::new());
static THREAD: Once = Once::new();
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

fn tasks() -> MutexGuard<'static, Vec<Task>> {
    TASKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has progress shown as long as it lives.
struct Watcher {
    bar: ProgressBar,
    number: u64,
}

impl Watcher {
    fn start(text: impl Fn() -> String + Send + 'static) -> Watcher {
        let style = ProgressStyle::with_template("{spinner} {wide_msg}");
        let bar =
            ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_draw_target(target());
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        if !QUIET.load(Ordering::Relaxed) {
            // The schedule of the lines of a log begins with the first phase.
            line_is_due();
            tasks().push(Task { number, bar: bar.clone(), text: Box::new(text) });
            THREAD.call_once(|| {
                if let Err(e) = start_thread("solver-progress".to_owned(), watch) {
                    log::debug!("no progress is shown: {e}");
                }
            });
        }
        Watcher { bar, number }
    }

    /// Whether there is no terminal to show a live line on.
    fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Prints whole lines that the user asked for, above the live line where there is one; -q does not silence them.
    fn print(&self, lines: &str) {
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{}", lines.trim_end());
        });
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        tasks().retain(|task| task.number != self.number);
        self.bar.finish_and_clear();
    }
}

/// Shows the last task. Without a task nothing is shown, so that nothing follows the results of the run.
fn watch() {
    loop {
        std::thread::sleep(REFRESH);
        let tasks = tasks();
        let Some(Task { bar, text, .. }) = tasks.last() else { continue };
        if !bar.is_hidden() {
            bar.set_message(text());
            bar.tick();
        } else {
            let text = text();
            if !text.is_empty() && line_is_due() {
                log_line(&text);
            }
        }
    }
}

/// Bytes in the unit that suits them.
pub(super) use crate::error::in_words as bytes;

fn measure(name: &str, now: &Reading) -> String {
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
    fn what_is_done_is_told_with_its_share_its_rate_and_the_time_left() {
        let time = Duration::from_secs(4);
        let text = |done, total| measure("a.mtx", &Reading { phase: "reading", time, done, total });
        assert_eq!(
            text(200_000_000, 600_000_000),
            "reading a.mtx: 200.0 MB of 600.0 MB, 50.0 MB/s, ETA 8.00 s"
        );
        assert_eq!(text(2000, 0), "reading a.mtx: 2.0 kB so far, 500 bytes/s");
        assert_eq!(text(2000, 2000), "reading a.mtx: 2.0 kB done, finishing");
        assert_eq!(text(0, 2000), "reading a.mtx: 4 s so far");
    }

    #[test]
    fn a_log_has_no_line_for_what_is_over_in_a_moment_and_one_now_and_then_after_that() {
        let (mut next, now) = (None, Instant::now());
        assert!(!is_due(&mut next, now));
        assert!(!is_due(&mut next, now + LOG_FIRST / 2));
        assert!(is_due(&mut next, now + LOG_FIRST) && !is_due(&mut next, now + LOG_FIRST));
        assert!(!is_due(&mut next, now + LOG_EVERY) && is_due(&mut next, now + LOG_FIRST + LOG_EVERY));
    }
}
