//! Matrices.

use crate::arrays::{IndexArray, ValueArray};
use crate::errors::detached;
use crate::labels::text;
use crate::names::as_argument;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyList;
use solver::engine::{self, LentIndices, LentNumbers, LentRows};
use solver::format::{Coo, Csr, Offsets, Values};
use std::path::PathBuf;
use std::sync::Arc;

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

    /// Copies compressed rows, or compressed columns of a matrix of the same shape if `by_columns`. With None
    /// as values, every value is 1.
    #[staticmethod]
    fn from_csr(
        py: Python<'_>,
        shape: (usize, usize),
        offsets: &Bound<'_, PyAny>,
        columns: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        by_columns: bool,
    ) -> PyResult<Matrix> {
        let (offsets, columns) = (IndexArray::of(offsets)?, IndexArray::of(columns)?);
        let values = ValueArray::of(values)?;
        let (offsets, columns, values) = (offsets.indices()?, columns.indices()?, values.numbers()?);
        let (rows, cols) = if by_columns { (shape.1, shape.0) } else { shape };
        detached(py, || {
            let matrix = engine::Matrix::from_csr(rows, cols, offsets, columns, values)?;
            if by_columns { Ok(matrix.csr().transposed()?.into()) } else { Ok(matrix) }
        })
        .map(Matrix)
    }

    /// Copies compressed rows in memory of a GPU: addresses, each with the bytes of an element (4 or 8; 0 if
    /// every value is 1). The caller of this private function has checked lengths, types and alignment.
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
            // SAFETY: `_inputs.of_rows_on_gpu` passes addresses of arrays that it holds during the call, all
            // on this GPU, with their lengths and types. Earlier work on them is in the order of the stream.
            unsafe { engine::Matrix::from_gpu(gpu, &given) }
        })
        .map(Matrix)
    }

    /// Builds the adjacency matrix of a graph from links. If `vertices` is None, sources and targets are ids,
    /// and ids that no link names are not vertices. With None as weights, every link weighs 1.
    #[staticmethod]
    fn from_links(
        py: Python<'_>,
        vertices: Option<usize>,
        sources: &Bound<'_, PyAny>,
        targets: &Bound<'_, PyAny>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Matrix> {
        let (sources, targets) = (IndexArray::of(sources)?.narrow()?, IndexArray::of(targets)?.narrow()?);
        let weights = weights.map_or_else(|| Ok(Vec::new()), |weights| weights.to_vec())?;
        detached(py, || {
            let size = vertices.unwrap_or(u32::MAX as usize);
            let links = Coo::new(size, size, sources, targets, weights)?;
            match vertices {
                Some(_) => engine::Matrix::from_links(links),
                None => engine::Matrix::from_links_of_ids(links),
            }
        })
        .map(Matrix)
    }

    /// Returns the same matrix with a label for each row.
    fn with_labels(&self, py: Python<'_>, labels: &Bound<'_, PyList>) -> PyResult<Matrix> {
        let texts: Vec<String> = labels.iter().map(|label| text(&label)).collect::<PyResult<_>>()?;
        let matrix = self.0.clone();
        detached(py, || matrix.with_labels(texts)).map(Matrix)
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

    /// Reads or generates a matrix and returns its shape and arrays. Arrays that NumPy has in
    /// the same layout are moved.
    #[staticmethod]
    fn read(py: Python<'_>, what: PathBuf) -> PyResult<((usize, usize), Arrays<'_>)> {
        let csr = detached(py, || engine::Matrix::open(&what))?.into_csr();
        Ok(((csr.rows(), csr.cols()), arrays(py, csr)?))
    }

    /// Copies offsets, columns and values of compressed rows.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        arrays(py, self.0.csr().clone())
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
        let info = detached(py, || Ok(engine::Info::of(&self.0, &as_argument)))?;
        Ok((json(&info)?, info.text_naming(&as_argument)))
    }
}

/// Returns offsets, columns and values of compressed rows. Vectors that become vectors of the
/// same size keep their memory.
fn arrays(py: Python<'_>, csr: Csr) -> PyResult<Arrays<'_>> {
    if csr.cols() > 1 << 31 {
        let message = "the matrix has more than 2^31 columns".to_owned();
        return Err(crate::errors::exception(py, "TooLargeError", message));
    }
    let entries = csr.nnz();
    let (pattern, values) = csr.into_parts();
    let (offsets, columns) = Arc::unwrap_or_clone(pattern).into_arrays();
    let offsets = match offsets {
        // Both fit: a row offset is at most the number of entries.
        Offsets::U32(offsets) if entries <= i32::MAX as usize => {
            offsets.into_iter().map(|offset| offset as i32).collect::<Vec<_>>().into_pyarray(py).into_any()
        }
        Offsets::U32(offsets) => {
            offsets.into_iter().map(i64::from).collect::<Vec<_>>().into_pyarray(py).into_any()
        }
        Offsets::U64(offsets) => {
            offsets.into_iter().map(|offset| offset as i64).collect::<Vec<_>>().into_pyarray(py).into_any()
        }
    };
    let columns = columns.into_iter().map(|column| column as i32).collect::<Vec<_>>().into_pyarray(py);
    let values = match values {
        Values::Ones => vec![1.0f64; entries].into_pyarray(py).into_any(),
        Values::F32(values) => values.into_pyarray(py).into_any(),
        Values::F64(values) => values.into_pyarray(py).into_any(),
    };
    Ok((offsets, columns, values))
}

/// Returns the JSON of a report.
pub fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
}
