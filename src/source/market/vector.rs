//! Dense vectors, or several as columns: right-hand sides in separate files.

use super::header::{self, Format, Header, Symmetry};
use super::judge::Judge;
use super::lines::{Lines, Piece, first_fault, too_many_entries};
use super::with_newlines;
use crate::error::{Error, Result};
use crate::format::Dense;
use crate::parallel::zeros;
use crate::source::passing::Take;
use crate::source::portions::Portions;
use crate::source::text::{Text, check_size, in_file};
use crate::source::{gzip, mmap};
use std::path::Path;

/// Values between two reports to the meter.
const REPORT: u64 = 1 << 16;

/// Reads the Matrix Market file at `path` as dense columns, in the array format or the coordinate format. In
/// the latter, missing entries are 0 and duplicates are summed. Several columns are returned row-major.
pub fn read_vector(path: &Path) -> Result<Dense> {
    mmap::with(path, |bytes| parse_vector(path, bytes))
}

/// Reads dense columns from a file that is already in memory, gzip-compressed or not; `path`
/// is for error messages.
pub fn parse_vector(path: &Path, bytes: &[u8]) -> Result<Dense> {
    let read = |bytes: &[u8]| read_columns(Text { path, bytes, meter: None, lines: 0 });
    let columns = match gzip::is_gzip(bytes) {
        true => gzip::decompress(Text { path, bytes, meter: None, lines: 0 }, u64::MAX)
            .and_then(|bytes| read(&bytes)),
        false => read(bytes),
    };
    columns.map_err(in_file(path))
}

/// Reads dense columns from a text; a size that the text is too short for gives [`Error::TooLarge`].
pub(in crate::source) fn read_columns(text: Text) -> Result<Dense> {
    with_header(text, |text, header, size| Dense::new(header.rows, header.cols, values(text, header, size)?))
}

/// Passes the numbers of dense columns on, and returns rows and columns. Numbers of a symmetric array or of
/// the coordinate format are collected first.
pub(in crate::source) fn pass_columns(text: Text, take: Take<'_>) -> Result<(usize, usize)> {
    with_header(text, |text, header, size| {
        if header.format == Format::Array && header.symmetry == Symmetry::General {
            each_entry(text, header, &mut |row, col, value| {
                take(row as usize * header.cols + col as usize, &[value]);
                Ok(())
            })?;
        } else {
            take(0, &values(text, header, size)?);
        }
        Ok((header.rows, header.cols))
    })
}

/// Reads the header and passes it on, with the number of values.
fn with_header<T>(text: Text, read: impl FnOnce(Text, &Header, usize) -> Result<T>) -> Result<T> {
    let bytes = with_newlines(text.bytes);
    let text = Text { bytes: &bytes, ..text };
    let header = header::read(text)?;
    let size = header.rows as u64 * header.cols as u64;
    let portions = Portions::of(text, header.body);
    if too_many_entries(&portions, &header) {
        return Err(first_fault(&portions, &header));
    }
    check_size("the number of values", size, header.entries)?;
    read(text, &header, size as usize)
}

fn values(text: Text, header: &Header, size: usize) -> Result<Vec<f64>> {
    let mut values: Vec<f64> = zeros(size)?;
    each_entry(text, header, &mut |row, col, value| {
        let (row, col) = (row as usize, col as usize);
        let sum = &mut values[row * header.cols + col];
        // -0 + 0 is 0, which would lose the sign.
        *sum = if *sum == 0.0 { value } else { *sum + value };
        if sum.is_finite() { Ok(()) } else { Err(Error::DuplicateOverflow { row, col }) }
    })?;
    Ok(values)
}

/// Reads all entries, and passes each on, with its mirror image.
fn each_entry(text: Text, header: &Header, add: &mut dyn FnMut(u32, u32, f64) -> Result<()>) -> Result<()> {
    let fault = || first_fault(&Portions::of(text, header.body), header);
    let mut lines = Lines::new(text, header, &Piece { start: header.body, end: text.bytes.len(), first: 0 });
    let mut stored = 0;
    let mut reported = header.body;
    text.begin("reading", text.bytes.len() - reported);
    while let Some(entry) = lines.entry().map_err(|_| fault())? {
        if stored == header.entries {
            return Err(fault());
        }
        stored += 1;
        if stored.is_multiple_of(REPORT) {
            let at = lines.at();
            text.advance(at - std::mem::replace(&mut reported, at));
        }
        add(entry.row, entry.col, entry.value)?;
        if let Some(sign) = header.symmetry.mirror().filter(|_| entry.row != entry.col) {
            add(entry.col, entry.row, sign * entry.value)?;
        }
    }
    drop(lines);
    text.advance(text.bytes.len() - reported);
    if stored != header.entries {
        return Err(fault());
    }
    let mut judge = Judge::default();
    judge.note(text, header);
    judge.finish()
}
