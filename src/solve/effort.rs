//! What the iterations of a solve have taken.

use crate::device::Ranks;

/// Iterations, times and memory traffic of a solve.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Effort {
    /// Iterations done.
    pub iterations: usize,
    /// Seconds to allocate the workspace and to record the step.
    pub seconds_setup: f64,
    /// Seconds from the first iteration to the last, restarts included; if the solve resumed from a
    /// checkpoint, of the iterations since then.
    pub seconds_solve: f64,
    /// Seconds per iteration; if the solve resumed from a checkpoint, of the iterations since then.
    pub seconds_each: f64,
    /// Bytes that an iteration of all columns must move.
    pub bytes_per_iteration: u64,
    /// Bytes of the operators' arrays, each read once in an iteration.
    pub operator_bytes: u64,
    /// Bytes of the vectors, each accessed several times in an iteration.
    pub vector_bytes: u64,
}

impl Effort {
    /// Adds iterations that have taken these seconds.
    pub(super) fn after(self, iterations: usize, seconds_solve: f64) -> Effort {
        let seconds_each = seconds_solve / iterations.max(1) as f64;
        Effort { iterations, seconds_solve, seconds_each, ..self }
    }

    /// Adds what all ranks move and hold, if there are several. They call this together.
    pub(super) fn of_all(self, ranks: Option<&Ranks>) -> Effort {
        let Some(ranks) = ranks else { return self };
        Effort {
            bytes_per_iteration: ranks.total(self.bytes_per_iteration),
            operator_bytes: ranks.total(self.operator_bytes),
            vector_bytes: ranks.total(self.vector_bytes),
            ..self
        }
    }

    /// Returns what an iteration with this amount of work does per second; 0 without iterations.
    pub(crate) fn per_second(&self, amount: u64) -> f64 {
        if self.iterations == 0 { 0.0 } else { amount as f64 / self.seconds_each }
    }

    /// Returns the memory traffic of the iterations in GB/s.
    pub(crate) fn gigabytes_per_second(&self) -> f64 {
        self.per_second(self.bytes_per_iteration) / 1e9
    }
}
