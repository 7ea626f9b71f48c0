//! Describes the estimated memory of a solve, or a lower bound of it.

use super::progress::bytes;
use super::running::Running;
use crate::engine::{DeviceName, MemoryPlan, compressed_rows};
use crate::error::Result;
use crate::solve::Method;
use crate::source::Columns;
use std::ffi::OsStr;

const UNKNOWN: &str = "known after the matrix is read";

/// Describes a lower bound: the given number of copies of the matrix, without values, which graphs may lack.
pub(super) fn at_least(what: &OsStr, columns: Option<Columns>, copies: u64, named: &str) -> Result<String> {
    // The head of an edge table with named columns need not show the kind of file.
    if columns.is_some() {
        return Ok(UNKNOWN.to_owned());
    }
    let Some((rows, entries)) = crate::source::preview(what)? else { return Ok(UNKNOWN.to_owned()) };
    Ok(format!("at least {} ({named}, without values)", bytes(copies * compressed_rows(rows, entries, 0))))
}

/// Describes the estimate. `start`: the solve starts from a vector; `picture`: a plot is drawn.
pub(super) fn describe(
    method: Method,
    matrix: &OsStr,
    Running { request, settled, .. }: &Running,
    start: bool,
    picture: bool,
) -> Result<String> {
    let Some(size) = crate::source::preview(matrix)? else { return Ok(UNKNOWN.to_owned()) };
    let planned = MemoryPlan::new(method, request, settled, size, start, picture);
    let MemoryPlan { matrix, operator, precond, host, vectors, program, .. } = planned;
    let named = match request.precond.name() {
        "none" => String::new(),
        name => format!(", preconditioner {name} {}", bytes(precond)),
    };
    let all = bytes(planned.on_host());
    let gpus = match settled.shares.len() {
        0 => "the GPU".to_owned(),
        count => format!("each of {count} GPUs"),
    };
    Ok(match settled.device {
        DeviceName::Cuda(_) => format!(
            "about {all} (matrix {}, vectors {}, program {}), and on {gpus} {} (operator{} {}{named}, vectors {})",
            bytes(matrix),
            bytes(host),
            bytes(program),
            bytes(planned.on_device()),
            if settled.backend.entry.format == "dense" { "" } else { " as compressed rows" },
            bytes(operator),
            bytes(vectors)
        ),
        DeviceName::Cpu(_) => {
            let (more, phase) = planned.more().unwrap_or_default();
            format!(
                "about {all} (matrix {}, operator {} or less{named}, vectors {}{}, program {})",
                bytes(matrix),
                bytes(operator),
                bytes(host + vectors),
                if more > 0 { format!(", {} more while {phase}", bytes(more)) } else { String::new() },
                bytes(program)
            )
        }
    })
}
