//! The banner and the size line, with the comments between them.

use crate::error::{Error, Result};
use crate::source::text::{Fault, Text, ends_word, is_blank};
use memchr::memchr;

/// What stands on an entry line after the two indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Real,
    Integer,
    /// Nothing: every entry is 1.
    Pattern,
}

/// What the entry at (i, j) says of the one at (j, i).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// All that comes before the entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub field: Field,
    pub symmetry: Symmetry,
    pub rows: usize,
    pub cols: usize,
    /// Entries that the size line announces.
    pub entries: u64,
    /// Where the entries begin in the file.
    pub body: usize,
}

/// Reads the banner and the size line.
pub(super) fn read(text: Text) -> Result<Header> {
    let mut banner = Line::at(text, 0);
    let (field, symmetry) = read_banner(&mut banner)?;
    let mut next = banner.end + 1;
    while next < text.bytes.len() {
        let mut line = Line::at(text, next);
        line.skip_blanks();
        if line.at == line.end || text.bytes[line.at] == b'%' {
            next = line.end + 1;
            continue;
        }
        let first = line.at;
        let (rows, cols, entries) = read_size(&mut line)?;
        if symmetry != Symmetry::General && rows != cols {
            let found = Some(format!("{rows} rows and {cols} columns"));
            let expected =
                "as many rows as columns, as the banner says that the matrix is symmetric".to_owned();
            return Err(text.error(Fault { at: first, expected, found }));
        }
        let body = (line.end + 1).min(text.bytes.len());
        return Ok(Header { field, symmetry, rows, cols, entries, body });
    }
    let expected = "the size line: numbers of rows, columns and entries";
    Err(text.error(Fault::new(text.bytes.len(), expected)))
}

fn read_banner(line: &mut Line) -> Result<(Field, Symmetry)> {
    let text = line.text;
    if line.blank_at(0) || !line.word().1.eq_ignore_ascii_case("%%matrixmarket") {
        let expected = "a first line that begins with %%MatrixMarket";
        return Err(text.error(Fault::new(0, expected)));
    }
    line.choose("the object 'matrix'", |word| match word {
        "matrix" => Ok(Some(())),
        "vector" => {
            Err(text.unsupported("a Matrix Market vector", "--matrix needs a file with the object 'matrix'"))
        }
        _ => Ok(None),
    })?;
    line.choose("the format 'coordinate'", |word| match word {
        "coordinate" => Ok(Some(())),
        "array" => Err(text.unsupported(
            "the dense 'array' format",
            "write the matrix in the 'coordinate' format, as scipy.io.mmwrite does for a sparse matrix",
        )),
        _ => Ok(None),
    })?;
    let field = line.choose("the field 'real', 'integer' or 'pattern'", |word| match word {
        "real" => Ok(Some(Field::Real)),
        // scipy's name for integers without a sign.
        "integer" | "unsigned-integer" => Ok(Some(Field::Integer)),
        "pattern" => Ok(Some(Field::Pattern)),
        "complex" => Err(text.unsupported(
            "the field 'complex'",
            "only real, integer and pattern matrices are read; write the real part, or the equivalent real \
             system of twice the size",
        )),
        _ => Ok(None),
    })?;
    let what = match field {
        Field::Pattern => "the symmetry 'general' or 'symmetric', the two that a pattern can have",
        _ => "the symmetry 'general', 'symmetric', 'skew-symmetric' or 'hermitian'",
    };
    let symmetry = line.choose(what, |word| match (word, field) {
        ("general", _) => Ok(Some(Symmetry::General)),
        ("symmetric", _) => Ok(Some(Symmetry::Symmetric)),
        ("skew-symmetric", Field::Real | Field::Integer) => Ok(Some(Symmetry::Skew)),
        // Without imaginary parts the conjugate is the number itself.
        ("hermitian", Field::Real | Field::Integer) => Ok(Some(Symmetry::Symmetric)),
        _ => Ok(None),
    })?;
    line.finish()?;
    Ok((field, symmetry))
}

fn read_size(line: &mut Line) -> Result<(usize, usize, u64)> {
    let rows = line.size("the number of rows")?;
    let cols = line.size("the number of columns")?;
    let entries = line.size("the number of entries")?;
    line.finish()?;
    let limit = u32::MAX as usize;
    for (what, value) in [("the number of rows", rows), ("the number of columns", cols)] {
        if value > limit as u64 {
            let place = "a 32-bit index";
            return Err(Error::TooLarge { what, value: value.into(), limit: limit as u128, place });
        }
    }
    Ok((rows as usize, cols as usize, entries))
}

/// A place within one line.
struct Line<'a> {
    text: Text<'a>,
    at: usize,
    /// The newline, or the end of the file.
    end: usize,
}

impl<'a> Line<'a> {
    fn at(text: Text<'a>, start: usize) -> Line<'a> {
        let end = memchr(b'\n', &text.bytes[start..]).map_or(text.bytes.len(), |length| start + length);
        Line { text, at: start, end }
    }

    fn blank_at(&self, at: usize) -> bool {
        self.text.bytes.get(at).is_some_and(|&byte| is_blank(byte))
    }

    fn skip_blanks(&mut self) {
        while self.at < self.end && self.blank_at(self.at) {
            self.at += 1;
        }
    }

    /// The next word and its place; empty at the end of the line, and for a word that is no text.
    fn word(&mut self) -> (usize, &'a str) {
        self.skip_blanks();
        let start = self.at;
        let rest = &self.text.bytes[start..self.end];
        let length = rest.iter().position(|&byte| ends_word(byte)).unwrap_or(rest.len());
        self.at += length;
        (start, std::str::from_utf8(&rest[..length]).unwrap_or(""))
    }

    /// The meaning of the next word, whatever its case.
    fn choose<T>(&mut self, expected: &str, meaning: impl FnOnce(&str) -> Result<Option<T>>) -> Result<T> {
        let (at, word) = self.word();
        let meaning = meaning(&word.to_ascii_lowercase())?;
        meaning.ok_or_else(|| self.text.error(Fault::new(at, expected)))
    }

    fn size(&mut self, what: &str) -> Result<u64> {
        let (at, word) = self.word();
        word.parse().map_err(|_| self.text.error(Fault::new(at, what)))
    }

    fn finish(&mut self) -> Result<()> {
        self.skip_blanks();
        if self.at == self.end { Ok(()) } else { Err(self.text.error(Fault::new(self.at, "end of line"))) }
    }
}
