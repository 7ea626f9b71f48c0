//! CSR in the layout of kernels: its arrays, with columns in 32 or 16 bits.

use super::arrays::Arrays;
use super::columns::{Columns, distances, in_16_bits};
use super::form::{Form, Format, Share, Types};
use super::product::{Pass, Product};
use crate::backend::SharedOperator;
use crate::device::Cuda;
use crate::error::{Error, Result};
use crate::format::{Csr, Offsets};
use crate::scalar::Scalar;
use std::sync::Arc;

/// A matrix in CSR, with a column storage that the matrix allows.
pub(super) struct Compressed {
    matrix: Arc<Csr>,
    columns: Columns,
}

impl Compressed {
    /// Wraps a matrix; refuses matrices that kernels cannot count in 32 bits.
    pub(crate) fn of(matrix: &Arc<Csr>, columns: Columns) -> Result<Compressed> {
        check_size(matrix)?;
        Ok(Compressed { matrix: Arc::clone(matrix), columns })
    }

    /// Returns the bytes of the arrays.
    pub(crate) fn bytes(matrix: &Csr, columns: Columns) -> u64 {
        matrix.storage_bytes() - ((size_of::<u32>() - columns.width()) * matrix.nnz()) as u64
    }
}

impl Format for Compressed {
    fn empty(types: Types) -> Compressed {
        Compressed { matrix: types.csr(), columns: types.columns }
    }

    fn shape(&self) -> (usize, usize) {
        (self.matrix.rows(), self.matrix.cols())
    }

    fn padded_entries(&self) -> usize {
        self.matrix.nnz()
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        const COLUMNS: &str = "col_indices";
        let (matrix, nnz) = (&*self.matrix, self.matrix.nnz());
        let arrays = Arrays::new().add_offsets("row_offsets", matrix.row_offsets());
        let arrays = match self.columns {
            Columns::Full => arrays.add(COLUMNS, matrix.col_indices()),
            Columns::Narrow => arrays.add_lazy(COLUMNS, nnz, || Ok(in_16_bits(matrix.col_indices()).into())),
            Columns::Near => arrays.add_lazy(COLUMNS, nnz, || Ok(distances(matrix)?.into())).marked("NEAR"),
        };
        arrays.typed("COLUMN").add_values("values", matrix.values())
    }
}

/// Builds the operator of these launches over a matrix in CSR, with columns in 32 bits.
pub(super) fn operator<T: Scalar>(
    backend: &'static str,
    device: &Cuda,
    matrix: &Arc<Csr>,
    passes: impl IntoIterator<Item = Pass<Compressed>>,
    reserve: u64,
) -> Result<SharedOperator<Cuda, T>> {
    let matrix = Compressed::of(matrix, Columns::Full)?;
    Ok(Arc::new(Product::<T>::new(backend, device, &matrix, passes, reserve)?))
}

/// All rows; holds their number.
pub(super) struct AllRows(u32);

impl AllRows {
    /// Returns all rows of a matrix.
    pub(crate) fn of(matrix: &Csr) -> AllRows {
        // `Compressed::of` refuses matrices with more rows.
        AllRows(u32::try_from(matrix.rows()).unwrap_or(u32::MAX))
    }

    /// Creates a launch over all rows of a matrix, with `threads` threads per row.
    pub(crate) fn pass(
        device: &Cuda,
        form: Form<Compressed, AllRows>,
        matrix: &Csr,
        threads: u32,
    ) -> Result<Pass<Compressed>> {
        Pass::over(device, form, &AllRows::of(matrix), threads)
    }
}

impl Share for AllRows {
    fn none() -> AllRows {
        AllRows(0)
    }

    fn arrays(&self) -> Arrays<'_> {
        Arrays::new().add_unused::<u32>("list")
    }

    fn count(&self) -> Option<u32> {
        Some(self.0)
    }
}

/// Refuses matrices whose rows or offsets 32-bit numbers cannot count.
pub(super) fn check_size(matrix: &Csr) -> Result<()> {
    let too_large = |what, value: usize, limit: u64| Error::TooLarge {
        what,
        value: value as u128,
        limit: u128::from(limit),
        container: "the 32-bit indices of kernels over CSR",
    };
    if matrix.rows() >= u32::MAX as usize {
        return Err(too_large("the number of rows", matrix.rows(), u64::from(u32::MAX - 1)));
    }
    if matrix.cols() >= u32::MAX as usize {
        return Err(too_large("the number of columns", matrix.cols(), u64::from(u32::MAX - 1)));
    }
    if matches!(matrix.row_offsets(), Offsets::U32(_)) && matrix.nnz() as u64 > Offsets::MOST_NARROW {
        return Err(too_large("the number of entries", matrix.nnz(), Offsets::MOST_NARROW));
    }
    Ok(())
}
