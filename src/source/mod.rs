//! Sources of matrices: files, the catalog and generators.
//!
//! The name of a matrix is a path if such a file exists, else a name of the catalog, else a generator; `-` is
//! standard input. The kind of a file is detected from its content.

mod archive;
mod ascii;
mod attached;
pub mod binary;
mod cache;
pub mod catalog;
pub(crate) mod column;
mod compressed;
mod coordinates;
mod detect;
mod direction;
mod edge_file;
mod edges;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod generate;
mod graph;
mod gzip;
mod harwell;
mod head;
mod ids;
mod inflate;
mod kinds;
mod labels;
pub mod market;
mod metis;
mod mmap;
mod named;
pub mod npy;
pub mod npz;
mod pajek;
mod passing;
mod pinned;
mod portions;
mod rows;
pub(crate) mod save;
mod table;
mod text;
mod text_file;
mod tokens;
mod unsaid;
pub(crate) mod vector;
mod webgraph;

use crate::error::{Error, FetchError, Result};
use crate::files::{self, NoCache};
use crate::format::{Coordinates, Csr, Dense, Duplicates};
use crate::observe::{Meter, Phase, profile};
use crate::spelling::{did_you_mean, nearest};
pub use detect::{parse, parse_as, parse_dense, read_dense};
pub(crate) use ids::close_gaps;
pub(crate) use kinds::is_list;
pub use kinds::kinds;
pub(crate) use labels::LabelIndex;
pub use labels::{Interner, Labels};
pub(crate) use market::stream::Entry;
pub(crate) use rows::RowFile;
pub use rows::webgraph_part;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
pub use table::{ChosenColumns, Columns};
pub(crate) use text_file::TextFile;
pub(crate) use tokens::fields;
pub(crate) use unsaid::UnsaidIndex;
pub use vector::{read_vector, read_vectors, write_vector, write_vectors};

/// The name of standard input on the command line.
pub(crate) const STDIN: &str = "-";

/// A matrix in memory, with the facts that its source provides.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The matrix. Unless [`Options`] say otherwise, symmetric halves are expanded and duplicates are summed.
    pub matrix: Csr,
    /// Number of entries that the source stores: one triangle of a symmetric file.
    pub stored: u64,
    /// Whether the matrix is symmetric by construction, so that no check is needed.
    pub symmetric: bool,
    /// The vectors stored with the matrix, if they were requested.
    pub attached: Vec<Attached>,
    /// The names of vectors stored with the matrix that were not requested or are faulty.
    pub attached_unread: Vec<String>,
    /// The error messages for faulty vectors.
    pub attached_faults: Vec<String>,
    /// The coordinates of the nodes whose unknowns are the rows, if the source has them.
    pub coordinates: Option<Arc<Coordinates>>,
    /// The real matrix that this one only imitates.
    pub stand_in: Option<&'static str>,
    /// The id of each row, if [`Options::close_gaps`] was set and the ids of the edge list have gaps.
    pub ids: Option<Vec<u32>>,
    /// The id of the first row if `ids` is `None` and the source is a graph that numbers its nodes.
    pub first_id: Option<u32>,
    /// The names of the rows, if the source is a graph whose vertices have names.
    pub labels: Option<Labels>,
    /// Choices that the reader made, and columns that it did not read.
    pub notes: Vec<String>,
    /// The kind of the file that the matrix was read from; none for a generator.
    pub kind: Option<&'static str>,
    /// Whether [`Options::as_stored`] was set.
    pub as_stored: bool,
    /// The indices of a list that may be counted from 1.
    pub unsaid_index: Option<Box<UnsaidIndex>>,
}

/// One or more dense columns stored with a matrix: `b` is a right-hand side, `x` a solution.
#[derive(Clone, Debug, PartialEq)]
pub struct Attached {
    /// The columns' name.
    pub name: String,
    /// The columns' values.
    pub values: Dense,
}

impl Loaded {
    /// Creates a result with only a matrix.
    pub fn new(matrix: Csr, stored: u64, symmetric: bool) -> Loaded {
        Loaded {
            matrix,
            stored,
            symmetric,
            attached: Vec::new(),
            attached_unread: Vec::new(),
            attached_faults: Vec::new(),
            coordinates: None,
            stand_in: None,
            ids: None,
            first_id: None,
            labels: None,
            notes: Vec::new(),
            kind: None,
            as_stored: false,
            unsaid_index: None,
        }
    }

    /// Creates a result with a matrix that is symmetric by construction and whose entries are all stored.
    fn symmetric(matrix: Csr) -> Loaded {
        let stored = matrix.nnz() as u64;
        Loaded::new(matrix, stored, true)
    }

    /// Finds the dense columns with this name that are stored with the matrix; `coord` is the name of the
    /// coordinates.
    pub fn attached(&self, name: &str) -> Option<&Dense> {
        Content::from(self).arrays().find(|array| array.0 == name).map(|array| array.1)
    }

    /// Skips invalid vectors stored with the matrix, with a warning.
    fn skip_attached(&mut self, path: &Path, names: Vec<String>, error: Error) {
        let error = text::in_file(path)(error);
        log::warn!("{error}; the matrix is read without its {}", names.join(", "));
        self.attached_unread.extend(names);
        self.attached_faults.push(error.to_string());
    }
}

/// A matrix to write, with its attached vectors and labels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content<'a> {
    /// The matrix.
    pub matrix: &'a Csr,
    /// Number of entries that the source stores.
    pub stored: u64,
    /// Whether the matrix is known to be symmetric.
    pub symmetric: bool,
    /// The real matrix that this one only imitates.
    pub stand_in: Option<&'static str>,
    /// The kind of the file that the matrix was read from.
    pub kind: Option<&'static str>,
    /// The vectors attached to the matrix.
    pub attached: &'a [Attached],
    /// The coordinates of the nodes.
    pub coordinates: Option<&'a Coordinates>,
    /// The names of vectors that were not read.
    pub attached_unread: &'a [String],
    /// The names of the rows.
    pub labels: Option<&'a Labels>,
}

impl<'a> From<&'a Loaded> for Content<'a> {
    fn from(loaded: &'a Loaded) -> Content<'a> {
        Content {
            matrix: &loaded.matrix,
            stored: loaded.stored,
            symmetric: loaded.symmetric,
            stand_in: loaded.stand_in,
            kind: loaded.kind,
            attached: &loaded.attached,
            coordinates: loaded.coordinates.as_deref(),
            attached_unread: &loaded.attached_unread,
            labels: loaded.labels.as_ref(),
        }
    }
}

/// Options of reading.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Read a symmetric matrix as the triangle that its file stores; the lower one if the source stores both
    /// triangles or is a generator.
    pub as_stored: bool,
    /// Also read the vectors and coordinates stored with the matrix. Faulty ones are skipped with a warning
    /// and reported in [`Loaded::attached_faults`]. Generators always provide theirs, except for the
    /// coordinates of a grid.
    pub attached: bool,
    /// Sum duplicate entries, or keep them for a graph with parallel edges. Generators make no duplicates,
    /// and a binary file holds none.
    pub duplicates: Duplicates,
    /// Make rows only of the nodes that the edges of an edge list name: see [`Loaded::ids`].
    pub close_gaps: bool,
    /// The columns of a table of edges, by position or by name. Other kinds of files are refused.
    pub columns: Option<ChosenColumns>,
    /// The index of the first row and column in a list or table of edges: 0, or 1. None stands for 0, with a
    /// note if no line has the index
    /// 0. Other kinds of files are refused, because they define where they count from.
    pub first_index: Option<u32>,
    /// Counts the bytes read, to display progress.
    pub meter: Option<Arc<Meter>>,
}

/// Reads the file or runs the generator that `what` names. A file may have any name that the system allows;
/// all other names are UTF-8.
pub fn load(what: &(impl AsRef<OsStr> + ?Sized)) -> Result<Loaded> {
    load_with(what, &Options::default())
}

/// Reads the file or runs the generator with options: see [`load`].
pub fn load_with(what: &(impl AsRef<OsStr> + ?Sized), options: &Options) -> Result<Loaded> {
    let _span = profile::begin(Phase::Read);
    let what = what.as_ref();
    check(what)?;
    let loaded = Loaded { as_stored: options.as_stored, ..find(what, options)? };
    // A source that stores both triangles is reduced to the lower one here.
    if options.as_stored && loaded.symmetric {
        let matrix = loaded.matrix.lower_triangle().map_err(text::in_file(Path::new(what)))?;
        let stored = matrix.nnz() as u64;
        return Ok(Loaded { matrix, stored, symmetric: false, ..loaded });
    }
    Ok(loaded)
}

/// Returns the mesh that `what` names, if it is a generator whose rows can be made separately.
pub(crate) fn mesh(what: &OsStr) -> Result<Option<generate::Mesh>> {
    match what.to_str().filter(|name| !is_file(what) && catalog::find(name).is_none()) {
        Some(name) => generate::mesh(name),
        None => Ok(None),
    }
}

/// Returns the rows of what `what` names, if it is a generator of equally many entries in each row,
/// which can be made separately.
pub(crate) fn equal_rows(what: &OsStr) -> Result<Option<generate::EqualRows>> {
    match what.to_str().filter(|name| !is_file(what) && catalog::find(name).is_none()) {
        Some(name) => generate::equal_rows(name),
        None => Ok(None),
    }
}

/// Returns the draws of the graph that `what` names, if it is a generator whose matrix consists of draws.
pub(crate) fn draws(what: &OsStr) -> Result<Option<generate::Draws>> {
    match what.to_str().filter(|name| !is_file(what) && catalog::find(name).is_none()) {
        Some(name) => generate::draws(name),
        None => Ok(None),
    }
}

fn find(what: &OsStr, options: &Options) -> Result<Loaded> {
    if what == STDIN {
        return detect::read_stdin(options);
    }
    if is_file(what) {
        return detect::read(Path::new(what), options);
    }
    let name = what.to_str().ok_or_else(|| unknown(what))?;
    if let Some(entry) = catalog::find(name) {
        let archive = entry.fetched().ok_or_else(|| not_fetched(entry))?;
        let pinned = |bytes: &[u8]| pinned::check(&archive, bytes, entry);
        let loaded = cache::load(&archive, options, pinned)
            .and_then(|loaded| compare(entry, &archive, &loaded).map(|()| loaded));
        return loaded.map_err(|error| match error {
            damaged @ (Error::Io { .. }
            | Error::Parse { .. }
            | Error::Malformed { .. }
            | Error::Fetch(FetchError::Changed { .. })) => {
                Error::Fetch(FetchError::Unreadable { name: entry.name.clone(), source: Box::new(damaged) })
            }
            other => other,
        });
    }
    generate::generate_with(name, options.attached).unwrap_or_else(|| Err(unknown(what)))
}

/// Refuses a matrix whose sizes differ from the catalog's: its archive need not come from `solver fetch`.
fn compare(entry: &catalog::Entry, archive: &Path, loaded: &Loaded) -> Result<()> {
    let actual = (loaded.matrix.rows() as u64, loaded.matrix.cols() as u64, loaded.stored);
    let listed = (entry.rows, entry.cols, entry.stored);
    if actual == listed {
        return Ok(());
    }
    let sizes = |(rows, cols, stored)| format!("{rows} x {cols} with {stored} stored entries");
    Err(Error::Malformed {
        path: archive.to_owned(),
        part: "the matrix".to_owned(),
        expected: format!("{}, as the catalog says", sizes(listed)),
        found: sizes(actual),
    })
}

/// Checks whether a path exists and is not a folder: unpacking F1.tar.gz leaves a folder with the name F1.
pub(crate) fn is_file(what: &OsStr) -> bool {
    Path::new(what).exists() && !Path::new(what).is_dir()
}

/// Checks that the file, fetched matrix or generator exists, without opening or running it.
pub(crate) fn check(what: &(impl AsRef<OsStr> + ?Sized)) -> Result<()> {
    let what = what.as_ref();
    if what == STDIN || is_file(what) {
        return Ok(());
    }
    let name = what.to_str().ok_or_else(|| unknown(what))?;
    if let Some(entry) = catalog::find(name) {
        return entry.fetched().map(drop).ok_or_else(|| not_fetched(entry));
    }
    if generate::exists(name) { Ok(()) } else { Err(unknown(what)) }
}

/// Returns the matrix of the catalog that must be fetched before `what` can be read; `None` if `what` exists.
/// Any other missing matrix is an error.
pub(crate) fn missing(what: &OsStr) -> Result<Option<&'static catalog::Entry>> {
    match check(what) {
        Err(Error::Fetch(FetchError::NotFetched { name, .. })) => catalog::get(&name).map(Some),
        checked => checked.map(|()| None),
    }
}

/// Returns `what` as a name for the catalog or a generator, unless it is a file or standard input.
fn name_of(what: &OsStr) -> Option<&str> {
    what.to_str().filter(|name| *name != STDIN && !is_file(what))
}

/// Returns the exact number of rows and the exact or approximate number of entries of a matrix, if they are
/// known before it is loaded. Refuses a matrix that [`load`] refuses, if the head of the file or the
/// description of the generator shows the fault. Reads no more than the heads of a file and of the arrays in
/// it, and no data from a pipe.
pub fn preview(what: &(impl AsRef<OsStr> + ?Sized)) -> Result<Option<(u64, u64)>> {
    let what = what.as_ref();
    let Some(name) = name_of(what) else {
        let path = Path::new(what);
        return detect::check(path).map(|()| detect::size(path));
    };
    match catalog::find(name) {
        Some(entry) => {
            entry.fetched().map_or(Ok(()), |archive| detect::check(&archive))?;
            Ok(Some((entry.rows, entry.entries)))
        }
        None => generate::size(name),
    }
}

/// What ranks read or make together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// The matrix of a linear system.
    System,
    /// A graph to rank.
    Graph,
    /// A Markov chain.
    Chain,
}

/// Returns whether ranks can share the work of reading or making what `what` names, so that none of them has
/// the whole. The content of a text file may show later that one rank must read all of it.
pub(crate) fn is_shared_by_ranks(what: &OsStr, kind: Shared) -> Result<bool> {
    let Some(name) = name_of(what) else {
        return Ok(detect::is_shared(Path::new(what), kind != Shared::System));
    };
    if catalog::find(name).is_some() {
        return Ok(false);
    }
    Ok(match kind {
        Shared::System => generate::mesh(name)?.is_some(),
        Shared::Graph => generate::is_drawn(name)?,
        Shared::Chain => generate::is_drawn(name)? || generate::equal_rows(name)?.is_some(),
    })
}

/// Returns rows and entries as [`preview`] does, or else an estimate for a generator; `None` for a file whose
/// head does not show them.
pub(crate) fn estimate(what: &str) -> Result<Option<(u64, u64)>> {
    match preview(what)? {
        None if !is_file(OsStr::new(what)) => generate::estimate(what),
        known => Ok(known),
    }
}

/// Returns the real matrix that the generator `what` imitates, if it imitates one.
pub(crate) fn imitated(what: &(impl AsRef<OsStr> + ?Sized)) -> Option<&'static catalog::Entry> {
    let name = name_of(what.as_ref()).filter(|name| catalog::find(name).is_none())?;
    generate::imitated(name)
}

/// Returns the error for a matrix that has not been fetched, with the alternatives.
pub(crate) fn not_fetched(entry: &catalog::Entry) -> Error {
    let stand_in = entry.stand_in.as_ref().filter(|stand_in| generate::exists(stand_in));
    let ignored = match files::cache_folder(catalog::FOLDER) {
        Err(NoCache::Unsafe(reason)) => Some(reason),
        _ => None,
    };
    Error::Fetch(FetchError::NotFetched {
        name: entry.name.clone(),
        rows: entry.rows,
        entries: entry.entries,
        bytes: entry.download_estimate(),
        stand_in: stand_in.cloned(),
        ignored,
    })
}

fn unknown(what: &OsStr) -> Error {
    let path = Path::new(what);
    if path.is_dir() {
        let source = std::io::Error::other("it is a folder; name the file in it");
        return Error::Io { action: "read", path: path.to_owned(), source };
    }
    // Names in the catalog and of generators are UTF-8.
    let name = what.to_str().filter(|what| !what.contains(['/', '.']) || what.contains(':'));
    let Some(what) = name else {
        let source = std::io::Error::new(std::io::ErrorKind::NotFound, "there is no such file");
        return Error::Io { action: "read", path: path.to_owned(), source };
    };
    let name = what.split(':').next().unwrap_or(what);
    let names =
        catalog::entries().iter().map(|e| e.name.as_str()).chain(generate::forms().map(|(name, _)| name));
    Error::UnknownMatrix { what: what.to_owned(), near: did_you_mean(&nearest(name, names)) }
}
