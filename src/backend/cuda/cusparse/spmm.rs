//! The library's products with several columns: over CSR by each of its algorithms, and over square blocks.
//!
//! The library prepares for a number of columns: its buffer and what it has learnt from the matrix belong to
//! a descriptor, so each number of columns has its own, over the same arrays.
//!
//! # One column
//! In one of three runs of the conformance tests on an H200 with CUDA 13.0, a product of one column by
//! algorithm csr3 lacked its last row. The cause is not known: racecheck reports races in the library's
//! kernel `csrmv_v3_kernel`, but also for algorithms that were never seen to fail. csr2 is one of these, so
//! it multiplies one column in place of csr3.

use super::handles::{ColumnsDescriptor, Handle, MatrixDescriptor};
use super::{
    Storage, check, check_matrix, data_type, describe, explicit, has, missing, require_library, sys,
};
use crate::backend::cuda::arrays::DeviceArrays;
use crate::backend::cuda::check_columns;
use crate::backend::{Family, Refusal, SharedOperator};
use crate::device::cuda::CudaVector;
use crate::device::cuda::memory::{CudaArray, address};
use crate::device::{Cuda, Device};
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{Cost, LinearOperator};
use crate::parallel::lock;
use crate::params::{Param, Params};
use crate::scalar::Scalar;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

/// A format of the library's product with several columns.
pub(crate) trait Format: Send + Sync + 'static {
    /// The backend's name.
    const NAME: &'static str;
    /// The format of the library.
    const STORAGE: Storage;
}

/// CSR.
pub(crate) struct Rows;
/// Square blocks.
pub(crate) struct Squares;

impl Format for Rows {
    const NAME: &'static str = "cusparse-spmm";
    const STORAGE: Storage = Storage::Rows;
}
impl Format for Squares {
    const NAME: &'static str = "cusparse-bsr-spmm";
    const STORAGE: Storage = Storage::Blocks;
}

/// The library's product with several columns.
pub(crate) struct CusparseSpmm<F>(PhantomData<F>);

/// The algorithm over CSR.
pub(crate) const ALGORITHM: Param = Param::word(
    "alg",
    &["default", "csr1", "csr2", "csr3"],
    "the algorithm of the library; its documentation recommends csr2 for row-major columns",
);

fn algorithm(params: &Params) -> sys::cusparseSpMMAlg_t {
    match params.word(ALGORITHM.name) {
        Some("csr1") => sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG1,
        Some("csr2") => sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG2,
        Some("csr3") => sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG3,
        _ => sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_ALG_DEFAULT,
    }
}

/// The most numbers of columns that stay prepared.
const KEPT: usize = 4;

/// A descriptor that is prepared for one number of columns.
struct PreparedDescriptor {
    k: usize,
    matrix: MatrixDescriptor,
    buffer: CudaArray<u8>,
}

struct SpmmOperator {
    // Declared before the arrays, so that it is dropped first: the descriptors point to them.
    library: Mutex<Library>,
    algorithm: sys::cusparseSpMMAlg_t,
    arrays: Shape,
    shape: (usize, usize),
    cost: Cost,
}

/// The arrays of the matrix, and what a descriptor states about them.
enum Shape {
    Rows { arrays: DeviceArrays, entries: usize },
    Squares(super::blocks::Squares),
}

impl Shape {
    fn arrays(&self) -> &DeviceArrays {
        match self {
            Shape::Rows { arrays, .. } => arrays,
            Shape::Squares(squares) => &squares.arrays,
        }
    }

    fn descriptor<T: Scalar>(&self, shape: (usize, usize)) -> Result<MatrixDescriptor> {
        match self {
            Shape::Rows { arrays, entries } => super::row_descriptor::<T>(arrays, shape, *entries),
            Shape::Squares(squares) => squares.descriptor::<T>(),
        }
    }
}

impl<F: Format> Family<Cuda> for CusparseSpmm<F> {
    const ADDS_REPEATS: bool = false;

    fn check(matrix: &Csr, params: &Params, width: usize) -> std::result::Result<(), Refusal> {
        check_matrix(F::STORAGE, matrix, params, width)
    }

    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        require_library()?;
        if !has("cusparseSpMM_preprocess") {
            return Err(missing("cusparseSpMM_preprocess", "it came with CUDA 11.1; use backend spmm"));
        }
        let explicit = explicit::<T>(matrix)?;
        let stored = explicit.as_ref().unwrap_or(matrix);
        let (arrays, padded_entries) = match F::STORAGE {
            Storage::Blocks => {
                if !has("cusparseCreateConstBsr") {
                    return Err(missing(
                        "cusparseCreateConstBsr",
                        "it came with CUDA 12.1; use backend spmm",
                    ));
                }
                let squares = super::blocks::squares(F::NAME, device, stored, params, reserve)?;
                let padded = squares.padded_entries();
                (Shape::Squares(squares), padded)
            }
            _ => {
                let arrays = describe::<T>(device, stored, reserve)?.arrays;
                (Shape::Rows { arrays, entries: stored.nnz() }, stored.nnz())
            }
        };
        let shape = (matrix.rows(), matrix.cols());
        let bytes = arrays.arrays().bytes() + ((shape.0 + shape.1) * size_of::<T>()) as u64;
        let cost = Cost { bytes, flops: 2 * padded_entries as u64 };
        let library = Mutex::new((VecDeque::new(), Handle::on(device)?));
        Ok(Arc::new(SpmmOperator { library, algorithm: algorithm(params), arrays, shape, cost }))
    }
}

/// A call of the library, all of which take the same arguments.
enum Call {
    BufferSize,
    Preprocess,
    Product,
}

type Library = (VecDeque<PreparedDescriptor>, Handle);

impl SpmmOperator {
    /// Prepares for k columns, unless this is done: allocates the buffer of the library, preprocesses
    /// the matrix, and multiplies once, because the library loads its kernels on first use. Returns the
    /// place of the descriptor.
    fn prepared<T: Scalar>(&self, device: &Cuda, library: &mut Library, k: usize) -> Result<usize> {
        let (prepared, handle) = library;
        if let Some(place) = prepared.iter().position(|prepared| prepared.k == k) {
            return Ok(place);
        }
        let x = device.vector::<T>(self.shape.1, k)?;
        let y = device.vector::<T>(self.shape.0, k)?;
        device.enter()?;
        let matrix = self.arrays.descriptor::<T>(self.shape)?;
        let bytes = self.call(Call::BufferSize, (handle, &matrix, 0), (1.0, &x), (0.0, &y))?;
        let buffer = device.allocate("the buffer of cuSPARSE", bytes)?;
        let at = address(&buffer);
        if matches!(self.arrays, Shape::Rows { .. }) {
            self.call(Call::Preprocess, (handle, &matrix, at), (1.0, &x), (0.0, &y))?;
        }
        self.call(Call::Product, (handle, &matrix, at), (1.0, &x), (0.0, &y))?;
        device.synchronize()?;
        if prepared.len() == KEPT {
            prepared.pop_front();
        }
        prepared.push_back(PreparedDescriptor { k, matrix, buffer });
        Ok(prepared.len() - 1)
    }

    /// Calls the library. Returns the size of the buffer, if this was asked.
    fn call<T: Scalar>(
        &self,
        call: Call,
        (handle, matrix, buffer): (&Handle, &MatrixDescriptor, u64),
        (alpha, x): (f64, &CudaVector<T>),
        (beta, y): (f64, &CudaVector<T>),
    ) -> Result<usize> {
        let algorithm = match self.algorithm {
            sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG3 if x.k() == 1 => {
                sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG2
            }
            other => other,
        };
        let (x, y) = (ColumnsDescriptor::new(x)?, ColumnsDescriptor::new(y)?);
        let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
        let (alpha, beta) = (std::ptr::from_ref(&alpha).cast::<c_void>(), std::ptr::from_ref(&beta).cast());
        let plain = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
        let mut bytes = 0;
        macro_rules! call {
            ($function:ident, $last:expr) => {
                check(
                    stringify!($function),
                    // SAFETY: shapes are checked; handle, descriptors, scalars and buffer live through the
                    // call, and a captured launch copies its scalars.
                    unsafe {
                        sys::$function(
                            handle.raw,
                            plain,
                            plain,
                            alpha,
                            matrix.0,
                            x.0.cast_const(),
                            beta,
                            y.0,
                            data_type::<T>(),
                            algorithm,
                            $last,
                        )
                    },
                )
            };
        }
        match call {
            Call::BufferSize => call!(cusparseSpMM_bufferSize, &mut bytes)?,
            Call::Preprocess => call!(cusparseSpMM_preprocess, buffer as *mut c_void)?,
            Call::Product => call!(cusparseSpMM, buffer as *mut c_void)?,
        }
        Ok(bytes)
    }
}

impl<T: Scalar> LinearOperator<Cuda, T> for SpmmOperator {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn prepare(&self, device: &Cuda, k: usize) -> Result<()> {
        self.prepared::<T>(device, &mut lock(&self.library), k).map(drop)
    }

    fn apply(
        &self,
        device: &Cuda,
        alpha: f64,
        x: &CudaVector<T>,
        beta: f64,
        y: &mut CudaVector<T>,
    ) -> Result<()> {
        let k = check_columns(device, self.shape, x, y)?;
        let library = &mut *lock(&self.library);
        let place = self.prepared::<T>(device, library, k)?;
        if device.skips_launch() {
            return Ok(());
        }
        device.enter()?;
        let PreparedDescriptor { matrix, buffer, .. } = &library.0[place];
        self.call(Call::Product, (&library.1, matrix, address(buffer)), (alpha, x), (beta, y)).map(drop)
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn storage(&self) -> u64 {
        let buffers = lock(&self.library).0.iter().map(|prepared| prepared.buffer.len() as u64).sum::<u64>();
        self.arrays.arrays().bytes() + buffers
    }
}
