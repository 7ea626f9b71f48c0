//! Rests of workers: for some time a worker that the system does not schedule gets no part of a job.
//!
//! If other programs use the cores, a worker may lose its core in the middle of its part. The caller then
//! waits for as long as the system runs the other program: a few milliseconds, in which the caller alone
//! would run a hundred small jobs. A worker that waits for a core also takes a share of the program's CPU
//! time from the caller, even if the caller runs the worker's parts. So such a worker rests for a multiple of
//! the time that it had no core.

use std::time::{Duration, Instant};

/// The shortest time without a core that counts.
const COUNTS: Duration = Duration::from_micros(200);
/// A rest is at least this multiple of the time lost, so that a single loss costs little...
const LEAST: u32 = 4;
/// ...and at most this multiple: a worker that loses its core each time costs a few per cent.
const MOST: u32 = 128;
/// The longest rest: a machine that becomes free is soon used again.
const LONGEST: Duration = Duration::from_secs(2);

/// A point in time, with the time that a worker has run on a core until then.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub at: Instant,
    pub on_core: Duration,
}

impl Moment {
    /// Returns the time without a core since `before`.
    fn lost_since(self, before: Moment) -> Duration {
        let on_core = self.on_core.saturating_sub(before.on_core);
        self.at.saturating_duration_since(before.at).saturating_sub(on_core)
    }
}

/// The rests of one worker.
#[derive(Clone, Copy, Default)]
pub(super) struct Rest {
    resting: bool,
    /// The end of the last rest.
    end: Option<Instant>,
    length: Duration,
    multiple: u32,
    /// The first moment at which the worker was absent since it was last present.
    absent: Option<Moment>,
}

impl Rest {
    /// Returns whether the worker rests during this job.
    pub(crate) fn resting(&self) -> bool {
        self.resting
    }

    /// Ends a rest that is over, and returns whether the worker rests. Calls `now` only during a rest.
    pub(crate) fn rests(&mut self, now: impl FnOnce() -> Instant) -> bool {
        if self.resting && self.end.is_some_and(|end| now() >= end) {
            self.resting = false;
        }
        self.resting
    }

    /// Records that the worker had not begun its part when the caller's part was done.
    pub(crate) fn absent(&mut self, now: Option<Moment>) {
        match (self.absent, now) {
            (Some(before), Some(now)) => self.waited(before, now),
            _ => self.absent = now,
        }
    }

    /// Records that the worker had begun its part, or had not yet woken up.
    pub(crate) fn present(&mut self) {
        self.absent = None;
    }

    /// Begins a rest if the worker had no core for long enough between `before` and `now`,
    /// when its part was needed.
    pub(crate) fn waited(&mut self, before: Moment, now: Moment) {
        let lost = now.lost_since(before);
        if lost >= COUNTS {
            self.rest(lost, now.at);
            self.absent = None;
        }
    }

    /// Begins a rest. The multiple grows fourfold if the worker has worked for less time than its last rest
    /// took, and is halved otherwise.
    pub(crate) fn rest(&mut self, lost: Duration, now: Instant) {
        let again = self.end.is_some_and(|end| now.saturating_duration_since(end) < self.length);
        self.multiple = if again { self.multiple * 4 } else { self.multiple / 2 }.clamp(LEAST, MOST);
        self.length = (lost * self.multiple).min(LONGEST);
        self.end = Some(now + self.length);
        self.resting = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: Duration = Duration::from_millis(3);

    #[test]
    fn a_rest_is_longer_each_time_the_worker_soon_loses_its_core_again() {
        let (mut rest, mut now) = (Rest::default(), Instant::now());
        assert!(!rest.rests(|| now));
        for multiple in [4, 16, 64, 128, 128] {
            rest.rest(LOST, now);
            let end = now + multiple * LOST;
            assert!(rest.rests(|| end - Duration::from_nanos(1)), "{multiple}");
            assert!(!rest.rests(|| end), "{multiple}");
            now = end + LOST;
        }
    }

    #[test]
    fn rests_become_short_again_once_the_worker_keeps_its_core() {
        let (mut rest, mut now) = (Rest::default(), Instant::now());
        // The multiple of each rest, and whether the worker then works for longer than the rest.
        for (multiple, long) in [(4, false), (16, true), (8, true), (4, true), (4, false)] {
            rest.rest(LOST, now);
            let end = now + multiple * LOST;
            assert!(rest.rests(|| end - Duration::from_nanos(1)) && !rest.rests(|| end), "{multiple}");
            now = end + if long { multiple * LOST } else { LOST };
        }
    }

    #[test]
    fn only_time_without_a_core_counts_and_no_rest_is_longer_than_two_seconds() {
        let second = Duration::from_secs(1);
        let before = Moment { at: Instant::now(), on_core: second };
        let after = |wall, on_core| Moment { at: before.at + wall, on_core: second + on_core };
        let rests = |after: Moment| {
            let mut rest = Rest::default();
            rest.waited(before, after);
            rest.rests(|| after.at) && !rest.rests(|| after.at + LONGEST)
        };
        assert!(!rests(after(second, second)), "a long part");
        assert!(!rests(after(second, second - COUNTS / 2)), "a short loss");
        assert!(rests(after(COUNTS, Duration::ZERO)) && rests(after(60 * second, second)));
    }

    #[test]
    fn a_worker_that_is_absent_for_long_rests_and_one_that_is_present_now_and_then_does_not() {
        let mut rest = Rest::default();
        let mut now = Moment { at: Instant::now(), on_core: Duration::ZERO };
        for part in 0..100 {
            rest.absent(Some(now));
            assert!(!rest.resting(), "{part}");
            if part % 5 == 4 {
                rest.present();
            }
            now.at += COUNTS / 5;
        }
        for _ in 0..6 {
            rest.absent(Some(now));
            now.at += COUNTS / 5;
        }
        assert!(rest.resting());
    }
}
