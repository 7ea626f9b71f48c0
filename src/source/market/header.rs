//! The banner and the size line, with the comments between them.

use super::notes::Notes;
use crate::error::Result;
use crate::source::text::{Fault, Text};
use crate::source::tokens::{BlankTokens, signed_whole};

/// The selection of entries that a file stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The nonzero entries, with their indices.
    Coordinate,
    /// All entries, column after column.
    Array,
}

/// The type of an entry's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Real,
    Integer,
    /// A real and an imaginary part; the second must be 0.
    Complex,
    /// No value: every entry is 1.
    Pattern,
}

/// How the entry at (i, j) determines the one at (j, i).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symmetry {
    General,
    Symmetric,
    Skew,
}

impl Symmetry {
    /// Returns the sign of the mirror image of an entry across the diagonal, `None` if there
    /// is no mirror image.
    pub(crate) fn mirror(self) -> Option<f64> {
        match self {
            Symmetry::General => None,
            Symmetry::Symmetric => Some(1.0),
            Symmetry::Skew => Some(-1.0),
        }
    }
}

/// The content of the banner and the size line.
#[derive(Debug)]
pub(super) struct Header {
    pub format: Format,
    pub field: Field,
    pub symmetry: Symmetry,
    pub rows: usize,
    pub cols: usize,
    /// Number of entries that the size line announces; for an array it follows from the sizes.
    pub entries: u64,
    /// The offset at which the entries begin.
    pub body: usize,
    /// Observations about the entries, collected while they are read.
    pub notes: Notes,
}

impl Header {
    /// Returns whether entries have values. If not, every entry is 1.
    pub(crate) fn valued(&self) -> bool {
        self.field != Field::Pattern
    }
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

/// Reads the first word of the banner. Some files omit the second percent sign.
fn read_name(line: &mut Line) -> Result<()> {
    let at = line.tokens.at;
    let name = line.word().1.strip_prefix('%');
    let recognised =
        name.is_some_and(|name| name.strip_prefix('%').unwrap_or(name).eq_ignore_ascii_case("matrixmarket"));
    let expected = "a first line that begins with %%MatrixMarket";
    if recognised { Ok(()) } else { Err(line.text.error(Fault::new(at, expected))) }
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
        // SciPy's name for unsigned integers.
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
        // Without imaginary parts, a number equals its conjugate.
        ("hermitian", _) => Ok(Some(Symmetry::Symmetric)),
        _ => Ok(None),
    })?;
    line.finish()?;
    Ok((format, field, symmetry))
}

/// Refuses size lines with two more numbers: in files of Lis, they announce vectors after the entries.
fn refuse_lis(line: &mut Line) -> Result<()> {
    let rest = line.tokens.at;
    let more = [line.tokens.word().1, line.tokens.word().1];
    line.tokens.at = rest;
    if more.iter().any(|word| signed_whole(word).is_none()) {
        return Ok(());
    }
    Err(line.text.unsupported(
        "a size line of five numbers (Lis: a right-hand side after the entries)",
        "leave out the last two numbers and the lines after the entries; store the right-hand side in a separate file",
    ))
}

/// A position within a line of the header.
struct Line<'a> {
    text: Text<'a>,
    tokens: BlankTokens<'a>,
}

impl<'a> Line<'a> {
    /// Returns the next word and its offset; an empty word at the end of the line, and for invalid UTF-8.
    fn word(&mut self) -> (usize, &'a str) {
        let (at, word) = self.tokens.word();
        (at, std::str::from_utf8(word).unwrap_or(""))
    }

    /// Translates the next word by `meaning`, ignoring its case.
    fn choose<T>(&mut self, expected: &str, meaning: impl FnOnce(&str) -> Result<Option<T>>) -> Result<T> {
        let (at, word) = self.word();
        let meaning = meaning(&word.to_ascii_lowercase())?;
        meaning.ok_or_else(|| self.text.error(Fault::new(at, expected)))
    }

    fn size(&mut self, what: &str) -> Result<u64> {
        let (at, word) = self.tokens.word();
        signed_whole(word).ok_or_else(|| self.text.error(Fault::new(at, what)))
    }

    /// Reads a number of rows or columns, which must fit 32-bit indices.
    fn index(&mut self, what: &str) -> Result<usize> {
        self.tokens.skip_blanks();
        let at = self.tokens.at;
        let value = self.size(what)?;
        if value > u64::from(u32::MAX) {
            return Err(self.text.error(Fault::new(at, format!("{what}, at most {}", u32::MAX))));
        }
        Ok(value as usize)
    }

    /// Moves to the next line; the rest of this one may only be a comment.
    fn finish(&mut self) -> Result<()> {
        self.tokens.finish_line(b"%").map_err(|fault| self.text.error(*fault))
    }
}
