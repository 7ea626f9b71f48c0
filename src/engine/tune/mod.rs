//! The choice of a backend by measurement.
//!
//! Every candidate is built on the device and verified before its products are timed. Candidates take turns,
//! so that disturbances of the machine affect all of them; those that are far slower than the best are
//! dropped. The choice is kept in the cache folder and used by later solves with backend `auto` of a matrix
//! with the same pattern, on the same hardware and in the same precision.

mod candidates;
mod choose;
mod date;
mod kept;
mod measure;

pub(super) use choose::{Choosing, Context, choose};
pub use kept::{Kept, forget};
pub(crate) use kept::{forget_all, of_size};

use super::device::{DeviceHandle, Request, on_device};
use super::matrix::Matrix;
use super::range::check_values;
use crate::backend::Candidate;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The time that a tuning takes by default, without the products of the first look at each candidate.
pub(crate) const BUDGET: Duration = Duration::from_secs(3);

/// What to measure.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    /// Device, precision and number of threads. The backend must be `auto`.
    pub request: Request,
    /// The candidates by name, with parameters; `auto` stands for the default candidates.
    /// Empty for these alone.
    pub candidates: Vec<String>,
    /// The time for the measurement.
    pub budget: Duration,
    /// Whether the choice is kept for later solves.
    pub keep: bool,
}

impl Default for TuneRequest {
    fn default() -> TuneRequest {
        TuneRequest { request: Request::default(), candidates: Vec::new(), budget: BUDGET, keep: true }
    }
}

/// The measurement of one candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The backend with its parameters, as the user would type it.
    pub backend: String,
    /// The least and the median seconds of a product; none if the candidate was not timed.
    pub seconds: Option<f64>,
    /// The median over all samples.
    pub seconds_median: Option<f64>,
    /// Seconds of building the operator.
    pub seconds_build: f64,
    /// Bytes that a product moves.
    pub bytes: u64,
    /// Number of samples.
    pub samples: usize,
    /// Whether the candidate was dropped after its first samples: it is too slow.
    #[serde(default)]
    pub dropped: bool,
    /// Why the candidate was not timed.
    #[serde(default)]
    pub error: Option<String>,
}

/// The result of a tuning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// Rows of the matrix.
    pub rows: u64,
    /// Entries of the matrix.
    pub nnz: u64,
    /// The device: `cpu (2 threads)`.
    pub device: String,
    /// The precision.
    pub precision: String,
    /// What was timed: `y = A x with <x, y>`, or `y = A x` if the matrix is not square.
    pub product: String,
    /// The candidates, the fastest first.
    pub measured: Vec<Measured>,
    /// The chosen backend.
    pub winner: String,
    /// The choice of the model, which is used without a measurement.
    pub model: String,
    /// Why this backend was chosen.
    pub why: String,
    /// Seconds of the tuning, building included.
    pub seconds: f64,
    /// The number of products after which the tuning has paid; none if the model's choice was
    /// the best already.
    pub break_even: Option<f64>,
    /// The day of the measurement.
    pub date: String,
    /// The file of the kept choice; none if it could not or need not be kept.
    #[serde(default)]
    pub kept: Option<PathBuf>,
}

/// The reasons of a choice: the estimates of the model, or the measurement of a kept choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explanation {
    /// The candidates of the model; empty if the user named the backend, or if a kept choice is used.
    pub candidates: Vec<Candidate>,
    /// The kept choice.
    pub kept: Option<Kept>,
}

/// Measures the candidates for a matrix on a device, and keeps the choice for later solves.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::engine::tune::{TuneRequest, tune};
/// use solver::prelude::*;
/// let a = Matrix::open("poisson2d:40x40")?;
/// let budget = std::time::Duration::from_millis(50);
/// let request = TuneRequest { budget, keep: false, ..TuneRequest::default() };
/// let tuning = tune(&a, &request)?;
/// assert!(tuning.measured.iter().any(|measured| measured.backend == tuning.winner));
/// # Ok(())
/// # }
/// ```
pub fn tune(matrix: &Matrix, request: &TuneRequest) -> Result<Tuning> {
    tune_watched(matrix, request, &mut |_| ())
}

/// Measures the candidates as [`tune`] does, and calls `phase` with the name of each phase.
pub(crate) fn tune_watched(
    matrix: &Matrix,
    request: &TuneRequest,
    phase: &mut dyn FnMut(&str),
) -> Result<Tuning> {
    let (device, csr) = opened(matrix, &request.request)?;
    let precision = request.request.precision;
    if matrix.rows() == 0 || matrix.cols() == 0 || matrix.nnz() == 0 {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let reason =
            format!("the matrix is {rows} x {cols} without entries, so there is no product to measure");
        return Err(Error::setting("matrix", matrix.name(), reason));
    }
    on_device!(device, precision, |held, D, T| {
        let held = held.acquire()?;
        let order =
            choose::TuneCandidates { precision, candidates: &request.candidates, budget: request.budget };
        choose::tune_on::<D, T>(&held, &csr, &order, request.keep, phase)
    })
}

/// Returns what backend `auto` chooses for a matrix and why, without a measurement.
pub fn explain(matrix: &Matrix, request: &Request) -> Result<Explanation> {
    let (device, csr) = opened(matrix, request)?;
    let precision = request.precision;
    on_device!(device, precision, |held, D, T| {
        let held = held.acquire()?;
        let size = crate::backend::Host::gpu_size(&*held);
        let context = Context { precision, size, choosing: Choosing::Kept, columns: 1 };
        let auto = choose::auto::<D, T>()?;
        choose::<D, T>(&held, &auto, &csr, &context, &mut |_| ()).map(|selected| selected.explanation())
    })
}

/// Opens the device of a request, and returns the matrix in its precision.
fn opened(matrix: &Matrix, request: &Request) -> Result<(DeviceHandle, Arc<crate::format::Csr>)> {
    if request.backend != "auto" {
        let reason = "a measurement chooses the backend; use backend auto";
        return Err(Error::setting("backend", &request.backend, reason));
    }
    let settled = request.settle()?;
    settled.require_one("backends are measured")?;
    settled.check_device()?;
    check_values(request.precision, &matrix.csr)?;
    let narrowed = matrix.csr.narrowed(request.precision.narrow_values());
    Ok((DeviceHandle::shared(settled.device)?, narrowed))
}
