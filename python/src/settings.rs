//! Settings that several calls share.

use crate::errors::{bad_setting, detached};
use crate::interrupt::Raised;
use crate::matrix::json;
use pyo3::prelude::*;
use solver::engine::tune::Explanation;
use solver::engine::{DeviceName, DeviceSettings, Request, RunSettings, Settled};
use solver::precond::Preconditioner;
use solver::scalar::Precision;
use std::time::Duration;

/// Where and how a solve runs.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Running {
    pub device: String,
    pub backend: String,
    pub precision: String,
    pub threads: Option<usize>,
    pub tune: bool,
    pub time_limit: Option<f64>,
}

impl Running {
    pub fn precision(&self, py: Python<'_>) -> PyResult<Precision> {
        match self.precision.as_str() {
            "f64" => Ok(Precision::F64),
            "f32" => Ok(Precision::F32),
            "mixed" => Ok(Precision::Mixed),
            other => Err(bad_setting(py, "precision", other, "the precisions are f64, f32 and mixed")),
        }
    }

    pub fn time_limit(&self, py: Python<'_>) -> PyResult<Option<Duration>> {
        let Some(seconds) = self.time_limit else { return Ok(None) };
        let fault = |_| bad_setting(py, "time_limit", seconds, "it must be a number of seconds, at least 0");
        Duration::try_from_secs_f64(seconds).map(Some).map_err(fault)
    }
}

/// Returns the index of the GPU that a call with these settings runs on; none for the CPU, for several GPUs,
/// and for settings that are refused later.
#[pyfunction]
pub fn chosen_gpu(py: Python<'_>, running: Running, precond: Option<String>) -> PyResult<Option<usize>> {
    let precision = running.precision(py)?;
    let Running { device, backend, threads, .. } = running;
    detached(py, move || {
        let precond = precond.map_or(Ok(Preconditioner::NONE), |name| name.parse());
        let settled = precond.and_then(|precond| {
            Request { device, backend, precond, precision, threads, ..Request::default() }.settle()
        });
        Ok(match settled.as_ref().map(Settled::devices) {
            Ok([DeviceName::Cuda(index)]) => Some(*index),
            _ => None,
        })
    })
}

/// Sets what a builder of the library has under the same names.
pub fn with_running<B: DeviceSettings>(builder: B, running: &Running, py: Python<'_>) -> PyResult<B> {
    let builder = builder.device(&running.device).backend(&running.backend).tune(running.tune);
    let builder = builder.precision(running.precision(py)?);
    Ok(match running.threads {
        Some(threads) => builder.threads(threads),
        None => builder,
    })
}

/// Also sets what ends a ranking or a chain: Ctrl-C, and the time limit.
pub fn with_watching<B: RunSettings>(
    builder: B,
    running: &Running,
    raised: &Raised,
    py: Python<'_>,
) -> PyResult<B> {
    let look = raised.clone();
    let builder = with_running(builder, running, py)?.cancel(&raised.ended);
    let builder = builder.on_progress(move |now| crate::progress::tell(now, &look));
    Ok(match running.time_limit(py)? {
        Some(limit) => builder.time_limit(limit),
        None => builder,
    })
}

/// The names of backend and device, and the reasons for the backend as JSON.
pub type Chosen = (String, String, String);

/// Returns them for devices that are described in these words.
pub fn chosen(backend: &str, described: &str, explanation: &Explanation) -> PyResult<Chosen> {
    Ok((backend.to_owned(), described.to_owned(), json(explanation)?))
}
