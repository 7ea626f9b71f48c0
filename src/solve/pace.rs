//! How many iterations to ask a device for at once.

use crate::stop::Progress;
use std::time::Duration;

/// No batch should keep the user waiting longer than this.
const LONGEST_BATCH_SECONDS: f64 = 0.1;

/// The first batch, before anything is known of the speed.
const FIRST_BATCH: usize = 8;

/// Below this, waiting for the device costs more than iterations that find themselves done.
const SHORTEST_BATCH: usize = 16;

/// Beyond this, waiting for the device costs next to nothing.
const LONGEST_BATCH: usize = 64;

/// Chooses batches: long enough that the device rarely waits for the host, short enough that few iterations run past
/// the end of the solve, which it foresees from the rate of convergence.
#[derive(Debug, Default)]
pub struct Pace {
    /// Iterations and residual at the end of the batch before.
    before: (usize, f64),
    /// Iterations, and the time that they took, before any that this knows of.
    earlier: (usize, Duration),
}

impl Pace {
    /// For a solve that others have brought so far.
    pub fn since(now: &Progress) -> Pace {
        Pace { earlier: (now.iteration, now.elapsed), ..Pace::default() }
    }

    /// The residual begins anew.
    pub fn restart(&mut self) {
        self.before = (0, 0.0);
    }

    /// The next batch, at most `longest`; as long as may be where what runs past the end of the solve costs nothing.
    pub fn next(
        &mut self,
        now: &Progress,
        tolerance: Option<f64>,
        longest: usize,
        ends_by_itself: bool,
    ) -> usize {
        let (iteration, residual) = std::mem::replace(&mut self.before, (now.iteration, now.residual));
        let done = now.iteration - self.earlier.0;
        if done == 0 {
            return FIRST_BATCH.min(longest).max(1);
        }
        let seconds = now.elapsed.saturating_sub(self.earlier.1).as_secs_f64() / done as f64;
        let in_time = LONGEST_BATCH_SECONDS / seconds;
        if ends_by_itself {
            return (in_time as usize).min(longest).max(1);
        }
        let by_time = in_time.clamp(1.0, LONGEST_BATCH as f64) as usize;
        // The end is as near as the rate of the whole solve or that of the last batch says, whichever is nearer.
        let by_rate = tolerance.map_or(f64::MAX, |t| {
            let overall = remaining(now.residual, t, 1.0, now.iteration);
            let recent = remaining(now.residual, t, residual, now.iteration - iteration);
            overall.unwrap_or(f64::MAX).min(recent.unwrap_or(f64::MAX))
        });
        let by_rate = by_rate.clamp(SHORTEST_BATCH as f64, LONGEST_BATCH as f64) as usize;
        by_time.min(by_rate).min(longest).max(1)
    }
}

/// Iterations until `tolerance` at the rate that took `iterations` from residual `from` to `now`; none where the
/// residual does not fall.
fn remaining(now: f64, tolerance: f64, from: f64, iterations: usize) -> Option<f64> {
    let rate = (from.ln() - now.ln()) / iterations as f64;
    let remaining = (now.ln() - tolerance.ln()) / rate;
    (rate > 0.0 && remaining.is_finite() && remaining > 0.0).then_some(remaining)
}
