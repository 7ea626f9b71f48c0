//! Arrays in GPU memory, and the free memory.

use super::driver::{bind, call, fault};
use super::{Cuda, Gpu};
use crate::device::{Device, Kept};
use crate::error::{Error, GpuError, Result};
use crate::parallel::touched_zeros;
use bytemuck::Pod;
use cudarc::driver::{CudaSlice, DevicePtr, sys};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// An array in GPU memory. A recorded step that uses it keeps its memory.
pub struct CudaArray<T> {
    memory: Arc<Memory>,
    len: usize,
    elements: PhantomData<T>,
}

/// An array in GPU memory.
pub(super) struct Memory {
    bytes: ManuallyDrop<CudaSlice<u8>>,
    gpu: Cuda,
    /// Whether the memory is the caller's, who frees it.
    lent: bool,
}

impl Memory {
    /// Returns whether the memory belongs to this device.
    pub(crate) fn is_on(&self, gpu: &Cuda) -> bool {
        Arc::ptr_eq(&self.gpu.0, &gpu.0)
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &Cuda {
        &self.gpu
    }

    fn address(&self) -> u64 {
        self.bytes.device_ptr(self.bytes.stream()).0
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Freeing memory while a step is recorded would become part of that step. So other threads wait here,
        // and memory that the step itself drops is kept as long as its recording.
        let turn = self.gpu.turn();
        // SAFETY: the bytes are taken once, here.
        let bytes = unsafe { ManuallyDrop::take(&mut self.bytes) };
        match &mut *turn.recording.borrow_mut() {
            _ if self.lent => _ = bytes.leak(),
            Some(kept) => {
                let bytes = ManuallyDrop::new(bytes);
                kept.push(Arc::new(Memory { bytes, gpu: self.gpu.clone(), lent: false }))
            }
            None => drop(bytes),
        }
    }
}

/// Bytes at a multiple of which arrays begin: the longest load of a thread.
const ALIGNMENT: u64 = 16;

/// The hint if free memory is fragmented, or if another program takes it meanwhile.
const FRAGMENTED: &str =
    "the driver has no free block of that size; end other programs on this GPU, or use the CPU";

/// Returns the address of an array on the device. While a step is recorded, the recording
/// keeps the array's memory.
pub fn address<T>(array: &CudaArray<T>) -> u64 {
    array.memory.gpu.keep(|| Arc::clone(&array.memory) as Kept);
    array.memory.address()
}

impl<T> CudaArray<T> {
    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns an array of other elements over the same memory, which lives as long as one of the two.
    pub(super) fn shared<E>(&self) -> CudaArray<E> {
        let len = self.len * size_of::<T>() / size_of::<E>();
        CudaArray { memory: Arc::clone(&self.memory), len, elements: PhantomData }
    }

    /// Returns the same memory as bytes.
    pub(super) fn into_bytes(self) -> CudaArray<u8> {
        CudaArray { memory: self.memory, len: self.len * size_of::<T>(), elements: PhantomData }
    }
}

impl<T: Pod> CudaArray<T> {
    /// Sets all elements to zero bits, in the order of the stream.
    pub(super) fn clear(&mut self) -> Result<()> {
        let stream = &self.memory.gpu.0.stream;
        bind(stream.context())?;
        let bytes = self.len * size_of::<T>();
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the array has `bytes` bytes, and zero bits are a valid element.
        let status = unsafe { sys::cuMemsetD8Async(address(self), 0, bytes, stream.cu_stream()) };
        call("cuMemsetD8Async", status)
    }

    /// Copies the first elements to the host, in the order of the stream. The caller then
    /// waits for the stream.
    pub(super) fn copy_to_host(&self, host: &mut [T]) -> Result<()> {
        assert!(host.len() <= self.len, "the array has all elements that are copied");
        if host.is_empty() {
            return Ok(());
        }
        // SAFETY: the array has at least as many bytes; elements are valid for any bits.
        unsafe { self.memory.gpu.copy_from(address(self), bytemuck::cast_slice_mut(host)) }
    }
}

impl<T: Pod> CudaArray<T> {
    /// Copies a host array of this length to the device.
    pub(crate) fn fill_from(&mut self, host: &[T]) -> Result<()> {
        assert_eq!(host.len(), self.len, "the lengths of the arrays");
        // SAFETY: the array has as many elements as `host`.
        unsafe { self.memory.gpu.copy_to(bytemuck::cast_slice(host), address(self)) }
    }

    /// Copies device memory of the caller to this array, in the order of the stream.
    ///
    /// # Safety
    /// At `address` are as many elements in memory of this device. They stay there until the copy is done,
    /// and nothing writes them meanwhile.
    pub(crate) unsafe fn fill_from_lent(&mut self, address: u64) -> Result<()> {
        let (gpu, bytes) = (&self.memory.gpu, self.len * size_of::<T>());
        if bytes == 0 {
            return Ok(());
        }
        let _turn = gpu.turn();
        let stream = &gpu.0.stream;
        bind(stream.context())?;
        // SAFETY: both arrays have `bytes` bytes.
        let status =
            unsafe { sys::cuMemcpyDtoDAsync_v2(self::address(self), address, bytes, stream.cu_stream()) };
        call("cuMemcpyDtoDAsync", status)
    }

    /// Copies the array to a host array of this length, and waits for it.
    pub(crate) fn copy_out(&self, host: &mut [T]) -> Result<()> {
        assert_eq!(host.len(), self.len, "the lengths of the arrays");
        self.copy_to_host(host)?;
        self.memory.gpu.synchronize()
    }

    /// Copies the array to the host, and waits for it.
    pub(crate) fn to_host(&self) -> Result<Vec<T>> {
        let mut host = touched_zeros(self.len)?;
        self.copy_out(&mut host)?;
        Ok(host)
    }
}

impl Cuda {
    /// Returns the free and the total bytes of GPU memory.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        let Gpu { context, free_at_first, memory_limit, .. } = &*self.0;
        let (free, total) = context.mem_get_info().map_err(fault("cuMemGetInfo"))?;
        let (free, total) = (free as u64, total as u64);
        let used = free_at_first.saturating_sub(free);
        Ok((memory_limit.map_or(free, |limit| limit.saturating_sub(used).min(free)), total))
    }

    /// Fails if `needed` bytes, and `reserve` bytes more for later use, are not free.
    pub(crate) fn require_room(&self, what: &'static str, needed: u64, reserve: u64) -> Result<()> {
        let fits = |free: u64| needed.saturating_add(reserve) <= free;
        if fits(self.memory()?.0) {
            return Ok(());
        }
        // The driver returns freed memory when the stream is waited for.
        self.synchronize()?;
        let free = self.memory()?.0;
        if fits(free) {
            return Ok(());
        }
        Err(GpuError::DeviceMemory { what, needed, reserved: reserve, free, hint: None }.into())
    }

    /// Allocates device memory for `len` elements, zeroed. Fails while a step is recorded: the memory
    /// would end with the recording.
    pub(crate) fn allocate<T: Pod>(&self, what: &'static str, len: usize) -> Result<CudaArray<T>> {
        let turn = self.turn();
        if turn.recording.borrow().is_some() {
            return Err(GpuError::AllocatedInStep { what }.into());
        }
        let bytes = len * size_of::<T>();
        let needed = bytes as u64;
        self.require_room(what, needed, 0)?;
        let bytes = self.0.stream.alloc_zeros(bytes.max(size_of::<T>())).map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let free = self.memory().map_or(0, |(free, _)| free);
                let hint = Some(FRAGMENTED.to_owned());
                GpuError::DeviceMemory { what, needed, reserved: 0, free, hint }.into()
            }
            _ => fault("cuMemAllocAsync")(e),
        })?;
        let memory = Memory { bytes: ManuallyDrop::new(bytes), gpu: self.clone(), lent: false };
        Ok(CudaArray { memory: Arc::new(memory), len, elements: PhantomData })
    }

    /// Returns an array over device memory of the caller, which dropping the array does not free.
    ///
    /// # Safety
    /// At `address` are `len` elements in memory of this device. They live as long as the array, and nothing
    /// else writes them meanwhile, or reads them if a kernel writes them.
    pub(crate) unsafe fn lent<T: Pod>(&self, address: u64, len: usize) -> Result<CudaArray<T>> {
        if self.turn().recording.borrow().is_some() {
            return Err(GpuError::AllocatedInStep { what: "memory of the caller" }.into());
        }
        if !address.is_multiple_of(ALIGNMENT) {
            let reason =
                format!("memory of the caller must begin at a multiple of {ALIGNMENT} bytes; copy the array");
            return Err(Error::setting("array", format!("{address:#x}"), reason));
        }
        // SAFETY: the memory is there, and `Memory` leaks it instead of freeing it.
        let bytes = unsafe { self.0.stream.upgrade_device_ptr(address, len * size_of::<T>()) };
        let memory = Memory { bytes: ManuallyDrop::new(bytes), gpu: self.clone(), lent: true };
        Ok(CudaArray { memory: Arc::new(memory), len, elements: PhantomData })
    }

    /// Copies device memory of the caller into new device memory, in the order of the stream.
    ///
    /// # Safety
    /// At `address` are `len` elements in memory of this device. They stay there until the copy is done, and
    /// nothing writes them meanwhile.
    pub(crate) unsafe fn copy_of_lent<T: Pod>(
        &self,
        what: &'static str,
        address: u64,
        len: usize,
    ) -> Result<CudaArray<T>> {
        let mut array = self.allocate(what, len)?;
        // SAFETY: as the caller promises.
        unsafe { array.fill_from_lent(address)? };
        Ok(array)
    }

    /// Copies device memory of the caller to the host, and waits for it.
    ///
    /// # Safety
    /// At `address` are `len` elements in memory of this device, which nothing writes meanwhile.
    pub(crate) unsafe fn fetched<T: Pod>(&self, address: u64, len: usize) -> Result<Vec<T>> {
        let mut host = touched_zeros(len)?;
        if len > 0 {
            // SAFETY: as the caller promises.
            unsafe { self.copy_from(address, bytemuck::cast_slice_mut(&mut host))? };
            self.synchronize()?;
        }
        Ok(host)
    }

    /// Copies a host array into new device memory.
    pub(crate) fn allocate_from<T: Pod>(&self, what: &'static str, host: &[T]) -> Result<CudaArray<T>> {
        let array = self.allocate(what, host.len())?;
        // SAFETY: `array` has as many elements as `host`.
        unsafe { self.copy_to(bytemuck::cast_slice(host), address(&array))? };
        Ok(array)
    }
}
