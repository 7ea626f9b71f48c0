//! Assembles the entries of a file into compressed rows.

use super::header::{Field, Format, Header};
use super::judge::Judge;
use super::lines::{Entry, Lines, Piece, first_fault, too_many_entries};
use super::ordered;
use crate::error::{Error, Result};
use crate::format::assemble::{Entries, assemble};
use crate::format::{Csr, Duplicates};
use crate::parallel::run_all;
use crate::source::portions::Portions;
use crate::source::text::{Fault, Text, check_rows};
use crate::source::tokens::{Scan, cut};

/// Entries between two reports of a thread to the meter.
const REPORT: u64 = 1 << 16;

/// Builds the matrix. `mirror` is the sign of the mirror image that an off-diagonal entry gets across the
/// diagonal; `None` adds no mirror images.
pub(super) fn read(text: Text, header: &Header, mirror: Option<f64>, duplicates: Duplicates) -> Result<Csr> {
    let portions = Portions::of(text, header.body);
    if too_many_entries(&portions, header) {
        return Err(first_fault(&portions, header));
    }
    check_rows(header.rows, header.entries)?;
    let matrix = if mirror.is_none() { ordered::read(text, header, duplicates).transpose() } else { None };
    let matrix = matrix.unwrap_or_else(|| {
        // The text is read twice.
        text.begin("reading", 2 * (text.bytes.len() - header.body));
        assemble(&File { text, header }, mirror, duplicates)
    });
    let matrix = matrix.map_err(|error| match error {
        Error::DuplicateOverflow { row, col } => locate(&portions, header, mirror, (row, col)),
        other => other,
    })?;
    let mut judge = Judge::default();
    judge.note(text, header);
    judge.finish()?;
    Ok(matrix)
}

/// The entries of a file, parsed on every pass.
struct File<'a> {
    text: Text<'a>,
    header: &'a Header,
}

impl File<'_> {
    fn fault(&self) -> Error {
        first_fault(&Portions::of(self.text, self.header.body), self.header)
    }

    /// Calls `visit` for each entry that `next` reads.
    #[inline(always)]
    fn each<'a, T>(
        &'a self,
        piece: &Piece,
        next: impl Fn(&mut Lines<'a>) -> Scan<Option<T>>,
        mut visit: impl FnMut(T),
    ) -> Result<u64> {
        let mut lines = Lines::new(self.text, self.header, piece);
        let (mut stored, mut reported) = (0, piece.start);
        while let Some(entry) = next(&mut lines).map_err(|_| self.fault())? {
            if stored == self.header.entries {
                return Err(self.fault());
            }
            stored += 1;
            if stored.is_multiple_of(REPORT) {
                let at = lines.at();
                self.text.advance(at - std::mem::replace(&mut reported, at));
            }
            visit(entry);
        }
        self.text.advance(piece.end - reported);
        Ok(stored)
    }
}

impl Entries for File<'_> {
    type Piece = Piece;

    fn shape(&self) -> (usize, usize) {
        (self.header.rows, self.header.cols)
    }

    fn valued(&self) -> bool {
        self.header.valued()
    }

    fn most(&self) -> usize {
        self.header.entries as usize
    }

    fn cut(&self, pieces: usize) -> Result<Vec<Piece>> {
        let mut pieces = Piece::of(cut(self.text.bytes, self.header.body, pieces));
        if self.header.format == Format::Array {
            let counts = run_all(pieces.clone(), |piece| {
                let mut lines = Lines::new(self.text, self.header, &piece);
                std::iter::from_fn(|| lines.seek().map(|_| lines.skip())).count() as u64
            });
            let mut first = 0;
            for (piece, count) in pieces.iter_mut().zip(counts) {
                piece.first = first;
                first += count;
            }
        }
        Ok(pieces)
    }

    fn rows(&self, piece: &Piece, mut visit: impl FnMut(u32)) -> Result<u64> {
        if self.header.format == Format::Array {
            return self.entries(piece, |row, _, _| visit(row));
        }
        self.each(piece, |lines| lines.row(), visit)
    }

    fn places(&self, piece: &Piece, mut visit: impl FnMut(u32, u32)) -> Result<u64> {
        if self.header.format == Format::Array {
            return self.entries(piece, |row, col, _| visit(row, col));
        }
        self.each(piece, |lines| lines.position(), |(row, col)| visit(row, col))
    }

    fn entries(&self, piece: &Piece, mut visit: impl FnMut(u32, u32, f64)) -> Result<u64> {
        let mut put = |entry: Entry| visit(entry.row, entry.col, entry.value);
        match (self.header.format, self.header.field) {
            (Format::Coordinate, Field::Pattern) => {
                self.each(piece, |lines| lines.coordinate::<false>(), put)
            }
            (Format::Coordinate, _) => self.each(piece, |lines| lines.coordinate::<true>(), put),
            (Format::Array, _) => {
                let nonzero = |entry: Entry| {
                    if entry.value != 0.0 {
                        put(entry);
                    }
                };
                self.each(piece, |lines| lines.entry(), nonzero)
            }
        }
    }

    fn check(&self, stored: u64) -> Result<()> {
        if stored == self.header.entries { Ok(()) } else { Err(self.fault()) }
    }
}

/// Finds the line at which a sum of duplicates overflows f64. The sums are computed again from the text.
#[cold]
pub(super) fn locate(
    portions: &Portions,
    header: &Header,
    mirror: Option<f64>,
    position: (usize, usize),
) -> Error {
    let mut sum = 0.0_f64;
    let scanned = portions.unmetered().each(|text, start| {
        let mut lines = Lines::new(text, header, &Piece { start, end: text.bytes.len(), first: 0 });
        while let Some(at) = lines.seek() {
            let Ok(Some(entry)) = lines.entry() else { break };
            let (row, col) = (entry.row as usize, entry.col as usize);
            if (row, col) == position {
                sum += entry.value;
            } else if let Some(sign) = mirror
                && (col, row) == position
            {
                sum += sign * entry.value;
            }
            if !sum.is_finite() {
                let (row, col) = (position.0 + 1, position.1 + 1);
                let expected = format!("entries for row {row}, column {col} with a finite sum");
                return Err(text.error(Fault { at, expected, found: Some(format!("a sum of {sum}")) }));
            }
        }
        Ok(())
    });
    // A file that is changed meanwhile may have another sum.
    scanned.err().unwrap_or(Error::DuplicateOverflow { row: position.0, col: position.1 })
}
