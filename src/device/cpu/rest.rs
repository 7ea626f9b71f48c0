//! For how long a job is shared out without a worker that the system does not schedule.
//!
//! Where other programs use the cores, a worker may lose its core in the middle of its part, and the caller waits for as
//! long as the system runs the other program: a few milliseconds, in which the caller alone would run a hundred small
//! jobs. So such a worker rests for a multiple of the time that was lost.

use std::time::{Duration, Instant};

/// The least time lost that counts.
const COUNTS: Duration = Duration::from_micros(200);
/// A rest is at least this multiple of the time lost, so that a single loss costs little...
const LEAST: u32 = 4;
/// ...and at most this one: a worker that loses its core each time costs a few per cent.
const MOST: u32 = 64;
/// No rest is longer, so that a machine which becomes free is soon used again.
const LONGEST: Duration = Duration::from_millis(500);

/// The rests of one worker.
#[derive(Clone, Copy, Default)]
pub(super) struct Rest {
    resting: bool,
    /// The end of the last rest.
    end: Option<Instant>,
    length: Duration,
    multiple: u32,
}

impl Rest {
    /// Whether the worker rests during this job.
    pub fn resting(&self) -> bool {
        self.resting
    }

    /// Ends a rest that is over; whether the worker rests. `now` is called where it may.
    pub fn rests(&mut self, now: impl FnOnce() -> Instant) -> bool {
        if self.resting && self.end.is_some_and(|end| now() >= end) {
            self.resting = false;
        }
        self.resting
    }

    /// Begins a rest after the caller has lost time. The multiple doubles if the worker has worked for less time than it had
    /// rested, and is halved otherwise.
    pub fn lost(&mut self, lost: Duration, now: Instant) {
        if lost < COUNTS {
            return;
        }
        let again = self.end.is_some_and(|end| now.saturating_duration_since(end) < self.length);
        self.multiple = if again { self.multiple * 2 } else { self.multiple / 2 }.clamp(LEAST, MOST);
        self.length = (lost * self.multiple).min(LONGEST);
        self.end = Some(now + self.length);
        self.resting = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: Duration = Duration::from_millis(2);

    #[test]
    fn a_worker_rests_for_longer_each_time_it_loses_its_core_soon() {
        let (mut rest, mut now) = (Rest::default(), Instant::now());
        assert!(!rest.rests(|| now));
        for multiple in [4, 8, 16, 32, 64, 64] {
            rest.lost(LOST, now);
            let end = now + multiple * LOST;
            assert!(rest.rests(|| end - Duration::from_nanos(1)), "{multiple}");
            assert!(!rest.rests(|| end), "{multiple}");
            now = end + LOST;
        }
    }

    #[test]
    fn rests_become_short_again_once_the_worker_keeps_its_core() {
        let (mut rest, mut now) = (Rest::default(), Instant::now());
        // The multiple of each rest, and whether the worker then works for longer than that.
        for (multiple, long) in [(4, false), (8, false), (16, true), (8, true), (4, true), (4, false)] {
            rest.lost(LOST, now);
            let end = now + multiple * LOST;
            assert!(rest.rests(|| end - Duration::from_nanos(1)) && !rest.rests(|| end), "{multiple}");
            now = end + if long { multiple * LOST } else { LOST };
        }
    }

    #[test]
    fn short_losses_do_not_count_and_no_rest_is_longer_than_half_a_second() {
        let (mut rest, now) = (Rest::default(), Instant::now());
        rest.lost(COUNTS - Duration::from_nanos(1), now);
        assert!(!rest.rests(|| now));
        rest.lost(Duration::from_secs(60), now);
        assert!(!rest.rests(|| now + LONGEST));
    }
}
