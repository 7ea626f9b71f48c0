//! The product of the crate `sprs`: one thread, CSR with 32-bit columns.

use super::yardstick::{Foreign, arrays, operator, refused};
use crate::backend::{Family, SharedOperator};
use crate::device::Cpu;
use crate::error::Result;
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use sprs::CsMatI;
use std::sync::Arc;

/// The family of the backend `sprs`.
pub(crate) struct Sprs;

struct SprsMatrix(CsMatI<f64, u32, usize>);

impl Family<Cpu> for Sprs {
    const ADDS_REPEATS: bool = false;

    fn build<T: Scalar>(_: &Cpu, matrix: &Arc<Csr>, _: &Params, _: u64) -> Result<SharedOperator<Cpu, T>> {
        operator::<T, SprsMatrix>(matrix, || {
            let (offsets, values) = arrays(matrix);
            let shape = (matrix.rows(), matrix.cols());
            CsMatI::try_new(shape, offsets, matrix.col_indices().to_vec(), values)
                .map(SprsMatrix)
                .map_err(|(_, _, _, e)| refused::<SprsMatrix>(format!("this matrix ({e})")))
        })
    }
}

impl Foreign for SprsMatrix {
    const NAME: &'static str = "sprs";

    fn multiply(&self, x: &[f64], y: &mut [f64]) {
        sprs::prod::mul_acc_mat_vec_csr(self.0.view(), x, y);
    }

    fn storage(&self) -> u64 {
        (self.0.nnz() * (size_of::<f64>() + size_of::<u32>()) + (self.0.rows() + 1) * size_of::<usize>())
            as u64
    }
}
