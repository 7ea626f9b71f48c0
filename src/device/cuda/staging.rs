//! Copies between the host and a GPU through page-locked memory.
//!
//! The driver copies pageable memory at a fraction of the link's speed. Here several threads copy pieces into
//! page-locked buffers, or out of them. Each thread alternates between two buffers and enqueues its copies
//! itself. So no thread waits for another, and the GPU copies one buffer while the thread copies the other.

use super::driver::{bind, call, fault};
use super::{Cuda, State};
use crate::error::{Error, GpuError, Result};
use crate::observe::profile::{self, Phase};
use crate::parallel::{lock, run_all};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, sys};
use memmap2::MmapMut;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of a buffer: long enough that the threads seldom wait for each other in the driver, short enough
/// that filling the first buffer delays little.
const PIECE: usize = 1 << 20;

/// The most threads that copy. On an H200 16 threads are hardly faster, and need twice the
/// page-locked memory.
const THREADS: usize = 8;

/// Shorter arrays are left to the driver: the buffers would cost more time than they save.
const SHORTEST: usize = 1 << 20;

/// The memory of the buffers before it is page-locked, which needs no GPU. It lies on huge pages, if
/// the system offers them: the driver locks 16 MB of them in 1 to 3 ms, and takes 8 to 10 ms to
/// allocate locked memory itself.
pub(crate) struct Pages(MmapMut);

impl Pages {
    /// Allocates the pages, and touches them.
    pub(crate) fn new() -> Result<Pages> {
        let bytes = rayon::current_num_threads().clamp(1, THREADS) * 2 * PIECE;
        let failed = |call| move |e: std::io::Error| GpuError::Cuda { call, message: e.to_string() };
        let mut pages = MmapMut::map_anon(bytes).map_err(failed("mmap"))?;
        #[cfg(target_os = "linux")]
        {
            // Without huge pages, locking takes longer.
            let _ = pages.advise(memmap2::Advice::HugePage);
            // If a child process shared a locked page, the parent would get a copy of it at its next write,
            // and the GPU would not. The child has zeros instead.
            // SAFETY: the range is the whole mapping, and no child process reads it.
            let status = unsafe { libc::madvise(pages.as_mut_ptr().cast(), bytes, libc::MADV_WIPEONFORK) };
            if status != 0 {
                return Err(failed("madvise")(std::io::Error::last_os_error()).into());
            }
        }
        pages.fill(0);
        Ok(Pages(pages))
    }
}

/// Pages that are locked in memory, so that the GPU reads and writes them.
struct Locked {
    pages: ManuallyDrop<MmapMut>,
    context: Arc<CudaContext>,
}

impl Locked {
    fn new(context: &Arc<CudaContext>, Pages(mut pages): Pages) -> Result<Locked> {
        bind(context)?;
        // SAFETY: the pages are mapped until after `drop` has unlocked them.
        let status = unsafe { sys::cuMemHostRegister_v2(pages.as_mut_ptr().cast(), pages.len(), 0) };
        call("cuMemHostRegister", status)?;
        Ok(Locked { pages: ManuallyDrop::new(pages), context: Arc::clone(context) })
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: the context and the pages exist, no copy uses the pages any more, and they are dropped
        // once. Pages that the driver does not unlock stay mapped.
        unsafe {
            let _ = sys::cuCtxSetCurrent(self.context.cu_ctx());
            if sys::cuMemHostUnregister(self.pages.as_mut_ptr().cast()) == sys::CUresult::CUDA_SUCCESS {
                ManuallyDrop::drop(&mut self.pages);
            }
        }
    }
}

/// Two buffers for each thread, and for each buffer the event after which it is free again.
pub(super) struct Staging {
    memory: Locked,
    free: Vec<[CudaEvent; 2]>,
}

impl Staging {
    pub(crate) fn new(context: &Arc<CudaContext>, pages: Pages) -> Result<Staging> {
        let memory = Locked::new(context, pages)?;
        let event = || context.new_event(None).map_err(fault("cuEventCreate"));
        let lanes = memory.pages.len() / (2 * PIECE);
        let free = (0..lanes).map(|_| Ok([event()?, event()?])).collect::<Result<_>>()?;
        Ok(Staging { memory, free })
    }

    /// Copies `host` to `device` in the order of the stream; on return `host` has been read.
    ///
    /// # Safety
    /// `device` is the address of at least as many bytes.
    pub(crate) unsafe fn upload(&mut self, stream: &CudaStream, host: &[u8], device: u64) -> Result<()> {
        let memory = &mut self.memory.pages;
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
                // SAFETY: the buffer keeps the piece until the event shows that the GPU has fetched it,
                // and the target has room.
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
        let memory = &mut self.memory.pages;
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
                    // SAFETY: the buffer is not read before the event shows that the copy is complete,
                    // and `device` has the piece.
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
            // SAFETY: context and event exist. An earlier error that the context keeps does not end the wait,
            // as it would in `synchronize`.
            unsafe {
                let _ = sys::cuCtxSetCurrent(self.memory.context.cu_ctx());
                let _ = sys::cuEventSynchronize(free.cu_event());
            }
        }
    }
}

impl Cuda {
    /// Makes page-locked buffers of the pages, and allocates a first array: both take longer
    /// than the copies of most solves.
    pub(crate) fn warm_up(&self, pages: Pages) -> Result<()> {
        bind(&self.0.context)?;
        let turn = self.turn();
        drop(self.allocate::<u8>("a first array", PIECE)?);
        if turn.staging.borrow().is_none() {
            turn.staging.replace(Some(Staging::new(&self.0.context, pages)?));
        }
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
            // SAFETY: promised by the caller; the driver reads pageable memory before it returns, or the
            // stream is waited for below.
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

    /// Takes out the buffers for a long copy, so that a rayon thread that begins another copy while it waits
    /// for this one allocates others. None for a short copy, or without page-locked memory.
    fn buffers(&self, turn: &State, bytes: usize) -> Option<Staging> {
        if bytes < SHORTEST || turn.without_staging.get() {
            return None;
        }
        turn.staging.take().or_else(|| {
            // Without page-locked memory, which systems may limit, copies are only slower.
            let made = Pages::new().and_then(|pages| Staging::new(&self.0.context, pages));
            let failed = |e: &Error| {
                log::warn!("copies are slower without page-locked memory: {e}");
                turn.without_staging.set(true);
            };
            made.inspect_err(failed).ok()
        })
    }

    /// Copies device memory to a host array, in the order of the stream. The caller must wait for the stream
    /// before it reads the array.
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
