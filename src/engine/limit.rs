//! Measurement of the time per iteration that the machine's bandwidth allows.

use super::device::{DeviceHandle, Opened};
use crate::device::Device;
use crate::device::stream::{self, Limit};
use crate::observe::profile::{self, Phase};
use crate::solve::Effort;
use std::sync::atomic::AtomicBool;

/// Number of measurements. A measurement slower than the solve itself is repeated.
const TRIES: usize = 3;

/// Measures the limit of an open device, as [`measure`] does.
pub(super) fn measure_on(
    device: &DeviceHandle,
    effort: &Effort,
    cancel: Option<&AtomicBool>,
) -> Option<Limit> {
    match &device.0 {
        Opened::Cpu(device) => measure(&*device.acquire().ok()?, effort, cancel),
        Opened::Cuda(device) => measure(&*device.acquire().ok()?, effort, cancel),
    }
}

/// Measures the bandwidth limit for an iteration: the time that its memory traffic takes at the measured
/// stream bandwidth. Returns none if the iteration moves little memory, as it is then bound by latency. A
/// limit slower than the solve is discarded: other programs used the machine during the measurement. Ends
/// early once `cancel` is set.
fn measure<D: Device>(device: &D, effort: &Effort, cancel: Option<&AtomicBool>) -> Option<Limit> {
    const LITTLE: u64 = 1 << 20;
    if effort.iterations == 0 || effort.bytes_per_iteration < LITTLE {
        return None;
    }
    let _span = profile::begin(Phase::Limit);
    log::debug!("measuring the stream bandwidth");
    for _ in 0..TRIES {
        match stream::limit(
            device,
            effort.operator_bytes,
            effort.vector_bytes,
            effort.bytes_per_iteration,
            cancel,
        ) {
            Ok(None) => return None,
            Ok(Some(limit)) if limit.seconds <= effort.seconds_each => return Some(limit),
            Ok(Some(_)) => {}
            Err(e) => {
                log::info!("the report has no bandwidth limit: {e}");
                return None;
            }
        }
    }
    log::warn!(
        "the report has no bandwidth limit: every measured stream was slower than the solve itself; other programs may be using the machine"
    );
    None
}
