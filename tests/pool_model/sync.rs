//! The primitives of the library's `device/cpu/sync.rs`, made of loom's.
//!
//! Parking uses `Notify` here. Loom's own parking forgets that a thread was unparked if the thread next
//! yields or takes a lock, and then reports a deadlock that the standard library does not have.

use loom::sync::{Arc, Notify};
use loom::thread::JoinHandle;
use std::cell::RefCell;

pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
pub(crate) use loom::sync::{Mutex, MutexGuard};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of a lock panics")
}

/// A thread that can be unparked.
#[derive(Clone)]
pub(crate) struct Thread(Arc<Notify>);

loom::thread_local! {
    static THIS: RefCell<Option<Thread>> = RefCell::new(None);
}

impl Thread {
    fn new() -> Thread {
        Thread(Arc::new(Notify::new()))
    }

    pub(crate) fn unpark(&self) {
        self.0.notify();
    }
}

pub(crate) fn current() -> Thread {
    THIS.with(|this| this.borrow_mut().get_or_insert_with(Thread::new).clone())
}

pub(crate) fn park() {
    current().0.wait();
}

/// Starts a thread.
pub(crate) fn spawn(work: impl FnOnce() + 'static) -> (Thread, JoinHandle<()>) {
    let thread = Thread::new();
    let this = thread.clone();
    let work = move || {
        THIS.with(|slot| *slot.borrow_mut() = Some(this));
        work()
    };
    (thread, loom::thread::spawn(work))
}
