//! Entries of a file to compressed rows.

use super::header::{Field, Format, Header};
use super::judge::judge;
use super::lines::{Entry, Lines, Piece, first_fault};
use super::ordered;
use crate::error::{Error, Result};
use crate::format::assemble::{Entries, assemble};
use crate::format::{Csr, Duplicates};
use crate::parallel::run_all;
use crate::source::text::{Fault, Text, check_rows};
use crate::source::tokens::{Scan, cut};

/// Entries after which the meter is told how far a thread has come.
const REPORT: u64 = 1 << 16;

/// Makes the matrix; `mirror` is the sign that entries take across the diagonal, none where they stand for themselves
/// alone.
pub(super) fn read(text: Text, header: &Header, mirror: Option<f64>, duplicates: Duplicates) -> Result<Csr> {
    // Each entry takes two bytes at least, a digit and a line end, so this bounds what the header can ask for.
    if header.entries > (text.bytes.len() - header.body) as u64 / 2 + 1 {
        return Err(first_fault(text, header));
    }
    check_rows(header.rows, header.entries)?;
    let matrix = if mirror.is_none() { ordered::read(text, header, duplicates).transpose() } else { None };
    let matrix = matrix.unwrap_or_else(|| {
        // The text is gone over twice.
        text.begin("reading", 2 * (text.bytes.len() - header.body));
        assemble(&File { text, header }, mirror, duplicates)
    });
    let matrix = matrix.map_err(|error| match error {
        Error::DuplicateOverflow { row, col } => locate(text, header, mirror, (row, col)),
        other => other,
    })?;
    judge(text, header)?;
    Ok(matrix)
}

/// The entries of a file, parsed each time they are gone over.
struct File<'a> {
    text: Text<'a>,
    header: &'a Header,
}

impl File<'_> {
    fn fault(&self) -> Error {
        first_fault(self.text, self.header)
    }

    /// Calls `visit` for each entry that `next` reads; zeros of an array are passed over.
    #[inline(always)]
    fn each<'a, T>(
        &'a self,
        piece: &Piece,
        next: impl Fn(&mut Lines<'a>) -> Scan<Option<T>>,
        mut visit: impl FnMut(T),
    ) -> Result<u64> {
        let mut lines = Lines::new(self.text, self.header, piece);
        let (mut stored, mut told) = (0, piece.start);
        while let Some(entry) = next(&mut lines).map_err(|_| self.fault())? {
            if stored == self.header.entries {
                return Err(self.fault());
            }
            stored += 1;
            if stored.is_multiple_of(REPORT) {
                let at = lines.at();
                self.text.advance(at - std::mem::replace(&mut told, at));
            }
            visit(entry);
        }
        self.text.advance(piece.end - told);
        Ok(stored)
    }
}

impl Entries for File<'_> {
    type Piece = Piece;

    fn shape(&self) -> (usize, usize) {
        (self.header.rows, self.header.cols)
    }

    fn valued(&self) -> bool {
        self.header.field != Field::Pattern
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
        self.each(piece, |lines| lines.place(), |(row, col)| visit(row, col))
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

/// Finds the line at which a sum of duplicates leaves the range of f64: only the text still knows it.
#[cold]
fn locate(text: Text, header: &Header, mirror: Option<f64>, place: (usize, usize)) -> Error {
    let mut lines = Lines::new(text, header, &Piece::whole(text, header));
    let (mut at, mut sum) = (header.body, 0.0_f64);
    while let Some(start) = lines.seek() {
        at = start;
        let Ok(Some(entry)) = lines.entry() else { break };
        let (row, col) = (entry.row as usize, entry.col as usize);
        if (row, col) == place {
            sum += entry.value;
        } else if let Some(sign) = mirror
            && (col, row) == place
        {
            sum += sign * entry.value;
        }
        if !sum.is_finite() {
            break;
        }
    }
    let expected = format!("entries for row {}, column {} with a finite sum", place.0 + 1, place.1 + 1);
    text.error(Fault { at, expected, found: Some(format!("a sum of {sum}")) })
}
