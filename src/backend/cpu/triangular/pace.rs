//! Whether one thread or several take less time for the strands, by measurement.
//!
//! Threads that wait for each other take longer than one thread alone if tasks are short, if cores are far
//! apart, or if other programs use the cores. So after some applications on several threads, a few on one
//! thread are a trial, and the faster way continues. Trials of the other way follow after more and more
//! applications. The results have the same bits.

use std::time::{Duration, Instant};

/// Applications before the first trial, and before the next one after a change.
const FIRST: u32 = 4;
/// The interval grows by this factor after a trial that changes nothing, by [`SLOWLY`] if the
/// times are uneven...
const GROWTH: u32 = 8;
const SLOWLY: u32 = 2;
/// ...up to this many applications.
const MOST: u32 = 4096;
/// Applications of a trial: the first one loads the caches.
const TRIAL: u32 = 4;
/// The other way is used if its time is below this share. One thread replaces several if its least time is
/// below that share of their mean. Several replace one if their mean is below that share of its least time: a
/// program that takes a core delays them often, and may spare a short trial.
const WORTH: f64 = 0.9;
/// An application of a trial on one thread continues on several after this multiple of their mean time, and a
/// trial on several threads ends after an application that takes this multiple of the least time on one.
const SLOW: f64 = 1.5;
/// Times are uneven if the mean is above this multiple of the least: other programs use the cores.
const UNEVEN: f64 = 1.5;
/// The time on one thread after which a warning says so.
const WORTH_SAYING: Duration = Duration::from_millis(500);

/// The measured times of one operator.
#[derive(Default)]
pub(super) struct Pace {
    /// Whether one thread runs all strands, apart from trials.
    alone: bool,
    /// Whether an application has run since the last trial; the later ones, and their times.
    warm: bool,
    count: u32,
    total: Duration,
    least: Duration,
    /// Applications on several threads before a trial of one, and on one thread before a trial of several.
    /// The latter grows in the whole solve, so that the ways do not alternate.
    interval: u32,
    patience: u32,
    /// The applications that are left of a trial, the least time of those that have ended, and the sum of all
    /// but the first.
    trial: u32,
    best: Option<Duration>,
    sum: Duration,
    /// The times of all applications on one thread and on several.
    times: [Duration; 2],
    busy: bool,
    said: bool,
}

/// How the next application runs.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// On all threads that have a core.
    Together,
    /// On the calling thread; from this time on, if there is one, on all threads.
    Alone(Option<Instant>),
}

impl Pace {
    pub(crate) fn way(&self) -> Way {
        match (self.alone, self.trial > 0) {
            (true, false) => Way::Alone(None),
            (false, true) => Way::Alone(Some(Instant::now() + self.mean().mul_f64(SLOW))),
            _ => Way::Together,
        }
    }

    fn mean(&self) -> Duration {
        self.total / self.count.max(1)
    }

    fn uneven(&self) -> bool {
        self.mean() > self.least.mul_f64(UNEVEN)
    }

    /// Records the time of an application. `alone`: one thread has run all strands; `cut`: it
    /// did not in time.
    pub(crate) fn record(&mut self, time: Duration, alone: bool, cut: bool) {
        self.times[usize::from(!alone)] += time;
        if self.trial > 0 {
            self.sum += if self.best.is_some() { time } else { Duration::ZERO };
            self.best = Some(self.best.map_or(time, |best| best.min(time)));
            let first = self.trial == TRIAL;
            let delayed = self.alone && !first && time > self.least.mul_f64(SLOW);
            // If one thread is too slow, another attempt shows nothing new.
            let over = delayed || (cut && !self.uneven());
            self.trial = if over { 0 } else { self.trial - 1 };
            if self.trial == 0 {
                self.judge(delayed);
            }
        } else {
            // Workers without a core rest.
            self.busy |= alone && !self.alone;
            // The first one loads the caches.
            if !self.warm {
                self.warm = true;
                return;
            }
            self.least = if self.count == 0 { time } else { self.least.min(time) };
            self.count += 1;
            self.total += time;
            if self.count >= if self.alone { self.patience } else { self.interval.max(FIRST) } {
                (self.trial, self.best, self.sum) = (TRIAL, None, Duration::ZERO);
            }
        }
        let [alone, together] = self.times;
        if self.busy && !self.said && alone >= WORTH_SAYING && alone > together {
            self.said = true;
            log::warn!(
                "other programs use the cores: triangular solves continue on one thread while that takes less time"
            );
        }
    }

    /// Ends a trial: continues with the faster way. `delayed`: an application on several
    /// threads took too long.
    fn judge(&mut self, delayed: bool) {
        let there = if self.alone { self.sum / (TRIAL - 1) } else { self.best.unwrap_or(Duration::MAX) };
        let here = if self.alone { self.least } else { self.mean() };
        let better = !delayed && there < here.mul_f64(WORTH);
        if better {
            self.busy |= !self.alone && self.uneven();
            self.alone = !self.alone;
            let threads = if self.alone { "one thread" } else { "all threads" };
            log::info!(
                "triangular solves continue on {threads}: they take {there:.1?} there, and took {here:.1?}"
            );
        }
        let grown = |interval: u32, growth: u32| (interval.max(FIRST) * growth).min(MOST);
        let growth = if self.uneven() { SLOWLY } else { GROWTH };
        if self.alone {
            // A trial of several threads has failed, or one of one thread has won.
            self.patience = grown(self.patience, GROWTH);
        } else if better {
            self.interval = FIRST;
        } else {
            self.interval = grown(self.interval, growth);
        }
        (self.warm, self.count, self.total, self.best) = (false, 0, Duration::ZERO, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs applications that take these microseconds on one thread and on several; returns
    /// how many ran on one thread.
    fn alone_of(pace: &mut Pace, applications: u32, [one, several]: [u64; 2]) -> u32 {
        let mut count = 0;
        for _ in 0..applications {
            let alone = matches!(pace.way(), Way::Alone(_));
            count += u32::from(alone);
            pace.record(Duration::from_micros(if alone { one } else { several }), alone, false);
        }
        count
    }

    #[test]
    fn the_faster_way_continues_and_trials_of_the_other_are_rare() {
        let mut pace = Pace::default();
        assert!(alone_of(&mut pace, 10_000, [20, 10]) < 40);
        let mut pace = Pace::default();
        assert!(alone_of(&mut pace, 10_000, [10, 20]) > 9_900);
        // A difference within the noise changes nothing.
        let mut pace = Pace::default();
        assert!(alone_of(&mut pace, 1_000, [10, 11]) < 20);
    }

    #[test]
    fn the_solve_returns_to_several_threads_when_that_pays_again() {
        let mut pace = Pace::default();
        assert!(alone_of(&mut pace, 1_000, [10, 50]) > 900);
        assert!(alone_of(&mut pace, 10_000, [10, 6]) < 5_000);
        assert!(alone_of(&mut pace, 1_000, [10, 6]) < 20);
    }

    #[test]
    fn several_threads_that_are_delayed_often_do_not_replace_one() {
        let mut pace = Pace::default();
        let mut count = 0;
        for application in 0..10_000_u64 {
            let alone = matches!(pace.way(), Way::Alone(_));
            count += u64::from(alone);
            // A program takes a core for three of ten applications on several threads, and for one of ten on
            // one thread.
            let [one, several] =
                [if application % 10 == 0 { 60 } else { 20 }, if application % 10 < 3 { 90 } else { 12 }];
            pace.record(Duration::from_micros(if alone { one } else { several }), alone, false);
        }
        assert!(count > 8_500, "{count} of 10,000 applications on one thread");
    }

    #[test]
    fn a_slow_first_application_does_not_count() {
        let mut pace = Pace::default();
        alone_of(&mut pace, 1, [20, 60]);
        assert!(alone_of(&mut pace, 200, [20, 10]) < 20);
    }

    #[test]
    fn a_trial_ends_at_once_if_one_thread_is_too_slow() {
        let mut pace = Pace::default();
        alone_of(&mut pace, FIRST + 1, [90, 10]);
        assert!(matches!(pace.way(), Way::Alone(Some(_))));
        pace.record(Duration::from_micros(20), false, true);
        assert_eq!(alone_of(&mut pace, FIRST * GROWTH, [90, 10]), 0);
    }
}
