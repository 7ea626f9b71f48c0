//! Checks that the rows of a chain are distributions, of a whole matrix or over ranks.

use crate::device::Ranks;
use crate::error::{ChainError, Result};
use crate::format::{Csr, Values};
use crate::parallel::zeros;
use crate::solve::rounding::sum;
use std::sync::Arc;

/// How much the sum of a row may differ from 1, in units of rounding for each of its entries.
const SLACK: f64 = 8.0;

/// The sums of rows, and the first rows that are no distributions.
pub(super) struct RowSums {
    sums: Vec<f64>,
    /// The first entry that is negative or not finite: row, column and value.
    bad: Option<[f64; 3]>,
    /// The first row whose sum is not 1, and its sum.
    off: Option<[f64; 2]>,
    /// The first row that cannot be divided by its sum, such as a sum of 0, and its sum.
    hopeless: Option<[f64; 2]>,
}

impl RowSums {
    /// Adds the entries of each row.
    pub(crate) fn of(matrix: &Csr) -> RowSums {
        let bad = |i: usize| matrix.row(i).find(|(_, p)| !(*p >= 0.0 && p.is_finite()));
        let found = matrix.map_rows(|i| (bad(i).is_some(), sum(matrix.row(i).map(|(_, p)| p))));
        let first_bad = found.iter().position(|(bad, _)| *bad);
        let first_bad = first_bad.and_then(|row| bad(row).map(|(col, p)| [row as f64, col as f64, p]));
        let sums: Vec<f64> = found.into_iter().map(|(_, sum)| sum).collect();
        let near = |row: usize| {
            let slack = SLACK * f64::EPSILON * (1 + matrix.row_range(row).len()) as f64;
            (sums[row] - 1.0).abs() <= slack
        };
        let with_sum = |row: usize| [row as f64, sums[row]];
        let off = (0..sums.len()).find(|row| !near(*row)).map(with_sum);
        let hopeless = sums.iter().position(|sum| !sum.is_normal()).map(with_sum);
        RowSums { bad: first_bad, off, hopeless, sums }
    }

    /// Replaces the first rows of this rank by those of the whole matrix, of which this rank has the rows
    /// from `first` on. All ranks call this together.
    pub(crate) fn over(self, ranks: &Ranks, first: usize) -> RowSums {
        let shifted = |row: f64| row + first as f64;
        let bad = self.bad.map_or([0.0; 4], |[row, col, value]| [1.0, shifted(row), col, value]);
        let [found, row, col, value] = ranks.first_of(bad);
        let bad = (found > 0.0).then_some([row, col, value]);
        let first_row = |mine: Option<[f64; 2]>| {
            let [found, row, sum] =
                ranks.first_of(mine.map_or([0.0; 3], |[row, sum]| [1.0, shifted(row), sum]));
            (found > 0.0).then_some([row, sum])
        };
        let (off, hopeless) = (first_row(self.off), first_row(self.hopeless));
        RowSums { bad, off, hopeless, sums: self.sums }
    }

    /// Returns whether the rows must be divided by their sums. Fails if an entry is no probability, or if a
    /// row does not sum to 1 and must not or cannot be divided.
    pub(crate) fn judge(&self, normalise: bool) -> Result<bool> {
        if let Some([row, col, value]) = self.bad {
            return Err(ChainError::Probability { row: row as usize, col: col as usize, value }.into());
        }
        let Some(off) = self.off else { return Ok(false) };
        if normalise && self.hopeless.is_none() {
            return Ok(true);
        }
        let [row, sum] = self.hopeless.filter(|_| normalise).unwrap_or(off);
        Err(ChainError::RowSum { row: row as usize, sum }.into())
    }

    /// Divides each row by its sum.
    pub(crate) fn scaled(&self, matrix: &Csr) -> Result<Csr> {
        let mut values: Vec<f64> = zeros(matrix.nnz())?;
        for (row, total) in self.sums.iter().enumerate() {
            let places = &mut values[matrix.row_range(row)];
            places.iter_mut().zip(matrix.row(row)).for_each(|(place, (_, p))| *place = p / total);
        }
        Csr::with_pattern(Arc::clone(matrix.pattern()), Values::F64(values))
    }
}
