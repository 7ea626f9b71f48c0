//! Conversions to and from the matrices of `nalgebra-sparse` and `sprs`.
//!
//! The indices of these libraries are `usize` by default, and those of this library are 32-bit, so indices
//! are converted; the values of an owned matrix are moved. All arrays of an owned `sprs` matrix with 32-bit
//! indices are moved. A [`Csr`] with 32-bit offsets converts to a `sprs` view without a copy. Matrices stored
//! by columns are read as the rows of the transpose, and transposed. Neither library supports repeated column
//! indices: such matrices are refused ([`Csr::summed`] sums repeated entries). Each library has a Cargo
//! feature: `nalgebra` and `sprs`.

#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "sprs")]
mod sprs;

use super::pieces::{each, each_row, narrow};
use super::{Csr, Offsets, Pattern, Values};
use crate::error::{Error, Result};

/// Builds a matrix from arrays with `usize` indices. Checks them, as offsets may not begin at 0.
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

/// Returns offsets and column indices as `usize`.
fn wide(pattern: &Pattern) -> Result<(Vec<usize>, Vec<usize>)> {
    pattern.refuse_repeats()?;
    let offsets = pattern.row_offsets();
    let offsets = each_row(offsets.len(), offsets.len() * offsets.width(), |i| Ok(offsets.get(i)))?;
    Ok((offsets, each(pattern.col_indices(), |col| Ok(col as usize))?))
}

/// Returns the error of a library that refuses arrays which are valid here.
fn refused(library: &'static str, reason: impl ToString) -> Error {
    Error::Foreign { library, reason: reason.to_string(), hint: "build its matrix from the arrays" }
}
