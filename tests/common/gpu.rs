//! The GPUs of the machine.

use super::harness::{present, skip};
use solver::Error;
use solver::device::{Cuda, cuda};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Returns the first GPU. Without one the test is skipped, unless `SOLVER_REQUIRE_GPU` is 1.
pub fn gpu() -> Cuda {
    // One context stays open: dropping the last handle would close it, and each test would
    // then wait for a new one.
    static OPEN: Once = Once::new();
    let first_words = |e: Error| e.to_string().split(" (").next().map(str::to_owned).unwrap_or_default();
    let gpu = present("SOLVER_REQUIRE_GPU", Cuda::new(0).map_err(first_words));
    OPEN.call_once(|| std::mem::forget(Cuda::new(0)));
    gpu
}

/// The GPUs that must be there, for machines that have them.
const REQUIRED: &str = "SOLVER_REQUIRE_GPUS";

/// Two solves over the same GPUs would wait for each other.
static ALONE: Mutex<()> = Mutex::new(());

/// Returns the numbers of ranks to test: one, and as many as there are GPUs, up to four. The
/// lock is for the whole test.
pub fn sizes() -> (MutexGuard<'static, ()>, Vec<usize>) {
    gpu();
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let required: usize = std::env::var(REQUIRED).map_or(0, |count| count.parse().unwrap());
    let count = cuda::count().unwrap();
    assert!(count >= required, "{count} GPUs of {required}");
    let mut sizes = vec![1, count.min(4)];
    sizes.dedup();
    (alone, sizes)
}

/// Returns a list of all GPUs, up to four; skips the test if there are fewer than two.
pub fn list() -> (MutexGuard<'static, ()>, String, usize) {
    let (alone, sizes) = sizes();
    let count = sizes[sizes.len() - 1];
    if count < 2 {
        skip("one GPU");
    }
    let indices: Vec<String> = (0..count).map(|index| index.to_string()).collect();
    (alone, format!("cuda:{}", indices.join(",")), count)
}
