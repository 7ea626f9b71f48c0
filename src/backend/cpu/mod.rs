//! Strategies on the CPU.

pub mod rows;
pub mod serial;

use crate::device::cpu::CpuVector;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::scalar::Scalar;

/// Checks that x and y fit the matrix and each other; returns the number of columns.
fn check_shapes<T: Scalar>(matrix: &Csr, x: &CpuVector<T>, y: &CpuVector<T>) -> Result<usize> {
    let fits = |what, expected, got| match expected == got {
        true => Ok(()),
        false => Err(Error::Dimension { what, expected, got }),
    };
    fits("rows of x", matrix.cols(), x.n())?;
    fits("rows of y", matrix.rows(), y.n())?;
    fits("columns of y", x.k(), y.k())?;
    Ok(x.k())
}
