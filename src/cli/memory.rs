//! How much memory a solve takes at most, about, or the least that it takes, for its plan.

use super::plan::Plan;
use super::progress::bytes;
use super::running::Place;
use crate::bench::stream::LARGEST;
use crate::error::Result;
use crate::format::Offsets;
use crate::parallel::available_cores;
use crate::scalar::Precision;
use crate::source::Columns;
use std::ffi::OsStr;

/// Vectors of the host while a solve runs: the right-hand side and its answer, the solution and its residual, each before and after a
/// run, and the correction that the run has found.
const HOST_VECTORS: u64 = 7;
/// More of them, by which an answer is judged.
const JUDGING_VECTORS: u64 = 2;
/// Vectors of the host while operators are built: the right-hand side and its answer.
const GIVEN_VECTORS: u64 = 2;
/// Bytes that the program takes for a small system: its code and what it records of iterations.
const PROGRAM: u64 = 20_000_000;
/// Bytes of each thread: its stack, and what it has not given back of the memory that it works with.
const THREAD: u64 = 500_000;
/// Bytes that drawing a picture takes at most, that of a bitmap.
const DRAWING: u64 = 45_000_000;

const UNKNOWN: &str = "known after the matrix is read";

/// The least in words: so many times what is solved, without values, which graphs may lack.
pub(super) fn at_least(what: &OsStr, columns: Option<Columns>, times: u64, named: &str) -> Result<String> {
    // The head of such a table need not tell its kind.
    if columns.is_some() {
        return Ok(UNKNOWN.to_owned());
    }
    let Some((rows, entries)) = crate::source::preview(what)? else { return Ok(UNKNOWN.to_owned()) };
    Ok(format!("at least {} ({named}, values left out)", bytes(times * compressed_rows(rows, entries, 0))))
}

/// Bytes of the parts of a solve.
struct Parts {
    matrix: u64,
    operator: u64,
    precond: u64,
    /// What building the preconditioner takes in addition.
    building: u64,
    /// Vectors of the host in all, and those that are given.
    host: u64,
    given: u64,
    /// Vectors of the method.
    device: u64,
    drawing: u64,
}

impl Parts {
    fn new(plan: &Plan, rows: u64, entries: u64) -> Parts {
        let narrow = plan.run.precision.narrow_values();
        let preconditioned = plan.precond.name() != "none";
        let width = if plan.run.precision == Precision::F32 { 4 } else { 8 };
        // The columns of a rounded matrix are those of the exact one.
        let rounded = if narrow { 4 * entries } else { 0 };
        let operator = match plan.running.backend.entry.format {
            "dense" => rows.saturating_mul(rows).saturating_mul(width),
            _ => compressed_rows(rows, entries, if narrow { 4 } else { 8 }),
        };
        let start = u64::from(plan.x0.is_some());
        Parts {
            matrix: compressed_rows(rows, entries, 8) + rounded,
            operator,
            precond: plan.precond.bytes(rows, entries, width),
            building: plan.precond.bytes_to_build(rows, entries),
            host: (HOST_VECTORS + JUDGING_VECTORS + start) * 8 * rows,
            given: (GIVEN_VECTORS + start) * 8 * rows,
            device: plan.method.vectors(preconditioned) as u64 * width * rows,
            drawing: if plan.run.plot.is_some() { DRAWING } else { 0 },
        }
    }

    /// Bytes of operators and vectors, on the device of the solve.
    fn on_device(&self) -> u64 {
        self.operator.saturating_add(self.precond + self.device)
    }

    /// Bytes while a solve runs on the CPU.
    fn solving(&self) -> u64 {
        self.on_device().saturating_add(self.matrix + self.host)
    }

    /// Where another part of the run takes more than the iterations: how much more, and which part.
    fn more(&self) -> Option<(u64, &'static str)> {
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
        Some((most.0.checked_sub(self.solving())?, most.1)).filter(|(bytes, _)| *bytes > 0)
    }
}

/// The estimate in words.
pub(super) fn describe(plan: &Plan) -> Result<String> {
    let Some((rows, entries)) = crate::source::preview(&*plan.matrix)? else { return Ok(UNKNOWN.to_owned()) };
    let parts = Parts::new(plan, rows, entries);
    let Parts { matrix, operator, precond, host, device, .. } = parts;
    let named = match plan.precond.name() {
        "none" => String::new(),
        name => format!(", preconditioner {name} {}", bytes(precond)),
    };
    let program = PROGRAM + THREAD * plan.run.threads.unwrap_or_else(available_cores) as u64;
    Ok(match plan.running.place {
        Place::Cuda(_) => format!(
            "about {} (matrix {}, vectors {}, program {}), and on the GPU {} (operator{} {}{named}, vectors {})",
            bytes(matrix + host + program),
            bytes(matrix),
            bytes(host),
            bytes(program),
            bytes(parts.on_device()),
            if plan.running.backend.entry.format == "dense" { "" } else { " as compressed rows" },
            bytes(operator),
            bytes(device)
        ),
        Place::Cpu(_) => {
            let (more, phase) = parts.more().unwrap_or_default();
            format!(
                "about {} (matrix {}, operator {} or less{named}, vectors {}{}, program {})",
                bytes(parts.solving().saturating_add(more + program)),
                bytes(matrix),
                bytes(operator),
                bytes(host + device),
                if more > 0 { format!(", {} more while {phase}", bytes(more)) } else { String::new() },
                bytes(program)
            )
        }
    })
}

/// Bytes of compressed rows with values of that width.
fn compressed_rows(rows: u64, entries: u64, width: u64) -> u64 {
    let offset = if entries > Offsets::MOST_NARROW { 8 } else { 4 };
    entries * (4 + width) + (rows + 1) * offset
}
