//! Conversions to and from the matrices of `nalgebra-sparse` and `sprs`.
//!
//! Both use `usize` indices by default, so the arrays are copied; `sprs` matrices with 32-bit indices are moved.

use super::{Csr, Offsets, Values};
use crate::error::{Error, Result};
use nalgebra_sparse::CsrMatrix;
use sprs::{CsMat, CsMatI};

fn explicit(matrix: &Csr) -> Vec<f64> {
    (0..matrix.nnz()).map(|j| matrix.values().get(j)).collect()
}

fn narrow(indices: &[usize]) -> Result<Vec<u32>> {
    indices
        .iter()
        .map(|&i| {
            u32::try_from(i).map_err(|_| Error::TooLarge {
                what: "a column index",
                value: i as u128,
                limit: u128::from(u32::MAX),
                place: "32-bit column indices",
            })
        })
        .collect()
}

fn wide(offsets: &Offsets) -> Vec<usize> {
    (0..offsets.len()).map(|i| offsets.get(i)).collect()
}

impl From<&Csr> for CsrMatrix<f64> {
    fn from(matrix: &Csr) -> CsrMatrix<f64> {
        let columns = matrix.col_indices().iter().map(|&c| c as usize).collect();
        let offsets = wide(matrix.row_offsets());
        CsrMatrix::try_from_csr_data(matrix.rows(), matrix.cols(), offsets, columns, explicit(matrix))
            .unwrap_or_else(|_| unreachable!("a validated matrix is valid there too"))
    }
}

impl TryFrom<&CsrMatrix<f64>> for Csr {
    type Error = Error;

    fn try_from(matrix: &CsrMatrix<f64>) -> Result<Csr> {
        let offsets = matrix.row_offsets().iter().map(|&o| o as u64).collect();
        let columns = narrow(matrix.col_indices())?;
        let values = Values::F64(matrix.values().to_vec());
        Csr::new(matrix.nrows(), matrix.ncols(), Offsets::narrowest(offsets), columns, values)
    }
}

impl From<&Csr> for CsMat<f64> {
    fn from(matrix: &Csr) -> CsMat<f64> {
        let columns = matrix.col_indices().iter().map(|&c| c as usize).collect();
        CsMat::new((matrix.rows(), matrix.cols()), wide(matrix.row_offsets()), columns, explicit(matrix))
    }
}

impl TryFrom<&CsMat<f64>> for Csr {
    type Error = Error;

    /// Accepts both storage orders; columns come out as rows do, sorted.
    fn try_from(matrix: &CsMat<f64>) -> Result<Csr> {
        let by_rows = matrix.to_csr();
        let offsets = by_rows.proper_indptr().iter().map(|&o| o as u64).collect();
        let columns = narrow(by_rows.indices())?;
        let values = Values::F64(by_rows.data().to_vec());
        Csr::new(by_rows.rows(), by_rows.cols(), Offsets::narrowest(offsets), columns, values)
    }
}

impl TryFrom<CsMatI<f64, u32>> for Csr {
    type Error = Error;

    /// Moves the arrays of a row-major matrix.
    fn try_from(matrix: CsMatI<f64, u32>) -> Result<Csr> {
        let matrix = if matrix.is_csr() { matrix } else { matrix.to_csr() };
        let (rows, cols) = matrix.shape();
        let (offsets, columns, values) = matrix.into_raw_storage();
        Csr::new(rows, cols, Offsets::U32(offsets), columns, Values::F64(values))
    }
}
