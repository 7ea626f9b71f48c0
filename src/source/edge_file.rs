//! Lists and tables of edges between ids that are read in portions, so that a process can pass the edges on
//! without having all of them.
//!
//! A first reading finds the ids. A file with a fault, or one that may be of another kind, is left to the
//! reader of whole files, which reads it or reports the fault.

use super::graph::{Edges, Layout, Lines, locate_sum, parse_piece};
use super::ids::{Collected, Seen};
use super::market::stream::{AT_ONCE, Entry, EntryFile};
use super::mmap::{self, Version};
use super::portions::Portions;
use super::table::{self, Rows};
use super::text::{Text, check_rows, in_file, without_mark};
use super::tokens::{Scan, pieces};
use super::{detect, direction, edges, gzip, is_file, kinds, webgraph};
use crate::error::{Error, Result};
use crate::observe::Meter;
use crate::parallel::run_all;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes of text that are parsed at once.
const TEXT: usize = 4 << 20;
/// The phases of the meter, one for each reading.
const PHASES: [&str; 3] = ["finding the vertices of", "counting the edges of", "reading"];

/// A list or a table of edges between ids.
pub(crate) struct EdgeFile<'a> {
    path: PathBuf,
    /// Counts the bytes read.
    meter: &'a Meter,
    format: Format,
    /// Number of vertices.
    pub vertices: usize,
    /// The ids, if they have gaps.
    seen: Option<Seen>,
    /// Notes on choices that the reader made.
    pub notes: Vec<String>,
    version: Option<Version>,
}

/// The place and the format of the lines with edges.
#[derive(Clone, Copy)]
struct Format {
    packed: bool,
    /// The offset of the first line in the text.
    start: usize,
    lines: Kind,
}

impl Format {
    fn portions<'a>(&self, file: Text<'a>) -> Portions<'a> {
        match self.packed {
            true => Portions::unpacking(file, self.start),
            false => Portions::of(Text { bytes: without_mark(file.bytes), ..file }, self.start).at_most(TEXT),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    List(Layout),
    Table(Rows),
}

impl Lines for Kind {
    fn weighted(&self) -> bool {
        match self {
            Kind::List(layout) => layout.weighted(),
            Kind::Table(rows) => rows.weighted(),
        }
    }

    fn both(&self) -> bool {
        match self {
            Kind::List(layout) => layout.both(),
            Kind::Table(rows) => rows.both(),
        }
    }

    fn first(&self) -> u32 {
        match self {
            Kind::List(layout) => layout.first(),
            Kind::Table(rows) => rows.first(),
        }
    }

    fn read(&self, text: Text, piece: Range<usize>, edges: &mut Edges) -> Scan<()> {
        match self {
            Kind::List(layout) => layout.read(text, piece, edges),
            Kind::Table(rows) => rows.read(text, piece, edges),
        }
    }
}

/// What the first lines of a file determine.
struct Beginning {
    format: Format,
    notes: Vec<String>,
    /// The number of further lines that the first line announces, if it may hold sizes instead of an edge.
    announced: Option<u64>,
    /// The fewest edges with which the file is surely no graph of another kind.
    fewest: u64,
}

impl Beginning {
    /// Returns `None` if the file is of another kind, or must be read as a whole.
    fn of(file: Text) -> Result<Option<Beginning>> {
        if !gzip::is_gzip(file.bytes) {
            return Beginning::of_text(Text { bytes: without_mark(file.bytes), ..file }, false);
        }
        match gzip::first_lines(file)? {
            Some(lines) => Beginning::of_text(Text { bytes: without_mark(&lines), ..file }, true),
            None => Ok(None),
        }
    }

    fn of_text(text: Text, packed: bool) -> Result<Option<Beginning>> {
        match detect::kind_of(text) {
            // The first lines do not show which columns of a compressed table are read.
            Some(kinds::TABLE) if packed => Ok(as_a_whole(text.path, "it is a compressed table")),
            Some(kinds::TABLE) => {
                let Some((rows, start, notes)) = table::by_ids(text)? else {
                    return Ok(as_a_whole(text.path, "the table has names, or columns of doubtful meaning"));
                };
                let format = Format { packed, start, lines: Kind::Table(rows) };
                Ok(Some(Beginning { format, notes, announced: None, fewest: 0 }))
            }
            Some(kinds::EDGES) => {
                let Some((layout, announced, fewest)) = edges::by_lines(text, packed)? else {
                    let why = match packed {
                        true => {
                            "it is compressed and short, or its first lines have different numbers of words"
                        }
                        false => {
                            "its first lines have different numbers of words, or may begin a METIS graph"
                        }
                    };
                    return Ok(as_a_whole(text.path, why));
                };
                let format = Format { packed, start: 0, lines: Kind::List(layout) };
                let notes = layout.both.then(direction::note).into_iter().collect();
                Ok(Some(Beginning { format, notes, announced, fewest }))
            }
            _ => Ok(None),
        }
    }
}

/// What the first reading has found.
#[derive(Default)]
struct Survey {
    ids: Collected,
    edges: u64,
    first: Option<[u32; 2]>,
    /// The largest id of all edges but the first.
    rest: Option<u32>,
}

impl Survey {
    /// Reads all edges. At a fault, or if the ids are far larger than the file, returns why the
    /// file is read as a whole.
    fn of(file: Text, format: Format) -> Result<std::result::Result<Survey, &'static str>> {
        let portions = format.portions(file);
        portions.begin(PHASES[0]);
        let (mut survey, mut doubt) = (Survey::default(), None);
        let most = Collected::most(file.bytes.len());
        let read = portions.each(|text, start| {
            for (edges, fault) in run_all(pieces(text.bytes, start), |p| parse_piece(text, p, format.lines)) {
                let largest = edges.from.iter().chain(&edges.to).max();
                if fault.is_some() {
                    doubt = Some("it has a fault");
                } else if largest.is_some_and(|id| u64::from(*id) >= most) {
                    doubt = Some("its ids are very large");
                }
                if doubt.is_some() {
                    // Ends the reading.
                    return Err(EntryFile::changed(text.path));
                }
                survey.add(&edges)?;
            }
            Ok(())
        });
        match doubt {
            Some(doubt) => Ok(Err(doubt)),
            None => read.map(|()| Ok(survey)),
        }
    }

    fn add(&mut self, edges: &Edges) -> Result<()> {
        let mut pairs = edges.from.iter().zip(&edges.to).map(|(from, to)| [*from, *to]);
        self.edges += edges.from.len() as u64;
        if let Some(largest) = edges.from.iter().chain(&edges.to).max() {
            self.ids.make_room(*largest)?;
        }
        if self.first.is_none() {
            self.first = pairs.next();
            self.first.iter().flatten().for_each(|id| self.ids.add(*id));
        }
        for [from, to] in pairs {
            self.rest = self.rest.max(Some(from.max(to)));
            self.ids.add(from);
            self.ids.add(to);
        }
        Ok(())
    }

    /// Returns whether the first line holds sizes that fit the edges below it.
    fn begins_with_sizes(&self, announced: Option<u64>, weighted: bool) -> bool {
        let Some([from, to]) = self.first else { return false };
        let nodes = if weighted { from.max(to) } else { from };
        announced.is_some_and(|announced| announced == self.edges - 1)
            && self.rest.is_none_or(|largest| largest <= nodes)
    }
}

/// Returns whether the reader of whole files would fail, too.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Io { .. } | Error::OutOfMemory { .. } => true,
        Error::InFile { fault, .. } => is_final(fault),
        _ => false,
    }
}

/// Logs why a list or a table is left to the reader of whole files.
fn as_a_whole<T>(path: &Path, why: impl Display) -> Option<T> {
    log::info!("{}: the first rank reads the edges as a whole: {why}", path.display());
    None
}

impl<'a> EdgeFile<'a> {
    /// Opens the file that `what` names, and finds the ids; the meter counts the bytes of each reading.
    /// `None` if the reader of whole files must read the file.
    pub(crate) fn open(what: &OsStr, meter: &'a Meter) -> Result<Option<EdgeFile<'a>>> {
        let path = Path::new(what);
        // A pipe can be read only once.
        if !is_file(what) || !path.is_file() || webgraph::is_named(path) {
            return Ok(None);
        }
        let version = Version::of(path).ok();
        let open = |bytes: &[u8]| {
            let file = EdgeFile::of(Text { path, bytes, meter: Some(meter), lines: 0 }, meter)?;
            Ok(file.map(|file| EdgeFile { version, ..file }))
        };
        let opened = match mmap::with(path, open) {
            Err(error) if is_final(&error) => return Err(in_file(path)(error)),
            // The reader of whole files finds a fault again.
            Err(error) => as_a_whole(path, &error),
            Ok(opened) => opened,
        };
        opened.iter().flat_map(|file| &file.notes).for_each(|note| log::info!("{}: {note}", path.display()));
        Ok(opened)
    }

    fn of(file: Text, meter: &'a Meter) -> Result<Option<EdgeFile<'a>>> {
        if !detect::is_known(file) {
            return Ok(None);
        }
        let Some(Beginning { format, notes, announced, fewest }) = Beginning::of(file)? else {
            return Ok(None);
        };
        let survey = match Survey::of(file, format)? {
            Ok(survey) => survey,
            Err(doubt) => return Ok(as_a_whole(file.path, doubt)),
        };
        if survey.edges < fewest {
            return Ok(as_a_whole(file.path, "it is compressed and may be a METIS graph"));
        }
        if survey.begins_with_sizes(announced, format.lines.weighted()) {
            return Ok(as_a_whole(file.path, "its first line may hold sizes"));
        }
        let seen = survey.ids.numbered()?;
        let (vertices, gaps) = (seen.count(), seen.has_gaps());
        let seen = gaps.then_some(seen);
        if let Err(error) = check_rows(vertices, survey.edges) {
            return Ok(as_a_whole(file.path, error));
        }
        Ok(Some(EdgeFile { path: file.path.to_owned(), meter, format, vertices, seen, notes, version: None }))
    }

    /// Returns whether edges have weights.
    pub(crate) fn weighted(&self) -> bool {
        self.format.lines.weighted()
    }

    /// Returns whether each edge leads both ways.
    pub(crate) fn both(&self) -> bool {
        self.format.lines.both()
    }

    /// Returns the ids of the vertices, if they have gaps.
    pub(crate) fn ids(&self) -> Result<Option<Vec<u32>>> {
        self.seen.as_ref().map(Seen::ids).transpose()
    }

    /// Calls `visit` with the sources and targets of all edges, in portions, until it returns an error.
    pub(crate) fn places(&self, visit: impl FnMut(Vec<[u32; 2]>) -> Result<()>) -> Result<()> {
        self.pass(PHASES[1], |ends, _| ends, visit)
    }

    /// Calls `visit` with all edges, in portions, until it returns an error.
    pub(crate) fn entries(&self, visit: impl FnMut(Vec<Entry>) -> Result<()>) -> Result<()> {
        let entry =
            |[row, col]: [u32; 2], weight: Option<f64>| Entry { row, col, value: weight.unwrap_or(1.0) };
        self.pass(PHASES[2], entry, visit)
    }

    /// Returns the error for parallel edges the sum of whose weights overflows f64, with the
    /// line at which it does.
    pub(crate) fn overflow(&self, (row, col): (usize, usize)) -> Error {
        let located: Result<Infallible> = self.with(|portions| {
            let ids = self.ids()?;
            let id = |row: usize| ids.as_ref().map_or(row, |ids| ids[row] as usize);
            Err(locate_sum(portions, self.format.lines, id(row), id(col)))
        });
        let Err(error) = located;
        error
    }

    /// Opens the file again, and refuses it if it has been modified.
    fn with<R>(&self, work: impl FnOnce(Portions) -> Result<R>) -> Result<R> {
        let (path, format) = (&self.path, self.format);
        let open = |bytes: &[u8]| {
            let modified = Version::of(path).ok() != self.version;
            // A change within a tick of the clock of the system leaves the version.
            if modified || gzip::is_gzip(bytes) != format.packed || without_mark(bytes).len() < format.start {
                return Err(EntryFile::changed(path));
            }
            work(format.portions(Text { path, bytes, meter: Some(self.meter), lines: 0 }))
        };
        mmap::with(path, open).map_err(in_file(path))
    }

    /// Returns the row of an id that the first reading has seen.
    fn row(&self, id: u32) -> Option<u32> {
        match &self.seen {
            Some(seen) => seen.number(id),
            None => Some(id).filter(|id| (*id as usize) < self.vertices),
        }
    }

    /// Calls `visit` with what `of_edge` makes of the rows and the weight of each edge, in portions.
    fn pass<T: Send>(
        &self,
        phase: &'static str,
        of_edge: impl Fn([u32; 2], Option<f64>) -> T + Sync,
        mut visit: impl FnMut(Vec<T>) -> Result<()>,
    ) -> Result<()> {
        let of_piece = |text: Text, piece: Range<usize>| {
            let (edges, fault) = parse_piece(text, piece, self.format.lines);
            let mut made = Vec::with_capacity(edges.from.len());
            for (at, (from, to)) in edges.from.iter().zip(&edges.to).enumerate() {
                made.push(of_edge([self.row(*from)?, self.row(*to)?], edges.weights.get(at).copied()));
            }
            fault.is_none().then_some(made)
        };
        self.with(|portions| {
            portions.begin(phase);
            let mut gathered = Vec::new();
            let read_portion = |text: Text<'_>, start| {
                for made in run_all(pieces(text.bytes, start), |piece| of_piece(text, piece)) {
                    gathered.extend(made.ok_or_else(|| EntryFile::changed(&self.path))?);
                }
                Ok(if gathered.len() >= AT_ONCE { std::mem::take(&mut gathered) } else { Vec::new() })
            };
            portions.each_then(
                read_portion,
                |entries| if entries.is_empty() { Ok(()) } else { visit(entries) },
            )?;
            visit(gathered)
        })
    }
}
