//! PageRank.

use crate::errors::{bad_setting, detached};
use crate::interrupt::{Raised, answered};
use crate::matrix::{Matrix, json};
use crate::names::as_argument;
use crate::owned::Owned;
use crate::settings::{Chosen, Running, chosen, with_watching};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use solver::engine::pagerank::{Dangling, RankMethod, Repeated, SelfLoops};
use solver::engine::{self, Weights, pagerank as engine_ranks};
use std::path::PathBuf;

/// Settings of a ranking.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Settings {
    damping: f64,
    tol: f64,
    maxiter: usize,
    dangling: String,
    method: String,
    self_loops: bool,
    repeated: bool,
    top: usize,
}

/// Returns the choice of this name.
pub fn choice<T: Copy>(py: Python<'_>, setting: &'static str, name: &str, all: &[(&str, T)]) -> PyResult<T> {
    let found = all.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        bad_setting(py, setting, name, &format!("it must be one of {}", names.join(", ")))
    })
}

impl Settings {
    fn of_engine(&self, py: Python<'_>) -> PyResult<engine_ranks::Settings> {
        let dangling = [
            ("uniform", Dangling::Uniform),
            ("personalisation", Dangling::Personalised),
            ("self-loop", Dangling::SelfLoop),
            ("drop", Dangling::Drop),
        ];
        let methods = [
            ("power", RankMethod::Power),
            ("extrapolated", RankMethod::Extrapolated),
            ("gauss-seidel", RankMethod::GaussSeidel),
        ];
        Ok(engine_ranks::Settings {
            damping: self.damping,
            tol: self.tol,
            max_iters: self.maxiter,
            top: self.top,
            dangling: choice(py, "dangling", &self.dangling, &dangling)?,
            method: choice(py, "method", &self.method, &methods)?,
            self_loops: if self.self_loops { SelfLoops::Keep } else { SelfLoops::Remove },
            duplicates: if self.repeated { Repeated::Keep } else { Repeated::Once },
        })
    }
}

/// A prepared ranking, usable from any thread: solves of several threads follow each other.
#[pyclass(frozen, module = "solver._solver")]
pub struct PreparedRanks {
    inner: Owned<engine_ranks::Prepared>,
    raised: Raised,
    chosen: Chosen,
}

#[pymethods]
impl PreparedRanks {
    /// Prepares the ranking of a graph for `columns` personalisations at once.
    #[new]
    fn new(
        py: Python<'_>,
        graph: &Matrix,
        settings: Settings,
        columns: usize,
        running: Running,
    ) -> PyResult<PreparedRanks> {
        let own = settings.of_engine(py)?;
        let raised = Raised::default();
        let builder = with_watching(engine::Pagerank::new(&graph.0), &running, &raised, py)?;
        let inner = detached(py, || builder.settings(own).columns(columns).prepare())?;
        let chosen = chosen(inner.backend(), inner.describe_devices(), inner.explanation())?;
        Ok(PreparedRanks { inner: Owned::new(inner), raised, chosen })
    }

    #[getter]
    fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// Ranks the vertices for jumps as `personalise` says, from the ranks `x0`.
    fn solve(
        &self,
        py: Python<'_>,
        personalise: Option<PyReadonlyArray1<'_, f64>>,
        x0: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Ranks> {
        let (personalise, x0) = (weights(personalise)?, weights(x0)?);
        let (outcome, raised) = self.inner.raising(py, &self.raised, |prepared| {
            prepared.personalise_each([]);
            prepared.personalise(personalise);
            prepared.x0(x0);
            prepared.solve()
        });
        answered(py, outcome, raised, |ranks| Ok(Ranks(ranks)))
    }

    /// Ranks the vertices for each of several personalisations, which have names.
    fn solve_each(
        &self,
        py: Python<'_>,
        personalise: Vec<(String, PyReadonlyArray1<'_, f64>)>,
    ) -> PyResult<RanksEach> {
        let each: Vec<Weights> = personalise
            .into_iter()
            .map(|(name, one)| Ok(Weights::from(one.to_vec()?).named(name)))
            .collect::<PyResult<_>>()?;
        let (outcome, raised) = self.inner.raising(py, &self.raised, |prepared| {
            prepared.personalise(None);
            prepared.x0(None);
            prepared.personalise_each(each);
            prepared.solve_each()
        });
        answered(py, outcome, raised, |ranks| Ok(RanksEach(ranks)))
    }
}

/// Copies an array with a number for each vertex.
pub fn weights(array: Option<PyReadonlyArray1<'_, f64>>) -> PyResult<Option<Weights>> {
    Ok(array.map(|array| array.to_vec()).transpose()?.map(Weights::from))
}

/// The ranks of a graph, with a proven bound on their error.
#[pyclass(frozen, module = "solver._solver")]
pub struct Ranks(engine_ranks::Ranks);

#[pymethods]
impl Ranks {
    #[getter]
    fn ranks<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.0.ranks())
    }

    #[getter]
    fn converged(&self) -> bool {
        self.0.converged()
    }

    #[getter]
    fn reason(&self) -> String {
        self.0.reason().to_string()
    }

    /// The bound on the sum of the errors of all ranks.
    #[getter]
    fn error_bound(&self) -> f64 {
        self.0.error_bound()
    }

    #[getter]
    fn iterations(&self) -> usize {
        self.0.outcome().iterations
    }

    #[getter]
    fn residuals<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.0.residuals())
    }

    /// The rows of the highest ranks, and whether the bound proves that each is above the next.
    fn top(&self, py: Python<'_>, count: usize) -> PyResult<Vec<(usize, bool)>> {
        let top = detached(py, || Ok(self.0.top(count)))?;
        Ok(top.into_iter().map(|one| (one.row, one.above_next_is_certain)).collect())
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

/// The ranks for each of several personalisations.
#[pyclass(frozen, module = "solver._solver")]
pub struct RanksEach(engine_ranks::RanksEach);

#[pymethods]
impl RanksEach {
    /// The ranks for each personalisation.
    fn columns(&self) -> Vec<Ranks> {
        self.0.columns().iter().cloned().map(Ranks).collect()
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
