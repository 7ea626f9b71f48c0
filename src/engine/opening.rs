//! Opening a device while its user reads a matrix.

use super::device::{DeviceHandle, DeviceName, Settled};
use crate::error::Result;
use std::thread::{Builder, JoinHandle};

/// A device that another thread opens. Dropping the value waits for that thread.
#[must_use = "dropping the value waits for the device"]
pub struct Opening(Option<JoinHandle<()>>);

impl Settled {
    /// Checks that the device is usable, and begins to open a GPU, so that it is ready when the matrix has been read. A solve on
    /// the shared device waits for it. The GPU stays open until the process ends: closing it takes as long as many solves, and
    /// the system frees what it holds in any case.
    pub fn open_ahead(&self) -> Result<Opening> {
        self.check_device()?;
        let DeviceName::Cuda(_) = self.device else { return Ok(Opening(None)) };
        let name = self.device;
        // Without a thread, the solve opens the device itself, and reports the reason if that fails.
        let thread = Builder::new().name("opening".to_owned()).spawn(move || {
            let opened = DeviceHandle::shared(name).and_then(|device| {
                let warmed = device.warm_up();
                std::mem::forget(device);
                warmed
            });
            opened.unwrap_or_else(|error| log::debug!("{name} cannot be prepared ahead: {error}"));
        });
        Ok(Opening(thread.ok()))
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // A thread that has panicked has opened nothing.
            let _ = thread.join();
        }
    }
}
