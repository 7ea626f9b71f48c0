//! Conjugate gradients and MINRES.

use crate::errors::{detached, exception, raised};
use crate::function::{Function, Given};
use crate::interrupt::{Raised, answered};
use crate::matrix::{Matrix, json};
use crate::names::as_argument;
use crate::owned::Owned;
use crate::settings::{Chosen, Running, chosen, with_running};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use solver::Error;
use solver::engine::{self, RightHandSide, RightHandSides, RunSettings, Solver, Stopping, SystemSettings};
use solver::format::{Coordinates, Dense};
use solver::precond::{NearNull, Preconditioner};
use solver::solve::Method;
use std::path::PathBuf;
use std::sync::Arc;

/// A prepared solve, usable from any thread: solves of several threads follow each other.
#[pyclass(frozen, module = "solver._solver")]
pub struct Prepared {
    inner: Owned<engine::Prepared>,
    raised: Raised,
    chosen: Chosen,
}

/// Tolerances and limits.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Tolerances {
    rtol: Option<f64>,
    atol: Option<f64>,
    maxiter: Option<usize>,
}

/// Returns a product of the library that calls a Python function.
fn product(rows: usize, function: Given, raised: &Raised) -> impl solver::solve::Product + 'static {
    let function = Function::new(function, raised);
    (rows, move |x: &[f64], y: &mut [f64]| function.call(x, y))
}

/// Returns the preconditioner of a name with the near-null vectors, if there are any. Refuses vectors, and
/// coordinates of nodes, that it does not use.
fn named(name: &str, has_coordinates: bool, near_null: Option<Dense>) -> solver::Result<Preconditioner> {
    let precond: Preconditioner = name.parse()?;
    if has_coordinates && !precond.takes_near_null() {
        let reason = "it does not use coordinates of nodes; use amg, or leave the coordinates out";
        return Err(Error::BadSetting {
            setting: "precond",
            value: name.to_owned(),
            reason: reason.to_owned(),
        });
    }
    match near_null {
        Some(vectors) => precond.with_near_null(NearNull::new(vectors)?),
        None => Ok(precond),
    }
}

/// Rows, or entries of a stored matrix, below which a solve with a Python operator or preconditioner runs on
/// one thread, unless the caller asks for a number of threads: the other threads fall asleep while Python
/// works, and must be woken for each pass over the vectors.
const ALONE: usize = 100_000;
/// The same without functions of the caller: starting other threads takes longer than they would save.
const TINY: usize = 10_000;

#[pymethods]
impl Prepared {
    /// Prepares a solve by `method` (cg, pipelined-cg, block-cg, minres) with a matrix, or with the
    /// product of `apply` on `rows` rows. A function is a pair: itself, and what makes a vector of
    /// the array that it returns. Coordinates have a row for each node, and near-null vectors are columns.
    #[new]
    #[pyo3(signature = (method, matrix, apply, rows, precond, custom_precond, coordinates, near_null, columns, assume_symmetric, project, partition, check, callback, tolerances, running))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        method: &str,
        matrix: Option<&Matrix>,
        apply: Option<Given>,
        rows: usize,
        precond: Option<String>,
        custom_precond: Option<Given>,
        coordinates: Option<PyReadonlyArray2<'_, f64>>,
        near_null: Option<PyReadonlyArray2<'_, f64>>,
        columns: usize,
        assume_symmetric: bool,
        project: bool,
        partition: &str,
        check: bool,
        callback: Option<Given>,
        tolerances: Tolerances,
        mut running: Running,
    ) -> PyResult<Prepared> {
        let raised_here = Raised::default();
        let work = matrix.map_or(rows, |Matrix(matrix)| matrix.nnz()).saturating_mul(columns.max(1));
        let calls_python = apply.is_some() || custom_precond.is_some();
        if work < if calls_python { ALONE } else { TINY } {
            running.threads.get_or_insert(1);
        }
        let method = match method {
            "minres" => Method::Minres,
            "pipelined-cg" => Method::PipelinedCg,
            "block-cg" => Method::BlockCg,
            _ => Method::Cg,
        };
        let has_coordinates = coordinates.is_some();
        let located = match (matrix, coordinates) {
            (Some(Matrix(matrix)), Some(points)) => {
                let (dimensions, values) = (points.as_array().ncols(), points.to_vec()?);
                let points = Coordinates::new(dimensions, values);
                let matrix = points.and_then(|points| matrix.clone().with_coordinates(points));
                Some(matrix.map_err(|error| raised(py, &error))?)
            }
            _ => None,
        };
        let settings = match (located.as_ref().or(matrix.map(|Matrix(matrix)| matrix)), apply) {
            (Some(matrix), _) => Solver::new(method, matrix),
            (None, Some(apply)) => Solver::with_product(method, product(rows, apply, &raised_here)),
            (None, None) => return Err(exception(py, "InputError", "there is no matrix".to_owned())),
        };
        let mut settings = with_running(settings, &running, py)?
            .columns(columns)
            .assume_symmetric(assume_symmetric)
            .project(project)
            .partition(partition.parse().map_err(|error| raised(py, &error))?)
            .check_products(check);
        if let Some(name) = precond {
            let dense = |columns: PyReadonlyArray2<'_, f64>| -> PyResult<Dense> {
                let (rows, count) = (columns.as_array().nrows(), columns.as_array().ncols());
                Dense::new(rows, count, columns.to_vec()?).map_err(|error| raised(py, &error))
            };
            let near_null = near_null.map(dense).transpose()?;
            let precond = named(&name, has_coordinates, near_null).map_err(|error| raised(py, &error))?;
            settings = settings.preconditioner(precond);
        }
        if let Some(function) = custom_precond {
            settings = settings.custom_precond(product(rows, function, &raised_here));
        }
        if let Some(callback) = callback {
            let callback = Function::new(callback, &raised_here);
            settings = settings.on_iterate(move |_, x| callback.tell(x));
        }
        let stopping = Stopping {
            rtol: tolerances.rtol,
            atol: tolerances.atol,
            max_iters: tolerances.maxiter,
            time_limit: running.time_limit(py)?,
            cancel: Some(Arc::clone(&raised_here.ended)),
            ..Stopping::default()
        };
        let look = raised_here.clone();
        let settings = settings.stopping(stopping).on_progress(move |now| crate::progress::tell(now, &look));
        let inner = detached(py, || settings.prepare());
        // Products of the caller, if they are checked, may have raised.
        let inner = raised_here.take().map_or(inner, Err)?;
        let chosen = chosen(inner.backend(), inner.describe_devices(), inner.explanation())?;
        Ok(Prepared { inner: Owned::new(inner), raised: raised_here, chosen })
    }

    #[getter]
    fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// Solves for one right-hand side.
    fn solve(
        &self,
        py: Python<'_>,
        b: PyReadonlyArray1<'_, f64>,
        x0: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Answer> {
        // Copies, because Python code may change the arrays during the solve.
        let (b, x0) = (b.to_vec()?, x0.map(|x0| x0.to_vec()).transpose()?);
        let (outcome, raised) = self.inner.raising(py, &self.raised, |prepared| {
            let mut b = RightHandSide::from(&b);
            if let Some(x0) = &x0 {
                b = b.from_start(x0);
            }
            prepared.solve(b)
        });
        answered(py, outcome, raised, |answer| Answer::of(py, answer))
    }

    /// Solves for the columns of `b`, an n x k array in rows.
    fn solve_many(
        &self,
        py: Python<'_>,
        b: PyReadonlyArray2<'_, f64>,
        x0: Option<PyReadonlyArray2<'_, f64>>,
    ) -> PyResult<Answers> {
        let k = b.as_array().ncols();
        let (b, x0) = (b.to_vec()?, x0.map(|x0| x0.to_vec()).transpose()?);
        let (outcome, raised) = self.inner.raising(py, &self.raised, |prepared| {
            let mut b = RightHandSides::new(&b, k);
            if let Some(x0) = &x0 {
                b = b.from_start(x0);
            }
            prepared.solve_many(b)
        });
        answered(py, outcome, raised, |answers| Answers::of(py, answers))
    }

    /// Replaces the values of the matrix.
    fn update(&self, py: Python<'_>, matrix: &Matrix) -> PyResult<()> {
        self.inner.with(py, |prepared| prepared.update(&matrix.0))
    }
}

/// One solution with its verdict.
#[pyclass(frozen, module = "solver._solver")]
pub struct Answer {
    x: Py<PyArray1<f64>>,
    inner: engine::Answer,
}

impl Answer {
    fn of(py: Python<'_>, mut answer: engine::Answer) -> PyResult<Answer> {
        let x = answer.take_x().into_pyarray(py).unbind();
        Ok(Answer { x, inner: answer })
    }
}

#[pymethods]
impl Answer {
    #[getter]
    fn x(&self, py: Python<'_>) -> Py<PyArray1<f64>> {
        self.x.clone_ref(py)
    }

    #[getter]
    fn converged(&self) -> bool {
        self.inner.converged()
    }

    #[getter]
    fn reason(&self) -> String {
        self.inner.reason().to_string()
    }

    #[getter]
    fn iterations(&self) -> usize {
        self.inner.outcome().iterations
    }

    /// The residuals of the recurrence, relative to b, before the first iteration and after each.
    #[getter]
    fn residuals<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.inner.residuals())
    }

    fn report_json(&self) -> PyResult<String> {
        json(&self.inner.report_naming(&as_argument))
    }

    fn report_text(&self) -> String {
        self.inner.report_naming(&as_argument).to_string()
    }

    /// Draws the residuals; the ending of the path selects the format.
    fn plot(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        detached(py, || self.inner.plot(&path))
    }
}

/// The solutions of several right-hand sides with their verdicts.
#[pyclass(frozen, module = "solver._solver")]
pub struct Answers {
    x: Py<PyArray2<f64>>,
    inner: engine::Answers,
}

impl Answers {
    fn of(py: Python<'_>, mut answers: engine::Answers) -> PyResult<Answers> {
        let (k, x) = (answers.count(), answers.take_x());
        let rows = x.len() / k.max(1);
        let x = x.into_pyarray(py).reshape((rows, k))?.unbind();
        Ok(Answers { x, inner: answers })
    }
}

#[pymethods]
impl Answers {
    #[getter]
    fn x(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        self.x.clone_ref(py)
    }

    /// Whether each column has converged.
    #[getter]
    fn converged(&self) -> Vec<bool> {
        self.inner.outcomes().map(|outcome| outcome.reason.is_success()).collect()
    }

    #[getter]
    fn reasons(&self) -> Vec<String> {
        self.inner.outcomes().map(|outcome| outcome.reason.to_string()).collect()
    }

    #[getter]
    fn iterations(&self) -> Vec<usize> {
        self.inner.outcomes().map(|outcome| outcome.iterations).collect()
    }

    fn residuals<'py>(&self, py: Python<'py>, column: usize) -> Option<Bound<'py, PyArray1<f64>>> {
        self.inner.residuals(column).map(|residuals| PyArray1::from_slice(py, residuals))
    }

    fn report_json(&self) -> PyResult<String> {
        json(&self.inner.report_naming(&as_argument))
    }

    fn report_text(&self) -> String {
        self.inner.report_naming(&as_argument).to_string()
    }

    fn plot(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        detached(py, || solver::plot::convergence(&[self.inner.history()], &path))
    }
}
