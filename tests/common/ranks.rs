//! Ranks that are threads of one process.

use solver::device::Ranks;
use solver::device::distributed::in_threads;

/// Runs `work` on each of several ranks and returns the results in the order of ranks.
pub fn over_ranks<R: Send>(size: usize, work: impl Fn(&Ranks) -> R + Sync) -> Vec<R> {
    in_threads(size, |ranks| Ok(work(ranks))).into_iter().map(Result::unwrap).collect()
}

/// Returns the largest difference of two vectors, relative to the largest entry of the second one.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let largest = |v: &mut dyn Iterator<Item = f64>| v.fold(0.0, |m: f64, v| m.max(v.abs()));
    largest(&mut a.iter().zip(b).map(|(a, b)| a - b)) / largest(&mut b.iter().copied())
}

pub fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}
