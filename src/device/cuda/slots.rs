//! Scalar slots in GPU memory, with the sums of blocks that reductions leave.

use super::Cuda;
use super::driver::{bind, call, fault};
use super::memory::{CudaArray, Memory, address};
use crate::device::{RING, SlotState, TRACKS};
use crate::error::Result;
use cudarc::driver::{PinnedHostSlice, sys};
use std::cell::RefCell;

/// The addresses that kernels take: `struct Slots` of common.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SlotPointers {
    values: u64,
    done: u64,
    counts: u64,
    ring: u64,
    partials: u64,
    ticket: u64,
}

impl SlotPointers {
    /// Returns the address of a value.
    pub(super) fn values_at(self, index: usize) -> u64 {
        self.values + (size_of::<f64>() * index) as u64
    }

    /// Returns the addresses in the order of the fields.
    pub(super) fn words(self) -> [u64; 6] {
        let SlotPointers { values, done, counts, ring, partials, ticket } = self;
        [values, done, counts, ring, partials, ticket]
    }
}

/// A bank of slots on a GPU.
///
/// One allocation holds values, done codes, counts and ring in this order, so that one copy reads all of them
/// and the head can be written alone.
pub struct CudaSlots {
    slots: usize,
    k: usize,
    state: CudaArray<u8>,
    partials: CudaArray<f64>,
    /// One, or one for each tile of columns.
    tickets: CudaArray<u32>,
    /// Room for a copy of the state. Present until the bank is dropped.
    buffer: RefCell<Option<ScalarBuffer>>,
}

/// Page-locked memory, so that a copy from the GPU needs no staging by the driver. The driver takes about a
/// millisecond to allocate it and half of one to free it.
pub(super) struct ScalarBuffer(PinnedHostSlice<u8>);

/// The most buffers that a device keeps, and the longest of them.
const KEPT: usize = 4;
const LONGEST: usize = 1 << 20;

impl ScalarBuffer {
    /// Returns a buffer of at least `bytes` bytes: one that the device has kept, or a new one.
    fn of(device: &Cuda, bytes: usize) -> Result<ScalarBuffer> {
        let turn = device.turn();
        let mut kept = turn.scalar_buffers.borrow_mut();
        if let Some(at) = kept.iter().position(|buffer| buffer.0.len() >= bytes) {
            return Ok(kept.swap_remove(at));
        }
        // SAFETY: `read` writes the bytes before it reads them.
        let new = unsafe { device.0.context.alloc_pinned_with_flags::<u8>(bytes, 0) };
        new.map(ScalarBuffer).map_err(fault("cuMemHostAlloc"))
    }
}

impl Drop for CudaSlots {
    fn drop(&mut self) {
        // A copy to the buffer has ended, because `read` waits for it. If waiting fails, the driver has
        // failed, and no more work runs.
        let Some(buffer) = self.buffer.take() else { return };
        let turn = self.state.memory().device().turn();
        let mut kept = turn.scalar_buffers.borrow_mut();
        if buffer.0.len() <= LONGEST {
            if kept.len() == KEPT {
                kept.remove(0);
            }
            kept.push(buffer);
        }
    }
}

impl CudaSlots {
    pub(super) fn new(device: &Cuda, slots: usize, k: usize) -> Result<CudaSlots> {
        let bytes = 8 * slots * k + 8 * k + 8 * TRACKS * RING * k;
        let what = "scalar slots";
        let (sums, tickets) = device.room_for_sums(k);
        Ok(CudaSlots {
            slots,
            k,
            state: device.allocate(what, bytes)?,
            partials: device.allocate(what, sums)?,
            tickets: device.allocate(what, tickets)?,
            buffer: RefCell::new(Some(ScalarBuffer::of(device, bytes)?)),
        })
    }

    /// Returns the number of columns.
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    pub(super) fn memory(&self) -> &Memory {
        self.state.memory()
    }

    /// Returns the number of slots.
    pub(crate) fn len(&self) -> usize {
        self.slots
    }

    /// Returns the bytes of values, done codes and counts, which the host may write.
    fn head(&self) -> usize {
        8 * self.slots * self.k + 8 * self.k
    }

    /// Returns the addresses for a kernel.
    pub(crate) fn pointers(&self) -> SlotPointers {
        let at = address(&self.state);
        let done = at + 8 * (self.slots * self.k) as u64;
        SlotPointers {
            values: at,
            done,
            counts: done + 4 * self.k as u64,
            ring: at + self.head() as u64,
            partials: address(&self.partials),
            ticket: address(&self.tickets),
        }
    }

    pub(super) fn read(&self, device: &Cuda, into: &mut SlotState) -> Result<()> {
        bind(&device.0.context)?;
        let mut buffer = self.buffer.borrow_mut();
        let Some(ScalarBuffer(memory)) = &mut *buffer else {
            unreachable!("a bank has a buffer until it is dropped")
        };
        let host = memory.as_mut_slice().map_err(fault("cuEventSynchronize"))?;
        let host = &mut host[..self.state.len()];
        // SAFETY: both have `host.len()` bytes, and the stream is waited for before the copy is used.
        let status = unsafe {
            let from = self.pointers().values;
            sys::cuMemcpyDtoHAsync_v2(host.as_mut_ptr().cast(), from, host.len(), device.0.stream.cu_stream())
        };
        call("cuMemcpyDtoHAsync", status)?;
        device.0.stream.synchronize().map_err(fault("cuStreamSynchronize"))?;
        let (values, rest) = host.split_at(8 * self.slots * self.k);
        let (done, rest) = rest.split_at(4 * self.k);
        let (counts, ring) = rest.split_at(4 * self.k);
        let double = |bytes: &[u8]| f64::from_ne_bytes(std::array::from_fn(|i| bytes[i]));
        let word = |bytes: &[u8]| u32::from_ne_bytes(std::array::from_fn(|i| bytes[i]));
        into.values.iter_mut().zip(values.chunks_exact(8)).for_each(|(v, b)| *v = double(b));
        into.done.iter_mut().zip(done.chunks_exact(4)).for_each(|(v, b)| *v = word(b));
        into.counts.iter_mut().zip(counts.chunks_exact(4)).for_each(|(v, b)| *v = word(b));
        into.ring.iter_mut().zip(ring.chunks_exact(8)).for_each(|(v, b)| *v = double(b));
        Ok(())
    }

    pub(super) fn write(&mut self, device: &Cuda, from: &SlotState) -> Result<()> {
        let mut head = Vec::with_capacity(self.head());
        from.values.iter().for_each(|v| head.extend_from_slice(&v.to_ne_bytes()));
        from.done.iter().for_each(|v| head.extend_from_slice(&v.to_ne_bytes()));
        from.counts.iter().for_each(|v| head.extend_from_slice(&v.to_ne_bytes()));
        super::check_length("slots written", self.head(), head.len())?;
        // SAFETY: the head of the bank has as many bytes.
        unsafe { device.copy_to(&head, address(&self.state)) }
    }
}
