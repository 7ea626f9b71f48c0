//! Every entry stored, row after row: vectors in columns, and small matrices.

use crate::error::{Error, Result};

/// A dense matrix, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    rows: usize,
    cols: usize,
    values: Vec<f64>,
}

impl Dense {
    /// Takes over the values, row after row.
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

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The values, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}
