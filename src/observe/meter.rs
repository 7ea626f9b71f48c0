//! Progress of long reads and writes: the threads that do the work count bytes, and an
//! observer reads the counts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The current phase, and the bytes done of the total.
#[derive(Debug, Default)]
pub struct Meter {
    phase: Mutex<Phase>,
    done: AtomicU64,
    total: AtomicU64,
}

/// The current phase, and when it began.
type Phase = (&'static str, Option<Instant>);

/// The state of a [`Meter`] at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The current phase; empty before the first one.
    pub phase: &'static str,
    /// Time since the phase began.
    pub time: Duration,
    /// Bytes done.
    pub done: u64,
    /// Total bytes, or 0 if unknown.
    pub total: u64,
}

impl Meter {
    /// Begins a phase of `total` bytes.
    pub(crate) fn begin(&self, phase: &'static str, total: u64) {
        let mut now = self.phase.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *now = (phase, Some(Instant::now()));
        self.total.store(total, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    /// Adds to the bytes done.
    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the current state.
    pub fn read(&self) -> Reading {
        let (phase, began) = *self.phase.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Reading {
            phase,
            time: began.map_or(Duration::ZERO, |began| began.elapsed()),
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
        }
    }
}
