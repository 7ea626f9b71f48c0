//! Iterating allocates nothing, on any thread: a solve of three times the iterations allocates as often.

#![allow(clippy::unwrap_used)] // The lint's exception for tests does not reach their helpers.

use solver::backend::Choice;
use solver::device::Cpu;
use solver::observe::Recorder;
use solver::precond::{Preconditioner, ROWS};
use solver::solve::{Method, System as Given};
use solver::stop::{StopReason, StoppingRule};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: the system's allocator, counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: promised by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of a whole solve of so many iterations, its verdict included.
fn allocations(
    cpu: &Cpu,
    method: Method,
    backend: &str,
    precond: Preconditioner,
    iterations: usize,
) -> usize {
    let matrix = Arc::new(solver::source::load("poisson2d:100x90").unwrap().matrix);
    let b = matrix.multiply_reference(&vec![1.0; matrix.cols()]);
    let choice = Choice::resolve("cpu", "rows", backend).unwrap();
    let rules = [StoppingRule::RelativeResidual(1e-300), StoppingRule::MaxIterations(iterations)];
    let rule = StoppingRule::any(rules);
    let mut recorder = Recorder::with_capacity(iterations);
    // Not counted: threads that share the work of building allocate as they come.
    let a = choice.build::<Cpu, f64>(cpu, &matrix).unwrap();
    let m = precond.build(cpu, &matrix, &a).unwrap();
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    let system = Given { matrix: &matrix, b: &b, x0: None };
    let outcome = method.solve(cpu, a, m, &system, &rule, &mut [&mut recorder]).unwrap();
    let count = ALLOCATIONS.load(Ordering::SeqCst) - before;
    assert_eq!(outcome.reason, StopReason::IterationLimit { limit: iterations });
    count
}

// The only test of its binary: another one would allocate meanwhile. In a pool of one thread, where the verdict's
// parallel loops always allocate the same.
#[test]
fn iterating_allocates_nothing() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        for threads in [1, 2, 3] {
            let cpu = Cpu::new(Some(threads)).unwrap();
            // Threads allocate when they begin, which may be late.
            allocations(&cpu, Method::Cg, "rows", Preconditioner::None, 3);
            for (method, backend) in [
                (Method::Cg, "serial"),
                (Method::Cg, "rows"),
                (Method::Cg, "bsr"),
                (Method::Cg, "sell"),
                (Method::Cg, "merge"),
                (Method::Cg, "auto"),
                (Method::PipelinedCg, "rows"),
                (Method::Minres, "rows"),
            ] {
                for precond in ROWS.iter().map(|row| row.default) {
                    let what = format!("{}, {backend}, {}, {threads} threads", method.name(), precond.name());
                    let count = |iterations| allocations(&cpu, method, backend, precond, iterations);
                    // So few that none is started again, however good its preconditioner.
                    let (few, many) = (count(8), count(24));
                    assert!(few > 5, "{what}: the vectors of a solve are allocated: {few}");
                    assert_eq!(few, many, "{what}: 8 iterations and 24");
                }
            }
        }
    });
}
