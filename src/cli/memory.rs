//! Describes the estimated memory of a solve, or a lower bound of it.

use super::launch;
use super::progress::bytes;
use super::running::Running;
use crate::device::Ranks;
use crate::engine::{DeviceName, MemoryPlan, compressed_rows};
use crate::error::Result;
use crate::solve::Method;
use crate::source::{self, Shared};
use std::ffi::OsStr;

pub(super) const UNKNOWN: &str = "known after the matrix is read";

/// Describes a lower bound: the copies of a graph or chain, without values, which graphs may lack. `columns`
/// is whether the user has chosen the columns of a table.
pub(super) fn at_least(what: &OsStr, columns: bool, kind: Shared) -> Result<String> {
    let (copies, named) =
        if kind == Shared::Graph { (2, "the graph and its transpose") } else { (1, "the chain") };
    let ranks = launch::ranks().map(Ranks::size);
    let size = size_of_rank(what, columns, ranks.unwrap_or(1) as u64)?;
    let Some((rows, entries)) = size else { return Ok(UNKNOWN.to_owned()) };
    let least = bytes(copies * compressed_rows(rows, entries, 0));
    Ok(match ranks {
        None => format!("at least {least} ({named}, without values)"),
        Some(ranks) => {
            let first = first_rank(what, source::is_shared_by_ranks(what, kind)?)?;
            format!("each of {ranks} ranks at least {least} (its part of {named}, without values){first}")
        }
    })
}

/// Describes the memory that the first rank needs in addition, because it reads the whole
/// matrix or may have to.
fn first_rank(what: &OsStr, shared: bool) -> Result<String> {
    // A generator of rows is shared in any case. The content of a file may show that one rank
    // must read all of it.
    if shared {
        return Ok(match source::is_file(what) {
            true => "; the first rank needs more if only it can read the file".to_owned(),
            false => String::new(),
        });
    }
    Ok(match source::preview(what)? {
        Some((rows, entries)) => {
            let whole = bytes(compressed_rows(rows, entries, 8));
            format!("; the first rank at least {whole} more, because it reads the whole matrix")
        }
        None => "; the first rank more, because it reads the whole matrix".to_owned(),
    })
}

/// Returns the approximate rows and entries of each of several ranks, if they are known before the matrix is
/// read. `columns` is as for [`at_least`].
pub(super) fn size_of_rank(what: &OsStr, columns: bool, ranks: u64) -> Result<Option<(u64, u64)>> {
    // The head of an edge table with named columns need not show the kind of file.
    if columns {
        return Ok(None);
    }
    let size = source::preview(what)?;
    Ok(size.map(|(rows, entries)| (rows.div_ceil(ranks), entries.div_ceil(ranks))))
}

/// Describes the estimate. `start`: the solve starts from a vector; `picture`: a plot is drawn; `whole`: one
/// process needs the whole matrix.
pub(super) fn describe(
    method: Method,
    matrix_name: &OsStr,
    Running { request, settled, .. }: &Running,
    (start, picture): (bool, bool),
    whole: bool,
) -> Result<String> {
    let ranks = launch::ranks().map(Ranks::size);
    let size = size_of_rank(matrix_name, false, ranks.unwrap_or(1) as u64)?;
    let Some(size) = size else { return Ok(UNKNOWN.to_owned()) };
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
    let memory = match settled.device {
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
    };
    Ok(match ranks {
        None => memory,
        Some(ranks) => {
            let shared = !whole && source::is_shared_by_ranks(matrix_name, Shared::System)?;
            format!("each of {ranks} ranks {memory}, without its halo{}", first_rank(matrix_name, shared)?)
        }
    })
}
