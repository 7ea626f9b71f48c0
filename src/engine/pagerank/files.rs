//! Output of ranks to files.

use crate::engine::graph::Names;
use crate::engine::running::by_rank;
use crate::engine::weights::Weights;
use crate::error::{Error, Result};
use crate::files::{Content, HEADER, by_ending};
use crate::observe::write_file_with;
use crate::source::fields::quoted;
use std::io::Write;
use std::path::Path;

/// The ranks of all vertices for one personalisation.
pub(super) struct Column<'a> {
    /// The name of the personalisation, if there are several.
    pub seed: Option<&'a str>,
    pub ranks: &'a [f64],
}

/// How a file of ranks is written.
#[derive(Clone, Copy)]
pub(super) enum Writer {
    /// In the order of the vertices, as an array.
    Array,
    /// By decreasing rank, with the names of the vertices: one personalisation after the other. A row takes
    /// at most this number of bytes besides the names.
    ByRank(fn(&Path, &[Column<'_>], &Names) -> Result<()>, u64),
}

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

/// Returns the most bytes that a file of this extension takes for the ranks of several personalisations,
/// `each`, or of one if there are none.
pub(super) fn most_bytes(path: &Path, vertices: &Names, each: &[Weights]) -> Result<u64> {
    let rows = vertices.rows() as u64;
    Ok(match writer(path)? {
        Writer::Array => rows.saturating_mul((each.len().max(1) * size_of::<f64>()) as u64),
        Writer::ByRank(_, row) => {
            let one = rows.saturating_mul(row).saturating_add(vertices.most_bytes());
            // The name of the personalisation is on each line. Each character may need an escape.
            let named = |seed: String| one.saturating_add(rows.saturating_mul(2 * seed.len() as u64 + 12));
            let all = each.iter().map(|weights| named(weights.seed())).fold(0, u64::saturating_add);
            if each.is_empty() { one } else { all }
        }
    }
    .saturating_add(HEADER))
}

/// Checks that ranks can be written to a file of this extension.
pub(crate) fn check_output(path: &Path) -> Result<()> {
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

fn write_table(path: &Path, columns: &[Column<'_>], vertices: &Names) -> Result<()> {
    let (labels, ids) = (vertices.has_labels(), vertices.has_ids());
    let header = match (columns.iter().any(|column| column.seed.is_some()), labels, ids) {
        (false, _, false) => "label,rank",
        (false, true, true) => "id,rank,label",
        (false, false, true) => "id,rank",
        (true, true, true) => "seed,vertex,rank,id",
        (true, _, _) => "seed,vertex,rank",
    };
    write_file_with(path, Content::Answer, |out| {
        writeln!(out, "{header}")?;
        for Column { seed, ranks } in columns {
            let seed = seed.map(quoted);
            by_rank(ranks).into_iter().try_for_each(|vertex| {
                let label = quoted(vertices.label(vertex).unwrap_or_default());
                let rank = ranks[vertex];
                match (&seed, vertices.id(vertex)) {
                    (None, None) => writeln!(out, "{label},{rank:e}"),
                    (None, Some(id)) if labels => writeln!(out, "{id},{rank:e},{label}"),
                    (None, Some(id)) => writeln!(out, "{id},{rank:e}"),
                    (Some(seed), None) => writeln!(out, "{seed},{label},{rank:e}"),
                    (Some(seed), Some(id)) if labels => writeln!(out, "{seed},{label},{rank:e},{id}"),
                    (Some(seed), Some(id)) => writeln!(out, "{seed},{id},{rank:e}"),
                }
            })?;
        }
        Ok(())
    })
}

fn write_json(path: &Path, columns: &[Column<'_>], vertices: &Names) -> Result<()> {
    write_file_with(path, Content::Answer, |out| {
        let mut before = "[";
        for Column { seed, ranks } in columns {
            let seed = seed.map(serde_json::to_string).transpose()?;
            for vertex in by_rank(ranks) {
                write!(out, "{before}\n{{")?;
                before = ",";
                if let Some(seed) = &seed {
                    let vertex = match vertices.label(vertex) {
                        Some(label) => serde_json::to_string(label)?,
                        None => vertices.id(vertex).map_or_else(|| vertex.to_string(), |id| id.to_string()),
                    };
                    write!(out, "\"seed\":{seed},\"vertex\":{vertex},")?;
                }
                if let Some(id) = vertices.id(vertex) {
                    write!(out, "\"id\":{id},")?;
                }
                if let Some(label) = vertices.label(vertex) {
                    write!(out, "\"label\":{},", serde_json::to_string(label)?)?;
                }
                match ranks[vertex] {
                    rank if rank.is_finite() => write!(out, "\"rank\":{rank:e}}}")?,
                    _ => write!(out, "\"rank\":null}}")?,
                }
            }
        }
        writeln!(out, "{}\n]", if before == "[" { before } else { "" })
    })
}
