//! How near a solve came to what the machine allows.

use super::device::{DeviceHandle, Opened};
use crate::bench::stream::{self, Limit};
use crate::device::Device;
use std::sync::atomic::AtomicBool;

/// Memory traffic of the iterations: bytes of the operators and of the vectors, bytes and seconds of one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moved {
    pub operators: u64,
    pub vectors: u64,
    pub each: u64,
    pub iterations: usize,
    pub seconds: f64,
}

/// Measurements of the limit at most, where the first ones lie below the speed of the solve itself.
const TRIES: usize = 3;

/// The limit of a device that is open, as [`measure`] finds it.
pub(super) fn measure_on(device: &DeviceHandle, moved: &Moved, cancel: Option<&AtomicBool>) -> Option<Limit> {
    match &device.0 {
        Opened::Cpu(device) => measure(&*device.turn().ok()?, moved, cancel),
        Opened::Cuda(device) => measure(&*device.turn().ok()?, moved, cancel),
    }
}

/// The machine's limit for an iteration, where it means something: an iteration that moves little is bound by latency,
/// and no solve is faster than the machine, so that a stream that says so was measured while the machine had other
/// things to do. It is skipped once `cancel` is set.
fn measure<D: Device>(device: &D, moved: &Moved, cancel: Option<&AtomicBool>) -> Option<Limit> {
    const LITTLE: u64 = 1 << 20;
    if moved.iterations == 0 || moved.each < LITTLE {
        return None;
    }
    log::debug!("measuring the machine's limit");
    for _ in 0..TRIES {
        match stream::limit(device, moved.operators, moved.vectors, moved.each, cancel) {
            Ok(None) => return None,
            Ok(Some(limit)) if limit.seconds <= moved.seconds => return Some(limit),
            Ok(Some(_)) => {}
            Err(e) => {
                log::info!("the machine's limit is left out: {e}");
                return None;
            }
        }
    }
    log::warn!(
        "the machine's limit is left out: no stream was as fast as the solve itself; others may be using the machine"
    );
    None
}
