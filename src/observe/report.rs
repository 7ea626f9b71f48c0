//! The report of a solve: the system, the device, the outcome, the time and the memory traffic.

mod common;
mod levels;
mod lines;
mod parts;

use super::number::nan_for_null;
pub use common::Common;
pub(crate) use common::has_common;
pub use levels::{Level, Levels};
pub(crate) use parts::Parts;
use serde::{Deserialize, Serialize};

/// The quantity that a history records for each iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Measure {
    /// The residual b - A x relative to the right-hand side.
    #[default]
    Residual,
    /// The estimated error in the l1 norm; `residual_true` is a certified bound.
    ErrorBound,
    /// The change of a distribution by one step of the chain, in the l1 norm.
    Balance,
}

/// The complete report of a solve. `--json` and history files have the same fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The fields of every report. The method is `cg`, `pipelined cg`, `block cg` or `minres`.
    #[serde(flatten)]
    pub common: Common,
    /// The meaning of the residuals.
    #[serde(default)]
    pub measure: Measure,
    /// The name of the matrix as typed.
    pub matrix: String,
    /// The real matrix that this stand-in imitates.
    #[serde(default)]
    pub stand_in: Option<String>,
    /// Rows of the matrix.
    pub rows: u64,
    /// Entries of the matrix, with both triangles of a symmetric matrix.
    pub nnz: u64,
    /// The preconditioner.
    pub preconditioner: String,
    /// The origin of the right-hand side.
    pub right_hand_side: String,
    /// The file of the start vector; without one x = 0.
    #[serde(default)]
    pub start: Option<String>,
    /// The tolerance on the residual relative to the right-hand side: the largest of all
    /// tolerances in this measure.
    #[serde(deserialize_with = "nan_for_null")]
    pub rtol: f64,
    /// The reason as a sentence, with its evidence.
    pub message: String,
    /// A hint that may help if the solve did not converge, or took many iterations.
    #[serde(default)]
    pub hint: Option<String>,
    /// Iterations before the checkpoint from which this run resumed; none if it did not resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations_earlier: Option<u64>,
    /// Number of restarts from the recomputed residual.
    #[serde(default)]
    pub restarts: u64,
    /// The linearly independent residuals with which block conjugate gradients iterated in their first
    /// run: the smallest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_rank: Option<u64>,
    /// Iterations after which conjugate gradients have reduced the energy norm of the error by
    /// `rtol` for any right-hand side, in exact arithmetic, if the condition number equals the
    /// estimate. The residual may take more.
    #[serde(default)]
    pub iterations_predicted: Option<u64>,
    /// Estimate of the smallest eigenvalue of the preconditioned matrix, from above.
    #[serde(default)]
    pub eigenvalue_smallest: Option<f64>,
    /// Estimate of the largest eigenvalue of the preconditioned matrix, from below.
    #[serde(default)]
    pub eigenvalue_largest: Option<f64>,
    /// The ratio of these eigenvalues, if both are positive.
    #[serde(default)]
    pub condition_number: Option<f64>,
    /// Relative residual of the recurrence.
    #[serde(deserialize_with = "nan_for_null")]
    pub residual_recursive: f64,
    /// Relative residual b - A x, recomputed in f64 by the serial reference.
    #[serde(deserialize_with = "nan_for_null")]
    pub residual_true: f64,
    /// An upper bound on the relative residual, with the rounding errors of its computation; `converged`
    /// is decided by this bound.
    #[serde(default, deserialize_with = "nan_for_null")]
    pub residual_at_most: f64,
    /// The normwise backward error, ||b - A x|| / (||A|| ||x|| + ||b||) in maximum norms.
    #[serde(default, deserialize_with = "nan_for_null")]
    pub backward_error: f64,
    /// Maximum error against the known solution, if the right-hand side was computed from one
    /// and it is unique.
    pub error_max: Option<f64>,
    /// A warning about x although the solve converged: its entries may have no correct digit; with a remedy.
    #[serde(default)]
    pub caution: Option<String>,
    /// Notes, such as that the matrix is symmetric only to rounding, or that the newest
    /// checkpoint could not be written.
    #[serde(default)]
    pub note: Option<String>,
    /// Seconds of the iterations before the checkpoint from which this run resumed; none if it
    /// did not resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_earlier: Option<f64>,
    /// Measured bandwidth of a plain stream on this device over a working set of the size of the whole solve,
    /// in GB/s. This and the following values are missing for an interrupted solve, for iterations that move
    /// less than 1 MiB, and if the stream was slower than the solve.
    pub stream_gigabytes_per_second: Option<f64>,
    /// Measured bandwidth of a plain stream over a working set of the size of the vectors,
    /// which may fit in the caches.
    pub vector_stream_gigabytes_per_second: Option<f64>,
    /// Lower bound on the seconds per iteration: the time to move matrix and vectors at these two bandwidths.
    pub limit_seconds_per_iteration: Option<f64>,
    /// The levels of a preconditioner of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multigrid: Option<Levels>,
    /// The mean factor by which an iteration of this run reduces the residual, if there are levels and one
    /// right-hand side: the root of the last residual over the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convergence_factor: Option<f64>,
    /// A record for each right-hand side of a solve of several; the other fields then describe
    /// all of them together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnReport>,
}

has_common!(Report);

/// The outcome of one of several right-hand sides. The fields have the meanings of those of [`Report`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnReport {
    /// The number of the column, counted from 1.
    pub column: u64,
    /// Whether the recomputed residual meets the tolerance.
    pub converged: bool,
    /// The reason why the column ended, as one word.
    pub reason: String,
    /// The reason as a sentence, with its evidence.
    pub message: String,
    /// The tolerance on the residual relative to the right-hand side.
    #[serde(deserialize_with = "nan_for_null")]
    pub rtol: f64,
    /// Number of iterations.
    pub iterations: u64,
    /// Number of restarts from the recomputed residual.
    pub restarts: u64,
    /// Relative residual of the recurrence.
    #[serde(deserialize_with = "nan_for_null")]
    pub residual_recursive: f64,
    /// Relative residual b - A x, recomputed in f64.
    #[serde(deserialize_with = "nan_for_null")]
    pub residual_true: f64,
    /// An upper bound on the relative residual, with the rounding errors of its computation.
    #[serde(deserialize_with = "nan_for_null")]
    pub residual_at_most: f64,
    /// The normwise backward error.
    #[serde(deserialize_with = "nan_for_null")]
    pub backward_error: f64,
    /// A warning about x although the column converged.
    #[serde(default)]
    pub caution: Option<String>,
    /// Estimate of the smallest eigenvalue of the preconditioned matrix, from above.
    pub eigenvalue_smallest: Option<f64>,
    /// Estimate of the largest eigenvalue of the preconditioned matrix, from below.
    pub eigenvalue_largest: Option<f64>,
    /// Seconds from the start of the iterations of this run to the end of the last one of this column.
    #[serde(deserialize_with = "nan_for_null")]
    pub seconds_solve: f64,
}

impl ColumnReport {
    /// Takes the record of a column, counted from 1, from its report.
    pub(crate) fn of(column: u64, report: &Report) -> ColumnReport {
        let r = report.clone();
        ColumnReport {
            column,
            converged: r.common.converged,
            reason: r.common.reason,
            message: r.message,
            rtol: r.rtol,
            iterations: r.common.iterations,
            restarts: r.restarts,
            residual_recursive: r.residual_recursive,
            residual_true: r.residual_true,
            residual_at_most: r.residual_at_most,
            backward_error: r.backward_error,
            caution: r.caution,
            eigenvalue_smallest: r.eigenvalue_smallest,
            eigenvalue_largest: r.eigenvalue_largest,
            seconds_solve: r.common.seconds_solve,
        }
    }
}
