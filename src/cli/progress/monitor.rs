//! `--monitor N`: prints every N-th residual and the last one on stderr.

use crate::observe::Batch;
use std::fmt::Write;

/// Selects the residuals to print.
pub(crate) struct Monitor {
    every: usize,
    /// Description of the residuals.
    what: &'static str,
    /// Number of residuals so far.
    count: usize,
    /// The last residual with its iteration, if it is not printed yet.
    pending: Option<(usize, f64)>,
}

impl Monitor {
    pub(crate) fn new(every: usize, what: &'static str) -> Monitor {
        Monitor { every, what, count: 0, pending: None }
    }

    /// Returns the lines for the iterations of a batch.
    pub(crate) fn lines(&mut self, batch: &Batch<'_>) -> String {
        let mut text = String::new();
        if self.count == 0 {
            let tolerance = batch.tolerance.map_or(String::new(), |t| format!("; tolerance {t:e}"));
            let _ = writeln!(text, "# iteration, {}{tolerance}", self.what);
        }
        for &residual in batch.residuals {
            let iteration = self.count;
            self.count += 1;
            self.pending = Some((iteration, residual));
            if iteration.is_multiple_of(self.every) {
                text.push_str(&self.last());
            }
        }
        text
    }

    /// Returns the line for the last iteration, or an empty text if it is already printed.
    pub(crate) fn last(&mut self) -> String {
        let line = self.pending.take();
        line.map_or(String::new(), |(iteration, residual)| format!("{iteration:>9}  {residual:.6e}\n"))
    }
}
