//! Conversions to and from the matrices of `sprs`.

use super::{from_rows, refused, wide};
use crate::error::{Error, Result};
use crate::format::pieces::{each, narrow};
use crate::format::{Csr, Offsets, Pattern, Values};
use crate::parallel::copied;
use sprs::{CsMat, CsMatI, CsMatViewI};
use std::sync::Arc;

fn view_refused(reason: &str) -> Error {
    let hint = "convert the matrix instead, which copies its arrays";
    Error::Foreign { library: "sprs", reason: reason.to_owned(), hint }
}

/// Implements the conversions for one precision; `$into` is the method of [`Values`] for that precision.
macro_rules! conversions {
    ($T:ty, $Kind:ident, $into:ident) => {
        impl TryFrom<Csr> for CsMat<$T> {
            type Error = Error;

            /// Moves values of this precision, and converts values of the other one.
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

            /// Moves the values of a matrix stored by rows. Transposes a matrix stored by columns.
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

            /// Transposes a matrix stored by columns.
            fn try_from(matrix: &CsMat<$T>) -> Result<Csr> {
                let shape = (matrix.outer_dims(), matrix.inner_dims());
                let offsets = matrix.proper_indptr();
                let values = copied(matrix.data())?;
                let rows = from_rows(shape, &offsets, matrix.indices(), values.into())?;
                if matrix.is_csr() { Ok(rows) } else { rows.transposed() }
            }
        }

        impl TryFrom<CsMatI<$T, u32>> for Csr {
            type Error = Error;

            /// Moves the arrays of a matrix stored by rows. Transposes a matrix stored by columns.
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
                CsMatI::try_new((rows, cols), offsets, col_indices.into_vec(), values)
                    .map_err(|(.., error)| refused("sprs", error))
            }
        }

        impl<'a> TryFrom<&'a Csr> for CsMatViewI<'a, $T, u32> {
            type Error = Error;

            /// Copies no arrays. Fails if offsets are 64-bit or values are not of this precision.
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
