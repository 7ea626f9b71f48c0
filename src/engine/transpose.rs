//! Transposes, made on the device of a solve if it is faster with them than the host.

use super::device::{DeviceHandle, Opened};
use super::memory;
use crate::backend::{Host, Transposed};
use crate::device::Device;
use crate::error::{Error, GpuError, Result};
use crate::format::Csr;
use std::sync::Arc;

/// Returns the transpose of a matrix, computed on the device; none if the host transposes it. Leaves memory for `vectors` vectors. Its
/// columns may stay on the device unless `host_reads`. Calls `meanwhile` at most once, while the device works.
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
