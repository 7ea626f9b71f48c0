//! The stream beside that of the device, for work that overlaps with kernels: the exchange of
//! data with other GPUs.

use super::Cuda;
use super::driver::{bind, call};
use crate::error::Result;
use cudarc::driver::{CudaContext, sys};
use std::sync::Arc;

/// A stream of high priority.
pub(super) struct SideStream {
    stream: sys::CUstream,
    context: Arc<CudaContext>,
    /// Whether it has work that the stream of the device does not wait for yet.
    ahead: bool,
}

// SAFETY: any thread may use a stream; the lock on the state of the device orders them.
unsafe impl Send for SideStream {}

impl SideStream {
    fn new(context: &Arc<CudaContext>) -> Result<SideStream> {
        bind(context)?;
        let (mut stream, mut highest, mut lowest) = (std::ptr::null_mut(), 0, 0);
        let independent = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the calls write two integers and a handle.
        unsafe {
            call("cuCtxGetStreamPriorityRange", sys::cuCtxGetStreamPriorityRange(&mut lowest, &mut highest))?;
            let created = sys::cuStreamCreateWithPriority(&mut stream, independent, highest);
            call("cuStreamCreateWithPriority", created)?;
        }
        Ok(SideStream { stream, context: Arc::clone(context), ahead: false })
    }
}

impl Drop for SideStream {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: created in `new`, destroyed once; the driver ends its work first.
        let _ = unsafe { sys::cuStreamDestroy_v2(self.stream) };
    }
}

impl Cuda {
    /// Returns the stream beside that of the device, and creates it first if needed.
    pub(super) fn side_stream(&self) -> Result<sys::CUstream> {
        let turn = self.turn();
        let mut side = turn.side.borrow_mut();
        if side.is_none() {
            *side = Some(SideStream::new(&self.0.context)?);
        }
        Ok(side.as_ref().map_or(std::ptr::null_mut(), |side| side.stream))
    }

    /// Lets later work beside the stream of the device wait for the earlier work of that stream.
    pub(super) fn fork_side(&self) -> Result<()> {
        let side = self.side_stream()?;
        // SAFETY: both are streams of this device.
        unsafe { self.order(self.stream().cu_stream(), side) }
    }

    /// Marks work beside the stream of the device, which [`join_side`](Cuda::join_side) waits for.
    pub(super) fn leave_side(&self) {
        if let Some(side) = &mut *self.turn().side.borrow_mut() {
            side.ahead = true;
        }
    }

    /// Lets later work of the device wait for the work beside its stream, if there is any.
    pub(super) fn join_side(&self) -> Result<()> {
        let turn = self.turn();
        let stream = match &mut *turn.side.borrow_mut() {
            Some(side) if side.ahead => {
                side.ahead = false;
                side.stream
            }
            _ => return Ok(()),
        };
        // SAFETY: both are streams of this device.
        unsafe { self.order(stream, self.stream().cu_stream()) }
    }
}
