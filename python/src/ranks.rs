//! PageRank.

use crate::errors::{bad_setting, detached, exception};
use crate::interrupt::{Raised, answered};
use crate::matrix::{Matrix, json};
use crate::settings::{Running, with_watching};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use solver::engine::pagerank::{Dangling, RankMethod, Repeated, SelfLoops};
use solver::engine::{self, pagerank as engine_ranks};
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
fn choice<T: Copy>(py: Python<'_>, setting: &'static str, name: &str, all: &[(&str, T)]) -> PyResult<T> {
    let found = all.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        bad_setting(py, setting, name, &format!("it must be one of {}", names.join(", ")))
    })
}

/// Ranks the vertices of a graph.
#[pyfunction]
pub fn pagerank(
    py: Python<'_>,
    graph: &Matrix,
    settings: Settings,
    personalise: Option<PyReadonlyArray1<'_, f64>>,
    x0: Option<PyReadonlyArray1<'_, f64>>,
    running: Running,
) -> PyResult<Ranks> {
    let own = engine_ranks::Settings {
        damping: settings.damping,
        tol: settings.tol,
        max_iters: settings.maxiter,
        top: settings.top,
        dangling: choice(
            py,
            "dangling",
            &settings.dangling,
            &[
                ("uniform", Dangling::Uniform),
                ("personalisation", Dangling::Personalised),
                ("self-loop", Dangling::SelfLoop),
                ("drop", Dangling::Drop),
            ],
        )?,
        method: choice(
            py,
            "method",
            &settings.method,
            &[
                ("power", RankMethod::Power),
                ("extrapolated", RankMethod::Extrapolated),
                ("gauss-seidel", RankMethod::GaussSeidel),
            ],
        )?,
        self_loops: if settings.self_loops { SelfLoops::Keep } else { SelfLoops::Remove },
        duplicates: if settings.repeated { Repeated::Keep } else { Repeated::Once },
    };
    let raised = Raised::default();
    let mut solve = with_watching!(engine::Pagerank::new(&graph.0), &running, raised, py).settings(own);
    if let Some(weights) = personalise {
        solve = solve.personalise(weights.as_slice()?.to_vec());
    }
    if let Some(ranks) = x0 {
        solve = solve.x0(ranks.as_slice()?.to_vec());
    }
    let outcome = detached(py, || solve.solve());
    answered(py, outcome, raised.take(), |ranks| Ok(Ranks(ranks)))
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
    fn top(&self, py: Python<'_>, count: usize) -> Vec<(usize, bool)> {
        let top = py.detach(|| self.0.top(count));
        top.into_iter().map(|one| (one.row, one.above_next_is_certain)).collect()
    }

    fn report_json(&self) -> PyResult<String> {
        json(&self.0.report())
    }

    fn report_text(&self) -> String {
        self.0.report().to_string()
    }

    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        if path.as_os_str().is_empty() {
            return Err(exception(py, "InputError", "the path is empty".to_owned()));
        }
        detached(py, || self.0.write(&path))
    }

    fn plot(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        detached(py, || solver::plot::convergence(&[self.0.history()], &path))
    }
}
