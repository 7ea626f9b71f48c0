//! The program's global allocator: the system allocator with a check. If an allocation fails and its caller
//! does not handle the failure, the program ends with an error message and exit code 2.
//!
//! By default Rust calls `abort` after printing a backtrace, for which there may be no memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// Exit code of a program that could not run.
const COULD_NOT_RUN: i32 = 2;

/// The system allocator with a check for failed allocations.
pub(crate) struct Checked;

// SAFETY: each method passes its arguments unchanged to the system allocator; if that returns null, the
// method returns null or the process ends.
unsafe impl GlobalAlloc for Checked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: promised by the caller.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: promised by the caller.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: promised by the caller.
        checked(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: promised by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline(always)]
fn checked(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() && !solver::allocation_may_fail() {
        out_of_memory(bytes);
    }
    memory
}

/// Ends the program without allocating, taking a lock or running a destructor: any thread may
/// hold any lock here.
#[cold]
fn out_of_memory(bytes: usize) -> ! {
    let mut line = [0; 160];
    let mut rest = &mut line[..];
    let _ = writeln!(
        rest,
        "error: out of memory: cannot allocate {bytes} more bytes; use a smaller matrix, fewer threads or a higher memory limit"
    );
    let length = 160 - rest.len();
    // SAFETY: `line` is an initialised local array of at least `length` bytes, and `_exit` takes any code.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length);
        libc::_exit(COULD_NOT_RUN)
    }
}

/// Sets how the allocator of glibc takes memory from the system and gives it back.
pub(crate) fn prepare() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// Arrays of at least this size are mapped one by one, and return to the system as soon as they are
        /// freed. By default the threshold grows to 32 MB, and the program keeps smaller arrays.
        const OWN_PAGES: libc::c_int = 1 << 18;
        /// Free bytes at the end of the heap that the program keeps.
        const KEPT: libc::c_int = 4 << 20;
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is valid for the call, and no other thread runs yet.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
            // By default the allocator reserves 64 MB of address space for each thread that allocates.
            if libc::getrlimit(libc::RLIMIT_AS, &mut limit) == 0 && limit.rlim_cur != libc::RLIM_INFINITY {
                libc::mallopt(libc::M_ARENA_MAX, 1);
            }
        }
    }
}
