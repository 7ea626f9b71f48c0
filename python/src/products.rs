//! Products of a matrix with one or several vectors.

use crate::errors::{detached, exception};
use crate::matrix::Matrix;
use crate::owned::Owned;
use crate::settings::{Chosen, Running, chosen, with_running};
use numpy::{
    IntoPyArray, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use solver::engine::{self, LentNumbers, LentProduct};

/// A matrix that is ready for products, usable from any thread: products of several threads
/// follow each other.
#[pyclass(frozen, subclass, module = "solver._solver")]
pub struct Products {
    inner: Owned<engine::Products>,
    shape: (usize, usize),
    chosen: Chosen,
}

/// Returns the number of columns of an array of shape (n,) or (n, k).
fn columns(py: Python<'_>, shape: &[usize], n: usize) -> PyResult<usize> {
    match *shape {
        [rows] if rows == n => Ok(1),
        [rows, k] if rows == n && k > 0 => Ok(k),
        _ => {
            let found = PyTuple::new(py, shape)?;
            let message = format!(
                "an array has the shape {found}; it must be ({n},), or ({n}, k) for k columns, at least 1"
            );
            Err(exception(py, "DimensionError", message))
        }
    }
}

#[pymethods]
impl Products {
    /// With `changes`, only the pattern of the matrix is prepared.
    #[new]
    fn new(
        py: Python<'_>,
        matrix: &Matrix,
        columns: usize,
        changes: bool,
        running: Running,
    ) -> PyResult<Products> {
        let settings = with_running(engine::Multiply::new(&matrix.0), &running, py)?.columns(columns);
        let settings = settings.changing_values(changes);
        let inner = detached(py, || settings.prepare())?;
        let chosen = chosen(inner.backend(), inner.device().describe(), inner.explanation())?;
        Ok(Products { inner: Owned::new(inner), shape: (matrix.0.rows(), matrix.0.cols()), chosen })
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    #[getter]
    fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// Bytes that a product with k columns moves at least, and its operations.
    fn cost(&self, py: Python<'_>, k: usize) -> PyResult<(u64, u64)> {
        let cost = self.inner.with(py, |products| Ok(products.cost(k)))?;
        Ok((cost.bytes, cost.flops))
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
        let b = b.as_slice()?;
        let c = self.inner.with(py, |products| products.product(b, k))?;
        let shape = if shape.len() == 1 { vec![rows] } else { vec![rows, k] };
        c.into_pyarray(py).reshape(shape)
    }

    /// Whether the vectors have single precision.
    #[getter]
    fn is_single(&self, py: Python<'_>) -> PyResult<bool> {
        self.inner.with(py, |products| Ok(products.is_single()))
    }

    /// The index of the GPU; none for the CPU.
    #[getter]
    fn gpu(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let index = |name: &str| name.strip_prefix("cuda:").and_then(|index| index.parse().ok());
        self.inner.with(py, |products| Ok(index(products.device().name())))
    }

    /// Sets c to alpha A b + beta c, for arrays on the GPU of the operator, in the order of a stream. If
    /// there is an address of `values`, they become those of A before. The caller of this private function
    /// has checked addresses, shapes, types and alignment.
    #[pyo3(signature = (product, addend, k, stream, values=None))]
    fn update_on_gpu(
        &self,
        py: Python<'_>,
        product: (f64, u64),
        addend: (f64, u64),
        k: usize,
        stream: u64,
        values: Option<u64>,
    ) -> PyResult<()> {
        let ((alpha, b), (beta, c)) = (product, addend);
        self.inner.with(py, |products| {
            let numbers = if products.is_single() { LentNumbers::F32 } else { LentNumbers::F64 };
            let lent = LentProduct { alpha, b: numbers(b), beta, c: numbers(c), columns: k, stream };
            // SAFETY: `Operator` in Python passes addresses of arrays that it holds during the call, on
            // the GPU of the operator, with its shapes and its type; `_Changing` in `solver.torch` also
            // passes as many values as the pattern has entries, on the same GPU. Later work on all of
            // them follows in the stream.
            unsafe {
                values.map_or(Ok(()), |values| products.set_values_lent(numbers(values), stream))?;
                products.update_lent(&lent)
            }
        })
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
        let (b, c) = (b.as_slice()?, c.as_slice_mut()?);
        self.inner.with(py, |products| products.update(alpha, b, beta, c, k))
    }
}
