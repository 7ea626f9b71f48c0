//! The transpose of a matrix whose rows and columns are numbered anew.
//!
//! The rows are visited in the new order, so that the column indices of the result are sorted. The entries
//! are sorted by row in two steps (`buckets.rs`).

use super::buckets::{Buckets, ByColumn};
use super::finish::narrow;
use super::pieces::pieces_for;
use super::values::{from_bits, value_bits};
use super::{Csr, Offset, Pattern};
use crate::error::{Error, FormatFault, Result};
use crate::memory::fetch;
use crate::parallel::{tabulate, zeros};
use std::ops::Range;
use std::sync::Arc;

impl Csr {
    /// Returns the transpose of the square matrix whose entry (i, j) is entry (`order[i]`, `order[j]`) of
    /// this one. `order` is a permutation of the rows.
    pub(crate) fn transposed_in_order(&self, order: &[u32]) -> Result<Csr> {
        let (rows, cols) = (self.rows(), self.cols());
        if rows != cols {
            return Err(Error::NotSquare { rows, cols, solver: "a symmetric permutation" });
        }
        check_permutation(order, rows, rows.max(1))
            .map_err(|fault| Error::InvalidFormat { format: "permuted", fault })?;
        match narrow(self.nnz(), false) {
            true => transpose::<u32>(self, order),
            false => transpose::<u64>(self, order),
        }
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

fn transpose<O: Offset>(matrix: &Csr, order: &[u32]) -> Result<Csr> {
    let n = order.len();
    let mut numbers: Vec<u32> = zeros(n)?;
    order.iter().zip(0..).for_each(|(&row, number)| numbers[row as usize] = number);
    let rows = tabulate(n, |number| {
        let range = matrix.row_range(order[number] as usize);
        [range.start, range.end]
    })?;
    let (buckets, entries) = (Buckets::of(n), Renumbered { matrix, rows, numbers });
    let pieces =
        entries.cut(pieces_for(matrix.nnz() * (4 + matrix.values().width())), buckets.most_columns());
    let (offsets, columns, values) = buckets.sort::<O>(&entries, &pieces, matrix.values().width() > 0)?;
    let pattern = Pattern::trusted(n, n, O::wrap(offsets), columns, matrix.pattern().has_repeats());
    Csr::with_pattern(Arc::new(pattern), from_bits(matrix.values(), values)?)
}

/// The entries of the transpose in the new order, by column.
struct Renumbered<'a> {
    matrix: &'a Csr,
    /// The entries of the row of the matrix with each new number, from the first to before the second.
    rows: Vec<[usize; 2]>,
    /// The new number of each row.
    numbers: Vec<u32>,
}

impl Renumbered<'_> {
    /// Calls `visit` with each new number and the entries of its row. Neighbours in the new order are far
    /// apart in memory, so that rows are fetched ahead.
    #[inline(always)]
    fn each_row(&self, numbers: Range<usize>, mut visit: impl FnMut(u32, Range<usize>)) {
        const AHEAD: usize = 16;
        for number in numbers {
            if let Some(&[start, _]) = self.rows.get(number + AHEAD) {
                fetch(self.matrix.col_indices(), start);
            }
            let [start, end] = self.rows[number];
            visit(number as u32, start..end);
        }
    }

    /// Cuts the new numbers into ranges that take about equally long. A range has at most `most` numbers.
    fn cut(&self, pieces: usize, most: usize) -> Vec<Range<usize>> {
        /// A row costs as much as this many entries.
        const ROW: usize = 4;
        let work_of = |[start, end]: [usize; 2]| if end > start { end - start + ROW } else { 0 };
        let total: usize = self.rows.iter().copied().map(work_of).sum();
        let share = total.div_ceil(pieces).max(1);
        let (mut ranges, mut start, mut work) = (Vec::new(), 0, 0);
        for (number, &row) in self.rows.iter().enumerate() {
            work += work_of(row);
            if work >= share || number + 1 - start == most {
                ranges.push(start..number + 1);
                (start, work) = (number + 1, 0);
            }
        }
        ranges.push(start..self.rows.len());
        ranges
    }
}

impl ByColumn for Renumbered<'_> {
    fn rows(&self, columns: Range<usize>, mut visit: impl FnMut(u32)) {
        self.each_row(columns, |_, entries| {
            let targets = &self.matrix.col_indices()[entries];
            targets.iter().for_each(|&target| visit(self.numbers[target as usize]));
        });
    }

    fn entries(&self, columns: Range<usize>, mut visit: impl FnMut(u32, u32, f64)) {
        /// The numbers of targets are far apart in memory. Read together, they wait for it together.
        const TOGETHER: usize = 64;
        let values = self.matrix.values();
        let mut found = [0; TOGETHER];
        self.each_row(columns, |number, entries| {
            for first in entries.clone().step_by(TOGETHER) {
                let targets = &self.matrix.col_indices()[first..entries.end.min(first + TOGETHER)];
                found
                    .iter_mut()
                    .zip(targets)
                    .for_each(|(found, &target)| *found = self.numbers[target as usize]);
                let found = found[..targets.len()].iter().zip(first..);
                found.for_each(|(&row, entry)| visit(row, number, value_bits(values, entry)));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Values;
    use crate::source::generate::random::Random;
    use crate::source::load;

    #[test]
    fn a_transpose_in_another_order_is_that_of_the_renumbered_matrix() {
        let graph = load("rmat:scale=15,edges=600000").unwrap().matrix;
        let values = |j: usize| f64::from_bits(Random::at(3, j as u64).bits());
        let weights: Vec<f64> = (0..graph.nnz()).map(values).collect();
        let weighted = Csr::with_pattern(Arc::clone(graph.pattern()), Values::F64(weights)).unwrap();
        let narrow = load("poisson2d:70x90").unwrap().matrix.to_f32();
        let few = load("poisson2d:1x2").unwrap().matrix;
        for matrix in [&graph, &weighted, &narrow, &few] {
            let (n, nnz) = (matrix.rows(), matrix.nnz());
            let mut order: Vec<u32> = (0..n as u32).collect();
            order.sort_by_key(|&row| Random::at(7, u64::from(row)).bits());
            let mut numbers = vec![0; n];
            order.iter().zip(0..).for_each(|(&row, number)| numbers[row as usize] = number);
            let renumbered = matrix.renumbered(&order, n, |column| numbers[column as usize]).unwrap();
            let expected = renumbered.transposed().unwrap();
            let bits =
                |values: &Values| (0..nnz).map(|j| value_bits(values, j).to_bits()).collect::<Vec<u64>>();
            let transpose = matrix.transposed_in_order(&order).unwrap();
            assert_eq!(transpose.pattern(), expected.pattern());
            assert_eq!(bits(transpose.values()), bits(expected.values()));
            // Many pieces of few columns each.
            let rows =
                order.iter().map(|&row| matrix.row_range(row as usize)).map(|r| [r.start, r.end]).collect();
            let entries = Renumbered { matrix, rows, numbers };
            let pieces = entries.cut(3, 100);
            assert!(pieces.len() >= n / 100 && pieces.iter().all(|piece| piece.len() <= 100));
            let (_, columns, _) = Buckets::of(n).sort::<u64>(&entries, &pieces, false).unwrap();
            assert_eq!(columns, expected.col_indices());
        }
    }
}
