//! The transpose of a matrix whose rows and columns are numbered anew.
//!
//! The rows are visited in the new order, so that the column indices of the result are sorted. Two passes over the entries
//! put them in their rows (`assemble.rs`): neither the transpose nor the matrix in the new order is stored in between.

use super::assemble::{Entries, Rows, by_row};
use super::finish::{Width, narrow};
use super::pieces::each;
use super::{Csr, Pattern, Values};
use crate::error::{Error, FormatFault, Result};
use crate::memory::fetch;
use crate::parallel::tabulate;
use std::ops::Range;
use std::sync::Arc;

impl Csr {
    /// Returns the transpose of the square matrix whose entry (i, j) is entry (`order[i]`, `order[j]`) of this one. `order` is a
    /// permutation of the rows.
    pub fn transposed_in_order(&self, order: &[u32]) -> Result<Csr> {
        let (rows, cols) = (self.rows(), self.cols());
        if rows != cols {
            return Err(Error::NotSquare { rows, cols, solver: "a symmetric permutation" });
        }
        check_permutation(order, rows, rows.max(1))
            .map_err(|fault| Error::InvalidFormat { format: "permuted", fault })?;
        let rows = tabulate(order.len(), |number| {
            let range = self.row_range(order[number] as usize);
            [range.start, range.end]
        })?;
        transpose(self, &Renumbered { matrix: self, rows, order })
    }
}

/// Checks that a permutation has each of the rows once, and moves none out of its window.
pub(super) fn check_permutation(
    permutation: &[u32],
    rows: usize,
    window: usize,
) -> std::result::Result<(), FormatFault> {
    if permutation.len() != rows {
        let (array, got, expected) = ("permutation", permutation.len(), rows as u128);
        return Err(FormatFault::Length { array, got, expected });
    }
    let mut used = vec![false; rows];
    for (index, &row) in permutation.iter().enumerate() {
        match used.get_mut(row as usize) {
            None => return Err(FormatFault::PermutationRange { index, row, rows }),
            Some(true) => return Err(FormatFault::PermutationRepeated { index, row }),
            Some(_) if row as usize / window != index / window => {
                return Err(FormatFault::PermutationWindow { index, row, window });
            }
            Some(used) => *used = true,
        }
    }
    Ok(())
}

/// Builds a transpose, or a part of it, from its entries; the values are those of `value_bits`.
pub(super) fn transpose<E: Entries>(matrix: &Csr, entries: &E) -> Result<Csr> {
    match narrow(entries.most(), false) {
        true => build::<u32, E>(matrix, entries),
        false => build::<u64, E>(matrix, entries),
    }
}

fn build<W: Width, E: Entries>(matrix: &Csr, entries: &E) -> Result<Csr> {
    let Rows { offsets, columns, values } = by_row::<W, E>(entries, None)?;
    let values = match matrix.values() {
        Values::Ones => Values::Ones,
        Values::F32(_) => Values::F32(each(&values, |value| Ok(f32::from_bits(value.to_bits() as u32)))?),
        Values::F64(_) => Values::F64(values),
    };
    let (rows, cols) = entries.shape();
    let pattern = Pattern::trusted(rows, cols, W::offsets(offsets), columns, matrix.pattern().has_repeats());
    Csr::with_pattern(Arc::new(pattern), values)
}

/// Returns a value of a matrix; one in single precision as its bits, so that NaN keeps its own.
#[inline(always)]
pub(super) fn value_bits(values: &Values, entry: usize) -> f64 {
    match values {
        Values::F32(values) => f64::from_bits(u64::from(values[entry].to_bits())),
        other => other.get(entry),
    }
}

/// The entries of the transpose, by its columns. Row indices are those of the matrix; column indices are new.
struct Renumbered<'a> {
    matrix: &'a Csr,
    /// The entries of the row of the matrix with each new number, from the first to before the second.
    rows: Vec<[usize; 2]>,
    /// The row of each new number.
    order: &'a [u32],
}

impl Renumbered<'_> {
    /// Calls `visit` with each new number of a piece and the entries of its row. Neighbours in the new order are far apart in
    /// memory, so that rows are fetched ahead.
    #[inline(always)]
    fn each_row(&self, piece: &Range<usize>, mut visit: impl FnMut(u32, Range<usize>)) {
        const AHEAD: usize = 16;
        for number in piece.clone() {
            if let Some(&[start, _]) = self.rows.get(number + AHEAD) {
                fetch(self.matrix.col_indices(), start);
            }
            let [start, end] = self.rows[number];
            visit(number as u32, start..end);
        }
    }

    /// Returns the number of entries of a piece.
    fn entries_of(&self, piece: &Range<usize>) -> u64 {
        self.rows[piece.clone()].iter().map(|[start, end]| (end - start) as u64).sum()
    }
}

impl Entries for Renumbered<'_> {
    type Piece = Range<usize>;

    fn shape(&self) -> (usize, usize) {
        (self.matrix.cols(), self.matrix.rows())
    }

    fn order(&self) -> Option<&[u32]> {
        Some(self.order)
    }

    fn valued(&self) -> bool {
        !matches!(self.matrix.values(), Values::Ones)
    }

    fn most(&self) -> usize {
        self.matrix.nnz()
    }

    /// Cuts the new numbers into ranges that take about equally long.
    fn cut(&self, pieces: usize) -> Result<Vec<Range<usize>>> {
        /// A row costs as much as this many entries.
        const ROW: usize = 4;
        let work_of = |[start, end]: [usize; 2]| if end > start { end - start + ROW } else { 0 };
        let total: usize = self.rows.iter().copied().map(work_of).sum();
        let share = total.div_ceil(pieces.max(1)).max(1);
        let (mut ranges, mut start, mut work) = (Vec::new(), 0, 0);
        for (number, &row) in self.rows.iter().enumerate() {
            work += work_of(row);
            if work >= share * (ranges.len() + 1) && ranges.len() + 1 < pieces {
                ranges.push(start..number + 1);
                start = number + 1;
            }
        }
        ranges.push(start..self.rows.len());
        Ok(ranges)
    }

    fn rows(&self, piece: &Range<usize>, mut visit: impl FnMut(u32)) -> Result<u64> {
        self.places(piece, |row, _| visit(row))
    }

    fn places(&self, piece: &Range<usize>, mut visit: impl FnMut(u32, u32)) -> Result<u64> {
        self.each_row(piece, |number, entries| {
            let columns = &self.matrix.col_indices()[entries];
            columns.iter().for_each(|&column| visit(column, number));
        });
        Ok(self.entries_of(piece))
    }

    fn entries(&self, piece: &Range<usize>, mut visit: impl FnMut(u32, u32, f64)) -> Result<u64> {
        let values = self.matrix.values();
        self.each_row(piece, |number, entries| {
            let columns = &self.matrix.col_indices()[entries.clone()];
            for (&column, entry) in columns.iter().zip(entries) {
                visit(column, number, value_bits(values, entry));
            }
        });
        Ok(self.entries_of(piece))
    }

    fn check(&self, _: u64) -> Result<()> {
        Ok(())
    }
}
