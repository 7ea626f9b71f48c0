//! The product of the crate `nalgebra-sparse`: one thread, CSR with columns as wide as addresses.

use super::yardstick::{Foreign, arrays, operator, refused};
use crate::backend::{Family, SharedOperator};
use crate::device::Cpu;
use crate::error::Result;
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use nalgebra_sparse::CsrMatrix;
use nalgebra_sparse::na::{DMatrixView, DMatrixViewMut};
use nalgebra_sparse::ops::Op;
use nalgebra_sparse::ops::serial::spmm_csr_dense;
use std::sync::Arc;

/// The family of the backend `nalgebra`.
pub(crate) struct Nalgebra;

struct NalgebraMatrix(CsrMatrix<f64>);

impl Family<Cpu> for Nalgebra {
    const ADDS_REPEATS: bool = false;

    fn build<T: Scalar>(_: &Cpu, matrix: &Arc<Csr>, _: &Params, _: u64) -> Result<SharedOperator<Cpu, T>> {
        operator::<T, NalgebraMatrix>(matrix, || {
            let (offsets, values) = arrays(matrix);
            let columns = matrix.col_indices().iter().map(|&column| column as usize).collect();
            CsrMatrix::try_from_csr_data(matrix.rows(), matrix.cols(), offsets, columns, values)
                .map(NalgebraMatrix)
                .map_err(|e| refused::<NalgebraMatrix>(format!("this matrix ({e})")))
        })
    }
}

impl Foreign for NalgebraMatrix {
    const NAME: &'static str = "nalgebra";

    fn multiply(&self, x: &[f64], y: &mut [f64]) {
        let x = DMatrixView::from_slice(x, x.len(), 1);
        let y = DMatrixViewMut::from_slice(y, self.0.nrows(), 1);
        spmm_csr_dense(1.0, y, 1.0, Op::NoOp(&self.0), Op::NoOp(x));
    }

    fn storage(&self) -> u64 {
        (self.0.nnz() * (size_of::<f64>() + size_of::<usize>()) + (self.0.nrows() + 1) * size_of::<usize>())
            as u64
    }
}
