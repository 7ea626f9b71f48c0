//! The lines after the size line, one entry each: `row column value` in the coordinate format, and only a
//! value in the array format, where the number of preceding values determines the position.

use super::header::{Field, Format, Header, Symmetry};
use super::usual::SimpleLine;
use crate::error::Error;
use crate::source::inflate;
use crate::source::portions::Portions;
use crate::source::text::{Fault, Text};
use crate::source::tokens::window::Window;
use crate::source::tokens::{BlankTokens, Scan, fault};
use std::ops::Range;

/// One entry, with indices from 0.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The row.
    pub row: u32,
    /// The column.
    pub col: u32,
    /// The value; 1 if entries have no values.
    pub value: f64,
}

/// A range of complete lines of the file.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub start: usize,
    pub end: usize,
    /// Number of entries before the piece; only set for the array format.
    pub first: u64,
}

impl Piece {
    /// Converts byte ranges of the text to pieces.
    pub(crate) fn of(pieces: Vec<Range<usize>>) -> Vec<Piece> {
        pieces.into_iter().map(|Range { start, end }| Piece { start, end, first: 0 }).collect()
    }
}

/// A reader of the entries of a piece.
pub(super) struct Lines<'a> {
    tokens: BlankTokens<'a>,
    header: &'a Header,
    /// The position of the next value of an array.
    next: (u32, u32),
    /// For symmetric files: the offset of the first entry above the diagonal, and whether
    /// there is one below it.
    above: usize,
    below: bool,
}

/// f64 represents every integer up to this exactly.
const MOST_EXACT: f64 = (1_u64 << 53) as f64;

impl Drop for Lines<'_> {
    fn drop(&mut self) {
        self.header.notes.triangles(self.above, self.below);
    }
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: Text<'a>, header: &'a Header, piece: &Piece) -> Lines<'a> {
        let next = if header.format == Format::Array { array_position(header, piece.first) } else { (0, 0) };
        let tokens = BlankTokens::new(&text.bytes[..piece.end], piece.start);
        Lines { tokens, header, next, above: usize::MAX, below: false }
    }

    /// Returns the offset of the next byte to read.
    pub(crate) fn at(&self) -> usize {
        self.tokens.at
    }

    /// Moves to the next entry and returns its offset, `None` at the end of the piece.
    pub(crate) fn seek(&mut self) -> Option<usize> {
        self.tokens.seek_line(b"%").then_some(self.tokens.at)
    }

    /// Skips an entry that `seek` found.
    pub(crate) fn skip(&mut self) {
        self.tokens.skip_line();
    }

    /// Reads the next entry; returns `None` at the end of the piece.
    #[inline(always)]
    pub(crate) fn entry(&mut self) -> Scan<Option<Entry>> {
        match (self.header.format, self.header.field) {
            (Format::Coordinate, Field::Pattern) => self.coordinate::<false>(),
            (Format::Coordinate, _) => self.coordinate::<true>(),
            (Format::Array, _) => self.array(),
        }
    }

    /// Reads the row of the next entry in the coordinate format and skips the rest of the line unchecked.
    #[inline(always)]
    pub(crate) fn row(&mut self) -> Scan<Option<u32>> {
        if let Some((row, length)) = self.tokens.window().and_then(Window::row)
            && row.wrapping_sub(1) < self.header.rows as u64
        {
            self.tokens.at += length;
            return Ok(Some((row - 1) as u32));
        }
        self.row_slow()
    }

    #[inline(never)]
    fn row_slow(&mut self) -> Scan<Option<u32>> {
        if !self.tokens.seek_line(b"%") {
            return Ok(None);
        }
        let row = self.tokens.index("row", self.header.rows as u64)?;
        self.tokens.skip_line();
        Ok(Some(row))
    }

    /// Reads the row and the column of the next entry in the coordinate format and skips the value unchecked.
    #[inline(always)]
    pub(crate) fn position(&mut self) -> Scan<Option<(u32, u32)>> {
        let values = self.header.field != Field::Pattern;
        let parse = if values { Window::position::<true> } else { Window::position::<false> };
        match self.tokens.window().and_then(parse).and_then(|line| self.accept(line)) {
            Some(entry) => Ok(Some((entry.row, entry.col))),
            None => self.position_slow(),
        }
    }

    #[inline(never)]
    fn position_slow(&mut self) -> Scan<Option<(u32, u32)>> {
        if !self.tokens.seek_line(b"%") {
            return Ok(None);
        }
        let at = self.tokens.at;
        let (row, col) = self.indices()?;
        self.note(at, row < col, row > col);
        self.tokens.skip_line();
        Ok(Some((row, col)))
    }

    /// Reads the next entry of the coordinate format.
    #[inline(always)]
    pub(crate) fn coordinate<const VALUES: bool>(&mut self) -> Scan<Option<Entry>> {
        match self.tokens.window().and_then(Window::entry::<VALUES>).and_then(|line| self.accept(line)) {
            Some(entry) => Ok(Some(entry)),
            None => self.coordinate_slow::<VALUES>(),
        }
    }

    /// Returns the entry of a simple line and moves past it, if the header allows the entry.
    #[inline(always)]
    fn accept(&mut self, line: SimpleLine) -> Option<Entry> {
        let (row, col) = (line.row.wrapping_sub(1), line.col.wrapping_sub(1));
        let inside = row < self.header.rows as u64 && col < self.header.cols as u64;
        let allowed = match self.header.field {
            Field::Real | Field::Pattern => true,
            Field::Integer => line.value.fract() == 0.0 && line.value.abs() < MOST_EXACT,
            Field::Complex => false,
        };
        let skew = self.header.symmetry == Symmetry::Skew;
        if !inside || !allowed || (skew && row == col && line.value != 0.0) {
            return None;
        }
        self.note(self.tokens.at, row < col, row > col);
        self.tokens.at += line.length;
        Some(Entry { row: row as u32, col: col as u32, value: line.value })
    }

    /// Notes the triangle of an entry of a symmetric file.
    #[inline(always)]
    fn note(&mut self, at: usize, above: bool, below: bool) {
        if self.header.symmetry != Symmetry::General {
            if above {
                self.above = self.above.min(at);
            }
            self.below |= below;
        }
    }

    #[inline(never)]
    fn coordinate_slow<const VALUES: bool>(&mut self) -> Scan<Option<Entry>> {
        if !self.tokens.seek_line(b"%") {
            return Ok(None);
        }
        let at = self.tokens.at;
        let (row, col) = self.indices()?;
        self.note(at, row < col, row > col);
        self.tokens.skip_blanks();
        let mut value = 1.0;
        if VALUES {
            value = self.value((row, col))?;
        }
        self.tokens.finish_line(b"%")?;
        Ok(Some(Entry { row, col, value }))
    }

    #[inline(always)]
    fn indices(&mut self) -> Scan<(u32, u32)> {
        let row = self.tokens.index("row", self.header.rows as u64)?;
        self.tokens.skip_blanks();
        let col = self.tokens.index("column", self.header.cols as u64)?;
        Ok((row, col))
    }

    /// Reads the next value of the array format, zeros included.
    fn array(&mut self) -> Scan<Option<Entry>> {
        if !self.tokens.seek_line(b"%") {
            return Ok(None);
        }
        let (row, col) = self.next;
        if row as usize >= self.header.rows || col as usize >= self.header.cols {
            return Err(fault(self.tokens.at, "no more values than the size line announces"));
        }
        let value = self.value((row, col))?;
        self.tokens.finish_line(b"%")?;
        self.next = if row as usize + 1 < self.header.rows {
            (row + 1, col)
        } else {
            (first_row(self.header, col as usize + 1) as u32, col + 1)
        };
        Ok(Some(Entry { row, col, value }))
    }

    /// Reads a value and checks it against the field and the symmetry.
    #[inline(always)]
    fn value(&mut self, (row, col): (u32, u32)) -> Scan<f64> {
        let at = self.tokens.at;
        let value = self.tokens.fortran_number()?;
        match self.header.field {
            Field::Integer if value.fract() != 0.0 => {
                return Err(fault(at, "an integer, as the banner says"));
            }
            Field::Integer if value.abs() >= MOST_EXACT => {
                self.header.notes.integer(at, self.tokens.since(at), value);
            }
            Field::Complex => self.no_imaginary_part((row, col))?,
            _ => {}
        }
        if row == col && self.header.symmetry == Symmetry::Skew && value != 0.0 {
            return Err(fault(at, "0 on the diagonal of a skew-symmetric matrix"));
        }
        Ok(value)
    }

    #[inline(never)]
    fn no_imaginary_part(&mut self, (row, col): (u32, u32)) -> Scan<()> {
        self.tokens.skip_blanks();
        let at = self.tokens.at;
        if self.tokens.fortran_number()? == 0.0 {
            return Ok(());
        }
        let position = format!("row {}, column {}", u64::from(row) + 1, u64::from(col) + 1);
        Err(fault(at, format!("an imaginary part of 0 at {position}, as only real matrices are solved with")))
    }
}

/// Returns the first row of a column that an array stores: the top, the diagonal, or the row below it.
fn first_row(header: &Header, col: usize) -> usize {
    match header.symmetry {
        Symmetry::General => 0,
        Symmetry::Symmetric => col,
        Symmetry::Skew => col + 1,
    }
}

/// Returns the position of a value of an array by its number; one column too far for numbers beyond the last.
fn array_position(header: &Header, mut number: u64) -> (u32, u32) {
    let columns = if number < header.entries { 0..header.cols } else { 0..0 };
    for col in columns {
        let first = first_row(header, col);
        let stored = header.rows.saturating_sub(first) as u64;
        if number < stored {
            return (first as u32 + number as u32, col as u32);
        }
        number -= stored;
    }
    (0, header.cols as u32)
}

/// Returns whether the size line announces more entries than the text can have: an entry takes at least two
/// bytes, a digit and a line end. This bounds the memory that a header can request.
pub(super) fn too_many_entries(portions: &Portions, header: &Header) -> bool {
    let bytes = portions.file.bytes.len();
    let most = if portions.packed { inflate::bounded(u64::MAX, bytes) } else { (bytes - header.body) as u64 };
    header.entries > most / 2 + 1
}

/// Returns the first format violation in the order of the file, including a wrong number of entries. Only
/// called if there is one: the threads that read only report that, and another pass locates it.
#[cold]
pub(super) fn first_fault(portions: &Portions, header: &Header) -> Error {
    let mut count = 0;
    let (mut excess, mut end) = (None, None);
    let scanned = portions.unmetered().each(|text, start| {
        let mut lines = Lines::new(text, header, &Piece { start, end: text.bytes.len(), first: count });
        while let Some(at) = lines.seek() {
            if count < header.entries {
                lines.entry().map_err(|fault| text.error(*fault))?;
            } else {
                excess.get_or_insert_with(|| wrong_count(text, header, at));
                lines.skip();
            }
            count += 1;
        }
        if portions.packed {
            end = Some(wrong_count(text, header, text.bytes.len()));
        }
        Ok(())
    });
    if let Err(error) = scanned {
        return error;
    }
    let whole = portions.file;
    let (error, before) = match excess {
        Some(excess) => (excess, ""),
        None if count < header.entries => {
            (end.unwrap_or_else(|| wrong_count(whole, header, whole.bytes.len())), "end of file after ")
        }
        None => {
            return whole.error(Fault::new(whole.bytes.len(), "the file to stay as it is while it is read"));
        }
    };
    match error {
        Error::Parse { path, line, column, expected, .. } => {
            Error::Parse { path, line, column, expected, found: format!("{before}{}", entries(count)) }
        }
        other => other,
    }
}

/// Returns the error for a wrong number of entries, without the number that was found.
fn wrong_count(text: Text, header: &Header, at: usize) -> Error {
    let expected = format!("{}, as the size line announces", entries(header.entries));
    text.error(Fault { at, expected, found: Some(String::new()) })
}

fn entries(n: u64) -> String {
    if n == 1 { "1 entry".to_owned() } else { format!("{n} entries") }
}
