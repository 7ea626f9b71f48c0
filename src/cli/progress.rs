//! Signs of life: one line on a terminal, a sparse line in a log, nothing for what is over in a moment.

use super::duration;
use crate::observe::{Batch, Observer};
use crate::solve::pace::remaining;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::time::{Duration, Instant};

/// Between two updates of the live line.
const REFRESH: Duration = Duration::from_millis(100);
/// Between two lines where there is no terminal; the first comes as late.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// A spinner on stderr that appears only on a terminal.
pub fn spinner(text: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_style(
        ProgressStyle::with_template("{spinner} {msg} {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
    bar.set_message(text);
    bar.enable_steady_tick(REFRESH);
    bar
}

/// The live line of a solve.
pub struct Live {
    bar: ProgressBar,
    shown: Instant,
    /// Iteration, seconds and residual at the beginning.
    began: (usize, f64),
}

impl Live {
    /// Nothing is shown yet.
    pub fn new() -> Live {
        let bar = ProgressBar::new_spinner().with_style(
            ProgressStyle::with_template("{spinner} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        Live { bar, shown: Instant::now(), began: (0, 1.0) }
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
        let speed = duration(per_iteration);
        format!("cg  iteration {iteration}  residual {residual:.2e}{target}  {speed} an iteration{eta}")
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
            let _ = writeln!(std::io::stderr(), "{text}");
        } else {
            self.bar.set_message(text);
            self.bar.tick();
        }
    }
}
