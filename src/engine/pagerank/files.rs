//! Output of ranks to files.

use crate::engine::graph::Names;
use crate::engine::running::by_rank;
use crate::error::{Error, Result};
use crate::files::{Content, by_ending};
use crate::observe::write_file_with;
use crate::source::fields::quoted;
use std::io::Write;
use std::path::Path;

/// How a file of ranks is written.
#[derive(Clone, Copy)]
pub(super) enum Writer {
    /// In the order of the vertices, as an array.
    Array,
    /// By decreasing rank, with the names of the vertices. A row takes at most this number of bytes besides the names.
    ByRank(fn(&Path, &[f64], &Names) -> Result<()>, u64),
}

/// The most bytes of a file besides its rows.
const HEADER: u64 = 1 << 10;

/// The file extensions of ranks, with their writers.
const WRITERS: &[(&str, Writer)] = &[
    (".npy", Writer::Array),
    (".csv", Writer::ByRank(write_table, 27)),
    (".json", Writer::ByRank(write_json, 50)),
];

/// Returns how ranks are written to a file of this extension.
pub(super) fn writer(path: &Path) -> Result<Writer> {
    by_ending(path, WRITERS).map_err(|reason| Error::setting("output", path.display(), reason))
}

/// Returns the most bytes that a file of this extension takes for ranks of `columns` columns.
pub(super) fn most_bytes(path: &Path, vertices: &Names, columns: usize) -> Result<u64> {
    let rows = vertices.rows() as u64;
    Ok(match writer(path)? {
        Writer::Array => rows.saturating_mul((columns * size_of::<f64>()) as u64),
        Writer::ByRank(_, each) => rows.saturating_mul(each).saturating_add(vertices.most_bytes()),
    }
    .saturating_add(HEADER))
}

/// Checks that ranks can be written to a file of this extension.
pub fn check_output(path: &Path) -> Result<()> {
    writer(path).map(drop)
}

/// Refuses to write ranks that are not finite.
pub(super) fn check_finite(path: &Path, finite: bool) -> Result<()> {
    match finite {
        true => Ok(()),
        false => {
            let reason = "the ranks are not finite".to_owned();
            Err(Error::Unwritable { path: path.to_owned(), reason })
        }
    }
}

fn write_table(path: &Path, ranks: &[f64], vertices: &Names) -> Result<()> {
    write_file_with(path, Content::Answer, |out| {
        let (labels, ids) = (vertices.has_labels(), vertices.has_ids());
        writeln!(
            out,
            "{}",
            if !ids {
                "label,rank"
            } else if labels {
                "id,rank,label"
            } else {
                "id,rank"
            }
        )?;
        by_rank(ranks).into_iter().try_for_each(|vertex| {
            let label = quoted(vertices.label(vertex).unwrap_or_default());
            match vertices.id(vertex) {
                None => writeln!(out, "{label},{:e}", ranks[vertex]),
                Some(id) if labels => writeln!(out, "{id},{:e},{label}", ranks[vertex]),
                Some(id) => writeln!(out, "{id},{:e}", ranks[vertex]),
            }
        })
    })
}

fn write_json(path: &Path, ranks: &[f64], vertices: &Names) -> Result<()> {
    write_file_with(path, Content::Answer, |out| {
        write!(out, "[")?;
        for (position, vertex) in by_rank(ranks).into_iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(out, "{comma}\n{{")?;
            if let Some(id) = vertices.id(vertex) {
                write!(out, "\"id\":{id},")?;
            }
            if let Some(label) = vertices.label(vertex) {
                write!(out, "\"label\":{},", serde_json::to_string(label)?)?;
            }
            write!(out, "\"rank\":{:e}}}", ranks[vertex])?;
        }
        writeln!(out, "\n]")
    })
}
