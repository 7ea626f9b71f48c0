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

/// Numbers below `bound` that look random.
pub fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed | 1;
    move |bound| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    }
}
