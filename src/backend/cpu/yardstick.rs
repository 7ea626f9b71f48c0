//! Common frame of the products of other crates, measured unchanged: one thread, double precision.
//!
//! The foreign product computes y = A x into a y that is set to zero first; alpha and beta are
//! applied in a separate pass.

use super::chunked::check_shapes;
use crate::backend::SharedOperator;
use crate::device::Cpu;
use crate::device::cpu::CpuVector;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::operator::{Cost, LinearOperator};
use crate::parallel::lock;
use crate::scalar::Scalar;
use std::any::Any;
use std::sync::{Arc, Mutex};

/// A matrix type of another crate.
pub(super) trait Foreign: Send + Sync {
    /// The backend's name.
    const NAME: &'static str;
    /// Computes y = A x; y is zero on entry.
    fn multiply(&self, x: &[f64], y: &mut [f64]);
    /// Returns the bytes of the matrix's arrays.
    fn storage(&self) -> u64;
}

/// Returns the error for input that the crate does not support.
pub(super) fn refused<F: Foreign>(what: String) -> Error {
    let hint = "it supports only matrices and single vectors in double precision; choose rows".to_owned();
    Error::Unsupported { backend: F::NAME, device: "cpu", what, hint }
}

/// Returns the row offsets and values of a matrix in the types that other crates use.
pub(super) fn arrays(matrix: &Csr) -> (Vec<usize>, Vec<f64>) {
    let offsets = (0..=matrix.rows()).map(|row| matrix.row_offsets().get(row)).collect();
    (offsets, (0..matrix.nnz()).map(|j| matrix.values().get(j)).collect())
}

/// Builds the operator, for vectors in double precision.
pub(super) fn operator<T: Scalar, F: Foreign + 'static>(
    matrix: &Csr,
    make: impl FnOnce() -> Result<F>,
) -> Result<SharedOperator<Cpu, T>> {
    if std::any::TypeId::of::<T>() != std::any::TypeId::of::<f64>() {
        return Err(refused::<F>(format!("vectors of {}", T::NAME)));
    }
    let scratch = Mutex::new(vec![0.0; matrix.rows()]);
    Ok(Arc::new(ForeignOperator {
        matrix: make()?,
        shape: (matrix.rows(), matrix.cols()),
        nnz: matrix.nnz(),
        scratch,
    }))
}

struct ForeignOperator<F> {
    matrix: F,
    shape: (usize, usize),
    nnz: usize,
    scratch: Mutex<Vec<f64>>,
}

impl<F: Foreign> ForeignOperator<F> {
    fn multiply(&self, (alpha, beta): (f64, f64), x: &[f64], y: &mut [f64]) {
        if (alpha, beta) == (1.0, 0.0) {
            y.fill(0.0);
            return self.matrix.multiply(x, y);
        }
        let mut product = lock(&self.scratch);
        product.fill(0.0);
        self.matrix.multiply(x, &mut product);
        for (y, product) in y.iter_mut().zip(&*product) {
            *y = if beta == 0.0 { alpha * product } else { alpha * product + beta * *y };
        }
    }
}

impl<T: Scalar, F: Foreign> LinearOperator<Cpu, T> for ForeignOperator<F> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn apply(&self, _: &Cpu, alpha: f64, x: &CpuVector<T>, beta: f64, y: &mut CpuVector<T>) -> Result<()> {
        let k = check_shapes(self.shape, x, y)?;
        if k != 1 {
            return Err(refused::<F>(format!("{k} columns")));
        }
        let x = (x as &dyn Any).downcast_ref::<CpuVector<f64>>();
        let y = (y as &mut dyn Any).downcast_mut::<CpuVector<f64>>();
        let (Some(x), Some(y)) = (x, y) else {
            return Err(refused::<F>(format!("vectors of {}", T::NAME)));
        };
        self.multiply((alpha, beta), x.data(), y.data_mut());
        Ok(())
    }

    fn cost(&self) -> Cost {
        let vectors = (self.shape.0 + self.shape.1) * size_of::<T>();
        Cost { bytes: self.matrix.storage() + vectors as u64, flops: 2 * self.nnz as u64 }
    }

    fn storage(&self) -> u64 {
        self.matrix.storage()
    }
}
