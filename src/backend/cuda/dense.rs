//! A dense matrix multiplied by NVIDIA's cuBLAS: the baseline that a sparse format has to beat. One column is
//! a product with a vector (gemv), several columns are a product of matrices (gemm).
//!
//! Only this module calls the library. Its few functions are bound here by name: their signatures are the
//! same from CUDA 11 to 13, while the file name of the library differs. A zero that the sparse matrix does
//! not store is multiplied too: if x is not finite there, the row becomes NaN.

use super::arrays::{Arrays, DeviceArrays};
use super::check_columns;
use crate::backend::{Family, Refusal, SharedOperator};
use crate::device::cuda::libraries::{GetProperty, Hint, Wanted, describe, hint};
use crate::device::cuda::{CudaVector, between_captures};
use crate::device::{Cuda, Device};
use crate::error::{Error, GpuError, Result};
use crate::format::{Csr, Dense};
use crate::operator::{Cost, LinearOperator};
use crate::parallel::lock;
use crate::params::{Kind, Param, Params};
use crate::scalar::Scalar;
use cudarc::driver::CudaStream;
use libloading::os::unix::Library;
use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock};

/// The family of the backend `dense`.
pub(crate) struct DenseFamily;

const LIBRARY: Wanted = Wanted {
    name: "cuBLAS",
    file: "libcublas.so",
    names: &["libcublas.so.13", "libcublas.so.12", "libcublas.so"],
    wheel: "cublas",
    needs: &[("libcublasLt.so", "cublas")],
    hint: hint!(
        "pip install ",
        "nvidia-cublas",
        " brings it; or put the folder of the CUDA toolkit's libcublas on LD_LIBRARY_PATH, or use backend csr"
    ),
};
const REINSTALL: Hint = hint!("pip install --force-reinstall ", "nvidia-cublas", ", or use backend csr");

/// `CUBLAS_OP_N` and `CUBLAS_OP_T`.
const PLAIN: c_int = 0;
const TRANSPOSED: c_int = 1;
/// `CUBLAS_TF32_TENSOR_OP_MATH`.
const TF32: c_int = 3;

/// The arithmetic of products in single precision.
pub(crate) const MATH: Param = Param::new(
    "math",
    Kind::WordOr(&["full"], &Kind::Word(&["tf32"])),
    "arithmetic in single precision: full, or tf32, which rounds factors to 11 bits",
)
.or("full");

/// The most rows times columns: 512 MiB in double precision.
pub(super) const MOST: u128 = 1 << 26;

type RawHandle = *mut c_void;
type Gemv = unsafe extern "C" fn(
    RawHandle,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    *const c_void,
    c_int,
    *const c_void,
    *mut c_void,
    c_int,
) -> c_int;

type Gemm = unsafe extern "C" fn(
    RawHandle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    *const c_void,
    c_int,
    *const c_void,
    *mut c_void,
    c_int,
) -> c_int;

/// The functions of the library, which stays loaded until the process ends.
struct Functions {
    create: unsafe extern "C" fn(*mut RawHandle) -> c_int,
    destroy: unsafe extern "C" fn(RawHandle) -> c_int,
    property: GetProperty,
    set_stream: unsafe extern "C" fn(RawHandle, *mut c_void) -> c_int,
    set_math: unsafe extern "C" fn(RawHandle, c_int) -> c_int,
    gemv_f64: Gemv,
    gemv_f32: Gemv,
    gemm_f64: Gemm,
    gemm_f32: Gemm,
}

impl Functions {
    fn bind(library: &Library) -> std::result::Result<Functions, libloading::Error> {
        // SAFETY: each field's type is the signature that cublas_v2.h declares for the function of that name,
        // with the pointers of both precisions as void; the caller keeps the library loaded.
        unsafe {
            Ok(Functions {
                create: *library.get(b"cublasCreate_v2")?,
                destroy: *library.get(b"cublasDestroy_v2")?,
                property: *library.get(b"cublasGetProperty")?,
                set_stream: *library.get(b"cublasSetStream_v2")?,
                set_math: *library.get(b"cublasSetMathMode")?,
                gemv_f64: *library.get(b"cublasDgemv_v2")?,
                gemv_f32: *library.get(b"cublasSgemv_v2")?,
                gemm_f64: *library.get(b"cublasDgemm_v2")?,
                gemm_f32: *library.get(b"cublasSgemm_v2")?,
            })
        }
    }

    fn describe(&self) -> String {
        // SAFETY: the function has this signature, and its library stays loaded.
        unsafe { describe(self.property) }
    }
}

/// Loads cuBLAS once and returns its functions. The error says how to install the library.
fn library() -> Result<&'static Functions> {
    static LOADED: OnceLock<Functions> = OnceLock::new();
    LIBRARY.functions(&LOADED, Functions::bind, &REINSTALL)
}

/// Fails if the library is missing, and says how to install it.
pub fn require_library() -> Result<()> {
    library().map(drop)
}

/// Returns the version and file of the library.
pub(crate) fn describe_library() -> Result<String> {
    library().map(Functions::describe)
}

fn check(call: &'static str, status: c_int) -> Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(Error::Gpu(GpuError::Cuda { call, message: format!("cuBLAS returned status {status}") })),
    }
}

/// A handle of the library that enqueues on the stream of a device.
struct Handle {
    functions: &'static Functions,
    raw: RawHandle,
    stream: Arc<CudaStream>,
}

// SAFETY: a handle may be used on any thread on which its context is current; `Device::enter` and `drop` set
// it. The type is not `Sync`: the operator locks it for each call.
unsafe impl Send for Handle {}

impl Handle {
    fn on(device: &Cuda) -> Result<Handle> {
        let functions = library()?;
        device.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the call writes one handle.
        check("cublasCreate", between_captures(|| unsafe { (functions.create)(&mut raw) }))
            .map_err(|e| LIBRARY.would_not_start(e, &functions.describe()))?;
        let handle = Handle { functions, raw, stream: Arc::clone(device.stream()) };
        // SAFETY: the handle keeps the stream alive.
        let status = unsafe { (functions.set_stream)(handle.raw, handle.stream.cu_stream().cast()) };
        check("cublasSetStream", status)?;
        Ok(handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let context = self.stream.context();
        context.record_err(context.bind_to_thread());
        // SAFETY: created in `on`, destroyed once.
        let _ = between_captures(|| unsafe { (self.functions.destroy)(self.raw) });
    }
}

struct DenseOperator {
    handle: Mutex<Handle>,
    values: DeviceArrays,
    shape: (usize, usize),
    /// The numbers of columns with which the library has been called.
    called: Mutex<BTreeSet<usize>>,
}

impl Family<Cuda> for DenseFamily {
    const ADDS_REPEATS: bool = false;

    fn check(matrix: &Csr, params: &Params, width: usize) -> std::result::Result<(), Refusal> {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        if width != size_of::<f32>() && params.word(MATH.name) == Some("tf32") {
            return Err(Refusal::new("tf32 in double precision", "use precision f32, or math=full"));
        }
        if rows as u128 * cols as u128 > MOST {
            let hint = format!("it stores rows x columns values, at most {} of them; use backend csr", MOST);
            return Err(Refusal::new(format!("a matrix of {rows} x {cols}"), hint));
        }
        if rows == 0 || cols == 0 {
            let hint = "cuBLAS does not compute with empty matrices; use backend csr";
            return Err(Refusal::new(format!("a matrix of {rows} x {cols}"), hint));
        }
        if matrix.values().width() > width {
            let hint = "use precision f64 or f32, or backend csr";
            return Err(Refusal::new("values and vectors of different precision", hint));
        }
        Ok(())
    }

    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let shape = (matrix.rows(), matrix.cols());
        library()?;
        let dense = Dense::from_csr(matrix)?;
        let arrays = match size_of::<T>() {
            8 => Arrays::new().add("values", dense.values()),
            // Exact: `check` refuses values in double precision.
            _ => {
                let values: Vec<f32> = dense.values().iter().map(|&v| v as f32).collect();
                Arrays::new().add("values", values)
            }
        };
        let values = arrays.upload(device, reserve)?;
        let handle = Handle::on(device)?;
        if params.word(MATH.name) == Some("tf32") {
            // SAFETY: the handle is valid, and the mode is one of the library's.
            check("cublasSetMathMode", unsafe { (handle.functions.set_math)(handle.raw, TF32) })?;
        }
        let (handle, called) = (Mutex::new(handle), Mutex::default());
        let operator = DenseOperator { handle, values, shape, called };
        LinearOperator::<Cuda, T>::prepare(&operator, device, 1)?;
        Ok(Arc::new(operator))
    }
}

impl DenseOperator {
    /// Calls the library.
    fn multiply<T: Scalar>(
        &self,
        device: &Cuda,
        (alpha, x): (f64, &CudaVector<T>),
        (beta, y): (f64, &mut CudaVector<T>),
    ) -> Result<()> {
        let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
        let (alpha, beta) = (std::ptr::from_ref(&alpha).cast(), std::ptr::from_ref(&beta).cast());
        // At most `MOST` values, so both fit.
        let (rows, cols) = (self.shape.0 as c_int, self.shape.1 as c_int);
        let k = c_int::try_from(x.k()).map_err(|_| Error::TooLarge {
            what: "the number of columns",
            value: x.k() as u128,
            limit: c_int::MAX as u128,
            container: "the 32-bit sizes of cuBLAS",
        })?;
        device.enter()?;
        let handle = lock(&self.handle);
        let Functions { gemv_f64, gemv_f32, gemm_f64, gemm_f32, .. } = handle.functions;
        let (gemv, gemm) = if size_of::<T>() == 8 { (gemv_f64, gemm_f64) } else { (gemv_f32, gemm_f32) };
        let (a, x, y) = (self.values.address(0) as *const c_void, x.address(), y.address());
        let (x, y) = (x as *const c_void, y as *mut c_void);
        // SAFETY: a row-major matrix is its transpose in column-major order, so the library gets A with
        // `cols` rows, and with several columns computes C' = B' A'; shapes are checked; all arguments live
        // through the call, and a captured launch copies its scalars.
        let status = unsafe {
            match k {
                1 => gemv(handle.raw, TRANSPOSED, cols, rows, alpha, a, cols, x, 1, beta, y, 1),
                _ => gemm(handle.raw, PLAIN, PLAIN, k, rows, cols, alpha, x, k, a, cols, beta, y, k),
            }
        };
        check(if k == 1 { "cublasGemv" } else { "cublasGemm" }, status)
    }
}

impl<T: Scalar> LinearOperator<Cuda, T> for DenseOperator {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// Calls the library once: it loads its kernels on their first call, which is not allowed
    /// during a capture.
    fn prepare(&self, device: &Cuda, k: usize) -> Result<()> {
        let mut called = lock(&self.called);
        if called.contains(&k) {
            return Ok(());
        }
        let (x, mut y) = (device.vector::<T>(self.shape.1, k)?, device.vector::<T>(self.shape.0, k)?);
        for beta in [0.0, 1.0] {
            self.multiply(device, (1.0, &x), (beta, &mut y))?;
        }
        device.synchronize()?;
        called.insert(k);
        Ok(())
    }

    fn apply(
        &self,
        device: &Cuda,
        alpha: f64,
        x: &CudaVector<T>,
        beta: f64,
        y: &mut CudaVector<T>,
    ) -> Result<()> {
        check_columns(device, self.shape, x, y)?;
        if device.skips_launch() {
            return Ok(());
        }
        self.multiply(device, (alpha, x), (beta, y))
    }

    fn cost(&self) -> Cost {
        let (rows, cols) = self.shape;
        let bytes = self.values.bytes() + ((rows + cols) * size_of::<T>()) as u64;
        Cost { bytes, flops: 2 * (rows * cols) as u64 }
    }

    fn storage(&self) -> u64 {
        self.values.bytes()
    }
}
