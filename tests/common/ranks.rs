//! Ranks that are threads of one process.

use solver::device::Ranks;
use solver::device::distributed::in_threads;

/// Runs `work` on each of several ranks and returns the results in the order of ranks.
pub fn over_ranks<R: Send>(size: usize, work: impl Fn(&Ranks) -> R + Sync) -> Vec<R> {
    in_threads(size, |ranks| Ok(work(ranks))).into_iter().map(Result::unwrap).collect()
}
