//! Entries to compressed rows.

use super::body::{self, Reader};
use super::header::{Header, Symmetry};
use crate::error::{Error, Result};
use crate::format::{Csr, assemble};
use crate::source::text::{Fault, Text, check_rows};

/// Makes the matrix; returns it with the number of entries that the file stores.
pub(super) fn read(text: Text, header: &Header) -> Result<(Csr, u64)> {
    let triplets = body::read(text, header)?;
    check_rows(header.rows, header.entries)?;
    let stored = triplets.row_indices.len() as u64;
    let mirror = match header.symmetry {
        Symmetry::General => None,
        Symmetry::Symmetric => Some(1.0),
        Symmetry::Skew => Some(-1.0),
    };
    let matrix = assemble::assemble(triplets, mirror).map_err(|error| match error {
        Error::DuplicateOverflow { row, col } => locate(text, header, row, col),
        other => other,
    })?;
    Ok((matrix, stored))
}

/// Finds the line at which a sum of duplicates leaves the range of f64: only the text still knows it.
#[cold]
fn locate(text: Text, header: &Header, row: usize, col: usize) -> Error {
    let mirror = header.symmetry != Symmetry::General;
    let mut reader = Reader::new(text, header, header.body, text.bytes.len());
    let (mut at, mut sum) = (header.body, 0.0_f64);
    while reader.seek() {
        at = reader.place();
        let Ok(Some(entry)) = reader.entry::<true>() else { break };
        let (this_row, this_col) = (entry.row as usize, entry.col as usize);
        let here = (this_row, this_col) == (row, col);
        if here || mirror && (this_col, this_row) == (row, col) {
            // For a skew-symmetric matrix the two halves have opposite signs.
            let sign = if !here && header.symmetry == Symmetry::Skew { -1.0 } else { 1.0 };
            sum += sign * entry.value;
            if !sum.is_finite() {
                break;
            }
        }
    }
    let expected = format!("entries for row {}, column {} with a finite sum", row + 1, col + 1);
    text.error(Fault { at, expected, found: Some(format!("a sum of {sum}")) })
}
