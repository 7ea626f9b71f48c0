//! The verdict of a run: what was solved, on what, how it ended, how long it took and what it moved.

mod lines;

use super::number::nan_for_null;
use serde::{Deserialize, Serialize};

/// What a history counts: the numbers that fall from one iteration to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Measure {
    /// The residual relative to the right-hand side; the true one is b - A x.
    #[default]
    Residual,
    /// The estimate of the error in the l1 norm; the true one is a certified bound.
    ErrorBound,
    /// What a step of a chain changes, in the l1 norm.
    Balance,
}

/// Everything that a solve says about itself. The same fields stand in `--json` and in history files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The method: `cg`, `pipelined cg`, `minres`.
    pub solver: String,
    /// What residuals mean.
    #[serde(default)]
    pub measure: Measure,
    /// The matrix as the user named it.
    pub matrix: String,
    /// The real matrix that this one only imitates.
    #[serde(default)]
    pub stand_in: Option<String>,
    /// Rows of the matrix.
    pub rows: u64,
    /// Entries of the matrix, symmetric halves expanded.
    pub nnz: u64,
    /// Where it ran: `cpu (2 threads)`, `cuda:0 (NVIDIA H200)`.
    pub device: String,
    /// The SpMV backend, with its parameters.
    pub backend: String,
    /// Why `auto` chose it, where the user did not.
    #[serde(default)]
    pub backend_because: Option<String>,
    /// `f64`, `f32` or `mixed`.
    pub precision: String,
    /// The preconditioner.
    pub preconditioner: String,
    /// How the right-hand side was made.
    pub right_hand_side: String,
    /// The file that holds the vector from which the solve started; without it x = 0.
    #[serde(default)]
    pub start: Option<String>,
    /// The tolerance on the residual relative to the right-hand side: the largest that the tolerances come to.
    #[serde(deserialize_with = "nan_for_null")]
    pub rtol: f64,
    /// Whether the recomputed residual meets the tolerance.
    pub converged: bool,
    /// Why the solve ended, as one word.
    pub reason: String,
    /// The same as a sentence with its evidence.
    pub message: String,
    /// What could help where the solve did not converge: nothing is promised.
    #[serde(default)]
    pub hint: Option<String>,
    /// Iterations done.
    pub iterations: u64,
    /// How often the solve started again from the true residual.
    #[serde(default)]
    pub restarts: u64,
    /// Iterations after which conjugate gradients have reduced the energy norm of the error by `rtol`, whatever the
    /// right-hand side, if the condition number is the one seen and but for rounding. The residual may take more.
    #[serde(default)]
    pub iterations_predicted: Option<u64>,
    /// The smallest eigenvalue of the preconditioned matrix, as far as the solve has seen it: estimated from above.
    #[serde(default)]
    pub eigenvalue_smallest: Option<f64>,
    /// The largest, estimated from below.
    #[serde(default)]
    pub eigenvalue_largest: Option<f64>,
    /// Their ratio, where both are positive.
    #[serde(default)]
    pub condition_number: Option<f64>,
    /// Relative residual by the recursion.
    #[serde(deserialize_with = "nan_for_null")]
    pub residual_recursive: f64,
    /// Relative residual b - A x, recomputed in f64 by the serial reference.
    #[serde(deserialize_with = "nan_for_null")]
    pub residual_true: f64,
    /// A bound on that residual which includes the rounding of its own computation: what `converged` rests on.
    #[serde(default, deserialize_with = "nan_for_null")]
    pub residual_at_most: f64,
    /// The normwise backward error, ||b - A x|| / (||A|| ||x|| + ||b||) in maximum norms.
    #[serde(default, deserialize_with = "nan_for_null")]
    pub backward_error: f64,
    /// Largest difference from the solution that the right-hand side was made of, where that is unique and known.
    pub error_max: Option<f64>,
    /// What to know before x is used although the solve converged: that its entries may have no correct digit, and what
    /// to do about it.
    #[serde(default)]
    pub caution: Option<String>,
    /// What to know of the system, such as that the matrix is symmetric to rounding only.
    #[serde(default)]
    pub note: Option<String>,
    /// Seconds to read or generate the matrix.
    #[serde(deserialize_with = "nan_for_null")]
    pub seconds_load: f64,
    /// Seconds to make operator, preconditioner and workspace ready.
    #[serde(deserialize_with = "nan_for_null")]
    pub seconds_setup: f64,
    /// Seconds from the start of the iterations to the end of the last one.
    #[serde(deserialize_with = "nan_for_null")]
    pub seconds_solve: f64,
    /// Of one iteration; where a solve went on from a checkpoint, of those since then.
    #[serde(deserialize_with = "nan_for_null")]
    pub seconds_per_iteration: f64,
    /// Bytes that one iteration must move, counted from the arrays.
    pub bytes_per_iteration: u64,
    /// Those bytes over the time of an iteration.
    #[serde(deserialize_with = "nan_for_null")]
    pub gigabytes_per_second: f64,
    /// What a plain stream over a working set as large as the whole solve's reached on this device, in GB/s. This and
    /// what follows is not measured for a solve that was interrupted, nor where it means nothing.
    pub stream_gigabytes_per_second: Option<f64>,
    /// The same over a working set as large as the vectors alone, which the caches may hold.
    pub vector_stream_gigabytes_per_second: Option<f64>,
    /// Seconds of an iteration that moves matrix and vectors at these two speeds: the machine's limit.
    pub limit_seconds_per_iteration: Option<f64>,
    /// That limit in percent of the measured time of an iteration: 100 is as fast as the machine allows.
    pub percent_of_limit: Option<f64>,
}
