//! How near a solve came to what the machine allows.

use crate::bench::stream::{self, Limit};
use crate::device::Device;

/// What iterations moved: over operators and vectors of so many bytes, so many bytes each.
pub(super) struct Moved {
    pub operators: u64,
    pub vectors: u64,
    pub each: u64,
    pub iterations: usize,
}

/// The machine's limit for an iteration that took so many seconds, where it means something: an iteration that moves
/// little is bound by latency, and a stream slower than the solve itself was measured on a machine that had other things
/// to do.
pub(super) fn measure<D: Device>(device: &D, moved: &Moved, seconds: f64) -> Option<Limit> {
    const LITTLE: u64 = 1 << 20;
    if moved.iterations == 0 || moved.each < LITTLE {
        return None;
    }
    match stream::limit(device, moved.operators, moved.vectors, moved.each) {
        // A tenth may be chance.
        Ok(limit) if limit.seconds <= 1.1 * seconds => Some(limit),
        Ok(_) => {
            log::warn!("the machine's limit is left out: it was too busy to measure a stream");
            None
        }
        Err(e) => {
            log::info!("the machine's limit is left out: {e}");
            None
        }
    }
}
