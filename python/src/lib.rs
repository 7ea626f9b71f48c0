//! The module `solver._solver`: the library's calls as Python classes. The package `solver` around it
//! converts arguments and makes the calls that users see.
//!
//! Nothing is computed here. The interpreter is released while the library works; a signal of Ctrl-C is
//! looked for between batches of iterations.

mod arrays;
mod errors;
mod function;
mod interrupt;
mod labels;
mod linear;
mod matrix;
mod names;
mod owned;
mod products;
mod progress;
mod ranks;
mod settings;
mod stationary;

use pyo3::prelude::*;
use solver::backend::REGISTRY;
use solver::params::Param;

/// Runs the program `solver` with these arguments and returns its exit code.
#[pyfunction]
fn run_program(py: Python<'_>, arguments: Vec<String>) -> PyResult<u8> {
    errors::detached(py, || Ok(solver::cli::run_with(arguments.into_iter().map(Into::into).collect())))
}

/// Returns the backends: device, name, format, origin, summary, parameters, whether results are reproducible,
/// whether several columns are multiplied at once.
#[pyfunction]
fn backends(py: Python<'_>) -> PyResult<Vec<Bound<'_, pyo3::types::PyDict>>> {
    let row = |entry: &'static solver::backend::Entry| {
        let row = pyo3::types::PyDict::new(py);
        row.set_item("name", entry.name)?;
        row.set_item("device", entry.device())?;
        row.set_item("family", entry.family)?;
        row.set_item("format", entry.format)?;
        row.set_item("origin", entry.from)?;
        row.set_item("summary", entry.summary)?;
        let named = |param: &Param| (param.name, param.words().to_vec());
        row.set_item("parameters", entry.params.iter().map(named).collect::<Vec<_>>())?;
        row.set_item("deterministic", entry.deterministic)?;
        row.set_item("columns", entry.columns)?;
        Ok(row)
    };
    REGISTRY.iter().map(row).collect()
}

/// Returns what to use instead of a method that the library lacks; None for an unknown name.
#[pyfunction]
fn instead_of(method: &str) -> Option<String> {
    solver::engine::instead_of(method, &names::as_argument)
}

/// Panics, so that a test can see what becomes of a panic.
#[pyfunction]
fn _panic(py: Python<'_>) -> PyResult<()> {
    errors::detached(py, || panic!("asked for"))
}

#[pymodule]
fn _solver(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<matrix::Matrix>()?;
    m.add_class::<linear::Prepared>()?;
    m.add_class::<linear::Answer>()?;
    m.add_class::<linear::Answers>()?;
    m.add_class::<products::Products>()?;
    m.add_class::<ranks::PreparedRanks>()?;
    m.add_class::<ranks::Ranks>()?;
    m.add_class::<ranks::RanksEach>()?;
    m.add_class::<stationary::PreparedChain>()?;
    m.add_class::<stationary::Distributions>()?;
    m.add_function(wrap_pyfunction!(run_program, m)?)?;
    m.add_function(wrap_pyfunction!(backends, m)?)?;
    m.add_function(wrap_pyfunction!(instead_of, m)?)?;
    m.add_function(wrap_pyfunction!(settings::chosen_gpu, m)?)?;
    m.add_function(wrap_pyfunction!(progress::on_progress, m)?)?;
    m.add_function(wrap_pyfunction!(labels::numbered, m)?)?;
    m.add_function(wrap_pyfunction!(labels::columns_of_links, m)?)?;
    m.add_function(wrap_pyfunction!(_panic, m)?)?;
    Ok(())
}
