//! Detects the kind of a file from its content, never from its name. The exception is the bit stream of
//! WebGraph, which cannot be decoded without the `.properties` file next to it.

use super::head::{HEAD, Head, MAX_HEAD};
use super::passing::Take;
use super::text::{Text, in_file, without_mark};
use super::{
    Loaded, Options, archive, ascii, attached, binary, column, edges, gzip, harwell, kinds, market, metis,
    mmap, named, npy, npz, pajek, table, webgraph,
};
use crate::error::{Error, Result};
use crate::format::Dense;
use std::path::Path;

/// A kind of file that holds a matrix.
struct Kind {
    name: &'static str,
    /// Checks whether a file with this content is of this kind.
    recognises: fn(Text) -> bool,
    /// Reads a file of this kind.
    read: fn(Text, &Options) -> Result<Loaded>,
}

const EDGES: Kind = Kind { name: kinds::EDGES, recognises: edges::recognises, read: edges::read };
const TABLE: Kind = Kind { name: kinds::TABLE, recognises: table::recognises, read: table::read };
const WEBGRAPH: Kind = Kind { name: kinds::WEBGRAPH, recognises: webgraph::recognises, read: webgraph::read };

/// All kinds; the first one that recognises a file reads it.
const KINDS: &[Kind] = &[
    Kind {
        name: kinds::BINARY,
        recognises: |text| binary::is_binary(text.bytes),
        read: |text, options| binary::read_with(text.path, text.bytes, options),
    },
    Kind { name: kinds::MARKET, recognises: market::recognises, read: market::read_text },
    Kind { name: kinds::NPY, recognises: npy::recognises, read: npy::read },
    Kind { name: kinds::NPZ, recognises: npz::recognises, read: npz::read },
    Kind {
        name: kinds::TAR,
        recognises: archive::recognises,
        read: |text, options| archive::read(text, options, is_matrix, parse),
    },
    Kind { name: kinds::HARWELL, recognises: harwell::recognises, read: harwell::read },
    WEBGRAPH,
    Kind { name: kinds::PAJEK, recognises: pajek::recognises, read: pajek::read },
    Kind { name: kinds::ASCII, recognises: ascii::recognises, read: ascii::read },
    Kind { name: kinds::NAMED, recognises: named::recognises, read: named::read },
    Kind { name: kinds::METIS, recognises: metis::recognises, read: metis::read },
    EDGES,
    TABLE,
];

/// Kinds of files that are known but not supported: first bytes, description, and advice.
const NOT_READ: &[(&[u8], &str, &str)] = &[
    (b"BZh", "a file compressed with bzip2", "unpack it with bunzip2"),
    (b"\xfd7zXZ", "a file compressed with xz", "unpack it with unxz"),
    (b"\x28\xb5\x2f\xfd", "a file compressed with zstd", "unpack it with unzstd"),
    (b"7z\xbc\xaf", "a 7z archive", "unpack it with 7z"),
    (b"\x89HDF", "an HDF5 file", "save the matrix with scipy.sparse.save_npz or scipy.io.mmwrite"),
    (
        b"MATLAB 5.0",
        "a MATLAB file",
        "save the matrix with mmwrite, or from SciPy with scipy.sparse.save_npz",
    ),
];

/// Bytes at the start of a file of unknown kind that the error message shows.
const SHOWN: usize = 32;

/// Reads the file at `path`.
pub(super) fn read(path: &Path, options: &Options) -> Result<Loaded> {
    let parse = |bytes: &[u8]| parse(path, bytes, options);
    mmap::with_metered(path, options.meter.as_deref(), parse)
        .map(|loaded| loaded.with_coordinates_next_to(path, options))
        .map_err(in_file(path))
}

/// Reads standard input to its end.
pub(super) fn read_stdin(options: &Options) -> Result<Loaded> {
    let path = Path::new("<stdin>");
    let bytes = mmap::stdin(path, options.meter.as_deref()).map_err(in_file(path))?;
    parse(path, &bytes, options)
}

/// Refuses a file if no kind recognises its head; reads no more than the head. Only regular files are opened.
pub(super) fn check(path: &Path) -> Result<()> {
    if !path.is_file() || webgraph::is_named(path) {
        return Ok(());
    }
    mmap::with(path, |bytes| known_head(Text { path, bytes, meter: None, lines: 0 }).map(drop))
        .map_err(in_file(path))
}

/// Returns the numbers of rows and entries that a file announces; none if its kind announces none, or
/// if the file has a fault.
pub(super) fn size(path: &Path) -> Option<(u64, u64)> {
    if !path.is_file() || webgraph::is_named(path) {
        return None;
    }
    let announced = |bytes: &[u8]| {
        let file = Text { path, bytes, meter: None, lines: 0 };
        let head = known_head(file)?;
        let head = Text { bytes: head.bytes(), ..file };
        Ok(match kind_of(head) {
            Some(kinds::BINARY) if binary::is_binary(bytes) => binary::size(bytes),
            Some(kinds::MARKET) => market::announced(head),
            Some(kinds::NPZ) => npz::size(file),
            _ => None,
        })
    };
    mmap::with(path, announced).ok().flatten()
}

/// Returns whether ranks can share the reading of a file, so that none of them has the whole: of a `graph`,
/// or of another matrix. A file whose content shows this only later counts as shared.
pub(super) fn is_shared(path: &Path, graph: bool) -> bool {
    if webgraph::is_named(path) {
        return graph;
    }
    let kind = |bytes: &[u8]| {
        let file = Text { path, bytes, meter: None, lines: 0 };
        let head = known_head(file)?;
        let head = Text { bytes: head.bytes(), ..file };
        Ok(match kind_of(head) {
            Some(kinds::BINARY) => !gzip::is_gzip(bytes),
            Some(kinds::MARKET) => market::announced(head).is_some(),
            Some(kinds::EDGES | kinds::TABLE) => graph,
            _ => false,
        })
    };
    path.is_file() && mmap::with(path, kind).unwrap_or(false)
}

/// Parses a file that is already in memory, compressed with gzip or not. `path` appears in error messages;
/// for a kind that consists of several files, it locates the other files.
pub fn parse(path: &Path, bytes: &[u8], options: &Options) -> Result<Loaded> {
    let file = Text { path, bytes, meter: options.meter.as_deref(), lines: 0 };
    if webgraph::is_named(path) {
        return WEBGRAPH.read(file, options).map_err(in_file(path));
    }
    if options.columns.is_some() {
        return unpacked(file, Head::of(file, HEAD)?, |text| read_table(text, options));
    }
    let head = known_head(file).map_err(in_file(path))?;
    if let Some(edges) = unpack_edges(file, options).map_err(in_file(path))? {
        return Ok(edges);
    }
    unpacked(file, head, |text| match recognise(text) {
        Some(kind) => kind.read(text, options),
        None => Err(unknown(text)),
    })
}

/// Reads a table with the columns that the user named.
fn read_table(text: Text, options: &Options) -> Result<Loaded> {
    /// Kinds of files that a table may be mistaken for, because their lines are numbers. The
    /// other kinds are unmistakable.
    const LINES_OF_NUMBERS: [&str; 5] =
        [kinds::EDGES, kinds::TABLE, kinds::METIS, kinds::ASCII, kinds::NAMED];
    let other = recognise(text).map(|kind| kind.name).filter(|name| !LINES_OF_NUMBERS.contains(name));
    match other {
        None => TABLE.read(text, options),
        Some(kind) => Err(Error::BadSetting {
            setting: "columns",
            value: text.path.display().to_string(),
            reason: format!("only a table of edges has named columns, and this file is of the kind {kind}"),
        }),
    }
}

/// Parses a file as the given one of the [`kinds`], without detection.
pub fn parse_as(kind: &str, path: &Path, bytes: &[u8], options: &Options) -> Result<Loaded> {
    let names = || kinds::kinds().collect::<Vec<_>>().join(", ");
    let kind = KINDS.iter().find(|other| other.name == kind).ok_or_else(|| Error::BadSetting {
        setting: "kind",
        value: kind.to_owned(),
        reason: format!("the kinds of files are {}", names()),
    })?;
    let file = Text { path, bytes, meter: options.meter.as_deref(), lines: 0 };
    unpacked(file, Head::of(file, HEAD)?, |text| kind.read(text, options))
}

/// Reads dense columns, such as right-hand sides, from a NumPy array, a Matrix Market file of
/// vectors, or numbers as text.
pub fn read_dense(path: &Path) -> Result<Dense> {
    mmap::with(path, |bytes| parse_dense(path, bytes))
}

/// Parses dense columns from a file that is already in memory.
pub fn parse_dense(path: &Path, bytes: &[u8]) -> Result<Dense> {
    parse_with(path, bytes, npy::read_vectors)
}

/// Reads the file at `path` as dense columns. The numbers of several columns in a NumPy array
/// may be NaN or infinite.
pub(super) fn read_columns(path: &Path) -> Result<Dense> {
    mmap::with(path, |bytes| parse_with(path, bytes, npy::read_columns))
}

/// Parses dense columns; `array` reads those of a NumPy array.
fn parse_with(path: &Path, bytes: &[u8], array: fn(Text) -> Result<Dense>) -> Result<Dense> {
    unpacked_vectors(path, bytes, |text| match text {
        text if npy::recognises(text) => array(text),
        text if column::recognises(text) => column::read(text),
        text => attached::read_vectors(text),
    })
}

/// Passes the numbers of dense columns on in portions; those of several columns in a NumPy array may be NaN
/// or infinite if `columns` is set. Returns rows and columns.
pub(super) fn pass_dense(path: &Path, columns: bool, take: Take<'_>) -> Result<(usize, usize)> {
    mmap::with(path, |bytes| {
        unpacked_vectors(path, bytes, |text| match text {
            text if npy::recognises(text) => npy::pass(text, columns, take),
            text if column::recognises(text) => column::pass(text, take),
            text => market::pass_columns(text, take),
        })
    })
}

/// Decompresses the file if necessary and calls `read`, if the file may contain vectors.
fn unpacked_vectors<T>(path: &Path, bytes: &[u8], read: impl FnOnce(Text) -> Result<T>) -> Result<T> {
    let file = Text { path, bytes, meter: None, lines: 0 };
    let head = Head::of(file, HEAD)?;
    let start = Text { bytes: head.bytes(), ..file };
    if !npy::recognises(start) && !market::recognises(start) && !column::recognises(start) {
        return Err(attached::no_vectors(start));
    }
    unpacked(file, head, read)
}

/// Returns a head of the file that some kind recognises. The head grows if the file begins with
/// blank lines and comments.
fn known_head(file: Text<'_>) -> Result<Head<'_>> {
    let mut size = HEAD;
    loop {
        let head = Head::of(file, size)?;
        let text = Text { path: file.path, bytes: head.bytes(), meter: None, lines: 0 };
        if recognise(text).is_some() {
            return Ok(head);
        }
        if gzip::is_gzip(file.bytes) && gzip::is_gzip(text.bytes) {
            return Err(packed_twice(text));
        }
        if head.complete || head.content() >= HEAD {
            return Err(unknown(text));
        }
        if size == MAX_HEAD {
            let start = format!("its first {} MiB are blank lines and comments", MAX_HEAD >> 20);
            return Err(unknown_kind(text, start));
        }
        size = (4 * size).min(MAX_HEAD);
    }
}

/// Reads a long edge list while it is decompressed, because its text takes several times the graph's memory.
/// Returns `None` if the file is of another kind, or if only the complete text shows which kind it is.
fn unpack_edges(file: Text, options: &Options) -> Result<Option<Loaded>> {
    if !gzip::is_gzip(file.bytes) {
        return Ok(None);
    }
    let Some(head) = gzip::first_lines(file)? else { return Ok(None) };
    let head = Text { path: file.path, bytes: without_mark(&head), meter: None, lines: 0 };
    let Some(kind) = recognise(head).filter(|kind| kind.name == kinds::EDGES) else { return Ok(None) };
    kind.check_first_index(head, options)?;
    let loaded = edges::read_unpacking(file, head, options)?;
    Ok(loaded.map(|loaded| Loaded { kind: Some(kinds::EDGES), ..loaded }))
}

/// Decompresses the file if necessary and calls `read`; every error names the file.
fn unpacked<T>(file: Text, head: Head, read: impl FnOnce(Text) -> Result<T>) -> Result<T> {
    let failed = in_file(file.path);
    if !gzip::is_gzip(file.bytes) {
        return read(Text { bytes: without_mark(file.bytes), ..file }).map_err(failed);
    }
    if gzip::is_gzip(head.bytes()) {
        return Err(packed_twice(file));
    }
    if head.complete {
        return read(Text { bytes: head.bytes(), ..file }).map_err(failed);
    }
    let most = npy::length(head.bytes()).or_else(|| market::most(head.bytes())).unwrap_or(u64::MAX);
    let array = npy::length(head.bytes()).is_some();
    drop(head);
    // One byte beyond the limit shows that the file is too long.
    let bytes = gzip::decompress(file, most.saturating_add(1)).map_err(&failed)?;
    // For an array, the reader's own error is more precise.
    if bytes.len() as u64 > most && !array {
        return Err(failed(gzip::unpacks_to_more(file)));
    }
    read(Text { bytes: without_mark(&bytes), ..file }).map_err(failed)
}

/// Returns the error for nested gzip files. Some gzip files contain themselves, so unpacking
/// must end somewhere.
fn packed_twice(text: Text) -> Error {
    text.unsupported("a gzip file within a gzip file", "unpack it once with gunzip")
}

impl Kind {
    fn read(&self, text: Text, options: &Options) -> Result<Loaded> {
        self.check_first_index(text, options)?;
        let mut loaded = (self.read)(text, options)?;
        loaded.kind.get_or_insert(self.name);
        Ok(loaded)
    }
}

impl Kind {
    /// Refuses the setting of a first index that is not 0 or 1, or for a kind of file that defines it.
    fn check_first_index(&self, text: Text, options: &Options) -> Result<()> {
        let Some(first) = options.first_index else { return Ok(()) };
        if first > 1 {
            return Err(Error::setting("first-index", first, "it must be 0 or 1"));
        }
        if kinds::is_list(self.name) || self.name == kinds::TAR {
            return Ok(());
        }
        let (path, kind) = (text.path.display(), self.name);
        let reason = format!(
            "only a list or a table of edges may count from either, and {path} is of the kind {kind}, which defines it"
        );
        Err(Error::setting("first-index", first, reason))
    }
}

fn recognise(text: Text) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| (kind.recognises)(text))
}

/// Returns the name of the kind of a text.
pub(super) fn kind_of(text: Text) -> Option<&'static str> {
    recognise(text).map(|kind| kind.name)
}

/// Checks whether a kind recognises the head of a file.
pub(super) fn is_known(file: Text) -> bool {
    known_head(file).is_ok()
}

/// Checks whether the text is a Matrix Market file.
pub(super) fn is_market(text: Text) -> bool {
    recognise(text).is_some_and(|kind| kind.name == kinds::MARKET)
}

/// Checks whether the text is a matrix, and neither an archive nor a vector.
fn is_matrix(text: Text) -> bool {
    !archive::recognises(text) && recognise(text).is_some() && !attached::is_array(text)
}

/// Returns the error for a file that no kind recognises.
fn unknown(text: Text) -> Error {
    if text.bytes.first() == Some(&b'%') {
        // A file that begins with a comment has most likely lost its banner; the Matrix Market
        // reader reports that.
        return match market::read_text(text, &Options::default()) {
            Err(error) => error,
            Ok(_) => text.unsupported("this file", "begin it with the banner of a Matrix Market file"),
        };
    }
    if let Some((_, what, hint)) = NOT_READ.iter().find(|(magic, ..)| text.bytes.starts_with(magic)) {
        return text.unsupported(what, hint);
    }
    table::unknown_columns(text).unwrap_or_else(|| {
        let uneven = table::uneven_commas(text).map_or(String::new(), |uneven| format!("; {uneven}"));
        unknown_kind(text, start_of(text.bytes) + &uneven)
    })
}

fn unknown_kind(text: Text, start: String) -> Error {
    let names = kinds::kinds().collect::<Vec<_>>().join(", ");
    let known = format!("{names}; plain or compressed with gzip");
    Error::UnknownKind { path: text.path.to_owned(), start, known }
}

/// Describes the first bytes of a file for an error message.
fn start_of(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "it is empty".to_owned();
    }
    let head = &bytes[..bytes.len().min(SHOWN)];
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or(b"").trim_ascii_end();
    let readable =
        std::str::from_utf8(line).is_ok_and(|line| !line.contains(|c: char| c.is_control() && c != '\t'));
    if readable {
        return format!("it begins with '{}'", line.escape_ascii());
    }
    let hex: Vec<String> = head.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("it begins with the bytes {}", hex.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_tried_in_the_order_of_their_names() {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names, kinds::ALL);
    }
}
