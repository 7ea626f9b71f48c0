//! Arrays in GPU memory, and the memory that is left.

use super::Cuda;
use super::driver::fault;
use crate::error::{GpuError, Result};
use bytemuck::{Pod, TransparentWrapper};
use cudarc::driver::{CudaSlice, DevicePtr, DeviceRepr, ValidAsZeroBits, sys};

/// An element of an array in GPU memory. [`Pod`] types are copied bit by bit.
#[repr(transparent)]
pub struct Element<T>(T);

// SAFETY: the representation is that of T.
unsafe impl<T> TransparentWrapper<T> for Element<T> {}
// SAFETY: a Pod type has no padding and no pointers.
unsafe impl<T: Pod> DeviceRepr for Element<T> {}
// SAFETY: a Pod type is valid for any bits.
unsafe impl<T: Pod> ValidAsZeroBits for Element<T> {}

/// An array in GPU memory.
pub type CudaArray<T> = CudaSlice<Element<T>>;

/// The hint where free memory is fragmented, or where another program takes it meanwhile.
const IN_PIECES: &str =
    "the driver has no piece of that size; end other programs on this GPU, or use the CPU";

/// The address of an array on the device.
pub fn address<T>(array: &CudaArray<T>) -> u64 {
    array.device_ptr(array.stream()).0
}

impl Cuda {
    /// Free and total bytes of GPU memory.
    pub fn memory(&self) -> Result<(u64, u64)> {
        let (free, total) = self.context.mem_get_info().map_err(fault("cuMemGetInfo"))?;
        let (free, total) = (free as u64, total as u64);
        let used = self.free_at_first.saturating_sub(free);
        Ok((self.memory_limit.map_or(free, |limit| limit.saturating_sub(used).min(free)), total))
    }

    /// Fails where `needed` bytes, and `reserve` bytes more for later use, are not free.
    pub fn require_room(&self, what: &'static str, needed: u64, reserve: u64) -> Result<()> {
        let free = self.memory()?.0;
        if needed.saturating_add(reserve) <= free {
            return Ok(());
        }
        Err(GpuError::DeviceMemory { what, needed, beside: reserve, free, hint: None }.into())
    }

    /// Device memory for `len` elements, zeroed.
    pub fn allocate<T: Pod>(&self, what: &'static str, len: usize) -> Result<CudaArray<T>> {
        let needed = (len * size_of::<T>()) as u64;
        self.require_room(what, needed, 0)?;
        self.stream.alloc_zeros(len.max(1)).map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let free = self.memory().map_or(0, |(free, _)| free);
                let hint = Some(IN_PIECES.to_owned());
                GpuError::DeviceMemory { what, needed, beside: 0, free, hint }.into()
            }
            _ => fault("cuMemAllocAsync")(e),
        })
    }

    /// Copies a host array into new device memory.
    pub fn allocate_from<T: Pod>(&self, what: &'static str, host: &[T]) -> Result<CudaArray<T>> {
        let array = self.allocate(what, host.len())?;
        // SAFETY: as many elements as were just allocated.
        unsafe { self.copy_to(bytemuck::cast_slice(host), address(&array))? };
        Ok(array)
    }
}
