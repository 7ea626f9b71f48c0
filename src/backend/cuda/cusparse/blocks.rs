//! The library's products over blocks: the generic one for any format, and the legacy one for blocks only.
//!
//! Both support only square blocks that divide the matrix, because x and y must cover the last
//! block completely.

use super::handles::LegacyDescriptor;
use super::{
    Algorithm, Described, Handle, MatrixDescriptor, Storage, check, check_matrix, data_type, explicit, has,
    missing, require_library, sys, unsupported,
};
use crate::backend::cuda::arrays::{Arrays, DeviceArrays};
use crate::backend::cuda::check_shapes;
use crate::backend::{Family, Refusal, SharedOperator};
use crate::device::cuda::CudaVector;
use crate::device::{Cuda, Device};
use crate::error::Result;
use crate::format::stats::Blocks;
use crate::format::{Bsr, Csr, Offsets};
use crate::operator::{Cost, LinearOperator};
use crate::parallel::lock;
use crate::params::Params;
use crate::scalar::Scalar;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

/// A matrix in square blocks on the device.
pub(super) struct Squares {
    block: usize,
    block_rows: usize,
    block_cols: usize,
    blocks: usize,
    /// Offsets, block columns and values.
    pub arrays: DeviceArrays,
}

impl Squares {
    /// Returns the bytes of a product, those of the matrix, x and y, and two operations for each stored
    /// value, padding included.
    fn cost<T: Scalar>(&self) -> Cost {
        let vectors = (self.block_rows + self.block_cols) * self.block * size_of::<T>();
        Cost { bytes: self.arrays.bytes() + vectors as u64, flops: 2 * self.padded_entries() as u64 }
    }

    /// Returns the number of stored values, padding included.
    pub(crate) fn padded_entries(&self) -> usize {
        self.blocks * self.block * self.block
    }

    /// Creates a descriptor for the library's generic products, which must not outlive the arrays.
    pub(crate) fn descriptor<T: Scalar>(&self) -> Result<MatrixDescriptor> {
        let index = sys::cusparseIndexType_t::CUSPARSE_INDEX_32I;
        let mut descriptor = std::ptr::null();
        // SAFETY: the arrays belong to a validated matrix on the device, and an operator owns them
        // together with the descriptor.
        let status = unsafe {
            sys::cusparseCreateConstBsr(
                &mut descriptor,
                self.block_rows as i64,
                self.block_cols as i64,
                self.blocks as i64,
                self.block as i64,
                self.block as i64,
                self.arrays.address(0) as *const c_void,
                self.arrays.address(1) as *const c_void,
                self.arrays.address(2) as *const c_void,
                index,
                index,
                sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO,
                data_type::<T>(),
                sys::cusparseOrder_t::CUSPARSE_ORDER_ROW,
            )
        };
        check("cusparseCreateConstBsr", status)?;
        Ok(MatrixDescriptor(descriptor))
    }
}

/// Block sizes that are tried if the user names no size.
const SIZES: std::ops::RangeInclusive<usize> = 2..=8;

/// Returns whether a matrix consists of whole square blocks of this size.
fn divides(matrix: &Csr, size: usize) -> bool {
    matrix.rows().is_multiple_of(size) && matrix.cols().is_multiple_of(size)
}

/// Returns the size of square blocks that the user named.
fn named(params: &Params) -> Option<usize> {
    params.word("block").and_then(|typed| typed.parse().ok())
}

/// Refuses matrices that the library cannot store in square blocks.
pub(super) fn check_blocks(matrix: &Csr, params: &Params) -> std::result::Result<(), Refusal> {
    if matrix.nnz() == 0 {
        return Err(Refusal::new("a matrix without entries", "use backend bsr"));
    }
    let (fits, blocks) = match named(params) {
        Some(size) => (divides(matrix, size), format!("blocks of {size} x {size}")),
        None => {
            (SIZES.into_iter().any(|size| divides(matrix, size)), "square blocks of 2 to 8 rows".to_owned())
        }
    };
    let what = || format!("{blocks} in a {} x {} matrix", matrix.rows(), matrix.cols());
    let hint = "the library needs blocks that divide the matrix; use backend bsr";
    if fits { Ok(()) } else { Err(Refusal::new(what(), hint)) }
}

/// Returns the size of square blocks that the user named, or else the size with the fewest bytes among those
/// that divide the matrix; `check_blocks` ensures that one exists.
fn size(matrix: &Csr, params: &Params) -> usize {
    named(params).unwrap_or_else(|| {
        let all = Blocks::sampled(matrix).all;
        let squares =
            all.iter().filter(|block| block.size[0] == block.size[1] && divides(matrix, block.size[0]));
        let best = squares.min_by_key(|block| block.bytes);
        best.map_or_else(
            || SIZES.into_iter().find(|&size| divides(matrix, size)).unwrap_or(1),
            |block| block.size[0],
        )
    })
}

/// Copies a matrix in square blocks to the device.
pub(super) fn squares(
    backend: &'static str,
    device: &Cuda,
    matrix: &Csr,
    params: &Params,
    reserve: u64,
) -> Result<Squares> {
    let block = size(matrix, params);
    let bsr = Bsr::from_csr(matrix, (block, block))?;
    let padded_entries = bsr.blocks() * block * block;
    let offsets = match bsr.block_offsets() {
        Offsets::U32(offsets) if padded_entries <= i32::MAX as usize => offsets,
        _ => {
            let what = format!("{padded_entries} values in blocks");
            return Err(unsupported(backend, what, "its 32-bit indices end at 2147483647; use backend bsr"));
        }
    };
    let arrays = Arrays::new()
        .add("block_offsets", offsets)
        .add("block_columns", bsr.block_columns())
        .add_values("values", bsr.values())
        .upload(device, reserve)?;
    let (block_rows, block_cols, blocks) = (bsr.block_rows(), bsr.block_cols(), bsr.blocks());
    Ok(Squares { block, block_rows, block_cols, blocks, arrays })
}

/// Creates the descriptor of the matrix in square blocks for the library's generic product.
pub(super) fn describe<A: Algorithm, T: Scalar>(
    device: &Cuda,
    matrix: &Csr,
    params: &Params,
    reserve: u64,
) -> Result<Described> {
    if !has("cusparseCreateConstBsr") {
        return Err(missing("cusparseCreateConstBsr", "it came with CUDA 12.1; use backend bsr"));
    }
    let squares = squares(A::NAME, device, matrix, params, reserve)?;
    let (descriptor, padded_entries) = (squares.descriptor::<T>()?, squares.padded_entries());
    Ok(Described { descriptor, arrays: squares.arrays, padded_entries })
}

/// The legacy product `cusparseDbsrmv`, which the block-band study compares with.
pub(crate) struct Legacy;

impl Algorithm for Legacy {
    const NAME: &'static str = "cusparse-bsrmv";
    const STORAGE: Storage = Storage::Blocks;
    const ALGORITHM: sys::cusparseSpMVAlg_t = sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT;
}

struct LegacyOperator {
    library: Mutex<(LegacyDescriptor, Handle)>,
    squares: Squares,
    shape: (usize, usize),
    cost: Cost,
}

impl Family<Cuda> for Legacy {
    const ADDS_REPEATS: bool = false;

    fn check(matrix: &Csr, params: &Params, width: usize) -> std::result::Result<(), Refusal> {
        check_matrix(Legacy::STORAGE, matrix, params, width)
    }

    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        require_library()?;
        if !has("cusparseDbsrmv") || !has("cusparseSbsrmv") {
            let hint = "later versions lack it; use backend cusparse-bsr or bsr";
            return Err(missing("cusparseDbsrmv", hint));
        }
        let explicit = explicit::<T>(matrix)?;
        let squares = squares(Legacy::NAME, device, explicit.as_ref().unwrap_or(matrix), params, reserve)?;
        let handle = Handle::on(device)?;
        let library = Mutex::new((LegacyDescriptor::new()?, handle));
        let shape = (matrix.rows(), matrix.cols());
        let cost = squares.cost::<T>();
        Ok(Arc::new(LegacyOperator { library, squares, shape, cost }))
    }
}

impl<T: Scalar> LinearOperator<Cuda, T> for LegacyOperator {
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
        check_shapes(device, self.shape, Legacy::NAME, x, y)?;
        if device.skips_launch() {
            return Ok(());
        }
        let Squares { block, block_rows, block_cols, blocks, arrays } = &self.squares;
        // `squares` refuses sizes that 31 bits cannot count.
        let [rows, cols, blocks, block] = [block_rows, block_cols, blocks, block].map(|&n| n as c_int);
        let (offsets, columns) = (arrays.address(0) as *const c_int, arrays.address(1) as *const c_int);
        let direction = sys::cusparseDirection_t::CUSPARSE_DIRECTION_ROW;
        let plain = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
        device.enter()?;
        let (descriptor, handle) = &*lock(&self.library);
        macro_rules! product {
            ($function:ident, $scalar:ty) => {
                sys::$function(
                    handle.raw,
                    direction,
                    plain,
                    rows,
                    cols,
                    blocks,
                    &(alpha as $scalar),
                    descriptor.0,
                    arrays.address(2) as *const $scalar,
                    offsets,
                    columns,
                    block,
                    x.address() as *const $scalar,
                    &(beta as $scalar),
                    y.address() as *mut $scalar,
                )
            };
        }
        // SAFETY: shapes and sizes are checked, values have the type of the vectors; a captured
        // launch copies its scalars.
        let status = unsafe {
            match size_of::<T>() {
                4 => product!(cusparseSbsrmv, f32),
                _ => product!(cusparseDbsrmv, f64),
            }
        };
        check("cusparseXbsrmv", status)
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn storage(&self) -> u64 {
        self.squares.arrays.bytes()
    }
}
