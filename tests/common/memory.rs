//! An allocator that counts allocations, and refuses some of them on request. It counts for all threads of
//! the process, so a test that uses it runs alone: `tests/memory` runs one test at a time, and a unit test
//! starts a process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Arrays of at least this size are refused beyond the limit; smaller ones do not grow with the matrix.
pub const LARGE: usize = 32 << 10;

pub struct Counted;

// SAFETY: the calls go to the system's allocator, and a null pointer is a valid refusal.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        let now = NOW.fetch_add(layout.size(), Ordering::SeqCst) + layout.size();
        if layout.size() >= LARGE && now > LIMIT.load(Ordering::SeqCst) {
            NOW.fetch_sub(layout.size(), Ordering::SeqCst);
            return std::ptr::null_mut();
        }
        PEAK.fetch_max(now, Ordering::SeqCst);
        // SAFETY: promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: promised by the caller.
        unsafe { System.dealloc(memory, layout) }
    }

    // The system grows large arrays in place, or moves their pages without a copy.
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        let more = size.saturating_sub(layout.size());
        let now = NOW.fetch_add(more, Ordering::SeqCst) + more;
        if size >= LARGE && now > LIMIT.load(Ordering::SeqCst) {
            NOW.fetch_sub(more, Ordering::SeqCst);
            return std::ptr::null_mut();
        }
        PEAK.fetch_max(now, Ordering::SeqCst);
        NOW.fetch_sub(layout.size().saturating_sub(size), Ordering::SeqCst);
        // SAFETY: promised by the caller.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// Returns how often memory has been allocated or grown so far.
pub fn allocations() -> usize {
    ALLOCATIONS.load(Ordering::SeqCst)
}

/// Returns the result of `work`, and the most bytes held during it beyond those held before.
pub fn peak_of<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = NOW.load(Ordering::SeqCst);
    PEAK.store(before, Ordering::SeqCst);
    let made = work();
    (made, PEAK.load(Ordering::SeqCst) - before)
}

/// Runs `work` while large arrays are refused beyond `bytes` bytes more than before.
pub fn within<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    LIMIT.store(NOW.load(Ordering::SeqCst) + bytes, Ordering::SeqCst);
    let made = work();
    LIMIT.store(usize::MAX, Ordering::SeqCst);
    made
}

/// Returns the number of allocations of a call.
pub fn counted(call: &mut dyn FnMut()) -> usize {
    let before = allocations();
    call();
    allocations() - before
}
