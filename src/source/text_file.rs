//! Text files that are read in portions of entries.

use super::edge_file::EdgeFile;
use super::market::stream::{Entry, EntryFile, Judge};
use crate::error::{Error, Result};
use crate::observe::Meter;
use std::ffi::OsStr;
use std::path::Path;

/// A text file whose entries can be read in portions, more than once.
pub(crate) enum TextFile<'a> {
    /// A coordinate file in the format Matrix Market.
    Market(EntryFile<'a>),
    /// A list or a table of edges between ids.
    Edges(EdgeFile<'a>),
}

impl<'a> TextFile<'a> {
    /// Opens the file that `what` names; the meter counts the bytes of each reading. `None` if the reader of
    /// whole files must read it: so are lists of edges, unless a `graph` is wanted.
    pub(crate) fn open(what: &OsStr, graph: bool, meter: &'a Meter) -> Result<Option<TextFile<'a>>> {
        match EntryFile::open(what, meter)? {
            Some(file) => Ok(Some(TextFile::Market(file))),
            None if graph => Ok(EdgeFile::open(what, meter)?.map(TextFile::Edges)),
            None => Ok(None),
        }
    }

    /// Returns the numbers of rows and columns.
    pub(crate) fn shape(&self) -> (usize, usize) {
        match self {
            TextFile::Market(file) => file.shape,
            TextFile::Edges(file) => (file.vertices, file.vertices),
        }
    }

    /// Returns whether entries have values. If not, every entry is 1.
    pub(crate) fn is_valued(&self) -> bool {
        match self {
            TextFile::Market(file) => file.valued,
            TextFile::Edges(file) => file.weighted(),
        }
    }

    /// Returns the sign of the mirror image of an entry off the diagonal; `None` if there are
    /// no mirror images.
    pub(crate) fn mirror(&self) -> Option<f64> {
        match self {
            TextFile::Market(file) => file.mirror,
            TextFile::Edges(file) => file.both().then_some(1.0),
        }
    }

    /// Calls `visit` with the rows and columns of all entries, in portions, until it returns an error. If
    /// there are no mirror images, a column may be given as its row.
    pub(crate) fn places(&self, visit: impl FnMut(Vec<[u32; 2]>) -> Result<()>) -> Result<()> {
        match self {
            TextFile::Market(file) => file.places(visit),
            TextFile::Edges(file) => file.places(visit),
        }
    }

    /// Calls `visit` with all entries, in portions, until it returns an error. Returns the faults and
    /// warnings that result from all entries; [`finish`](Judge::finish) reports them, once no duplicates
    /// have a sum that overflows.
    pub(crate) fn entries(&self, visit: impl FnMut(Vec<Entry>) -> Result<()>) -> Result<Judge> {
        match self {
            TextFile::Market(file) => file.entries(visit),
            TextFile::Edges(file) => file.entries(visit).map(|()| Judge::default()),
        }
    }

    /// Returns the error for duplicates whose sum overflows f64, with the line at which it does.
    pub(crate) fn overflow(&self, position: (usize, usize)) -> Error {
        match self {
            TextFile::Market(file) => file.overflow(position),
            TextFile::Edges(file) => file.overflow(position),
        }
    }

    /// Returns the error for a file that is not the same in the second reading.
    pub(crate) fn changed(path: &Path) -> Error {
        EntryFile::changed(path)
    }
}
