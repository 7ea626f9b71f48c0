//! Page faults in mapped files.
//!
//! If another process shortens a mapped file, an access to the lost pages raises SIGBUS, which ends a
//! process by default. While a file is mapped here, a handler replaces the lost pages with zeros and records
//! that; the reader then fails with an error. Compositors of Wayland treat memory that they share with
//! clients in the same way.

use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The addresses of a mapped file. The handler reads entries at any time, so they are never
/// freed; they are reused.
struct Entry {
    /// The first address; 0 if the entry is free.
    start: AtomicUsize,
    end: AtomicUsize,
    faulted: AtomicBool,
    next: Option<&'static Entry>,
}

/// The head of the list of entries.
static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(null_mut());

/// The number of entries in use, and the action for SIGBUS from before the first one.
static INSTALLED: Mutex<(usize, Option<libc::sigaction>)> = Mutex::new((0, None));

/// Watches a mapped file until dropped; it must be dropped before the mapping ends.
pub(super) struct Watch(&'static Entry);

impl Watch {
    pub(crate) fn new(mapped: &[u8]) -> Watch {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries().find(|entry| entry.start.load(Ordering::Relaxed) == 0).unwrap_or_else(|| {
            let entry = Box::leak(Box::new(Entry {
                start: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                faulted: AtomicBool::new(false),
                next: entries().next(),
            }));
            ENTRIES.store(entry, Ordering::Release);
            entry
        });
        entry.faulted.store(false, Ordering::Relaxed);
        entry.end.store(mapped.as_ptr().addr() + mapped.len(), Ordering::Relaxed);
        entry.start.store(mapped.as_ptr().addr(), Ordering::Release);
        if installed.0 == 0 {
            installed.1 = install();
        }
        installed.0 += 1;
        Watch(entry)
    }

    /// Checks whether pages were lost.
    pub(crate) fn has_faulted(&self) -> bool {
        self.0.faulted.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.start.store(0, Ordering::Release);
        installed.0 -= 1;
        if installed.0 == 0
            && let Some(before) = installed.1.take()
        {
            // SAFETY: restores an action that the system has reported.
            unsafe { libc::sigaction(libc::SIGBUS, &before, null_mut()) };
        }
    }
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    // SAFETY: the pointer is null or comes from `Box::leak`, and the entry was complete when it was stored.
    let first: Option<&'static Entry> = unsafe { ENTRIES.load(Ordering::Acquire).as_ref() };
    std::iter::successors(first, |entry| entry.next)
}

/// Installs the handler; returns the action from before.
fn install() -> Option<libc::sigaction> {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    // SAFETY: any bytes are a valid `sigaction` to be filled in. The handler has the type that SA_SIGINFO
    // requires, and calls only functions that may be called from handlers.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        (libc::sigaction(libc::SIGBUS, &action, &mut before) == 0).then_some(before)
    }
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system passes a valid pointer. A positive code means that the signal comes from
    // an access to an address.
    let (code, at) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    let contains = |entry: &&Entry| {
        let start = entry.start.load(Ordering::Acquire);
        start != 0 && (start..entry.end.load(Ordering::Relaxed)).contains(&at)
    };
    if code > 0
        && let Some(entry) = entries().find(contains)
    {
        entry.faulted.store(true, Ordering::Relaxed);
        if replace_by_zeros(at, entry.end.load(Ordering::Relaxed)) {
            return;
        }
    }
    // Not a mapped file: the process ends as it does without this handler.
    // SAFETY: both functions may be called from handlers. The signal is delivered when the handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Maps zeros over the pages of a mapped file, starting at the page of an address.
fn replace_by_zeros(at: usize, end: usize) -> bool {
    const PROTECTION: libc::c_int = libc::PROT_READ;
    const FLAGS: libc::c_int =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the pages lie in a read-only mapping that lives until its entry is free, which happens after
    // all accesses. Both functions are plain system calls.
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let start = at / page * page;
        let address = null::<libc::c_void>().with_addr(start).cast_mut();
        libc::mmap(address, end - start, PROTECTION, FLAGS, -1, 0) != libc::MAP_FAILED
    }
}
