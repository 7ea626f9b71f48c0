//! How far a long reading or writing has come: counted by the threads that do it, shown by whoever watches.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is being done, and how many bytes of how many are behind it.
#[derive(Debug, Default)]
pub struct Meter {
    phase: Mutex<&'static str>,
    number: AtomicU64,
    done: AtomicU64,
    total: AtomicU64,
}

/// A look at a [`Meter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What is being done; empty before anything is.
    pub phase: &'static str,
    /// How often something has begun.
    pub number: u64,
    /// Bytes behind it.
    pub done: u64,
    /// Bytes in all, 0 where nobody knows.
    pub total: u64,
}

impl Meter {
    /// Begins something of `total` bytes.
    pub fn begin(&self, phase: &'static str, total: u64) {
        let mut name = self.phase.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *name = phase;
        self.number.fetch_add(1, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    /// So many bytes more are done.
    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What it shows now.
    pub fn read(&self) -> Reading {
        let name = self.phase.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Reading {
            phase: *name,
            number: self.number.load(Ordering::Relaxed),
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
        }
    }
}
