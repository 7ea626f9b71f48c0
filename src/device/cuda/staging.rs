//! Copies between the host and a GPU through page-locked memory.
//!
//! The driver copies pageable memory at a fraction of the link's speed. Here several threads copy pieces into page-locked
//! buffers, or out of them. Each thread alternates between two buffers and enqueues its copies itself. So no thread waits for
//! another, and the GPU copies one buffer while the thread copies the other.

use super::driver::{bind, call, fault};
use super::{Cuda, State};
use crate::error::Result;
use crate::observe::profile::{self, Phase};
use crate::parallel::{lock, run_all};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, PinnedHostSlice, sys};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of a buffer: long enough that the threads seldom wait for each other in the driver, short enough that filling the first
/// buffer delays little.
const PIECE: usize = 1 << 20;

/// The most threads that copy. On an H200 16 threads are hardly faster, and need twice the page-locked memory.
const THREADS: usize = 8;

/// Shorter arrays are left to the driver: the buffers would cost more time than they save.
const SHORTEST: usize = 1 << 20;

/// Two buffers for each thread, and for each buffer the event after which it is free again.
pub(super) struct Staging {
    memory: PinnedHostSlice<u8>,
    free: Vec<[CudaEvent; 2]>,
}

impl Staging {
    pub fn new(context: &Arc<CudaContext>) -> Result<Staging> {
        let threads = rayon::current_num_threads().clamp(1, THREADS);
        let bytes = threads * 2 * PIECE;
        // SAFETY: the memory is written at once, below, before it is read.
        let memory = unsafe { context.alloc_pinned_with_flags::<u8>(bytes, 0) };
        let mut memory = memory.map_err(fault("cuMemHostAlloc"))?;
        let start = memory.as_mut_ptr().map_err(fault("cuEventSynchronize"))?;
        // SAFETY: `bytes` bytes were allocated.
        unsafe { start.write_bytes(0, bytes) };
        let event = || context.new_event(None).map_err(fault("cuEventCreate"));
        let free = (0..threads).map(|_| Ok([event()?, event()?])).collect::<Result<_>>()?;
        Ok(Staging { memory, free })
    }

    /// Copies `host` to `device` in the order of the stream; on return `host` has been read.
    ///
    /// # Safety
    /// `device` is the address of at least as many bytes.
    pub unsafe fn upload(&mut self, stream: &CudaStream, host: &[u8], device: u64) -> Result<()> {
        let memory = self.memory.as_mut_slice().map_err(fault("cuEventSynchronize"))?;
        let next = AtomicUsize::new(0);
        let lanes = memory.chunks_mut(2 * PIECE).zip(&self.free).collect();
        let carried = run_all(lanes, |(buffers, free): (&mut [u8], &[CudaEvent; 2])| {
            bind(stream.context())?;
            for turn in 0.. {
                let offset = PIECE * next.fetch_add(1, Ordering::Relaxed);
                let Some(rest) = host.get(offset..).filter(|rest| !rest.is_empty()) else { break };
                let piece = &rest[..PIECE.min(rest.len())];
                let buffer = &mut buffers[turn % 2 * PIECE..][..piece.len()];
                let free = &free[turn % 2];
                // An event that was never recorded is complete.
                free.synchronize().map_err(fault("cuEventSynchronize"))?;
                buffer.copy_from_slice(piece);
                // SAFETY: the buffer keeps the piece until the event shows that the GPU has fetched it, and the target has room.
                let status = unsafe {
                    let to = device + offset as u64;
                    sys::cuMemcpyHtoDAsync_v2(to, buffer.as_ptr().cast(), piece.len(), stream.cu_stream())
                };
                call("cuMemcpyHtoDAsync", status)?;
                free.record(stream).map_err(fault("cuEventRecord"))?;
            }
            Ok(())
        });
        carried.into_iter().collect()
    }
}

impl Staging {
    /// Copies `device` to `host` in the order of the stream, and waits for it.
    ///
    /// # Safety
    /// `device` is the address of at least as many bytes.
    unsafe fn download(&mut self, stream: &CudaStream, device: u64, host: &mut [u8]) -> Result<()> {
        let memory = self.memory.as_mut_slice().map_err(fault("cuEventSynchronize"))?;
        let pieces = Mutex::new(host.chunks_mut(PIECE).enumerate());
        let lanes = memory.chunks_mut(2 * PIECE).zip(&self.free).collect();
        let carried = run_all(lanes, |(buffers, free): (&mut [u8], &[CudaEvent; 2])| {
            bind(stream.context())?;
            // The piece that the GPU copies, and the number of its buffer.
            let mut copied: Option<(&mut [u8], usize)> = None;
            for turn in (0..2).cycle() {
                let next = lock(&pieces).next();
                if let Some((index, piece)) = &next {
                    let buffer = &mut buffers[turn * PIECE..][..piece.len()];
                    let from = device + (index * PIECE) as u64;
                    // SAFETY: the buffer is not read before the event shows that the copy is complete, and `device` has the piece.
                    let status = unsafe {
                        let to = buffer.as_mut_ptr().cast();
                        sys::cuMemcpyDtoHAsync_v2(to, from, buffer.len(), stream.cu_stream())
                    };
                    call("cuMemcpyDtoHAsync", status)?;
                    free[turn].record(stream).map_err(fault("cuEventRecord"))?;
                }
                if let Some((piece, buffer)) = copied {
                    free[buffer].synchronize().map_err(fault("cuEventSynchronize"))?;
                    piece.copy_from_slice(&buffers[buffer * PIECE..][..piece.len()]);
                }
                copied = next.map(|(_, piece)| (piece, turn));
                if copied.is_none() {
                    break;
                }
            }
            Ok(())
        });
        carried.into_iter().collect()
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The GPU may still read the buffers. If waiting fails, the driver has failed, and no more work runs.
        for free in self.free.as_flattened() {
            let _ = free.synchronize();
        }
    }
}

impl Cuda {
    /// Allocates the page-locked buffers and a first piece of device memory, which take longer than the copies of most solves.
    pub(crate) fn warm_up(&self) -> Result<()> {
        bind(&self.0.context)?;
        let turn = self.turn();
        if turn.staging.borrow().is_none() {
            turn.staging.replace(Some(Staging::new(&self.0.context)?));
        }
        drop(self.allocate::<u8>("a first array", PIECE)?);
        Ok(())
    }

    /// Copies a host array to device memory, in the order of the stream; on return the array has been read.
    ///
    /// # Safety
    /// `device` is the address of at least as many bytes.
    pub(super) unsafe fn copy_to(&self, host: &[u8], device: u64) -> Result<()> {
        if host.is_empty() {
            return Ok(());
        }
        bind(&self.0.context)?;
        let turn = self.turn();
        // A profile counts earlier work of the stream for its own phase, and the copy up to its end.
        let finish_work = || match profile::is_active() {
            true => self.0.stream.synchronize().map_err(fault("cuStreamSynchronize")),
            false => Ok(()),
        };
        finish_work()?;
        let _span = profile::begin(Phase::Upload);
        let Some(mut staging) = self.buffers(&turn, host.len()) else {
            // SAFETY: promised by the caller; the driver reads pageable memory before it returns, or the stream is waited for
            // below.
            let status = unsafe {
                sys::cuMemcpyHtoDAsync_v2(device, host.as_ptr().cast(), host.len(), self.0.stream.cu_stream())
            };
            call("cuMemcpyHtoDAsync", status)?;
            return self.0.stream.synchronize().map_err(fault("cuStreamSynchronize"));
        };
        // SAFETY: promised by the caller.
        let outcome = unsafe { staging.upload(&self.0.stream, host, device) };
        turn.staging.replace(Some(staging));
        outcome.and_then(|()| finish_work())
    }

    /// Takes out the buffers for a long copy, so that a rayon thread that begins another copy while it waits for this one allocates
    /// others. None for a short copy, or without page-locked memory.
    fn buffers(&self, turn: &State, bytes: usize) -> Option<Staging> {
        if bytes < SHORTEST {
            return None;
        }
        turn.staging.take().or_else(|| {
            // Without page-locked memory, which systems may limit, copies are only slower.
            let made = Staging::new(&self.0.context);
            made.inspect_err(|e| log::warn!("copies are slower without page-locked memory: {e}")).ok()
        })
    }

    /// Copies device memory to a host array, in the order of the stream. The caller must wait for the stream before it reads the
    /// array.
    ///
    /// # Safety
    /// `device` is the address of at least as many bytes.
    pub(super) unsafe fn copy_from(&self, device: u64, host: &mut [u8]) -> Result<()> {
        bind(&self.0.context)?;
        let turn = self.turn();
        let Some(mut staging) = self.buffers(&turn, host.len()) else {
            // SAFETY: promised by the caller.
            let status = unsafe {
                let to = host.as_mut_ptr().cast();
                sys::cuMemcpyDtoHAsync_v2(to, device, host.len(), self.0.stream.cu_stream())
            };
            return call("cuMemcpyDtoHAsync", status);
        };
        // SAFETY: promised by the caller.
        let outcome = unsafe { staging.download(&self.0.stream, device, host) };
        turn.staging.replace(Some(staging));
        outcome
    }
}
