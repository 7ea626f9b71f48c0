//! Matrices that a caller has in GPU memory.

use super::arrays::{Indices, Numbers};
use super::device::{DeviceHandle, DeviceName, Opened};
use super::matrix::{Matrix, OnDevice};
use crate::backend::{Host, Taken};
use crate::device::{Cuda, Device, LentIndices, LentNumbers, LentRows};
use crate::error::{Error, GpuError, Result};

impl Matrix {
    /// Builds a matrix from compressed sparse rows in memory of the GPU with this index. The arrays are
    /// copied there, and to the host; solves and products on the shared device of that GPU then upload
    /// nothing. The copy begins after the earlier work of the stream that `given` names, and the call returns
    /// once it is done. The copies in GPU memory live as long as the matrix.
    ///
    /// If the column indices of a row do not increase, or the GPU lacks memory, the host makes the matrix, as
    /// [`from_csr`](Matrix::from_csr) does.
    ///
    /// # Safety
    /// At the addresses are as many elements as `given` says, in memory of that GPU, and nothing
    /// writes them during the call but earlier work of the stream, which is a stream of the GPU, or
    /// 0 for the default stream.
    pub unsafe fn from_gpu(gpu: usize, given: &LentRows) -> Result<Matrix> {
        let handle = DeviceHandle::shared(DeviceName::Cuda(gpu))?;
        let Opened::Cuda(shared) = &handle.0 else { unreachable!("the device is a GPU") };
        let device = shared.acquire()?;
        device.enter()?;
        // SAFETY: as the caller promises.
        let taken = unsafe { device.taken(given) }.or_else(|error| match error {
            Error::Gpu(GpuError::DeviceMemory { .. }) => {
                log::warn!("the matrix is copied to the host, which takes longer: {error}");
                Ok(None)
            }
            other => Err(other),
        })?;
        let Some(Taken { matrix, pattern, values }) = taken else {
            // SAFETY: as the caller promises.
            return unsafe { from_host(&device, given) };
        };
        drop(device);
        Ok(Matrix::with_copies(matrix, OnDevice { pattern, values, device: handle }))
    }
}

/// Copies the arrays to the host and builds the matrix of them.
///
/// # Safety
/// See [`Matrix::from_gpu`].
unsafe fn from_host(device: &Cuda, given: &LentRows) -> Result<Matrix> {
    let LentRows { rows, cols, entries, stream, .. } = *given;
    // SAFETY: as the caller promises.
    unsafe {
        device.wait_for(stream)?;
        let offsets = indices(device, given.offsets, rows.saturating_add(1))?;
        let columns = indices(device, given.columns, entries)?;
        let values: Numbers<'_> = match given.values {
            LentNumbers::F32(at) => device.fetched::<f32>(at, entries)?.into(),
            LentNumbers::F64(at) => device.fetched::<f64>(at, entries)?.into(),
            LentNumbers::Ones => Numbers::Ones,
        };
        Matrix::from_csr(rows, cols, offsets, columns, values)
    }
}

/// Copies indices to the host.
///
/// # Safety
/// See [`Matrix::from_gpu`]; at the address are `len` indices.
unsafe fn indices(device: &Cuda, given: LentIndices, len: usize) -> Result<Indices<'static>> {
    // SAFETY: as the caller promises.
    unsafe {
        Ok(match given {
            LentIndices::I32(at) => device.fetched::<i32>(at, len)?.into(),
            LentIndices::I64(at) => device.fetched::<i64>(at, len)?.into(),
        })
    }
}
