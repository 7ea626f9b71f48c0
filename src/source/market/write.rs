//! Writes Matrix Market files. Every number has the fewest digits that read back to the same bits.
//!
//! Values in single precision are written as the f64 that they equal, because values are read as f64.

use crate::error::{Error, Result};
use crate::files::Content;
use crate::format::{Csr, Dense, Values};
use crate::observe::{Meter, write_file_with};
use crate::source::passing::Pass;
use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// Entries that one task converts to text.
const BLOCK: usize = 1 << 15;
/// Blocks of text in memory per thread.
const BLOCKS_PER_THREAD: usize = 4;

/// Writes a matrix in the coordinate format, with the field `pattern` if all values are 1;
/// gzip-compressed if the name ends in `.gz`. With `symmetric`, only the lower triangle is written, and
/// the matrix must be symmetric.
///
/// An existing file is replaced when the new one is complete. Reading the file gives the same
/// matrix, bit for bit.
pub fn write_matrix(path: &Path, matrix: &Csr, symmetric: bool) -> Result<()> {
    write_matrix_metered(path, matrix, symmetric, None)
}

/// Writes a matrix and reports progress to a meter, in bytes of the matrix in memory, not of the text.
pub fn write_matrix_metered(path: &Path, matrix: &Csr, symmetric: bool, meter: Option<&Meter>) -> Result<()> {
    if symmetric {
        check_symmetric(path, matrix)?;
    }
    check_finite(path, matrix)?;
    write_packed(path, Content::Result, |mut out| write_text(&mut out, matrix, symmetric, None, meter))
}

/// Writes the lower triangle if the matrix is symmetric in every bit, else all entries. Bits are
/// compared because 0 and -0 across the diagonal are equal, and one would be read back as the other.
/// The note becomes a comment.
pub(crate) fn write_as_found(
    path: &Path,
    matrix: &Csr,
    note: Option<&str>,
    meter: Option<&Meter>,
) -> Result<()> {
    check_finite(path, matrix)?;
    let symmetric = matrix.rows() == matrix.cols() && first_unmatched(matrix).is_none();
    write_packed(path, Content::Result, |mut out| write_text(&mut out, matrix, symmetric, note, meter))
}

/// Writes a vector as an array of one column; gzip-compressed if the name ends in `.gz`.
pub fn write_vector(path: &Path, values: &[f64]) -> Result<()> {
    write_array(path, values.len(), 1, None, |index| values[index])
}

/// Writes vectors that come in portions as an array; gzip-compressed if the name ends in `.gz`.
pub(in crate::source) fn write_vectors(
    path: &Path,
    [rows, k]: [usize; 2],
    pass: &mut Pass<'_>,
) -> Result<()> {
    write_packed(path, Content::Answer, |mut out| {
        write_array_header(&mut out, rows, k)?;
        (0..k).try_for_each(|column| {
            pass(Some(column).filter(|_| k > 1), &mut |values| {
                write_values(&mut out, values.len(), None, |index| values[index])
            })
        })
    })
}

/// Writes dense columns as an array; gzip-compressed if the name ends in `.gz`.
pub fn write_columns(path: &Path, columns: &Dense, meter: Option<&Meter>) -> Result<()> {
    let (rows, cols) = (columns.rows(), columns.cols());
    write_array(path, rows, cols, meter, |index| columns.values()[index % rows * cols + index / rows])
}

/// Writes an array; `value` returns its numbers column after column.
fn write_array(
    path: &Path,
    rows: usize,
    cols: usize,
    meter: Option<&Meter>,
    value: impl Fn(usize) -> f64 + Sync,
) -> Result<()> {
    write_packed(path, Content::Answer, |mut out| {
        write_array_header(&mut out, rows, cols)?;
        write_values(&mut out, rows * cols, meter, value)
    })
}

fn write_array_header(out: &mut impl Write, rows: usize, cols: usize) -> io::Result<()> {
    writeln!(out, "%%MatrixMarket matrix array real general\n{rows} {cols}")
}

/// Writes the numbers of an array, one on each line.
fn write_values(
    out: &mut impl Write,
    count: usize,
    meter: Option<&Meter>,
    value: impl Fn(usize) -> f64 + Sync,
) -> io::Result<()> {
    in_blocks(out, count, (8, meter), |range| {
        let mut text = Vec::with_capacity(25 * range.len());
        for index in range {
            push_value(&mut text, value(index));
            text.push(b'\n');
        }
        text
    })
}

/// Writes a file, gzip-compressed if the name ends in `.gz`.
pub(in crate::source) fn write_packed(
    path: &Path,
    kind: Content,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    write_file_with(path, kind, |file| {
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz")) {
            let mut packer = GzEncoder::new(file, Compression::default());
            content(&mut packer)?;
            packer.finish().map(drop)
        } else {
            content(file)
        }
    })
}

fn write_text(
    out: &mut impl Write,
    matrix: &Csr,
    symmetric: bool,
    note: Option<&str>,
    meter: Option<&Meter>,
) -> io::Result<()> {
    let field = if matches!(matrix.values(), Values::Ones) { "pattern" } else { "real" };
    let symmetry = if symmetric { "symmetric" } else { "general" };
    let entries = if symmetric {
        (0..matrix.rows())
            .into_par_iter()
            .map(|row| matrix.row(row).filter(|&(col, _)| col <= row).count())
            .sum()
    } else {
        matrix.nnz()
    };
    writeln!(out, "%%MatrixMarket matrix coordinate {field} {symmetry}")?;
    for line in note.unwrap_or_default().lines() {
        writeln!(out, "% {line}")?;
    }
    writeln!(out, "{} {} {entries}", matrix.rows(), matrix.cols())?;
    let each = 4 + matrix.values().width();
    in_blocks(out, matrix.nnz(), (each, meter), |entries| block_text(matrix, entries, symmetric))
}

/// Writes the text of all entries in order: the threads of rayon's current pool convert blocks of entries
/// with `text_of`. Adds `each` bytes per entry to the meter.
fn in_blocks(
    out: &mut impl Write,
    entries: usize,
    (each, meter): (usize, Option<&Meter>),
    text_of: impl Fn(Range<usize>) -> Vec<u8> + Sync,
) -> io::Result<()> {
    if let Some(meter) = meter {
        meter.begin("writing", (entries * each) as u64);
    }
    let portion = BLOCK * BLOCKS_PER_THREAD * rayon::current_num_threads();
    for start in (0..entries).step_by(portion) {
        let end = (start + portion).min(entries);
        let blocks: Vec<usize> = (start..end).step_by(BLOCK).collect();
        let text: Vec<Vec<u8>> = blocks
            .into_par_iter()
            .with_max_len(1)
            .map(|block| text_of(block..(block + BLOCK).min(end)))
            .collect();
        for block in text {
            out.write_all(&block)?;
        }
        if let Some(meter) = meter {
            meter.add(((end - start) * each) as u64);
        }
    }
    Ok(())
}

fn block_text(matrix: &Csr, entries: Range<usize>, symmetric: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(32 * entries.len());
    let mut row = row_of(matrix, entries.start);
    let mut end = matrix.row_range(row).end;
    let mut digits = itoa::Buffer::new();
    for entry in entries {
        while entry >= end {
            row += 1;
            end = matrix.row_range(row).end;
        }
        let col = matrix.col_indices()[entry] as usize;
        if symmetric && col > row {
            continue;
        }
        text.extend_from_slice(digits.format(row + 1).as_bytes());
        text.push(b' ');
        text.extend_from_slice(digits.format(col + 1).as_bytes());
        if !matches!(matrix.values(), Values::Ones) {
            text.push(b' ');
            push_value(&mut text, matrix.values().get(entry));
        }
        text.push(b'\n');
    }
    text
}

/// Returns the row of an existing entry.
fn row_of(matrix: &Csr, entry: usize) -> usize {
    let (mut low, mut high) = (0, matrix.rows());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if matrix.row_offsets().get(middle) <= entry { low = middle } else { high = middle }
    }
    low
}

/// Appends a number; integers of the range of i32 are written without a decimal point.
pub(in crate::source) fn push_value(text: &mut Vec<u8>, value: f64) {
    let whole = value as i32;
    if f64::from(whole).to_bits() == value.to_bits() {
        text.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    } else {
        text.extend_from_slice(zmij::Buffer::new().format(value).as_bytes());
    }
}

fn check_finite(path: &Path, matrix: &Csr) -> Result<()> {
    let finite = match matrix.values() {
        Values::Ones => return Ok(()),
        Values::F32(values) => values.par_iter().position_first(|value| !value.is_finite()),
        Values::F64(values) => values.par_iter().position_first(|value| !value.is_finite()),
    };
    let Some(entry) = finite else { return Ok(()) };
    let (row, col) = (row_of(matrix, entry) + 1, matrix.col_indices()[entry] as u64 + 1);
    let value = matrix.values().get(entry);
    Err(unwritable(path, format!("the value at row {row}, column {col} is {value}, and it must be finite")))
}

fn check_symmetric(path: &Path, matrix: &Csr) -> Result<()> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    if rows != cols {
        return Err(unwritable(
            path,
            format!("a {rows} x {cols} matrix cannot be written as a triangle, because it is not square"),
        ));
    }
    match first_unmatched(matrix) {
        None => Ok(()),
        Some((row, col)) => {
            let (row, col) = (row + 1, col + 1);
            let reason = "differs from the one across the diagonal; write the matrix as a general one";
            Err(unwritable(path, format!("the entry at row {row}, column {col} {reason}")))
        }
    }
}

/// Returns the first entry of a square matrix whose transposed entry is missing or differs in its bits.
fn first_unmatched(matrix: &Csr) -> Option<(usize, usize)> {
    let unmatched = |row: usize| {
        matrix.row(row).find(|&(col, value)| matrix.get(col, row).map(f64::to_bits) != Some(value.to_bits()))
    };
    (0..matrix.rows()).into_par_iter().find_map_first(|row| Some((row, unmatched(row)?.0)))
}

fn unwritable(path: &Path, reason: String) -> Error {
    Error::Unwritable { path: path.to_owned(), reason }
}
