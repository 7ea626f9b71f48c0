//! `--monitor N`: every N-th residual as a line on stderr, and the last.

use crate::observe::Batch;
use std::fmt::Write;

/// Chooses the residuals that are printed.
pub struct Monitor {
    every: usize,
    /// What the residuals are.
    what: &'static str,
    /// Residuals seen.
    seen: usize,
    /// The last residual where it is not printed yet, with its iteration.
    left_out: Option<(usize, f64)>,
}

impl Monitor {
    pub fn new(every: usize, what: &'static str) -> Monitor {
        Monitor { every, what, seen: 0, left_out: None }
    }

    /// The lines for the iterations of a batch.
    pub fn lines(&mut self, batch: &Batch<'_>) -> String {
        let mut text = String::new();
        if self.seen == 0 {
            let goal = batch.tolerance.map_or(String::new(), |t| format!("; goal {t:e}"));
            let _ = writeln!(text, "# iteration, {}{goal}", self.what);
        }
        for &residual in batch.residuals {
            let iteration = self.seen;
            self.seen += 1;
            self.left_out = Some((iteration, residual));
            if iteration.is_multiple_of(self.every) {
                text.push_str(&self.last());
            }
        }
        text
    }

    /// The line for the last iteration, where it is not printed yet.
    pub fn last(&mut self) -> String {
        let line = self.left_out.take();
        line.map_or(String::new(), |(iteration, residual)| format!("{iteration:>9}  {residual:.6e}\n"))
    }
}
