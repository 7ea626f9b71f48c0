//! Conversions to and from the matrices of `nalgebra-sparse` and `sprs`.
//!
//! Their indices are `usize` by default, ours are 32-bit, so that indices are converted; the values of a matrix that is
//! given away are moved. A `sprs` matrix with 32-bit indices is moved altogether, and of a [`Csr`] with 32-bit offsets
//! `sprs` can have a view, which copies nothing. Matrices by columns are taken as rows of the transpose, and
//! transposed. Neither library knows a column twice in a row: such matrices are refused ([`Csr::summed`] makes others
//! of them).

use super::rows::{each, each_row, narrow};
use super::{Csr, Offsets, Pattern, Values};
use crate::error::{Error, Result};
use nalgebra_sparse::{CscMatrix, CsrMatrix};
use sprs::{CsMat, CsMatI, CsMatViewI};
use std::sync::Arc;

/// Rows with indices as they are there. Offsets may count from elsewhere than 0.
fn from_rows(
    (rows, cols): (usize, usize),
    offsets: &[usize],
    columns: &[usize],
    values: Values,
) -> Result<Csr> {
    let entries = offsets.last().map_or(0, |&last| last);
    let offsets = if entries as u64 > Offsets::MOST_NARROW {
        Offsets::U64(each(offsets, |offset| Ok(offset as u64))?)
    } else {
        Offsets::U32(each(offsets, |offset| narrow(offset, "a row offset", "32-bit row offsets"))?)
    };
    let columns = each(columns, |col| narrow(col, "a column index", "32-bit column indices"))?;
    Csr::new(rows, cols, offsets, columns, values)
}

/// Offsets and columns as they are there.
fn wide(pattern: &Pattern) -> Result<(Vec<usize>, Vec<usize>)> {
    pattern.refuse_repeats()?;
    let offsets = pattern.row_offsets();
    let offsets = each_row(offsets.len(), offsets.len() * offsets.width(), |i| Ok(offsets.get(i)))?;
    Ok((offsets, each(pattern.col_indices(), |col| Ok(col as usize))?))
}

/// What a library says of arrays that are valid here.
fn refused(library: &'static str, reason: impl ToString) -> Error {
    Error::Foreign { library, reason: reason.to_string(), hint: "build its matrix from the arrays" }
}

fn view_refused(reason: &str) -> Error {
    let hint = "convert the matrix instead, which copies its arrays";
    Error::Foreign { library: "sprs", reason: reason.to_owned(), hint }
}

/// Conversions of matrices in one precision; `$into` is the method that takes their values out of a [`Values`].
macro_rules! conversions {
    ($T:ty, $Kind:ident, $into:ident) => {
        impl TryFrom<Csr> for CsrMatrix<$T> {
            type Error = Error;

            /// Moves values of this precision; others are converted.
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
                from_rows((matrix.nrows(), matrix.ncols()), offsets, columns, each(values, Ok)?.into())
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

        impl TryFrom<Csr> for CsMat<$T> {
            type Error = Error;

            /// Moves values of this precision; others are converted.
            fn try_from(matrix: Csr) -> Result<CsMat<$T>> {
                let (offsets, columns) = wide(matrix.pattern())?;
                let (pattern, values) = matrix.into_parts();
                let values = values.$into(pattern.col_indices().len())?;
                CsMat::try_new((pattern.rows(), pattern.cols()), offsets, columns, values)
                    .map_err(|(.., error)| refused("sprs", error))
            }
        }

        impl TryFrom<&Csr> for CsMat<$T> {
            type Error = Error;

            fn try_from(matrix: &Csr) -> Result<CsMat<$T>> {
                Csr::with_pattern(Arc::clone(matrix.pattern()), matrix.values().copied()?)?.try_into()
            }
        }

        impl TryFrom<CsMat<$T>> for Csr {
            type Error = Error;

            /// Moves the values of rows. Columns come out as rows do, sorted.
            fn try_from(matrix: CsMat<$T>) -> Result<Csr> {
                let by_rows = matrix.is_csr();
                let shape = (matrix.outer_dims(), matrix.inner_dims());
                let (offsets, columns, values) = matrix.into_raw_storage();
                let rows = from_rows(shape, &offsets, &columns, values.into())?;
                if by_rows { Ok(rows) } else { rows.transposed() }
            }
        }

        impl TryFrom<&CsMat<$T>> for Csr {
            type Error = Error;

            /// Columns come out as rows do, sorted.
            fn try_from(matrix: &CsMat<$T>) -> Result<Csr> {
                let shape = (matrix.outer_dims(), matrix.inner_dims());
                let offsets = matrix.proper_indptr();
                let values = each(matrix.data(), Ok)?;
                let rows = from_rows(shape, &offsets, matrix.indices(), values.into())?;
                if matrix.is_csr() { Ok(rows) } else { rows.transposed() }
            }
        }

        impl TryFrom<CsMatI<$T, u32>> for Csr {
            type Error = Error;

            /// Moves the arrays of rows. Columns come out as rows do, sorted.
            fn try_from(matrix: CsMatI<$T, u32>) -> Result<Csr> {
                let by_rows = matrix.is_csr();
                let (rows, cols) = (matrix.outer_dims(), matrix.inner_dims());
                let (offsets, columns, values) = matrix.into_raw_storage();
                let rows = Csr::new(rows, cols, Offsets::U32(offsets), columns, values.into())?;
                if by_rows { Ok(rows) } else { rows.transposed() }
            }
        }

        impl TryFrom<Csr> for CsMatI<$T, u32> {
            type Error = Error;

            /// Moves the arrays, except values of another precision and a pattern that another matrix shares.
            fn try_from(matrix: Csr) -> Result<CsMatI<$T, u32>> {
                matrix.pattern().refuse_repeats()?;
                let (pattern, values) = matrix.into_parts();
                let values = values.$into(pattern.col_indices().len())?;
                let Pattern { rows, cols, row_offsets, col_indices, .. } = Pattern::unshared(pattern)?;
                let offsets = match row_offsets {
                    Offsets::U32(offsets) => offsets,
                    Offsets::U64(offsets) => {
                        each(&offsets, |o| narrow(o as usize, "a row offset", "32-bit row offsets"))?
                    }
                };
                CsMatI::try_new((rows, cols), offsets, col_indices, values)
                    .map_err(|(.., error)| refused("sprs", error))
            }
        }

        impl<'a> TryFrom<&'a Csr> for CsMatViewI<'a, $T, u32> {
            type Error = Error;

            /// Copies nothing; refused where offsets are 64-bit or values are not of this precision.
            fn try_from(matrix: &'a Csr) -> Result<CsMatViewI<'a, $T, u32>> {
                matrix.pattern().refuse_repeats()?;
                let Offsets::U32(offsets) = matrix.row_offsets() else {
                    return Err(view_refused("its row offsets are 64-bit"));
                };
                let Values::$Kind(values) = matrix.values() else {
                    return Err(view_refused(concat!("its values are not stored as ", stringify!($T))));
                };
                let shape = (matrix.rows(), matrix.cols());
                CsMatViewI::try_new(shape, &offsets[..], matrix.col_indices(), &values[..])
                    .map_err(|(.., error)| refused("sprs", error))
            }
        }
    };
}

conversions!(f32, F32, into_f32);
conversions!(f64, F64, into_f64);
