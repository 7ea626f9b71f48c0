//! About how much memory a solve will take, or the least that it will, for its plan.

use super::plan::Plan;
use super::progress::bytes;
use super::running::Place;
use crate::error::Result;
use crate::format::Offsets;
use crate::scalar::Precision;
use std::ffi::OsStr;

/// Vectors of the host: the right-hand side and its answer, and the solution and its residual, each before and after a
/// run.
const HOST_VECTORS: u64 = 6;

const UNKNOWN: &str = "known after the matrix is read";

/// The least in words: so many times what is solved, without values, which graphs may lack.
pub(super) fn at_least(what: &OsStr, times: u64, named: &str) -> Result<String> {
    let Some((rows, entries)) = crate::source::preview(what)? else { return Ok(UNKNOWN.to_owned()) };
    Ok(format!("at least {} ({named}, values left out)", bytes(times * compressed_rows(rows, entries, 0))))
}

/// The estimate in words.
pub(super) fn describe(plan: &Plan) -> Result<String> {
    let Some((rows, entries)) = crate::source::preview(&plan.matrix)? else { return Ok(UNKNOWN.to_owned()) };
    let narrow = plan.run.precision.narrow_values();
    let preconditioned = plan.precond.name() != "none";
    let width = if plan.run.precision == Precision::F32 { 4 } else { 8 };
    let mut matrix = compressed_rows(rows, entries, 8);
    if narrow {
        matrix += compressed_rows(rows, entries, 4);
    }
    let dense = plan.running.backend.entry.format == "dense";
    let operator = match dense {
        true => rows.saturating_mul(rows).saturating_mul(width),
        false => compressed_rows(rows, entries, if narrow { 4 } else { 8 }),
    };
    let as_rows = if dense { "" } else { " as compressed rows" };
    let host = HOST_VECTORS * 8 * rows;
    let device = plan.method.vectors(preconditioned) as u64 * width * rows;
    let precond = plan.precond.bytes(rows, entries, width);
    let named = match preconditioned {
        true => format!(", preconditioner {} {}", plan.precond.name(), bytes(precond)),
        false => String::new(),
    };
    Ok(match plan.running.place {
        Place::Cuda(_) => format!(
            "about {} (matrix {}, vectors {}), and on the GPU {} (operator{as_rows} {}{named}, vectors {})",
            bytes(matrix + host),
            bytes(matrix),
            bytes(host),
            bytes(operator.saturating_add(precond + device)),
            bytes(operator),
            bytes(device)
        ),
        Place::Cpu(_) => format!(
            "about {} (matrix {}, operator {} or less{named}, vectors {})",
            bytes(operator.saturating_add(matrix + precond + host + device)),
            bytes(matrix),
            bytes(operator),
            bytes(host + device)
        ),
    })
}

/// Bytes of compressed rows with values of that width.
fn compressed_rows(rows: u64, entries: u64, width: u64) -> u64 {
    let offset = if entries > Offsets::MOST_NARROW { 8 } else { 4 };
    entries * (4 + width) + (rows + 1) * offset
}
