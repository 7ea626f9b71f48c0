//! Sliced ELL for the library's generic product.

use super::{Algorithm, Described, MatrixDescriptor, check, data_type, has, missing, sys, unsupported};
use crate::backend::cuda::arrays::Arrays;
use crate::device::Cuda;
use crate::error::Result;
use crate::format::{Csr, Offsets, Sell};
use crate::scalar::Scalar;
use std::ffi::c_void;

/// Creates the descriptor of the matrix in slices of `height` rows, unsorted, because the library
/// supports no permutation.
pub(super) fn describe<A: Algorithm, T: Scalar>(
    device: &Cuda,
    matrix: &Csr,
    height: usize,
    reserve: u64,
) -> Result<Described> {
    if !has("cusparseCreateConstSlicedEll") {
        return Err(missing("cusparseCreateConstSlicedEll", "it came with CUDA 12.1; use backend sell"));
    }
    let sell = Sell::from_csr(matrix, height, 1)?;
    let padded_entries = sell.col_indices().len();
    let offsets = match sell.slice_offsets() {
        Offsets::U32(offsets) if padded_entries <= i32::MAX as usize => offsets,
        _ => {
            let what = format!("{padded_entries} entries, padding included");
            return Err(unsupported(A::NAME, what, "its 32-bit offsets end at 2147483647; use backend sell"));
        }
    };
    let arrays = Arrays::new()
        .add("slice_offsets", offsets)
        .add("col_indices", sell.col_indices())
        .add_values("values", sell.values())
        .upload(device, reserve)?;
    let index = sys::cusparseIndexType_t::CUSPARSE_INDEX_32I;
    let mut descriptor = std::ptr::null();
    // SAFETY: the arrays belong to a validated matrix on the device, and the operator owns them
    // together with the descriptor.
    let status = unsafe {
        sys::cusparseCreateConstSlicedEll(
            &mut descriptor,
            matrix.rows() as i64,
            matrix.cols() as i64,
            matrix.nnz() as i64,
            padded_entries as i64,
            height as i64,
            arrays.address(0) as *const c_void,
            arrays.address(1) as *const c_void,
            arrays.address(2) as *const c_void,
            index,
            index,
            sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO,
            data_type::<T>(),
        )
    };
    check("cusparseCreateConstSlicedEll", status)?;
    Ok(Described { descriptor: MatrixDescriptor(descriptor), arrays, padded_entries })
}
