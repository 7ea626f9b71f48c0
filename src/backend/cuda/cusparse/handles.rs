//! The library's handles and descriptors as owned values.
//!
//! They may move between threads, but calls on one must not overlap: each operator has its own
//! and locks it for each call.

use super::{check, data_type, sys, would_not_start};
use crate::device::cuda::{CudaVector, between_captures};
use crate::device::{Cuda, Device};
use crate::error::Result;
use crate::scalar::Scalar;
use cudarc::driver::CudaStream;
use std::ffi::c_void;
use std::sync::Arc;

/// A handle of the library that enqueues on the stream of a device.
pub(super) struct Handle {
    pub raw: sys::cusparseHandle_t,
    stream: Arc<CudaStream>,
}

// SAFETY: a handle may be used on any thread on which its context is current; `Device::enter` and `drop` set
// it. The type is not `Sync`: operators lock it for each call.
unsafe impl Send for Handle {}

impl Handle {
    pub(crate) fn on(device: &Cuda) -> Result<Handle> {
        device.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the call writes one handle.
        check("cusparseCreate", unsafe { sys::cusparseCreate(&mut raw) }).map_err(would_not_start)?;
        let handle = Handle { raw, stream: Arc::clone(device.stream()) };
        // SAFETY: the handle keeps the stream alive.
        check("cusparseSetStream", unsafe {
            sys::cusparseSetStream(handle.raw, handle.stream.cu_stream().cast())
        })?;
        Ok(handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let context = self.stream.context();
        context.record_err(context.bind_to_thread());
        // SAFETY: created in `on`, destroyed once.
        let _ = between_captures(|| unsafe { sys::cusparseDestroy(self.raw) });
    }
}

/// The descriptor of a matrix in one of the library's generic formats.
pub(super) struct MatrixDescriptor(pub sys::cusparseConstSpMatDescr_t);

// SAFETY: a descriptor is host memory that belongs to no thread. It is not `Sync`: operators
// lock it for each call.
unsafe impl Send for MatrixDescriptor {}

impl Drop for MatrixDescriptor {
    fn drop(&mut self) {
        // SAFETY: created by this module's caller, destroyed once.
        let _ = unsafe { sys::cusparseDestroySpMat(self.0) };
    }
}

/// The descriptor of a matrix for the legacy functions.
pub(super) struct LegacyDescriptor(pub sys::cusparseMatDescr_t);

// SAFETY: as for `MatrixDescriptor`.
unsafe impl Send for LegacyDescriptor {}

impl LegacyDescriptor {
    /// Creates the descriptor of a general matrix with zero-based indices.
    pub(crate) fn new() -> Result<LegacyDescriptor> {
        let mut descriptor = std::ptr::null_mut();
        // SAFETY: the call writes one descriptor.
        check("cusparseCreateMatDescr", unsafe { sys::cusparseCreateMatDescr(&mut descriptor) })?;
        Ok(LegacyDescriptor(descriptor))
    }
}

impl Drop for LegacyDescriptor {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        let _ = unsafe { sys::cusparseDestroyMatDescr(self.0) };
    }
}

/// The descriptor of a vector, for one call.
pub(super) struct VectorDescriptor(pub sys::cusparseDnVecDescr_t);

impl VectorDescriptor {
    pub(crate) fn new<T: Scalar>(v: &CudaVector<T>) -> Result<VectorDescriptor> {
        let mut descriptor = std::ptr::null_mut();
        // SAFETY: the vector has n elements of T on the device; the descriptor is used only
        // while the vector lives.
        let status = unsafe {
            sys::cusparseCreateDnVec(
                &mut descriptor,
                v.n() as i64,
                v.address() as *mut c_void,
                data_type::<T>(),
            )
        };
        check("cusparseCreateDnVec", status)?;
        Ok(VectorDescriptor(descriptor))
    }
}

impl Drop for VectorDescriptor {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        let _ = unsafe { sys::cusparseDestroyDnVec(self.0.cast_const()) };
    }
}

/// The descriptor of a vector with several columns, row-major, for one call.
pub(super) struct ColumnsDescriptor(pub sys::cusparseDnMatDescr_t);

impl ColumnsDescriptor {
    pub(crate) fn new<T: Scalar>(v: &CudaVector<T>) -> Result<ColumnsDescriptor> {
        let mut descriptor = std::ptr::null_mut();
        // SAFETY: the vector has n x k elements of T on the device, row-major; the descriptor is used
        // only while the vector lives.
        let status = unsafe {
            sys::cusparseCreateDnMat(
                &mut descriptor,
                v.n() as i64,
                v.k() as i64,
                v.k() as i64,
                v.address() as *mut c_void,
                data_type::<T>(),
                sys::cusparseOrder_t::CUSPARSE_ORDER_ROW,
            )
        };
        check("cusparseCreateDnMat", status)?;
        Ok(ColumnsDescriptor(descriptor))
    }
}

impl Drop for ColumnsDescriptor {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        let _ = unsafe { sys::cusparseDestroyDnMat(self.0.cast_const()) };
    }
}
