//! Opening a device while its user reads a matrix.

use super::device::{DeviceHandle, DeviceName, Settled};
use crate::error::Result;
use std::thread::{Builder, JoinHandle};

/// Devices that other threads open. Dropping the value waits for those threads.
#[must_use = "dropping the value waits for the devices"]
pub struct Opening(Vec<JoinHandle<()>>);

impl Settled {
    /// Checks that the devices are usable, and begins to open the GPUs among them, so that they are ready when the matrix has been read.
    /// A solve on the shared device waits for it.
    pub fn open_ahead(&self) -> Result<Opening> {
        self.check_device()?;
        let several = !self.shares.is_empty();
        let gpus = self.devices().iter().copied().filter(|name| matches!(name, DeviceName::Cuda(_)));
        // Without a thread, the solve opens the device itself, and reports the reason if that fails.
        let open = |name| {
            let thread = move || {
                let opened = if several { DeviceHandle::of_rank(name) } else { DeviceHandle::shared(name) };
                let warmed = opened.and_then(|device| device.warm_up());
                warmed.unwrap_or_else(|error| log::debug!("{name} cannot be prepared ahead: {error}"));
            };
            Builder::new().name("opening".to_owned()).spawn(thread).ok()
        };
        Ok(Opening(gpus.filter_map(open).collect()))
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            // A thread that has panicked has opened nothing.
            let _ = thread.join();
        }
    }
}
