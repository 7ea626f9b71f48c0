//! Triplets (row, column, value) in any order: what most files hold, and what a matrix is built from.

use super::Csr;
use super::assemble::assemble;
use crate::error::{Error, Result};

/// A matrix as triplets, counted from 0. Entries may come in any order and more than once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coo {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_indices: Vec<u32>,
    pub(crate) col_indices: Vec<u32>,
    /// Empty where every entry is 1.
    pub(crate) values: Vec<f64>,
}

impl Coo {
    /// Takes over the arrays of triplets; no values at all stand for ones.
    pub fn new(
        rows: usize,
        cols: usize,
        row_indices: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Coo> {
        let entries = row_indices.len();
        let lengths = [("column indices", col_indices.len()), ("values", values.len())];
        for (what, got) in lengths {
            if got != entries && !(what == "values" && got == 0) {
                return Err(Error::Dimension { what, expected: entries, got });
            }
        }
        for (what, indices, size) in
            [("a row index", &row_indices, rows), ("a column index", &col_indices, cols)]
        {
            if let Some(&index) = indices.iter().find(|&&index| index as usize >= size) {
                let (value, limit) = (u128::from(index), (size as u128).saturating_sub(1));
                return Err(Error::TooLarge { what, value, limit, place: "the matrix" });
            }
        }
        Ok(Coo { rows, cols, row_indices, col_indices, values })
    }

    /// Compressed rows; duplicates are summed in their order.
    pub fn into_csr(self) -> Result<Csr> {
        assemble(self, None)
    }
}
