//! Memory plan of a solve, computed before any allocation.

use super::device::{DeviceName, Request, Settled};
use crate::device::stream::LARGEST;
use crate::format::{Csr, Offsets};
use crate::parallel::available_cores;
use crate::precond::Preconditioner;
use crate::scalar::Precision;
use crate::solve::Method;

/// Host vectors during a solve: the right-hand side and its known solution, the solution and its residual,
/// each before and after a run, and the correction that the run found.
const HOST_VECTORS: u64 = 7;
/// Additional host vectors: the one for the verdict on the answer, and the copy that is returned.
const JUDGING_VECTORS: u64 = 2;
/// Host vectors while operators are built: the right-hand side and its known solution.
const GIVEN_VECTORS: u64 = 2;
/// Host vectors for each of several right-hand sides: the right-hand side, the solution, its residual, the
/// copy for transfers and the copy that is returned.
const HOST_COLUMNS: u64 = 5;
/// Host vectors for judging one of several columns at a time.
const JUDGED_VECTORS: u64 = 4;
/// Bytes of the program for a small system: code and iteration history.
const PROGRAM: u64 = 20_000_000;
/// Bytes per thread: its stack, and working memory that the allocator has not returned. On 16 threads the
/// packing of slices takes this much on each.
const THREAD: u64 = 1_200_000;
/// Largest number of bytes for drawing a plot, which is that for a bitmap.
const DRAWING: u64 = 45_000_000;

/// Estimate of the peak memory of a solve in bytes, by purpose. On several devices, operator, preconditioner
/// and vectors are those of each device, with its share of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct MemoryPlan {
    /// The matrix on the host.
    pub matrix: u64,
    /// The matrix of the backend, estimated as compressed rows unless the backend is dense.
    pub operator: u64,
    /// The preconditioner.
    pub precond: u64,
    /// Additional memory while the preconditioner is built.
    pub building: u64,
    /// Host vectors.
    pub host: u64,
    /// Host vectors that exist before the solve: right-hand side, known solution and initial guess.
    given: u64,
    /// Vectors of the method.
    pub vectors: u64,
    /// Code, stacks and iteration history.
    pub program: u64,
    drawing: u64,
    on_cpu: bool,
}

impl MemoryPlan {
    /// Computes the plan for a matrix with this number of rows and entries. `start`: there is an initial
    /// guess; `picture`: a plot is drawn.
    pub(crate) fn new(
        method: Method,
        request: &Request,
        settled: &Settled,
        (rows, entries): (u64, u64),
        start: bool,
        picture: bool,
    ) -> MemoryPlan {
        let narrow = request.precision.narrow_values();
        let preconditioned = request.precond != Preconditioner::NONE;
        let width = if request.precision == Precision::F32 { 4 } else { 8 };
        // A rounded matrix shares the column indices of the exact one.
        let rounded = if narrow { 4 * entries } else { 0 };
        let devices = settled.devices().len() as u64;
        let (own_rows, own_entries) = (rows.div_ceil(devices), entries.div_ceil(devices));
        // The host keeps the rows of each device, too, to judge the answer.
        let copied = if devices > 1 { compressed_rows(rows, entries, 8) } else { 0 };
        let operator = match settled.backend.entry.format {
            "dense" => own_rows.saturating_mul(own_rows).saturating_mul(width),
            _ => compressed_rows(own_rows, own_entries, if narrow { 4 } else { 8 }),
        };
        let (start, columns) = (u64::from(start), request.columns as u64);
        let (host, given) = match columns {
            1 => (HOST_VECTORS + JUDGING_VECTORS + start, GIVEN_VECTORS + start),
            k => ((HOST_COLUMNS + start).saturating_mul(k) + JUDGED_VECTORS, (1 + start).saturating_mul(k)),
        };
        MemoryPlan {
            matrix: compressed_rows(rows, entries, 8) + copied + rounded,
            operator,
            precond: request.precond.bytes(own_rows, own_entries, width),
            building: request.precond.bytes_to_build(own_rows, own_entries),
            host: host.saturating_mul(8 * rows),
            given: given.saturating_mul(8 * rows),
            vectors: (method.vectors(preconditioned) as u64)
                .saturating_mul(columns)
                .saturating_mul(width * own_rows),
            program: PROGRAM + THREAD * request.threads.unwrap_or_else(available_cores) as u64,
            drawing: if picture { DRAWING } else { 0 },
            on_cpu: matches!(settled.device, DeviceName::Cpu(_)),
        }
    }

    /// Returns the bytes of operators and vectors on the device of the solve.
    pub(crate) fn on_device(&self) -> u64 {
        self.operator.saturating_add(self.precond).saturating_add(self.vectors)
    }

    /// Returns the bytes of main memory.
    pub(crate) fn on_host(&self) -> u64 {
        let all = self.host.saturating_add(self.matrix + self.program);
        if self.on_cpu {
            all.saturating_add(self.on_device() + self.more().map_or(0, |more| more.0))
        } else {
            all
        }
    }

    /// Returns the phase of a run on the CPU that takes more memory than the iterations, and the additional
    /// bytes; none if no phase does.
    pub(crate) fn more(&self) -> Option<(u64, &'static str)> {
        let kept = self.given.saturating_add(self.matrix);
        // The host numbers that fill the arrays of the measurement take half as many bytes as the arrays.
        let measuring = self.on_device().min(LARGEST) / 2 * 3;
        let measuring = self.given.saturating_add(measuring);
        let building = self.operator.saturating_add(kept.saturating_add(self.precond + self.building));
        let phases = [
            (building, "the preconditioner is made"),
            (measuring, "the machine is measured"),
            (kept.saturating_add(self.drawing), "the picture is drawn"),
        ];
        let most = phases.into_iter().max_by_key(|(bytes, _)| *bytes)?;
        let solving = self.on_device().saturating_add(self.host.saturating_add(self.matrix));
        Some((most.0.checked_sub(solving)?, most.1)).filter(|(bytes, _)| *bytes > 0)
    }
}

/// Returns the bytes of compressed rows with values of `width` bytes.
pub(crate) fn compressed_rows(rows: u64, entries: u64, width: u64) -> u64 {
    let offset = if entries > Offsets::MOST_NARROW { 8 } else { 4 };
    entries * (4 + width) + (rows + 1) * offset
}

/// Bytes of a device that must stay free while operators are built.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserve {
    /// For preconditioner and vectors, while the matrix is built.
    pub all: u64,
    /// For vectors, while the preconditioner is built.
    pub vectors: u64,
}

/// Returns the bytes that a solve of `columns` right-hand sides needs on its device in addition to the
/// matrix, with numbers of `width` bytes.
pub(super) fn reserve(
    method: Method,
    precond: &Preconditioner,
    matrix: &Csr,
    (columns, width): (usize, usize),
) -> Reserve {
    let (rows, width) = (matrix.rows() as u64, width as u64);
    let count = (method.vectors(*precond != Preconditioner::NONE) as u64).saturating_mul(columns as u64);
    let vectors = count.saturating_mul(rows * width);
    // The bytes of a block preconditioner are only an estimate, which must not refuse a backend.
    let rest =
        if precond.bytes_are_estimated() { 0 } else { precond.bytes(rows, matrix.nnz() as u64, width) };
    Reserve { all: vectors + rest, vectors }
}

/// Returns the bytes of `count` vectors with numbers of `width` bytes.
pub(super) fn vectors(count: usize, rows: usize, width: usize) -> u64 {
    count as u64 * rows as u64 * width as u64
}
