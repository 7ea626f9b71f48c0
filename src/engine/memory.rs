//! Memory of a solve, planned before it is taken.

use super::device::{DeviceName, Request, Settled};
use crate::bench::stream::LARGEST;
use crate::format::{Csr, Offsets};
use crate::parallel::available_cores;
use crate::precond::Preconditioner;
use crate::scalar::Precision;
use crate::solve::Method;

/// Vectors of the host while a solve runs: the right-hand side and its answer, the solution and its residual, each before and after a
/// run, and the correction that the run has found.
const HOST_VECTORS: u64 = 7;
/// More of them, by which an answer is judged, and the copy that is handed back.
const JUDGING_VECTORS: u64 = 2;
/// Vectors of the host while operators are built: the right-hand side and its answer.
const GIVEN_VECTORS: u64 = 2;
/// Bytes that the program takes for a small system: its code and what it records of iterations.
const PROGRAM: u64 = 20_000_000;
/// Bytes of each thread: its stack, and what it has not given back of the memory that it works with. On 16 threads the packing of
/// slices takes this much of each.
const THREAD: u64 = 1_200_000;
/// Bytes that drawing a picture takes at most, that of a bitmap.
const DRAWING: u64 = 45_000_000;

/// Bytes that a solve takes at most, about, by what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// The matrix on the host.
    pub matrix: u64,
    /// The matrix as a backend stores it, as compressed rows.
    pub operator: u64,
    /// The preconditioner.
    pub precond: u64,
    /// What building the preconditioner takes in addition.
    pub building: u64,
    /// Vectors of the host.
    pub host: u64,
    /// Those of them that are given.
    given: u64,
    /// Vectors of the method.
    pub vectors: u64,
    /// Code, stacks and the record of iterations.
    pub program: u64,
    drawing: u64,
    on_cpu: bool,
}

impl MemoryPlan {
    /// The plan for a matrix with this number of rows and entries. `start`: the solve starts at a given vector; `picture`: a plot is drawn.
    pub fn new(
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
        // The columns of a rounded matrix are those of the exact one.
        let rounded = if narrow { 4 * entries } else { 0 };
        let operator = match settled.backend.entry.format {
            "dense" => rows.saturating_mul(rows).saturating_mul(width),
            _ => compressed_rows(rows, entries, if narrow { 4 } else { 8 }),
        };
        let start = u64::from(start);
        MemoryPlan {
            matrix: compressed_rows(rows, entries, 8) + rounded,
            operator,
            precond: request.precond.bytes(rows, entries, width),
            building: request.precond.bytes_to_build(rows, entries),
            host: (HOST_VECTORS + JUDGING_VECTORS + start) * 8 * rows,
            given: (GIVEN_VECTORS + start) * 8 * rows,
            vectors: method.vectors(preconditioned) as u64 * width * rows,
            program: PROGRAM + THREAD * request.threads.unwrap_or_else(available_cores) as u64,
            drawing: if picture { DRAWING } else { 0 },
            on_cpu: matches!(settled.device, DeviceName::Cpu(_)),
        }
    }

    /// Bytes of operators and vectors, on the device of the solve.
    pub fn on_device(&self) -> u64 {
        self.operator.saturating_add(self.precond + self.vectors)
    }

    /// Bytes of main memory.
    pub fn on_host(&self) -> u64 {
        let all = self.matrix + self.host + self.program;
        if self.on_cpu {
            all.saturating_add(self.on_device() + self.more().map_or(0, |more| more.0))
        } else {
            all
        }
    }

    /// Where another part of a run on the CPU takes more than the iterations: how much more, and which part.
    pub fn more(&self) -> Option<(u64, &'static str)> {
        let kept = self.matrix + self.given;
        // The numbers that fill the arrays of the measurement are half as large as these.
        let measuring = self.on_device().min(LARGEST) / 2 * 3 + self.given;
        let building = self.operator.saturating_add(self.precond + self.building + kept);
        let phases = [
            (building, "the preconditioner is made"),
            (measuring, "the machine is measured"),
            (kept + self.drawing, "the picture is drawn"),
        ];
        let most = phases.into_iter().max_by_key(|(bytes, _)| *bytes)?;
        let solving = self.on_device().saturating_add(self.matrix + self.host);
        Some((most.0.checked_sub(solving)?, most.1)).filter(|(bytes, _)| *bytes > 0)
    }
}

/// Bytes of compressed rows with values of that width.
pub fn compressed_rows(rows: u64, entries: u64, width: u64) -> u64 {
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

/// What a solve needs on its device besides the matrix, with numbers of `width` bytes.
pub(super) fn reserve(method: Method, precond: Preconditioner, matrix: &Csr, width: usize) -> Reserve {
    let (rows, width) = (matrix.rows() as u64, width as u64);
    let vectors = method.vectors(precond != Preconditioner::NONE) as u64 * rows * width;
    // Of blocks only an estimate is known, by which nothing is refused.
    let rest =
        if precond.bytes_are_estimated() { 0 } else { precond.bytes(rows, matrix.nnz() as u64, width) };
    Reserve { all: vectors + rest, vectors }
}

/// Bytes of `count` vectors with numbers of `width` bytes.
pub(super) fn vectors(count: usize, rows: usize, width: usize) -> u64 {
    count as u64 * rows as u64 * width as u64
}
