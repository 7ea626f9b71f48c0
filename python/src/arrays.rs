//! Arrays of NumPy as slices.

use crate::errors::exception;
use numpy::{PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use solver::engine::{Indices, Numbers};

/// An array of indices.
pub enum IndexArray<'py> {
    I32(PyReadonlyArray1<'py, i32>),
    I64(PyReadonlyArray1<'py, i64>),
}

impl<'py> IndexArray<'py> {
    pub fn of(array: &Bound<'py, PyAny>) -> PyResult<IndexArray<'py>> {
        if let Ok(array) = array.extract() {
            return Ok(IndexArray::I32(array));
        }
        array.extract().map(IndexArray::I64).map_err(|_| refused(array, "int32 or int64"))
    }

    /// Copies the indices as those of vertices.
    pub fn narrow(&self) -> PyResult<Vec<u32>> {
        let found: Option<Vec<u32>> = match self {
            IndexArray::I32(array) => {
                array.as_slice()?.iter().map(|&index| u32::try_from(index).ok()).collect()
            }
            IndexArray::I64(array) => {
                array.as_slice()?.iter().map(|&index| u32::try_from(index).ok()).collect()
            }
        };
        found.ok_or_else(|| PyValueError::new_err("the number of a vertex is negative or too large"))
    }

    pub fn indices(&self) -> PyResult<Indices<'_>> {
        Ok(match self {
            IndexArray::I32(array) => array.as_slice()?.into(),
            IndexArray::I64(array) => array.as_slice()?.into(),
        })
    }
}

/// An array of values.
pub enum ValueArray<'py> {
    F32(PyReadonlyArray1<'py, f32>),
    F64(PyReadonlyArray1<'py, f64>),
    /// Every value is 1.
    Ones,
}

impl<'py> ValueArray<'py> {
    pub fn of(array: &Bound<'py, PyAny>) -> PyResult<ValueArray<'py>> {
        if array.is_none() {
            return Ok(ValueArray::Ones);
        }
        if let Ok(array) = array.extract() {
            return Ok(ValueArray::F64(array));
        }
        array.extract().map(ValueArray::F32).map_err(|_| refused(array, "float32 or float64"))
    }

    pub fn numbers(&self) -> PyResult<Numbers<'_>> {
        Ok(match self {
            ValueArray::F32(array) => array.as_slice()?.into(),
            ValueArray::F64(array) => array.as_slice()?.into(),
            ValueArray::Ones => Numbers::Ones,
        })
    }
}

/// Returns the error for an array of another type.
fn refused(array: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let found = array.cast::<PyUntypedArray>().map_or_else(
        |_| array.get_type().to_string(),
        |array| format!("{} dimensions of {}", array.ndim(), array.dtype()),
    );
    exception(array.py(), "InputError", format!("an array is {found}, and must be one dimension of {wanted}"))
}
