//! Signs of life: one line on a terminal, a sparse line in a log, nothing for what is over in a moment.

use super::{duration, thousands};
use crate::observe::meter::Reading;
use crate::observe::{Batch, Meter, Observer};
use crate::parallel::start_thread;
use crate::solve::pace::remaining;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two updates of the live line.
const REFRESH: Duration = Duration::from_millis(100);
/// Between two lines where there is no terminal.
pub(super) const LOG_EVERY: Duration = Duration::from_secs(10);
/// Before the first of them: what is over sooner needs none.
const LOG_FIRST: Duration = Duration::from_secs(2);

/// When lines are due where there is no terminal.
pub(super) struct Lines {
    next: Instant,
}

impl Lines {
    pub fn new() -> Lines {
        Lines { next: Instant::now() + LOG_FIRST }
    }

    /// Whether one is due; the next one is then not for a while.
    pub fn due(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.next;
        if due {
            self.next = now + LOG_EVERY;
        }
        due
    }
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

/// A spinner on stderr that appears only on a terminal. It turns as often as it is ticked.
fn spinner(text: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_style(
        ProgressStyle::with_template("{spinner} {msg} {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.set_draw_target(target());
    bar.set_message(text);
    bar
}

/// Runs `work` while a thread shows what the meter says: phase, share, rate and time left. Until the meter says anything, `phase`
/// is shown. Where no thread can be had, nothing is shown.
pub fn metered<R>(phase: &'static str, name: &str, meter: &Arc<Meter>, work: impl FnOnce() -> R) -> R {
    let _watcher = Watcher::start(phase, name, meter);
    work()
}

/// A thread that shows progress, and ends with this value.
struct Watcher {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    fn start(phase: &'static str, name: &str, meter: &Arc<Meter>) -> Watcher {
        let over = Arc::new(AtomicBool::new(false));
        let (ended, name, meter) = (Arc::clone(&over), name.to_owned(), Arc::clone(meter));
        let thread = start_thread("solver-progress".to_owned(), move || watch(phase, &name, &meter, &ended));
        let thread = thread.inspect_err(|e| log::debug!("no progress is shown: {e}")).ok();
        Watcher { over, thread }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has been reported, and changes no result.
            let _ = thread.join();
        }
    }
}

fn watch(first: &'static str, name: &str, meter: &Meter, over: &AtomicBool) {
    let bar = spinner(format!("{first} {name}"));
    let mut lines = Lines::new();
    while !over.load(Ordering::Relaxed) {
        std::thread::park_timeout(REFRESH);
        let mut now = meter.read();
        if now.phase.is_empty() {
            now.phase = first;
        }
        let text = measure(name, &now);
        if !bar.is_hidden() {
            bar.set_message(text);
            bar.tick();
        } else if lines.due() {
            log_line(&text);
        }
    }
    bar.finish_and_clear();
}

/// Bytes in the unit that suits them.
pub(super) use crate::error::in_words as bytes;

fn measure(name: &str, now: &Reading) -> String {
    let (what, seconds) = (format!("{} {name}", now.phase), now.time.as_secs_f64());
    if now.done == 0 || seconds == 0.0 {
        return what;
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

/// The live line of a solve.
pub struct Live {
    name: &'static str,
    bar: ProgressBar,
    shown: Instant,
    /// Iteration, seconds and residual at the beginning.
    began: (usize, f64),
}

impl Live {
    /// Nothing is shown yet.
    pub fn new(name: &'static str) -> Live {
        let bar = ProgressBar::new_spinner().with_style(
            ProgressStyle::with_template("{spinner} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.set_draw_target(target());
        Live { name, bar, shown: Instant::now(), began: (0, 1.0) }
    }

    /// Takes the line away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn text(&self, batch: &Batch<'_>, residual: f64) -> String {
        let iteration = batch.first + batch.residuals.len();
        let per_iteration = batch.seconds.1 / iteration.max(1) as f64;
        let (first, from) = self.began;
        let eta = batch
            .tolerance
            .and_then(|t| remaining(residual, t, from, iteration - first))
            .map_or(String::new(), |left| format!("  ETA {}", duration(left * per_iteration)));
        let target = batch.tolerance.map_or(String::new(), |t| format!(" of {t:.0e}"));
        let rate = if per_iteration > 0.0 { 1.0 / per_iteration } else { 0.0 };
        let digits = usize::from(rate < 10.0);
        format!(
            "{}  iteration {}  residual {residual:.2e}{target}  {rate:.digits$} iterations/s{eta}",
            self.name,
            thousands(iteration as u64)
        )
    }
}

impl Observer for Live {
    fn batch(&mut self, batch: &Batch<'_>) {
        let Some(&residual) = batch.residuals.last() else { return };
        if batch.seconds.1 == 0.0 {
            self.began = (batch.first, residual);
            return;
        }
        let every = if self.bar.is_hidden() { LOG_EVERY } else { REFRESH };
        if self.shown.elapsed() < every {
            return;
        }
        self.shown = Instant::now();
        let text = self.text(batch, residual);
        if self.bar.is_hidden() {
            log_line(&text);
        } else {
            self.bar.set_message(text);
            self.bar.tick();
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
        assert_eq!(text(0, 2000), "reading a.mtx");
    }

    #[test]
    fn a_log_has_no_line_for_what_is_over_in_a_moment_and_one_now_and_then_after_that() {
        let mut lines = Lines::new();
        assert!(!lines.due());
        lines.next = Instant::now();
        assert!(lines.due() && !lines.due());
        assert!(lines.next > Instant::now() + LOG_FIRST);
    }
}
