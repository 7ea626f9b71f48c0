//! Products of a matrix with one or several vectors.

use crate::errors::{detached, exception};
use crate::matrix::{Matrix, json};
use crate::settings::{Running, with_running};
use numpy::{
    IntoPyArray, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use solver::engine;
use std::sync::{Mutex, PoisonError};

/// A matrix that is ready for products, usable from any thread: products of several threads follow each other.
#[pyclass(frozen, subclass, module = "solver._solver")]
pub struct Products {
    inner: Mutex<engine::Products>,
    shape: (usize, usize),
}

/// Returns the number of columns of an array of shape (n,) or (n, k).
fn columns(py: Python<'_>, shape: &[usize], n: usize) -> PyResult<usize> {
    match *shape {
        [rows] if rows == n => Ok(1),
        [rows, k] if rows == n && k > 0 => Ok(k),
        _ => {
            let found = PyTuple::new(py, shape)?;
            let message = format!("an array has the shape {found}; it must be ({n},) or ({n}, k)");
            Err(exception(py, "DimensionError", message))
        }
    }
}

impl Products {
    fn run(
        &self,
        py: Python<'_>,
        (alpha, b): (f64, &[f64]),
        (beta, c): (f64, &mut [f64]),
        k: usize,
    ) -> PyResult<()> {
        detached(py, || {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.update(alpha, b, beta, c, k)
        })
    }
}

#[pymethods]
impl Products {
    #[new]
    fn new(py: Python<'_>, matrix: &Matrix, columns: usize, running: Running) -> PyResult<Products> {
        let settings = with_running!(engine::Multiply::new(&matrix.0), &running, py).columns(columns);
        let inner = detached(py, || settings.prepare())?;
        Ok(Products { inner: Mutex::new(inner), shape: (matrix.0.rows(), matrix.0.cols()) })
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    #[getter]
    fn backend(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.lock().unwrap_or_else(PoisonError::into_inner).backend().to_owned())
    }

    #[getter]
    fn device(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.lock().unwrap_or_else(PoisonError::into_inner).device().describe().to_owned())
    }

    /// The reasons for the backend as JSON.
    fn explanation_json(&self, py: Python<'_>) -> PyResult<String> {
        let explanation =
            py.detach(|| self.inner.lock().unwrap_or_else(PoisonError::into_inner).explanation().clone());
        json(&explanation)
    }

    /// Bytes that a product with k columns moves at least, and its operations.
    fn cost(&self, py: Python<'_>, k: usize) -> (u64, u64) {
        py.detach(|| {
            let cost = self.inner.lock().unwrap_or_else(PoisonError::into_inner).cost(k);
            (cost.bytes, cost.flops)
        })
    }

    /// Returns A b for an array of shape (n,) or (n, k), in rows.
    fn product<'py>(
        &self,
        py: Python<'py>,
        b: PyReadonlyArrayDyn<'py, f64>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let (rows, cols) = self.shape;
        let shape = b.shape().to_vec();
        let k = columns(py, &shape, cols)?;
        let mut c = vec![0.0; rows * k];
        self.run(py, (1.0, b.as_slice()?), (0.0, &mut c), k)?;
        let shape = if shape.len() == 1 { vec![rows] } else { vec![rows, k] };
        c.into_pyarray(py).reshape(shape)
    }

    /// Sets c to alpha A b + beta c, in place.
    fn update(
        &self,
        py: Python<'_>,
        alpha: f64,
        b: PyReadonlyArrayDyn<'_, f64>,
        beta: f64,
        mut c: PyReadwriteArrayDyn<'_, f64>,
    ) -> PyResult<()> {
        let (rows, cols) = self.shape;
        let k = columns(py, b.shape(), cols)?;
        if columns(py, c.shape(), rows)? != k || b.ndim() != c.ndim() {
            let message = format!("x has {} dimensions and {k} columns, and y has others", b.ndim());
            return Err(exception(py, "DimensionError", message));
        }
        self.run(py, (alpha, b.as_slice()?), (beta, c.as_slice_mut()?), k)
    }
}
