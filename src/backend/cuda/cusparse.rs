//! NVIDIA's cuSPARSE, preprocessed, with a buffer of its own: the yardstick for our kernels.
//!
//! The only place that talks to the library. It is loaded when this backend is first asked for.

use super::DeviceCsr;
use crate::backend::{Family, Operator, Params};
use crate::device::cuda::CudaVector;
use crate::device::{Cuda, Device};
use crate::error::{Error, GpuError, Result};
use crate::format::{Csr, Offsets, Values};
use crate::operator::{Cost, LinearOperator};
use crate::scalar::Scalar;
use cudarc::cusparse::sys;
use cudarc::driver::CudaSlice;
use std::ffi::{CStr, c_void};
use std::rc::Rc;
use std::sync::Arc;

/// The family of one.
pub struct Cusparse;

/// Fails where the library is missing, and says how to get it.
pub fn require_library() -> Result<()> {
    // SAFETY: only tries to open the library.
    if unsafe { sys::is_culib_present() } {
        return require_functions();
    }
    Err(Error::Gpu(GpuError::LibraryMissing {
        library: "cuSPARSE",
        tried: "libcusparse.so, libcusparse.so.12 through the system's loader".to_owned(),
        hint: "install the CUDA toolkit's libcusparse and put its folder on LD_LIBRARY_PATH, or use --backend vector",
    }))
}

/// Fails where the library is too old: the binding would end the program at the first call.
fn require_functions() -> Result<()> {
    const NEWEST: [&str; 3] = ["cusparseSpMV_preprocess", "cusparseCreateConstCsr", "cusparseGetErrorString"];
    let missing = NEWEST.iter().find(|name| {
        // SAFETY: the library is there; the symbol is only looked up.
        unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_err()
    });
    match missing {
        None => Ok(()),
        Some(name) => Err(Error::Gpu(GpuError::LibraryUnusable {
            library: "cuSPARSE",
            path: "libcusparse.so".into(),
            reason: format!("it has no {name}; version 12.4 or newer is needed, or use --backend vector"),
        })),
    }
}

fn check(call: &'static str, status: sys::cusparseStatus_t) -> Result<()> {
    if status == sys::cusparseStatus_t::CUSPARSE_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: the library returns a static string for every status.
    let message = unsafe { CStr::from_ptr(sys::cusparseGetErrorString(status)) };
    Err(Error::Gpu(GpuError::Cuda { call, message: message.to_string_lossy().into_owned() }))
}

struct Handle(sys::cusparseHandle_t);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: created by us, destroyed once.
        let _ = unsafe { sys::cusparseDestroy(self.0) };
    }
}

struct MatrixDescriptor(sys::cusparseConstSpMatDescr_t);

impl Drop for MatrixDescriptor {
    fn drop(&mut self) {
        // SAFETY: created by us, destroyed once.
        let _ = unsafe { sys::cusparseDestroySpMat(self.0) };
    }
}

struct VectorDescriptor(sys::cusparseDnVecDescr_t);

impl VectorDescriptor {
    fn new<T: Scalar>(v: &CudaVector<T>) -> Result<VectorDescriptor> {
        let mut descriptor = std::ptr::null_mut();
        // SAFETY: the vector has n elements of T on the device; the descriptor is used while it lives.
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
        // SAFETY: created by us, destroyed once.
        let _ = unsafe { sys::cusparseDestroyDnVec(self.0.cast_const()) };
    }
}

fn data_type<T: Scalar>() -> sys::cudaDataType {
    match size_of::<T>() {
        4 => sys::cudaDataType_t::CUDA_R_32F,
        _ => sys::cudaDataType_t::CUDA_R_64F,
    }
}

struct CusparseOperator {
    // The descriptor goes before the arrays that it points to, and the handle after it.
    matrix: MatrixDescriptor,
    handle: Handle,
    algorithm: sys::cusparseSpMVAlg_t,
    buffer: CudaSlice<u8>,
    csr: DeviceCsr,
    cost: Cost,
}

impl Family<Cuda> for Cusparse {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, params: &Params) -> Result<Operator<Cuda, T>> {
        require_library()?;
        let unsupported = |what: String, hint: &str| Error::Unsupported {
            backend: "cusparse",
            device: "cuda",
            what,
            hint: hint.to_owned(),
        };
        if matrix.values().width() == 8 && size_of::<T>() == 4
            || matrix.values().width() == 4 && size_of::<T>() == 8
        {
            let what = "values and vectors of different precision".to_owned();
            return Err(unsupported(what, "use --precision f64 or f32, or --backend vector"));
        }
        if matches!(matrix.row_offsets(), Offsets::U64(_)) || matrix.nnz() > i32::MAX as usize {
            return Err(unsupported(
                format!("{} entries", matrix.nnz()),
                "its 32-bit offsets end at 2147483647",
            ));
        }
        if matrix.rows() == 0 || matrix.cols() == 0 {
            let what = format!("a {} x {} matrix", matrix.rows(), matrix.cols());
            return Err(unsupported(what, "the library refuses empty ones; use --backend vector"));
        }
        if matrix.pattern().has_repeats() {
            return Err(unsupported(
                "rows with a column several times".to_owned(),
                "the library may go wrong on them; use --backend vector",
            ));
        }
        // The library has no implicit values: a pattern gets an array of ones.
        let explicit = match matrix.values() {
            Values::Ones => {
                let ones = vec![1.0; matrix.nnz()];
                let full = Csr::with_pattern(Arc::clone(matrix.pattern()), Values::F64(ones))?;
                Some(if size_of::<T>() == 4 { full.to_f32() } else { full })
            }
            _ => None,
        };
        let stored = explicit.as_ref().unwrap_or(matrix);
        let (csr, cost) = (DeviceCsr::upload(device, stored)?, Cost::of_csr(stored, size_of::<T>()));
        let algorithm = match params.get("algorithm") {
            Some("1") => sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG1,
            Some("2") => sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG2,
            _ => sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT,
        };
        let handle = handle_on(device)?;
        let descriptor = describe::<T>(&csr)?;
        let buffer = device.allocate("the buffer of cuSPARSE", 1)?;
        let mut operator = CusparseOperator { matrix: descriptor, handle, algorithm, buffer, csr, cost };
        operator.prepare::<T>(device)?;
        Ok(Rc::new(operator))
    }
}

fn handle_on(device: &Cuda) -> Result<Handle> {
    let mut handle = std::ptr::null_mut();
    // SAFETY: writes one handle.
    check("cusparseCreate", unsafe { sys::cusparseCreate(&mut handle) })?;
    let handle = Handle(handle);
    // SAFETY: the stream lives as long as the device that operators are used with.
    check("cusparseSetStream", unsafe {
        sys::cusparseSetStream(handle.0, device.stream().cu_stream().cast())
    })?;
    Ok(handle)
}

fn describe<T: Scalar>(csr: &DeviceCsr) -> Result<MatrixDescriptor> {
    let mut descriptor = std::ptr::null();
    let index = sys::cusparseIndexType_t::CUSPARSE_INDEX_32I;
    // SAFETY: the arrays are a validated matrix's on the device, and the operator owns them beside the descriptor.
    let status = unsafe {
        sys::cusparseCreateConstCsr(
            &mut descriptor,
            csr.rows as i64,
            csr.cols as i64,
            csr.nnz as i64,
            csr.offsets_address() as *const c_void,
            super::address(&csr.col_indices) as *const c_void,
            csr.values_address().unwrap_or(0) as *const c_void,
            index,
            index,
            sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO,
            data_type::<T>(),
        )
    };
    check("cusparseCreateConstCsr", status)?;
    Ok(MatrixDescriptor(descriptor))
}

impl CusparseOperator {
    /// Gets the buffer that the library asks for, and lets it look at the matrix.
    fn prepare<T: Scalar>(&mut self, device: &Cuda) -> Result<()> {
        let x = device.vector::<T>(self.csr.cols, 1)?;
        let y = device.vector::<T>(self.csr.rows, 1)?;
        let (x, y) = (VectorDescriptor::new(&x)?, VectorDescriptor::new(&y)?);
        let (one, zero) = (T::from_f64(1.0), T::from_f64(0.0));
        let (one, zero) = (std::ptr::from_ref(&one).cast(), std::ptr::from_ref(&zero).cast());
        let operation = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
        let mut bytes = 0;
        // SAFETY: handle, descriptors and scalars live through the calls; the buffer has the size asked for.
        unsafe {
            let status = sys::cusparseSpMV_bufferSize(
                self.handle.0,
                operation,
                one,
                self.matrix.0,
                x.0.cast_const(),
                zero,
                y.0,
                data_type::<T>(),
                self.algorithm,
                &mut bytes,
            );
            check("cusparseSpMV_bufferSize", status)?;
            self.buffer = device.allocate("the buffer of cuSPARSE", bytes)?;
            let status = sys::cusparseSpMV_preprocess(
                self.handle.0,
                operation,
                one,
                self.matrix.0,
                x.0.cast_const(),
                zero,
                y.0,
                data_type::<T>(),
                self.algorithm,
                super::address(&self.buffer) as *mut c_void,
            );
            check("cusparseSpMV_preprocess", status)?;
        }
        device.synchronize()
    }
}

impl<T: Scalar> LinearOperator<Cuda, T> for CusparseOperator {
    fn shape(&self) -> (usize, usize) {
        (self.csr.rows, self.csr.cols)
    }

    fn apply(
        &self,
        device: &Cuda,
        alpha: f64,
        x: &CudaVector<T>,
        beta: f64,
        y: &mut CudaVector<T>,
    ) -> Result<()> {
        self.csr.check_shapes("cusparse", x, y)?;
        if device.rehearsing() {
            return Ok(());
        }
        let (x, y) = (VectorDescriptor::new(x)?, VectorDescriptor::new(y)?);
        let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
        // SAFETY: shapes are checked; everything lives through the call; a captured launch copies its scalars.
        let status = unsafe {
            sys::cusparseSpMV(
                self.handle.0,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                std::ptr::from_ref(&alpha).cast(),
                self.matrix.0,
                x.0.cast_const(),
                std::ptr::from_ref(&beta).cast(),
                y.0,
                data_type::<T>(),
                self.algorithm,
                super::address(&self.buffer) as *mut c_void,
            )
        };
        check("cusparseSpMV", status)
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn storage(&self) -> u64 {
        self.csr.bytes + self.buffer.len() as u64
    }
}
