//! Parallel construction of compressed rows of known lengths.

use super::pieces::{cut, pieces_for};
use super::values::Stored;
use super::{Csr, Offset, Offsets, Pattern};
use crate::error::{CsrFault, Error, Result};
use crate::parallel::{run_all, split_front, zeros};
use std::ops::Range;
use std::sync::Arc;

/// Returns the prefix sums of `lengths` times `unit`, beginning with 0.
pub(crate) fn offsets_of(lengths: &[u32], unit: usize) -> Result<Offsets> {
    let total: u128 = lengths.iter().map(|&length| u128::from(length)).sum::<u128>() * unit as u128;
    if total > u128::from(Offsets::MOST_NARROW) {
        // Fails early if the total exceeds the address space.
        usize::try_from(total).map_err(|_| Error::OutOfMemory { bytes: total })?;
        add_up::<u64>(lengths, unit)
    } else {
        add_up::<u32>(lengths, unit)
    }
}

fn add_up<O: Offset>(lengths: &[u32], unit: usize) -> Result<Offsets> {
    let mut offsets: Vec<O> = zeros(lengths.len() + 1)?;
    let mut sum = 0;
    for (offset, &length) in offsets[1..].iter_mut().zip(lengths) {
        sum += length as usize * unit;
        *offset = O::from_index(sum);
    }
    Ok(O::wrap(offsets))
}

/// A band of rows and its parts of the arrays of entries.
struct Band<'a, T> {
    rows: Range<usize>,
    columns: &'a mut [u32],
    values: &'a mut [T],
}

/// Builds compressed rows of known lengths. `fill(row, columns, values)` writes the entries of a row,
/// and must write a valid row.
pub(super) fn build_rows<T: Stored>(
    (rows, cols): (usize, usize),
    lengths: &[u32],
    repeats: bool,
    fill: impl Fn(usize, &mut [u32], &mut [T]) + Send + Sync,
) -> Result<Csr> {
    if cols > u32::MAX as usize {
        return Err(Error::InvalidCsr(CsrFault::TooManyColumns { cols }));
    }
    let offsets = offsets_of(lengths, 1)?;
    let entries = offsets.get(rows);
    let (mut columns, mut values) = (zeros::<u32>(entries)?, zeros::<T>(entries)?);
    let pieces = pieces_for(entries * (4 + size_of::<T>()));
    let (mut columns_left, mut values_left) = (&mut columns[..], &mut values[..]);
    let mut bands = Vec::new();
    for rows in cut(rows, pieces, |row| offsets.get(row).saturating_add(row)) {
        let length = offsets.get(rows.end) - offsets.get(rows.start);
        bands.push(Band {
            rows,
            columns: split_front(&mut columns_left, length),
            values: split_front(&mut values_left, length),
        });
    }
    run_all(bands, |band| {
        let (mut columns, mut values) = (band.columns, band.values);
        for row in band.rows {
            let length = lengths[row] as usize;
            fill(row, split_front(&mut columns, length), split_front(&mut values, length));
        }
    });
    Csr::with_pattern(Arc::new(Pattern::trusted(rows, cols, offsets, columns, repeats)), T::wrap(values))
}
