//! Iterative methods. They know operators, a device's vector algebra, stopping rules and observers; nothing else.

pub mod cg;
pub mod pace;
pub mod problem;
pub mod verdict;

use crate::stop::StopReason;

/// What a method hands back: the answer and how it ended by its own account. The [`verdict`] judges it.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// The solution vector.
    pub x: Vec<T>,
    /// Why the method stopped.
    pub reason: StopReason,
    /// Iterations done.
    pub iterations: usize,
    /// Norm of the recursive residual over that of the right-hand side.
    pub residual: f64,
    /// Seconds to make the workspace and to record the step.
    pub seconds_setup: f64,
    /// Seconds from the first iteration to the last.
    pub seconds_solve: f64,
    /// Bytes that an iteration must move.
    pub bytes_per_iteration: u64,
    /// Bytes of the operators' arrays, each passed by once in an iteration.
    pub operator_bytes: u64,
    /// Bytes of the vectors, each touched several times.
    pub vector_bytes: u64,
}
