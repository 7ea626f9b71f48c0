//! Conversions to and from the matrices of `nalgebra-sparse` and `sprs`.
//!
//! Their indices are `usize` by default, ours are 32-bit, so that indices are converted; the values of a matrix that is
//! given away are moved. A `sprs` matrix with 32-bit indices is moved altogether, and of a [`Csr`] with 32-bit offsets
//! `sprs` can have a view, which copies nothing. Matrices by columns are taken as rows of the transpose, and
//! transposed. Neither library knows a column twice in a row: such matrices are refused ([`Csr::summed`] makes others
//! of them). Each library has a Cargo feature: `nalgebra` and `sprs`.

#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "sprs")]
mod sprs;

use super::pieces::{each, each_row, narrow};
use super::{Csr, Offsets, Pattern, Values};
use crate::error::{Error, Result};

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
