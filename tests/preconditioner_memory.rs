//! A preconditioner made of triangles that there is no memory for is an error, wherever memory ends while it is made.

#![allow(clippy::unwrap_used)]

mod common;

use common::solves::operator;
use common::zoo;
use solver::Error;
use solver::device::Cpu;
use solver::precond::Preconditioner;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Arrays from this size on are refused beyond the limit; what is smaller does not grow with the matrix.
const LARGE: usize = 32 << 10;

struct Limited;

// SAFETY: the system's allocator, counted, which may refuse.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
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
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

#[test]
fn wherever_memory_ends_the_triangles_are_refused_in_words() {
    const STEPS: usize = 150;
    let device = Cpu::new(Some(2)).unwrap();
    for what in ["poisson2d:200x150", "elasticity3d:16x15x14"] {
        let matrix = zoo::generated(what);
        let a = operator::<Cpu, f64>(&device, &matrix);
        for precond in ["ic0", "ssor"] {
            let precond: Preconditioner = precond.parse().unwrap();
            let build = || precond.build(&device, &matrix, &a);
            let before = NOW.load(Ordering::SeqCst);
            PEAK.store(before, Ordering::SeqCst);
            assert!(build().is_ok());
            let peak = PEAK.load(Ordering::SeqCst);
            assert!(peak > before + 20 * LARGE, "{what} is large enough");
            let mut refused = 0;
            for step in 0..STEPS {
                LIMIT.store(before + (peak - before) * step / STEPS, Ordering::SeqCst);
                let built = build().map(|_| ());
                LIMIT.store(usize::MAX, Ordering::SeqCst);
                match built {
                    Ok(()) => {}
                    Err(Error::OutOfMemory { .. }) => refused += 1,
                    Err(other) => panic!("{precond} of {what}: {other}"),
                }
            }
            assert!(refused > STEPS / 2, "{precond} of {what}: {refused} of {STEPS}");
        }
    }
}
