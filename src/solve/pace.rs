//! Chooses how many iterations a device runs per batch.

use crate::stop::Progress;
use std::time::Duration;

/// The longest time that a user should wait for a batch.
const LONGEST_BATCH_SECONDS: f64 = 0.1;

/// The first batch, before the speed has been measured.
const FIRST_BATCH: usize = 8;

/// The time of the shortest batch, in which waiting for the device, about 30 us, is a small part.
const SHORTEST_BATCH_SECONDS: f64 = 1e-3;
/// The iterations that the shortest batch has at most.
const SHORTEST_BATCH: usize = 16;

/// Beyond this, waiting for the device costs almost no time.
const LONGEST_BATCH: usize = 64;

/// Chooses the sizes of batches: long enough that the device rarely waits for the host, short enough that few
/// iterations run past the end of the solve, which it predicts from the rate of convergence.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Iterations and residual at the end of the previous batch.
    before: (usize, f64),
    /// Iterations, and their time, before this object was created.
    earlier: (usize, Duration),
}

impl Pace {
    /// Creates a pace for a solve with earlier progress.
    pub(crate) fn since(now: &Progress) -> Pace {
        Pace { earlier: (now.iteration, now.elapsed), ..Pace::default() }
    }

    /// Forgets the last residual, because a new run begins.
    pub(crate) fn restart(&mut self) {
        self.before = (0, 0.0);
    }

    /// Returns the size of the next batch, at most `longest`. A batch longer than the shortest one
    /// has at most as many iterations as were done before, because a prediction from few iterations
    /// may be far off. If iterations past the end of the solve take no time, only the time limit of a
    /// batch and `longest` bound it.
    pub(crate) fn next(
        &mut self,
        now: &Progress,
        tolerance: Option<f64>,
        longest: usize,
        stops_early: bool,
    ) -> usize {
        let (iteration, residual) = std::mem::replace(&mut self.before, (now.iteration, now.residual));
        let done = now.iteration - self.earlier.0;
        if done == 0 {
            return FIRST_BATCH.min(longest).max(1);
        }
        let seconds = now.elapsed.saturating_sub(self.earlier.1).as_secs_f64() / done as f64;
        let in_time = LONGEST_BATCH_SECONDS / seconds;
        if stops_early {
            return (in_time as usize).min(longest).max(1);
        }
        let by_time = in_time.clamp(1.0, LONGEST_BATCH as f64) as usize;
        // The end is predicted from the rate of the whole solve and from that of the last batch; the
        // nearer prediction counts.
        let by_rate = tolerance.map_or(f64::MAX, |t| {
            let overall = remaining(now.residual, t, 1.0, now.iteration);
            let recent = remaining(now.residual, t, residual, now.iteration - iteration);
            overall.unwrap_or(f64::MAX).min(recent.unwrap_or(f64::MAX))
        });
        let shortest = (SHORTEST_BATCH_SECONDS / seconds).ceil().clamp(1.0, SHORTEST_BATCH as f64);
        let by_rate = by_rate.ceil().clamp(shortest, LONGEST_BATCH as f64) as usize;
        by_time.min(by_rate).min(done.max(SHORTEST_BATCH)).min(longest).max(1)
    }
}

/// Returns the iterations until `tolerance` at the rate that took `iterations` from residual `from` to `now`;
/// `None` if the residual does not fall.
fn remaining(now: f64, tolerance: f64, from: f64, iterations: usize) -> Option<f64> {
    let rate = (from.ln() - now.ln()) / iterations as f64;
    let remaining = (now.ln() - tolerance.ln()) / rate;
    (rate > 0.0 && remaining.is_finite() && remaining > 0.0).then_some(remaining)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Norms;

    #[test]
    fn a_batch_of_slow_iterations_ends_where_the_solve_is_expected_to_end() {
        let batch = |microseconds: u64| {
            let mut pace = Pace::default();
            let mut now = Progress {
                iteration: 0,
                residual: 1.0,
                norms: Norms { b: 1.0, initial: 1.0 },
                run_began: 0,
                improved_at: 0,
                elapsed: Duration::ZERO,
            };
            assert_eq!(pace.next(&now, Some(2e-5), 1000, false), 8);
            // Half a digit in each iteration.
            (now.iteration, now.residual) = (8, 1e-4);
            now.elapsed = Duration::from_micros(8 * microseconds);
            pace.next(&now, Some(2e-5), 1000, false)
        };
        assert_eq!([5000, 1000, 250, 10].map(batch), [2, 2, 4, 16]);
    }

    #[test]
    fn a_solve_that_converges_faster_than_at_first_runs_few_iterations_past_its_end() {
        // PageRank of an R-MAT graph: the residual is large at first, and the tolerance is met after
        // 33 iterations of 1.4 ms.
        let residual = |iteration: usize| 4.0 * f64::exp(-0.74 * iteration as f64);
        let tolerance = 1.01 * residual(33);
        let mut pace = Pace::default();
        let mut ends = Vec::new();
        while ends.last().is_none_or(|end| *end < 33) {
            let iteration = ends.last().copied().unwrap_or(0);
            let now = Progress {
                iteration,
                residual: residual(iteration),
                norms: Norms { b: 1.0, initial: 1.0 },
                run_began: 0,
                improved_at: 0,
                elapsed: Duration::from_micros(1400 * iteration as u64),
            };
            ends.push(iteration + pace.next(&now, Some(tolerance), 1000, false));
        }
        assert_eq!(ends, [8, 24, 33]);
    }
}
