//! The banner and the size line, with the comments between them.

use super::notes::Notes;
use crate::error::Result;
use crate::source::text::{Fault, Text};
use crate::source::tokens::{BlankTokens, signed_whole};

/// Which entries stand in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Those that are not zero, with their indices.
    Coordinate,
    /// All of them, column after column.
    Array,
}

/// What the value of an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Real,
    Integer,
    /// A real and an imaginary part; the second must be 0.
    Complex,
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

impl Symmetry {
    /// The sign that an entry takes across the diagonal, none where it says nothing of the one there.
    pub fn mirror(self) -> Option<f64> {
        match self {
            Symmetry::General => None,
            Symmetry::Symmetric => Some(1.0),
            Symmetry::Skew => Some(-1.0),
        }
    }
}

/// All that comes before the entries.
#[derive(Debug)]
pub(super) struct Header {
    pub format: Format,
    pub field: Field,
    pub symmetry: Symmetry,
    pub rows: usize,
    pub cols: usize,
    /// Entries that the size line announces; in an array they follow from the sizes.
    pub entries: u64,
    /// Where the entries begin in the file.
    pub body: usize,
    /// What is noticed about the entries themselves.
    pub notes: Notes,
}

/// Reads the banner and the size line.
pub(super) fn read(text: Text) -> Result<Header> {
    let blanks = text.bytes.len() - text.bytes.trim_ascii_start().len();
    let mut line = Line { text, tokens: BlankTokens::new(text.bytes, blanks) };
    let (format, field, symmetry) = read_banner(&mut line)?;
    if !line.tokens.seek_line(b"%") {
        let expected = match format {
            Format::Coordinate => "the size line: numbers of rows, columns and entries",
            Format::Array => "the size line: numbers of rows and columns",
        };
        return Err(text.error(Fault::new(text.bytes.len(), expected)));
    }
    let first = line.tokens.at;
    let rows = line.index("the number of rows")?;
    let cols = line.index("the number of columns")?;
    let announced = if format == Format::Coordinate { line.size("the number of entries")? } else { 0 };
    refuse_lis(&mut line)?;
    line.finish()?;
    if symmetry != Symmetry::General && rows != cols {
        let found = Some(format!("{rows} rows and {cols} columns"));
        let expected = "as many rows as columns, as the banner says that the matrix is symmetric".to_owned();
        return Err(text.error(Fault { at: first, expected, found }));
    }
    let (n, m) = (rows as u64, cols as u64);
    let entries = match (format, symmetry) {
        (Format::Coordinate, _) => announced,
        (Format::Array, Symmetry::General) => n * m,
        (Format::Array, Symmetry::Symmetric) => n * (n + 1) / 2,
        (Format::Array, Symmetry::Skew) => n * n.saturating_sub(1) / 2,
    };
    let body = line.tokens.at;
    Ok(Header { format, field, symmetry, rows, cols, entries, body, notes: Notes::new() })
}

/// Reads the first word of the banner. It is known without its second percent sign too, as some files have it.
fn read_name(line: &mut Line) -> Result<()> {
    let at = line.tokens.at;
    let name = line.word().1.strip_prefix('%');
    let known =
        name.is_some_and(|name| name.strip_prefix('%').unwrap_or(name).eq_ignore_ascii_case("matrixmarket"));
    let expected = "a first line that begins with %%MatrixMarket";
    if known { Ok(()) } else { Err(line.text.error(Fault::new(at, expected))) }
}

fn read_banner(line: &mut Line) -> Result<(Format, Field, Symmetry)> {
    let text = line.text;
    read_name(line)?;
    line.choose("the object 'matrix'", |word| match word {
        "matrix" => Ok(Some(())),
        "vector" => {
            Err(text.unsupported(
                "the object 'vector'",
                "write it as 'matrix array real general', with the number of rows and 1 on the size line, then a value \
                 on each line",
            ))
        }
        _ => Ok(None),
    })?;
    let format = line.choose("the format 'coordinate' or 'array'", |word| match word {
        "coordinate" => Ok(Some(Format::Coordinate)),
        "array" => Ok(Some(Format::Array)),
        _ => Ok(None),
    })?;
    let what = match format {
        Format::Coordinate => "the field 'real', 'integer', 'pattern' or 'complex'",
        Format::Array => "the field 'real', 'integer' or 'complex', the three that an array can have",
    };
    let field = line.choose(what, |word| match (word, format) {
        ("real", _) => Ok(Some(Field::Real)),
        // scipy's name for integers without a sign.
        ("integer" | "unsigned-integer", _) => Ok(Some(Field::Integer)),
        ("complex", _) => Ok(Some(Field::Complex)),
        ("pattern", Format::Coordinate) => Ok(Some(Field::Pattern)),
        _ => Ok(None),
    })?;
    let what = match field {
        Field::Pattern => "the symmetry 'general' or 'symmetric', the two that a pattern can have",
        _ => "the symmetry 'general', 'symmetric', 'skew-symmetric' or 'hermitian'",
    };
    let symmetry = line.choose(what, |word| match (word, field) {
        ("general", _) => Ok(Some(Symmetry::General)),
        ("symmetric", _) => Ok(Some(Symmetry::Symmetric)),
        (_, Field::Pattern) => Ok(None),
        ("skew-symmetric", _) => Ok(Some(Symmetry::Skew)),
        // Without imaginary parts the conjugate is the number itself.
        ("hermitian", _) => Ok(Some(Symmetry::Symmetric)),
        _ => Ok(None),
    })?;
    line.finish()?;
    Ok((format, field, symmetry))
}

/// Two more numbers on the size line say, in the files of Lis, that vectors follow the entries.
fn refuse_lis(line: &mut Line) -> Result<()> {
    let rest = line.tokens.at;
    let more = [line.tokens.word().1, line.tokens.word().1];
    line.tokens.at = rest;
    if more.iter().any(|word| signed_whole(word).is_none()) {
        return Ok(());
    }
    Err(line.text.unsupported(
        "a size line of five numbers (Lis: a right-hand side after the entries)",
        "leave the last two numbers and the lines after the entries out; the right-hand side can be a file of its own",
    ))
}

/// A place within a line of the header.
struct Line<'a> {
    text: Text<'a>,
    tokens: BlankTokens<'a>,
}

impl<'a> Line<'a> {
    /// The next word and its place; empty at the end of the line, and for a word that is no text.
    fn word(&mut self) -> (usize, &'a str) {
        let (at, word) = self.tokens.word();
        (at, std::str::from_utf8(word).unwrap_or(""))
    }

    /// The meaning of the next word, whatever its case.
    fn choose<T>(&mut self, expected: &str, meaning: impl FnOnce(&str) -> Result<Option<T>>) -> Result<T> {
        let (at, word) = self.word();
        let meaning = meaning(&word.to_ascii_lowercase())?;
        meaning.ok_or_else(|| self.text.error(Fault::new(at, expected)))
    }

    fn size(&mut self, what: &str) -> Result<u64> {
        let (at, word) = self.tokens.word();
        signed_whole(word).ok_or_else(|| self.text.error(Fault::new(at, what)))
    }

    /// A number of rows or columns, which 32-bit indices must be able to count.
    fn index(&mut self, what: &str) -> Result<usize> {
        self.tokens.skip_blanks();
        let at = self.tokens.at;
        let value = self.size(what)?;
        if value > u64::from(u32::MAX) {
            return Err(self.text.error(Fault::new(at, format!("{what}, at most {}", u32::MAX))));
        }
        Ok(value as usize)
    }

    /// Moves to the next line; there must be nothing more on this one but a comment.
    fn finish(&mut self) -> Result<()> {
        self.tokens.finish_line(b"%").map_err(|fault| self.text.error(*fault))
    }
}
