//! Matrices.

use crate::arrays::{IndexArray, ValueArray};
use crate::errors::detached;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyList;
use solver::engine::{self, LentIndices, LentNumbers, LentRows};
use solver::format::{Offsets, Values};
use std::path::PathBuf;

/// A matrix of the library. It has a copy of the arrays from which it was made.
#[pyclass(frozen, module = "solver._solver")]
pub struct Matrix(pub engine::Matrix);

type Arrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyArray1<i32>>, Bound<'py, PyAny>);

#[pymethods]
impl Matrix {
    /// Reads a file or a matrix of the catalog, or generates a matrix; as a graph if `graph`.
    #[staticmethod]
    fn open(py: Python<'_>, what: PathBuf, graph: bool) -> PyResult<Matrix> {
        let open = || if graph { engine::Matrix::open_graph(&what) } else { engine::Matrix::open(&what) };
        detached(py, open).map(Matrix)
    }

    /// Copies compressed rows. With None as values, every value is 1.
    #[staticmethod]
    fn from_csr(
        py: Python<'_>,
        shape: (usize, usize),
        offsets: &Bound<'_, PyAny>,
        columns: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<Matrix> {
        let (offsets, columns) = (IndexArray::of(offsets)?, IndexArray::of(columns)?);
        let values = ValueArray::of(values)?;
        let (offsets, columns, values) = (offsets.indices()?, columns.indices()?, values.numbers()?);
        let (rows, cols) = shape;
        detached(py, || engine::Matrix::from_csr(rows, cols, offsets, columns, values)).map(Matrix)
    }

    /// Copies compressed rows in memory of a GPU: addresses, each with the bytes of an element (4 or 8; 0 if every value is 1). The caller
    /// of this private function has checked lengths, types and alignment.
    #[staticmethod]
    fn from_gpu(
        py: Python<'_>,
        gpu: usize,
        stream: u64,
        shape: (usize, usize),
        entries: usize,
        arrays: [(u64, usize); 3],
    ) -> PyResult<Matrix> {
        let index = |(address, bytes): (u64, usize)| match bytes {
            4 => LentIndices::I32(address),
            _ => LentIndices::I64(address),
        };
        let values = match arrays[2] {
            (_, 0) => LentNumbers::Ones,
            (address, 4) => LentNumbers::F32(address),
            (address, _) => LentNumbers::F64(address),
        };
        let (offsets, columns) = (index(arrays[0]), index(arrays[1]));
        let given = LentRows { rows: shape.0, cols: shape.1, entries, offsets, columns, values, stream };
        detached(py, || {
            // SAFETY: `_inputs.of_rows_on_gpu` passes addresses of arrays that it holds during the call, all on this GPU, with their
            // lengths and types. Earlier work on them is in the order of the stream.
            unsafe { engine::Matrix::from_gpu(gpu, &given) }
        })
        .map(Matrix)
    }

    /// Returns the same matrix with a label for each row.
    fn with_labels(&self, py: Python<'_>, labels: Vec<String>) -> PyResult<Matrix> {
        let matrix = self.0.clone();
        detached(py, || matrix.with_labels(labels)).map(Matrix)
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.rows(), self.0.cols())
    }

    #[getter]
    fn nnz(&self) -> usize {
        self.0.nnz()
    }

    /// Notes of the reader.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes().to_vec()
    }

    /// Copies offsets, columns and values of compressed rows.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        let csr = self.0.csr();
        let offsets = match csr.row_offsets() {
            // Both fit: a row offset is at most the number of entries.
            Offsets::U32(offsets) if csr.nnz() <= i32::MAX as usize => {
                let offsets: Vec<i32> = offsets.iter().map(|&offset| offset as i32).collect();
                offsets.into_pyarray(py).into_any()
            }
            offsets => {
                let offsets: Vec<i64> = (0..=csr.rows()).map(|row| offsets.get(row) as i64).collect();
                offsets.into_pyarray(py).into_any()
            }
        };
        let columns = csr.col_indices().iter().map(|&column| i32::try_from(column));
        let columns: Vec<i32> = columns.collect::<Result<_, _>>().map_err(|_| {
            crate::errors::exception(py, "TooLargeError", "the matrix has more than 2^31 columns".to_owned())
        })?;
        let values = match csr.values() {
            Values::Ones => PyArray1::from_vec(py, vec![1.0f64; csr.nnz()]).into_any(),
            Values::F32(values) => PyArray1::from_slice(py, values).into_any(),
            Values::F64(values) => PyArray1::from_slice(py, values).into_any(),
        };
        Ok((offsets, columns.into_pyarray(py), values))
    }

    /// The labels of the rows of a graph, or their ids; None if they are the numbers from 0.
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let (names, rows) = (self.0.names(), 0..self.0.rows());
        if names.has_labels() {
            return PyList::new(py, rows.map(|row| names.name(row))).map(Some);
        }
        if rows.clone().all(|row| names.id(row) == Some(row as u64)) {
            return Ok(None);
        }
        PyList::new(py, rows.map(|row| names.id(row).unwrap_or(row as u64))).map(Some)
    }

    /// Statistics as JSON, and as text.
    fn info(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let info = detached(py, || Ok(self.0.info()))?;
        Ok((json(&info)?, info.to_string()))
    }
}

/// Returns the JSON of a report.
pub fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
}
