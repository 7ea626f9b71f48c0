//! Transposes, made on the device of a solve if it is faster with them than the host.

use super::device::{DeviceHandle, Opened};
use super::memory;
use crate::backend::{Host, Transposed};
use crate::device::{Device, Kept};
use crate::error::{Error, GpuError, Result};
use crate::format::Csr;
use std::sync::Arc;

/// Returns the transpose of a matrix, computed on the device; none if the host transposes it. Leaves memory
/// for `vectors` vectors. Unless `host_reads`, the columns of a matrix without values may stay on the device.
/// Calls `meanwhile` at most once, while the device works.
pub(super) fn transposed_there(
    device: &DeviceHandle,
    matrix: &Arc<Csr>,
    (vectors, host_reads): (usize, bool),
    meanwhile: &mut dyn FnMut(),
) -> Result<Option<Transposed>> {
    let reserve = memory::vectors(vectors, matrix.rows(), size_of::<f64>());
    match &device.0 {
        Opened::Cpu(_) => Ok(None),
        Opened::Cuda(device) => {
            let device = device.acquire()?;
            device.enter()?;
            device.transposed(matrix, (reserve, host_reads), meanwhile).or_else(|error| match error {
                Error::Gpu(GpuError::DeviceMemory { .. }) => {
                    log::warn!("the host transposes the matrix, which takes longer: {error}");
                    Ok(None)
                }
                other => Err(other),
            })
        }
    }
}

/// Prepares an operator with `prepare`, while `kept` keeps the copy of a transpose on the device. If the
/// memory of the device does not suffice for both, prepares it again without the copy.
pub(super) fn with_copy<R>(kept: Option<Kept>, mut prepare: impl FnMut() -> Result<R>) -> Result<R> {
    match (prepare(), kept) {
        (Err(error @ Error::Gpu(GpuError::DeviceMemory { .. })), Some(kept)) => {
            log::info!("the matrix is copied to the GPU again: {error}");
            drop(kept);
            prepare()
        }
        (prepared, _) => prepared,
    }
}
