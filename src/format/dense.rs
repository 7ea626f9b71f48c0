//! Dense storage, row-major, in double precision: for several vectors as columns, and for small matrices.
//!
//! An entry of +0 cannot be distinguished from a missing entry.

use super::Csr;
use super::pieces::{each_row, narrow_length};
use super::rows::build_rows;
use super::values::Stored;
use crate::error::{Error, Result};
use crate::parallel::zeros;

/// A dense matrix, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    rows: usize,
    cols: usize,
    values: Vec<f64>,
}

impl Dense {
    /// Largest number of rows times columns that backends accept: 128 MiB.
    pub(crate) const MAX_VALUES: u128 = 1 << 24;

    /// Creates a matrix from row-major values.
    pub fn new(rows: usize, cols: usize, values: Vec<f64>) -> Result<Dense> {
        let expected = rows.checked_mul(cols);
        if expected != Some(values.len()) {
            let expected = expected.unwrap_or(usize::MAX);
            return Err(Error::Dimension {
                what: "the values of a dense matrix",
                expected,
                got: values.len(),
            });
        }
        Ok(Dense { rows, cols, values })
    }

    /// Creates a matrix from columns of `rows` values.
    pub fn from_columns(rows: usize, columns: &[impl AsRef<[f64]>]) -> Result<Dense> {
        if let Some(column) = columns.iter().map(AsRef::as_ref).find(|column| column.len() != rows) {
            let what = "the values of a column of a dense matrix";
            return Err(Error::Dimension { what, expected: rows, got: column.len() });
        }
        let mut dense = Dense::zeros(rows, columns.len())?;
        for (j, column) in columns.iter().enumerate() {
            let elements = dense.values.iter_mut().skip(j).step_by(columns.len());
            elements.zip(column.as_ref()).for_each(|(element, &value)| *element = value);
        }
        Ok(dense)
    }

    fn zeros(rows: usize, cols: usize) -> Result<Dense> {
        let bytes = (rows as u128 * cols as u128).saturating_mul(8);
        let elements = rows.checked_mul(cols).ok_or(Error::OutOfMemory { bytes })?;
        Ok(Dense { rows, cols, values: zeros(elements)? })
    }

    /// Converts a sparse matrix. Refuses repeated column indices.
    pub fn from_csr(matrix: &Csr) -> Result<Dense> {
        matrix.pattern().refuse_repeats()?;
        let mut dense = Dense::zeros(matrix.rows(), matrix.cols())?;
        for (i, row) in dense.values.chunks_exact_mut(matrix.cols().max(1)).enumerate() {
            matrix.row(i).for_each(|(j, value)| row[j] = value);
        }
        Ok(dense)
    }

    /// Converts to compressed rows, with every value that is not +0.
    pub fn to_csr(&self) -> Result<Csr> {
        let kept = |row| (0_u32..).zip(self.row(row)).filter(|(_, value)| !value.is_fill());
        let lengths = each_row(self.rows, 8 * self.values.len(), |row| narrow_length(kept(row).count()))?;
        build_rows((self.rows, self.cols), &lengths, false, |row, columns, values: &mut [f64]| {
            for ((col, &value), (col_out, value_out)) in kept(row).zip(columns.iter_mut().zip(values)) {
                (*col_out, *value_out) = (col, value);
            }
        })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the values, row-major.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the values, row-major, and drops the rest.
    pub(crate) fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// Returns row `i`. Panics if the row is out of range.
    pub fn row(&self, i: usize) -> &[f64] {
        assert!(i < self.rows, "row {i} is out of range for {} rows", self.rows);
        &self.values[i * self.cols..][..self.cols]
    }

    /// Returns the value at (row, col), if the position is in range.
    pub fn get(&self, row: usize, col: usize) -> Option<f64> {
        (row < self.rows && col < self.cols).then(|| self.values[row * self.cols + col])
    }

    /// Returns column `j`, if the index is in range.
    pub fn column(&self, j: usize) -> Option<Vec<f64>> {
        (j < self.cols).then(|| self.values.iter().skip(j).step_by(self.cols).copied().collect())
    }

    /// Returns the bytes of the values.
    pub fn storage_bytes(&self) -> u64 {
        size_of_val(&self.values[..]) as u64
    }
}
