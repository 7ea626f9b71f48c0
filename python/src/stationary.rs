//! Stationary distributions of Markov chains.

use crate::errors::detached;
use crate::interrupt::{Raised, answered};
use crate::matrix::{Matrix, json};
use crate::names::as_argument;
use crate::owned::Owned;
use crate::ranks::{choice, weights};
use crate::settings::{Running, with_watching};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use solver::engine::markov::ChainMethod;
use solver::engine::{self, markov as engine_chains};
use std::path::PathBuf;

/// Settings of a solve.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Settings {
    method: String,
    tol: f64,
    maxiter: usize,
    normalize: bool,
    top: usize,
}

/// A prepared chain, usable from any thread: solves of several threads follow each other.
#[pyclass(frozen, module = "solver._solver")]
pub struct PreparedChain {
    inner: Owned<engine_chains::Prepared>,
    raised: Raised,
}

#[pymethods]
impl PreparedChain {
    /// Finds the closed classes of a chain.
    #[new]
    fn new(py: Python<'_>, chain: &Matrix, settings: Settings, running: Running) -> PyResult<PreparedChain> {
        let methods = [
            ("power", ChainMethod::Power),
            ("gauss-seidel", ChainMethod::GaussSeidel),
            ("aggregation", ChainMethod::Aggregation),
        ];
        let own = engine_chains::Settings {
            method: choice(py, "method", &settings.method, &methods)?,
            tol: settings.tol,
            max_iters: settings.maxiter,
            normalize: settings.normalize,
            top: settings.top,
            ..engine_chains::Settings::default()
        };
        let raised = Raised::default();
        let builder = with_watching(engine::Markov::new(&chain.0), &running, &raised, py)?;
        let inner = detached(py, || builder.settings(own).prepare())?;
        Ok(PreparedChain { inner: Owned::new(inner), raised })
    }

    /// Computes the stationary distribution of each closed class, from the distribution `x0`.
    fn solve(&self, py: Python<'_>, x0: Option<PyReadonlyArray1<'_, f64>>) -> PyResult<Distributions> {
        let x0 = weights(x0)?;
        let (outcome, raised) = self.inner.raising(py, &self.raised, |prepared| {
            prepared.x0(x0);
            prepared.solve()
        });
        answered(py, outcome, raised, |found| Ok(Distributions(found)))
    }
}

/// A class of states: their numbers, their probabilities, whether it converged, and why its solve ended.
type Class<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>, bool, String);

/// The distribution of each closed class.
#[pyclass(frozen, module = "solver._solver")]
pub struct Distributions(engine_chains::Distributions);

#[pymethods]
impl Distributions {
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> Vec<Class<'py>> {
        let class = |class: &engine_chains::Distribution| {
            let states = PyArray1::from_slice(py, class.states());
            let probabilities = PyArray1::from_slice(py, class.probabilities());
            (states, probabilities, class.converged(), class.reason().to_string())
        };
        self.0.classes().iter().map(class).collect()
    }

    #[getter]
    fn converged(&self) -> bool {
        self.0.converged()
    }

    fn report_json(&self) -> PyResult<String> {
        json(&self.0.report_naming(&as_argument))
    }

    fn report_text(&self) -> String {
        self.0.report_naming(&as_argument).to_string()
    }

    fn plot(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        detached(py, || solver::plot::convergence(&[self.0.history()], &path))
    }
}
