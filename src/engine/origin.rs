//! Where a matrix, a graph or a chain comes from.

use crate::source::{Labels, Loaded};
use std::ffi::OsStr;
use std::time::Instant;

/// The source of a matrix, its notes, and the names of the rows. Matrices, prepared solves and reports share
/// it.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    /// The name by which the matrix was opened; empty on a rank that gets its rows from the first one, and
    /// none for a matrix from memory.
    pub name: Option<String>,
    pub stand_in: Option<&'static str>,
    /// The kind of file that the matrix was read from.
    pub kind: Option<&'static str>,
    /// Number of entries that the source stores; none for a matrix from memory.
    pub stored: Option<u64>,
    /// Whether only the stored triangle of a symmetric file was read.
    pub as_stored: bool,
    /// Notes on choices that the reader made.
    pub notes: Vec<String>,
    pub labels: Option<Labels>,
    /// Whether the labels came from a separate file, so that rows have ids too.
    pub labels_are_added: bool,
    pub ids: Option<Vec<u32>>,
    pub first_id: Option<u32>,
    pub seconds_load: f64,
}

impl Origin {
    /// Moves the origin of a matrix that a source has read out of the result. `seconds` is the time that
    /// reading took.
    pub(crate) fn of_loaded(name: String, loaded: &mut Loaded, seconds: f64) -> Origin {
        Origin {
            name: Some(name).filter(|name| !name.is_empty()),
            stand_in: loaded.stand_in,
            kind: loaded.kind,
            stored: Some(loaded.stored),
            as_stored: loaded.as_stored,
            notes: std::mem::take(&mut loaded.notes),
            labels: loaded.labels.take(),
            labels_are_added: false,
            ids: loaded.ids.take(),
            first_id: loaded.first_id,
            seconds_load: seconds,
        }
    }

    /// Returns the origin of rows that all ranks have read or made since `began`.
    pub(crate) fn read_since(began: Instant, what: &OsStr) -> Origin {
        let name = Some(what.to_string_lossy().into_owned());
        Origin { name, seconds_load: began.elapsed().as_secs_f64(), ..Origin::default() }
    }

    /// Returns the origin of rows that the first rank has sent, which knows more.
    pub(crate) fn of_first_rank() -> Origin {
        Origin { name: Some(String::new()), ..Origin::default() }
    }

    /// Returns the name that reports show.
    pub(crate) fn title(&self) -> &str {
        self.name.as_deref().unwrap_or("a matrix in memory")
    }

    /// Returns whether the rows are vertices with ids or labels.
    pub(crate) fn is_graph(&self) -> bool {
        self.first_id.is_some() || self.labels.is_some()
    }
}
