//! Copies from the host through page-locked memory.
//!
//! The driver copies pageable memory at a fraction of the link's speed. Here threads copy a piece into one of two
//! page-locked buffers while the GPU fetches the other, so that the slower of the two copies sets the pace.

use super::{Cuda, call, fault};
use crate::error::Result;
use crate::parallel::run_all;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, PinnedHostSlice, sys};
use std::sync::Arc;

/// Bytes of a buffer: long enough for the link, short enough that filling the first delays little.
const PIECE: usize = 8 << 20;

/// Parts of a buffer that threads fill.
const PARTS: usize = 16;

/// Shorter arrays are left to the driver: the buffers would cost more than they bring.
const WORTH_IT: usize = 1 << 20;

/// Two buffers, and for each the moment from which it is free again.
pub(super) struct Staging {
    buffers: [(PinnedHostSlice<u8>, CudaEvent); 2],
}

impl Staging {
    pub fn new(context: &Arc<CudaContext>) -> Result<Staging> {
        let buffer = || -> Result<_> {
            // SAFETY: written before anything is read from it: at once.
            let memory = unsafe { context.alloc_pinned_with_flags::<u8>(PIECE, 0) };
            let mut memory = memory.map_err(fault("cuMemHostAlloc"))?;
            let start = memory.as_mut_ptr().map_err(fault("cuEventSynchronize"))?;
            // SAFETY: as many bytes as were allocated.
            unsafe { start.write_bytes(0, PIECE) };
            Ok((memory, context.new_event(None).map_err(fault("cuEventCreate"))?))
        };
        Ok(Staging { buffers: [buffer()?, buffer()?] })
    }

    /// Copies `host` to `device` in the order of the stream; on return `host` has been read.
    ///
    /// # Safety
    /// `device` is the address of at least as many bytes.
    pub unsafe fn upload(&mut self, stream: &CudaStream, host: &[u8], device: u64) -> Result<()> {
        for (i, piece) in host.chunks(PIECE).enumerate() {
            let (memory, free) = &mut self.buffers[i % 2];
            // An event that was never recorded is complete.
            free.synchronize().map_err(fault("cuEventSynchronize"))?;
            let buffer = memory.as_mut_slice().map_err(fault("cuEventSynchronize"))?;
            let part = PIECE / PARTS;
            let parts = buffer.chunks_mut(part).zip(piece.chunks(part)).collect();
            run_all(parts, |(to, from): (&mut [u8], &[u8])| to[..from.len()].copy_from_slice(from));
            // SAFETY: the buffer holds the piece until the event says that it was fetched, and the target has room.
            let status = unsafe {
                let to = device + (i * PIECE) as u64;
                sys::cuMemcpyHtoDAsync_v2(to, buffer.as_ptr().cast(), piece.len(), stream.cu_stream())
            };
            call("cuMemcpyHtoDAsync", status)?;
            free.record(stream).map_err(fault("cuEventRecord"))?;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The GPU may still be fetching. A failure to wait is one of the driver, after which nothing runs any more.
        for (_, free) in &self.buffers {
            let _ = free.synchronize();
        }
    }
}

impl Cuda {
    /// Copies a host array to device memory, in the order of the stream; on return the array has been read.
    ///
    /// # Safety
    /// `device` is the address of at least as many bytes.
    pub(super) unsafe fn copy_to(&self, host: &[u8], device: u64) -> Result<()> {
        if host.is_empty() {
            return Ok(());
        }
        let mut staging = self.staging.borrow_mut();
        if host.len() >= WORTH_IT && staging.is_none() {
            // Without page-locked memory, which systems may bound, copies are only slower.
            let made = Staging::new(&self.context);
            *staging =
                made.inspect_err(|e| log::warn!("uploads take longer: no page-locked memory: {e}")).ok();
        }
        let Some(staging) = staging.as_mut().filter(|_| host.len() >= WORTH_IT) else {
            // SAFETY: promised by the caller; the driver reads pageable memory before it returns, or we wait for it.
            let status = unsafe {
                sys::cuMemcpyHtoDAsync_v2(device, host.as_ptr().cast(), host.len(), self.stream.cu_stream())
            };
            call("cuMemcpyHtoDAsync", status)?;
            return self.stream.synchronize().map_err(fault("cuStreamSynchronize"));
        };
        // SAFETY: promised by the caller.
        unsafe { staging.upload(&self.stream, host, device) }
    }
}
