//! CSR with entries four by four, and its rows as items of work: the format of `plan=rows`.
//!
//! Four columns, and four values in single precision, are one load of 16 bytes. The last quad of a row is
//! filled with the column [`FILL`], for which kernels read nothing. Rows that are far longer than the mean
//! are cut into pieces, whose sums are added in order by a second launch. If the lengths of rows differ much,
//! items are sorted by the power of two of their length, so that neighbouring groups of lanes have about
//! equally much to do and the longest begin first.

use super::items::{Items, item_list};
use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::compressed::check_size;
use crate::backend::cuda::form::{Format, Types};
use crate::backend::cuda::new_values;
use crate::error::{Error, Result};
use crate::format::{Csr, Values};
use crate::parallel::{run_all, split_front, zeros};
use crate::scalar::Scalar;
use bytemuck::Zeroable;
use std::ops::Range;
use std::sync::Arc;

/// Entries of a quad.
pub(super) const QUAD: usize = 4;
/// The column of an element without an entry.
const FILL: u32 = u32::MAX;
/// The most quads: kernels look for quads of their next turn beyond the end of a row.
const MOST: u64 = (u32::MAX - 4096) as u64;
/// Rows that are converted together.
const BAND: usize = 1024;

/// A matrix in quads.
pub(super) struct Quads {
    shape: (usize, usize),
    columns: Vec<[u32; 4]>,
    values: Values,
    entries: usize,
    pub items: Items,
}

impl Quads {
    /// Returns the first quad of each row, and the number of quads.
    fn offsets(matrix: &Csr) -> Result<Vec<u32>> {
        let quads_of = |row: usize| matrix.row_range(row).len().div_ceil(QUAD);
        let mut offsets = zeros::<u64>(matrix.rows() + 1)?;
        for row in 0..matrix.rows() {
            offsets[row + 1] = offsets[row] + quads_of(row) as u64;
        }
        let quads = offsets[matrix.rows()];
        if quads > MOST {
            return Err(Error::TooLarge {
                what: "the number of entries, four by four",
                value: quads.into(),
                limit: MOST.into(),
                container: "the 32-bit indices of backend spmm",
            });
        }
        Ok(offsets.into_iter().map(|offset| offset as u32).collect())
    }

    /// Returns the entry of each place for a value, for a matrix that [`of`](Quads::of) converts.
    pub(crate) fn places(matrix: &Csr) -> Result<Vec<u32>> {
        filled(matrix, &Quads::offsets(matrix)?, |entry| entry as u32, new_values::FILL)
    }

    /// Converts a matrix.
    pub(crate) fn of(matrix: &Arc<Csr>) -> Result<Quads> {
        check_size(matrix)?;
        let offsets = Quads::offsets(matrix)?;
        let columns = filled(matrix, &offsets, |entry| matrix.col_indices()[entry], FILL)?;
        let columns = columns.chunks_exact(QUAD).map(|quad| [quad[0], quad[1], quad[2], quad[3]]).collect();
        let values = match matrix.values() {
            Values::Ones => Values::Ones,
            Values::F32(values) => Values::F32(filled(matrix, &offsets, |entry| values[entry], 0.0)?),
            Values::F64(values) => Values::F64(filled(matrix, &offsets, |entry| values[entry], 0.0)?),
        };
        let items = item_list(&offsets, 1, matrix.rows());
        Ok(Quads { shape: (matrix.rows(), matrix.cols()), columns, values, entries: matrix.nnz(), items })
    }
}

/// Copies the entries of all rows to their quads, and fills the last quad of each row.
fn filled<V: Copy + Zeroable + Send + Sync>(
    matrix: &Csr,
    offsets: &[u32],
    of: impl Fn(usize) -> V + Sync,
    fill: V,
) -> Result<Vec<V>> {
    let mut all = zeros::<V>(offsets[matrix.rows()] as usize * QUAD)?;
    let mut left = &mut all[..];
    let bands = (0..matrix.rows()).step_by(BAND).map(|first| {
        let rows = first..(first + BAND).min(matrix.rows());
        let quads = (offsets[rows.end] - offsets[rows.start]) as usize;
        (rows, split_front(&mut left, quads * QUAD))
    });
    run_all(bands.collect(), |(rows, mut target): (Range<usize>, &mut [V])| {
        for row in rows {
            let entries = matrix.row_range(row);
            let (stored, rest) =
                split_front(&mut target, entries.len().div_ceil(QUAD) * QUAD).split_at_mut(entries.len());
            stored.iter_mut().zip(entries).for_each(|(stored, entry)| *stored = of(entry));
            rest.fill(fill);
        }
    });
    Ok(all)
}

impl Format for Quads {
    fn empty(types: Types) -> Quads {
        let items = item_list(&[0], 1, 0);
        Quads { shape: (0, 0), columns: Vec::new(), values: types.values(), entries: 0, items }
    }

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn padded_entries(&self) -> usize {
        self.entries
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        let arrays = Arrays::new().add("quads", &self.columns);
        arrays.add_values("values", &self.values).add("items", &self.items.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Offsets;

    #[test]
    fn rows_begin_with_a_quad_and_the_rest_of_the_last_one_is_filled() {
        let values = Values::F64((1..=6).map(f64::from).collect());
        let offsets = Offsets::narrowest(vec![0, 5, 5, 6]);
        let matrix = Arc::new(Csr::new(3, 9, offsets, vec![0, 2, 4, 6, 8, 3], values).unwrap());
        let quads = Quads::of(&matrix).unwrap();
        let f = FILL;
        assert_eq!(quads.columns, [[0, 2, 4, 6], [8, f, f, f], [3, f, f, f]]);
        let want = [1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 0.0, 0.0, 6.0, 0.0, 0.0, 0.0];
        assert_eq!(quads.values, Values::F64(want.into()));
        assert_eq!(Quads::places(&matrix).unwrap(), [0, 1, 2, 3, 4, f, f, f, 5, f, f, f]);
        assert_eq!(quads.items.list, [[0, 0, 2, u32::MAX], [1, 2, 2, u32::MAX], [2, 2, 3, u32::MAX]]);
    }
}
