//! NVIDIA's cuSPARSE, preprocessed, with its own buffer: the baseline for our kernels.
//!
//! Only this module calls the library. It is loaded when one of these backends is first used.

mod blocks;
mod handles;
mod library;
mod slices;
pub(crate) mod spmm;

use super::arrays::{Arrays, DeviceArrays};
use super::check_shapes;
use crate::backend::{Family, Refusal, SharedOperator};
use crate::device::cuda::CudaVector;
use crate::device::cuda::memory::{CudaArray, address};
use crate::device::{Cuda, Device};
use crate::error::{Error, GpuError, Result};
use crate::format::{Csr, Offsets, Values};
use crate::operator::{Cost, LinearOperator};
use crate::parallel::lock;
use crate::params::Params;
use crate::scalar::Scalar;
pub(crate) use blocks::Legacy;
use cudarc::cusparse::sys;
use handles::{Handle, MatrixDescriptor, VectorDescriptor};
pub(crate) use library::describe_library;
pub use library::require_library;
use library::{has, missing, would_not_start};
use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

/// One of the library's algorithms.
pub(crate) trait Algorithm {
    /// The backend's name.
    const NAME: &'static str;
    /// The library's identifier of the algorithm.
    const ALGORITHM: sys::cusparseSpMVAlg_t;
    /// The format that the algorithm multiplies.
    const STORAGE: Storage = Storage::Rows;
}

/// A format of the library.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Storage {
    /// CSR.
    Rows,
    /// Sliced ELL, in slices of this many rows.
    Slices(usize),
    /// Square blocks.
    Blocks,
}

/// The library's default algorithm.
pub(crate) struct Default;
/// The library's first algorithm over CSR.
pub(crate) struct First;
/// The library's second algorithm over CSR, which gives the same bits on every run.
pub(crate) struct Second;
/// The library's algorithm over sliced ELL.
pub(crate) struct Sliced;
/// The library's algorithm over blocks.
pub(crate) struct Blocked;

impl Algorithm for Default {
    const NAME: &'static str = "cusparse";
    const ALGORITHM: sys::cusparseSpMVAlg_t = sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT;
}
impl Algorithm for First {
    const NAME: &'static str = "cusparse-alg1";
    const ALGORITHM: sys::cusparseSpMVAlg_t = sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG1;
}
impl Algorithm for Second {
    const NAME: &'static str = "cusparse-alg2";
    const ALGORITHM: sys::cusparseSpMVAlg_t = sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG2;
}
impl Algorithm for Sliced {
    const NAME: &'static str = "cusparse-sell";
    const ALGORITHM: sys::cusparseSpMVAlg_t = sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_SELL_ALG1;
    const STORAGE: Storage = Storage::Slices(32);
}
impl Algorithm for Blocked {
    const NAME: &'static str = "cusparse-bsr";
    // The only algorithm over blocks; its own identifier came with a later version.
    const ALGORITHM: sys::cusparseSpMVAlg_t = sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT;
    const STORAGE: Storage = Storage::Blocks;
}

/// The library's product with one of its algorithms.
pub(crate) struct Cusparse<A>(PhantomData<A>);

fn check(call: &'static str, status: sys::cusparseStatus_t) -> Result<()> {
    if status == sys::cusparseStatus_t::CUSPARSE_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: the library returns a static string for every status.
    let message = unsafe { CStr::from_ptr(sys::cusparseGetErrorString(status)) };
    Err(Error::Gpu(GpuError::Cuda { call, message: message.to_string_lossy().into_owned() }))
}

fn data_type<T: Scalar>() -> sys::cudaDataType {
    match size_of::<T>() {
        4 => sys::cudaDataType_t::CUDA_R_32F,
        _ => sys::cudaDataType_t::CUDA_R_64F,
    }
}

struct CusparseOperator {
    // Declared before the arrays, so that it is dropped first: the descriptor points to them.
    library: Mutex<(MatrixDescriptor, Handle)>,
    algorithm: sys::cusparseSpMVAlg_t,
    buffer: CudaArray<u8>,
    arrays: DeviceArrays,
    backend: &'static str,
    shape: (usize, usize),
    cost: Cost,
}

/// A matrix in one of the library's formats.
struct Described {
    descriptor: MatrixDescriptor,
    arrays: DeviceArrays,
    /// Number of entries, padding included.
    padded_entries: usize,
}

fn unsupported(backend: &'static str, what: String, hint: &str) -> Error {
    Error::Unsupported { backend, device: "cuda", what, hint: hint.to_owned() }
}

/// Refuses matrices that the library does not support.
fn check_matrix(
    storage: Storage,
    matrix: &Csr,
    params: &Params,
    vector_width: usize,
) -> std::result::Result<(), Refusal> {
    let width = matrix.values().width();
    if width != 0 && width != vector_width {
        let hint = "use precision f64 or f32, or backend csr";
        return Err(Refusal::new("values and vectors of different precision", hint));
    }
    if matches!(matrix.row_offsets(), Offsets::U64(_)) || matrix.nnz() > i32::MAX as usize {
        let hint = "its 32-bit offsets end at 2147483647; use backend csr";
        return Err(Refusal::new(format!("{} entries", matrix.nnz()), hint));
    }
    if matrix.rows() == 0 || matrix.cols() == 0 {
        let what = format!("a {} x {} matrix", matrix.rows(), matrix.cols());
        return Err(Refusal::new(what, "the library refuses empty matrices; use backend csr"));
    }
    match storage {
        Storage::Slices(_) if matrix.nnz() == 0 => {
            Err(Refusal::new("a matrix without entries", "use backend sell"))
        }
        Storage::Blocks => blocks::check_blocks(matrix, params),
        _ => Ok(()),
    }
}

impl<A: Algorithm> Family<Cuda> for Cusparse<A> {
    const ADDS_REPEATS: bool = false;

    fn check(matrix: &Csr, params: &Params, width: usize) -> std::result::Result<(), Refusal> {
        check_matrix(A::STORAGE, matrix, params, width)
    }

    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        require_library()?;
        let explicit = explicit::<T>(matrix)?;
        let stored = explicit.as_ref().unwrap_or(matrix);
        let Described { descriptor, arrays, padded_entries } = match A::STORAGE {
            Storage::Rows => describe::<T>(device, stored, reserve)?,
            Storage::Slices(rows) => slices::describe::<A, T>(device, stored, rows, reserve)?,
            Storage::Blocks => blocks::describe::<A, T>(device, stored, params, reserve)?,
        };
        let library = Mutex::new((descriptor, Handle::on(device)?));
        let shape = (matrix.rows(), matrix.cols());
        let (bytes, vectors) = (arrays.bytes(), (shape.0 + shape.1) * size_of::<T>());
        let mut operator = CusparseOperator {
            library,
            algorithm: A::ALGORITHM,
            buffer: device.allocate("the buffer of cuSPARSE", 1)?,
            arrays,
            backend: A::NAME,
            shape,
            cost: Cost { bytes: bytes + vectors as u64, flops: 2 * padded_entries as u64 },
        };
        operator.set_up::<T>(device, A::STORAGE == Storage::Rows, reserve)?;
        Ok(Arc::new(operator))
    }
}

/// Returns the matrix with an explicit array of ones if its values are implicit, because the
/// library has no implicit values.
fn explicit<T: Scalar>(matrix: &Csr) -> Result<Option<Csr>> {
    if !matches!(matrix.values(), Values::Ones) {
        return Ok(None);
    }
    let full = Csr::with_pattern(Arc::clone(matrix.pattern()), Values::F64(vec![1.0; matrix.nnz()]))?;
    Ok(Some(if size_of::<T>() == 4 { full.to_f32() } else { full }))
}

fn describe<T: Scalar>(device: &Cuda, matrix: &Csr, reserve: u64) -> Result<Described> {
    let arrays = Arrays::new()
        .add_offsets("row_offsets", matrix.row_offsets())
        .add("col_indices", matrix.col_indices())
        .add_values("values", matrix.values())
        .upload(device, reserve)?;
    let shape = (matrix.rows(), matrix.cols());
    let descriptor = row_descriptor::<T>(&arrays, shape, matrix.nnz())?;
    Ok(Described { descriptor, arrays, padded_entries: matrix.nnz() })
}

/// Creates a descriptor of a matrix in CSR, which must not outlive the arrays.
fn row_descriptor<T: Scalar>(
    arrays: &DeviceArrays,
    (rows, cols): (usize, usize),
    entries: usize,
) -> Result<MatrixDescriptor> {
    let mut descriptor = std::ptr::null();
    let index = sys::cusparseIndexType_t::CUSPARSE_INDEX_32I;
    // SAFETY: the arrays belong to a validated matrix on the device, and an operator owns them
    // together with the descriptor.
    let status = unsafe {
        sys::cusparseCreateConstCsr(
            &mut descriptor,
            rows as i64,
            cols as i64,
            entries as i64,
            arrays.address(0) as *const c_void,
            arrays.address(1) as *const c_void,
            arrays.address(2) as *const c_void,
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
    /// Allocates the buffer that the library requires, and preprocesses the matrix if the
    /// algorithm supports that.
    fn set_up<T: Scalar>(&mut self, device: &Cuda, preprocess: bool, reserve: u64) -> Result<()> {
        let x = device.vector::<T>(self.shape.1, 1)?;
        let y = device.vector::<T>(self.shape.0, 1)?;
        let (x, y) = (VectorDescriptor::new(&x)?, VectorDescriptor::new(&y)?);
        let (one, zero) = (T::from_f64(1.0), T::from_f64(0.0));
        let (one, zero) = (std::ptr::from_ref(&one).cast(), std::ptr::from_ref(&zero).cast());
        let operation = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
        let mut bytes = 0;
        device.enter()?;
        let (matrix, handle) = &*lock(&self.library);
        // SAFETY: handle, descriptors and scalars live through the calls; the buffer has the requested size.
        unsafe {
            let status = sys::cusparseSpMV_bufferSize(
                handle.raw,
                operation,
                one,
                matrix.0,
                x.0.cast_const(),
                zero,
                y.0,
                data_type::<T>(),
                self.algorithm,
                &mut bytes,
            );
            check("cusparseSpMV_bufferSize", status)?;
            let what = "the buffer of cuSPARSE";
            device.require_room(what, bytes as u64, reserve)?;
            self.buffer = device.allocate(what, bytes)?;
            if !preprocess {
                return device.synchronize();
            }
            let status = sys::cusparseSpMV_preprocess(
                handle.raw,
                operation,
                one,
                matrix.0,
                x.0.cast_const(),
                zero,
                y.0,
                data_type::<T>(),
                self.algorithm,
                address(&self.buffer) as *mut c_void,
            );
            check("cusparseSpMV_preprocess", status)?;
        }
        device.synchronize()
    }
}

impl<T: Scalar> LinearOperator<Cuda, T> for CusparseOperator {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn apply(
        &self,
        device: &Cuda,
        alpha: f64,
        x: &CudaVector<T>,
        beta: f64,
        y: &mut CudaVector<T>,
    ) -> Result<()> {
        check_shapes(device, self.shape, self.backend, x, y)?;
        if device.skips_launch() {
            return Ok(());
        }
        let (x, y) = (VectorDescriptor::new(x)?, VectorDescriptor::new(y)?);
        let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
        device.enter()?;
        let (matrix, handle) = &*lock(&self.library);
        // SAFETY: shapes are checked; all arguments live through the call; a captured launch
        // copies its scalars.
        let status = unsafe {
            sys::cusparseSpMV(
                handle.raw,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                std::ptr::from_ref(&alpha).cast(),
                matrix.0,
                x.0.cast_const(),
                std::ptr::from_ref(&beta).cast(),
                y.0,
                data_type::<T>(),
                self.algorithm,
                address(&self.buffer) as *mut c_void,
            )
        };
        check("cusparseSpMV", status)
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn storage(&self) -> u64 {
        self.arrays.bytes() + self.buffer.len() as u64
    }
}
