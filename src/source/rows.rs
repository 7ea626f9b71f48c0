//! Matrices in files of which a process reads only some rows, so that no process has the whole matrix.

use super::binary::{self, FileRows};
use super::text::{Text, in_file};
use super::webgraph::{self, GraphPart};
use super::{is_file, mmap};
use crate::error::Result;
use crate::format::{Csr, partition};
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A binary matrix file, whose rows can be read separately.
pub(crate) struct RowFile {
    path: PathBuf,
    /// Numbers of rows and columns.
    pub shape: (usize, usize),
    /// Number of entries.
    pub entries: usize,
    /// Whether the matrix is symmetric, as was verified when the file was written.
    pub symmetric: bool,
    /// The real matrix that this one only imitates.
    pub stand_in: Option<&'static str>,
    /// A number that files with other content hardly share.
    pub fingerprint: u64,
}

impl RowFile {
    /// Opens the file that `what` names; `None` if it is no uncompressed binary matrix file.
    pub(crate) fn open(what: &OsStr) -> Result<Option<RowFile>> {
        let path = Path::new(what);
        // A pipe can be read only once.
        if !is_file(what) || !path.is_file() {
            return Ok(None);
        }
        let open = |bytes: &[u8]| {
            if !binary::is_binary(bytes) {
                return Ok(None);
            }
            let file = FileRows::new(path, bytes)?;
            Ok(Some(RowFile {
                path: path.to_owned(),
                shape: file.shape(),
                entries: file.entries(),
                symmetric: file.is_symmetric(),
                stand_in: file.stand_in(),
                fingerprint: file.fingerprint(),
            }))
        };
        mmap::with(path, open).map_err(in_file(path))
    }

    fn with<R>(&self, work: impl FnOnce(&FileRows<'_>) -> Result<R>) -> Result<R> {
        let path = &self.path;
        mmap::with(path, |bytes| work(&FileRows::new(path, bytes)?)).map_err(in_file(path))
    }

    /// Cuts the rows into contiguous parts of about equal work, as [`partition::by_entries`] does.
    pub(crate) fn cut(&self, parts: usize, together: usize) -> Result<Vec<usize>> {
        let rows = self.shape.0;
        self.with(|file| {
            Ok(partition::cut((rows, partition::ROW), |row| file.entries_before(row), parts, together))
        })
    }

    /// Reads some rows; their columns are those of the whole matrix.
    pub(crate) fn read(&self, rows: Range<usize>) -> Result<Csr> {
        self.with(|file| file.read(rows))
    }
}

/// Reads part `part` of `parts` of a graph in the format of WebGraph; `None` if `what` names no such file.
/// The parts have about equal numbers of links. The rows before a part are decoded and forgotten, because the
/// file does not tell where a row begins.
pub fn webgraph_part(what: &OsStr, part: usize, parts: usize) -> Result<Option<GraphPart>> {
    let path = Path::new(what);
    if !is_file(what) || !path.is_file() {
        return Ok(None);
    }
    let read = |bytes: &[u8]| webgraph::read_part(Text { path, bytes, meter: None, lines: 0 }, (part, parts));
    mmap::with(path, read).map_err(in_file(path))
}
