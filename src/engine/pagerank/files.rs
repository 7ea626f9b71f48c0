//! Output of ranks to files.

use crate::engine::graph::Names;
use crate::engine::running::by_rank;
use crate::error::{Error, Result};
use crate::files::by_ending;
use crate::observe::write_file_with;
use crate::source::fields::quoted;
use std::io::Write;
use std::path::Path;

/// How a file of ranks is written.
#[derive(Clone, Copy)]
pub(super) enum Writer {
    /// In the order of the vertices, as an array.
    Array,
    /// By decreasing rank, with the names of the vertices.
    ByRank(fn(&Path, &[f64], &Names) -> Result<()>),
}

/// The file extensions of ranks, with their writers.
const WRITERS: &[(&str, Writer)] =
    &[(".npy", Writer::Array), (".csv", Writer::ByRank(write_table)), (".json", Writer::ByRank(write_json))];

/// Returns how ranks are written to a file of this extension.
pub(super) fn writer(path: &Path) -> Result<Writer> {
    by_ending(path, WRITERS).map_err(|reason| Error::setting("output", path.display(), reason))
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
    write_file_with(path, |out| {
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
    write_file_with(path, |out| {
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
