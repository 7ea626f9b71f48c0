//! Node numbering as in models that grew over time: runs of neighbours keep their order, and the runs are displaced.

use crate::error::Result;
use crate::parallel::room;
use crate::source::generate::random::Random;
use rayon::prelude::*;

/// Returns the nodes 0..n in the order of their numbers. Runs are `stretch` long on average, and move by up to half of `stray *
/// n` in either direction.
pub(super) fn displaced_order(n: usize, stretch: usize, stray: f64, seed: u64) -> Result<Vec<u32>> {
    let mut stretches = room(n / stretch + 1)?;
    let mut start = 0;
    while start < n {
        let mut random = Random::at(seed, start as u64);
        let length = 1 + random.below(2 * stretch as u64 - 1) as usize;
        let key = start as f64 + (random.unit() - 0.5) * stray * n as f64;
        stretches.push((key, start as u32, length.min(n - start) as u32));
        start += length;
    }
    stretches.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut order = room(n)?;
    order.extend(stretches.iter().flat_map(|&(_, start, length)| start..start + length));
    Ok(order)
}
