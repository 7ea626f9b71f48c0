//! The synchronization primitives of the thread pool's protocol, from the standard library.
//!
//! `tests/pool_model` compiles `handover.rs` and `shares.rs` with loom's primitives of the
//! same names instead.

pub(super) use crate::parallel::lock;
pub(super) use std::hint::spin_loop;
pub(super) use std::sync::Mutex;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
pub(super) use std::thread::{Thread, current, park};

/// The standard cell with the interface of loom's cell, which checks that no two threads use it at once.
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Calls `read` with a pointer to read from.
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Calls `write` with a pointer to write to.
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
