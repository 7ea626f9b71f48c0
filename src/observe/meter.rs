//! How far a long reading or writing has come: counted by the threads that do it, shown by whoever watches.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is being done, and how many bytes of how many are behind it.
#[derive(Debug, Default)]
pub struct Meter {
    phase: Mutex<Phase>,
    done: AtomicU64,
    total: AtomicU64,
}

/// What is being done, and since when.
type Phase = (&'static str, Option<Instant>);

/// A look at a [`Meter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What is being done; empty before anything is.
    pub phase: &'static str,
    /// For how long.
    pub time: Duration,
    /// Bytes behind it.
    pub done: u64,
    /// Bytes in all, 0 where nobody knows.
    pub total: u64,
}

impl Meter {
    /// Begins something of `total` bytes.
    pub fn begin(&self, phase: &'static str, total: u64) {
        let mut now = self.phase.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *now = (phase, Some(Instant::now()));
        self.total.store(total, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    /// So many bytes more are done.
    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What it shows now.
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
