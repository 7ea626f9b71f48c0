//! Conversions to and from the matrices of `nalgebra-sparse`.

use super::{from_rows, refused, wide};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::parallel::copied;
use nalgebra_sparse::{CscMatrix, CsrMatrix};
use std::sync::Arc;

/// Implements the conversions for one precision; `$into` is the method of
/// [`Values`](crate::format::Values) for that precision.
macro_rules! conversions {
    ($T:ty, $into:ident) => {
        impl TryFrom<Csr> for CsrMatrix<$T> {
            type Error = Error;

            /// Moves values of this precision, and converts values of the other one.
            fn try_from(matrix: Csr) -> Result<CsrMatrix<$T>> {
                let (offsets, columns) = wide(matrix.pattern())?;
                let (pattern, values) = matrix.into_parts();
                let values = values.$into(pattern.col_indices().len())?;
                CsrMatrix::try_from_csr_data(pattern.rows(), pattern.cols(), offsets, columns, values)
                    .map_err(|error| refused("nalgebra-sparse", error))
            }
        }

        impl TryFrom<&Csr> for CsrMatrix<$T> {
            type Error = Error;

            fn try_from(matrix: &Csr) -> Result<CsrMatrix<$T>> {
                Csr::with_pattern(Arc::clone(matrix.pattern()), matrix.values().copied()?)?.try_into()
            }
        }

        impl TryFrom<CsrMatrix<$T>> for Csr {
            type Error = Error;

            /// Moves the values.
            fn try_from(matrix: CsrMatrix<$T>) -> Result<Csr> {
                let shape = (matrix.nrows(), matrix.ncols());
                let (offsets, columns, values) = matrix.disassemble();
                from_rows(shape, &offsets, &columns, values.into())
            }
        }

        impl TryFrom<&CsrMatrix<$T>> for Csr {
            type Error = Error;

            fn try_from(matrix: &CsrMatrix<$T>) -> Result<Csr> {
                let (offsets, columns, values) = matrix.csr_data();
                from_rows((matrix.nrows(), matrix.ncols()), offsets, columns, copied(values)?.into())
            }
        }

        impl TryFrom<CscMatrix<$T>> for Csr {
            type Error = Error;

            fn try_from(matrix: CscMatrix<$T>) -> Result<Csr> {
                let shape = (matrix.ncols(), matrix.nrows());
                let (offsets, rows, values) = matrix.disassemble();
                from_rows(shape, &offsets, &rows, values.into())?.transposed()
            }
        }
    };
}

conversions!(f32, into_f32);
conversions!(f64, into_f64);
