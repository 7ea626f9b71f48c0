//! Coordinate files that are read in portions of entries, so that a process can pass the entries on
//! without having all of them.
//!
//! The entries come in the order of the file, plain or compressed. Faults are those of a file that is read at
//! once, with the same messages.

use super::header::{self, Format, Header};
pub(crate) use super::judge::Judge;
pub(crate) use super::lines::Entry;
use super::lines::{Lines, Piece, first_fault, too_many_entries};
use super::{locate, most_bytes, old_line_ends};
use crate::error::{Error, Result};
use crate::observe::Meter;
use crate::parallel::run_all;
use crate::source::head::HEAD;
use crate::source::mmap::{self, Version};
use crate::source::portions::Portions;
use crate::source::text::{Text, check_rows, in_file, without_mark};
use crate::source::tokens::{Scan, pieces};
use crate::source::{detect, gzip, is_file, webgraph};
use std::convert::Infallible;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Entries that are passed on at once, unless the file ends; a portion of text with more adds all of them.
pub(crate) const AT_ONCE: usize = 1 << 17;
/// The phases of the meter: the positions of the entries are read first, and then the entries.
const PHASES: [&str; 2] = ["counting the entries of", "reading"];
/// Bytes of text that are parsed at once.
const TEXT: usize = 4 << 20;

/// A coordinate file in the format Matrix Market.
pub(crate) struct EntryFile<'a> {
    path: PathBuf,
    /// Counts the bytes read.
    meter: &'a Meter,
    /// Numbers of rows and columns.
    pub shape: (usize, usize),
    /// Whether entries have values. If not, every entry is 1.
    pub valued: bool,
    /// The sign of the mirror image of an entry off the diagonal; `None` if there are no mirror images.
    pub mirror: Option<f64>,
    entries: u64,
    version: Option<Version>,
}

impl<'a> EntryFile<'a> {
    /// Opens the file that `what` names; the meter counts the bytes of each pass. `None` if it is another
    /// file, or one whose first lines have a fault: the reader of whole files reads it, or reports the fault.
    pub(crate) fn open(what: &OsStr, meter: &'a Meter) -> Result<Option<EntryFile<'a>>> {
        let path = Path::new(what);
        // A pipe can be read only once.
        if !is_file(what) || !path.is_file() || webgraph::is_named(path) {
            return Ok(None);
        }
        let version = Version::of(path).ok();
        let open = |bytes: &[u8]| {
            let Some((portions, header)) = opened(path, bytes, meter)? else { return Ok(None) };
            if too_many_entries(&portions, &header) {
                return Err(first_fault(&portions, &header));
            }
            check_rows(header.rows, header.entries)?;
            Ok(Some(EntryFile {
                path: path.to_owned(),
                meter,
                shape: (header.rows, header.cols),
                valued: header.valued(),
                mirror: header.symmetry.mirror(),
                entries: header.entries,
                version,
            }))
        };
        mmap::with(path, open).map_err(in_file(path))
    }

    /// Calls `visit` with the rows and columns of all entries, in portions, until it returns an error. If
    /// there are no mirror images, only the rows are read, and each column is given as its row.
    pub(crate) fn places(&self, visit: impl FnMut(Vec<[u32; 2]>) -> Result<()>) -> Result<()> {
        match self.mirror {
            Some(_) => {
                self.pass(PHASES[0], |lines| Ok(lines.position()?.map(|(row, col)| [row, col])), visit)
            }
            None => self.pass(PHASES[0], |lines| Ok(lines.row()?.map(|row| [row, row])), visit),
        }
        .map(drop)
    }

    /// Calls `visit` with all entries, in portions, until it returns an error. Returns the faults and
    /// warnings that result from all entries; [`finish`](Judge::finish) reports them, once no duplicates
    /// have a sum that overflows.
    pub(crate) fn entries(&self, visit: impl FnMut(Vec<Entry>) -> Result<()>) -> Result<Judge> {
        self.pass(PHASES[1], |lines| lines.entry(), visit)
    }

    /// Returns the error for duplicates whose sum overflows f64, with the line at which it does.
    pub(crate) fn overflow(&self, position: (usize, usize)) -> Error {
        let located: Result<Infallible> =
            self.with(|portions, header| Err(locate(&portions, header, self.mirror, position)));
        let Err(error) = located;
        error
    }

    /// Returns the error for a file that is not the same in the second reading.
    pub(crate) fn changed(path: &Path) -> Error {
        mmap::changed(path)
    }

    /// Opens the file again, and refuses it if it has been modified.
    fn with<R>(&self, work: impl FnOnce(Portions, &Header) -> Result<R>) -> Result<R> {
        let path = &self.path;
        let open = |bytes: &[u8]| {
            let same = |header: &Header| {
                (header.rows, header.cols) == self.shape
                    && (header.valued(), header.symmetry.mirror()) == (self.valued, self.mirror)
                    && header.entries == self.entries
            };
            match opened(path, bytes, self.meter)? {
                _ if Version::of(path).ok() != self.version => Err(EntryFile::changed(path)),
                Some((portions, header)) if same(&header) => work(portions, &header),
                _ => Err(EntryFile::changed(path)),
            }
        };
        mmap::with(path, open).map_err(in_file(path))
    }

    /// Reads all entries by `next`, and calls `visit` with portions of them.
    fn pass<T: Send>(
        &self,
        phase: &'static str,
        next: impl Fn(&mut Lines<'_>) -> Scan<Option<T>> + Sync,
        mut visit: impl FnMut(Vec<T>) -> Result<()>,
    ) -> Result<Judge> {
        self.with(|portions, header| {
            portions.begin(phase);
            let (mut gathered, mut read) = (Vec::new(), 0);
            let mut judge = Judge::default();
            let read_portion = |text: Text<'_>, start| {
                let parse = |piece: Piece| {
                    let mut lines = Lines::new(text, header, &piece);
                    let mut entries = Vec::new();
                    while let Some(entry) = next(&mut lines)? {
                        entries.push(entry);
                    }
                    Scan::Ok(entries)
                };
                for entries in run_all(Piece::of(pieces(text.bytes, start)), parse) {
                    let entries = entries.map_err(|_| first_fault(&portions, header))?;
                    read += entries.len() as u64;
                    gathered.extend(entries);
                }
                if read > header.entries {
                    return Err(first_fault(&portions, header));
                }
                judge.note(text, header);
                text.advance(text.bytes.len() - start);
                Ok(if gathered.len() >= AT_ONCE { std::mem::take(&mut gathered) } else { Vec::new() })
            };
            portions.each_then(
                read_portion,
                |entries| if entries.is_empty() { Ok(()) } else { visit(entries) },
            )?;
            if read < header.entries {
                return Err(first_fault(&portions, header));
            }
            visit(gathered).map(|()| judge)
        })
    }
}

/// Returns the portions of text with the entries, and the header; `None` if the file is no coordinate file,
/// or its header is faulty or far longer than usual.
fn opened<'a>(path: &'a Path, bytes: &'a [u8], meter: &'a Meter) -> Result<Option<(Portions<'a>, Header)>> {
    let file = Text { path, bytes, meter: Some(meter), lines: 0 };
    let unpacked;
    let packed = gzip::is_gzip(bytes);
    let text = match packed {
        true => {
            unpacked = match gzip::first_lines(file)? {
                Some(lines) => lines,
                None => gzip::head(file, gzip::PORTION)?,
            };
            Text { bytes: without_mark(&unpacked), ..file }
        }
        false => Text { bytes: without_mark(bytes), ..file },
    };
    let start = Text { bytes: &text.bytes[..text.bytes.len().min(HEAD)], ..text };
    if !detect::is_market(start) || old_line_ends(start.bytes) {
        return Ok(None);
    }
    let Ok(header) = header::read(text) else { return Ok(None) };
    if header.format != Format::Coordinate {
        return Ok(None);
    }
    let portions = match packed {
        true => Portions::unpacking(file, header.body).up_to(most_bytes(&header)),
        false => Portions::of(Text { bytes: without_mark(bytes), ..file }, header.body).at_most(TEXT),
    };
    Ok(Some((portions, header)))
}
