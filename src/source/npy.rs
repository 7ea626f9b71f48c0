//! NumPy arrays (`.npy`): a header in Python's syntax, then the raw numbers.
//!
//! Supported types are booleans, integers of 8 to 64 bits, floating point of 32 and 64 bits, and complex
//! numbers whose imaginary parts are all zero; in either byte order, in C or Fortran order. A
//! two-dimensional array is a matrix, with the nonzero numbers as entries, or vectors in columns; a
//! one-dimensional array is a vector.

mod header;
mod numbers;

use super::compressed::Compressed;
use super::inflate::{Metered, read_all};
use super::passing::{Pass, Take};
use super::text::{Text, check_rows};
use super::{Loaded, Options};
use crate::error::{Error, Result};
use crate::files::Content;
use crate::format::Dense;
use crate::observe::Meter;
use crate::parallel::room;
use header::Header;
pub(super) use header::in_words;
use numbers::Numbers;
use std::io::{Read, Write};
use std::ops::RangeInclusive;
use std::path::Path;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Maximum bytes of a header in an archive: more than the first version of the format allows.
const LONGEST_HEADER: u64 = 1 << 17;
/// Bytes converted at a time; a multiple of the size of every type.
const PORTION: usize = 1 << 20;

/// An array in memory: the parsed header and the raw bytes.
pub(super) struct Array<'a> {
    /// The file that contains the array.
    text: Text<'a>,
    /// The array's name in error messages.
    name: &'a str,
    header: Header,
    bytes: &'a [u8],
}

/// Checks for the magic number of `.npy` files.
pub(super) fn recognises(text: Text) -> bool {
    text.bytes.starts_with(MAGIC)
}

impl<'a> Array<'a> {
    /// Parses the header and checks that the number of bytes fits the shape.
    pub(crate) fn parse(text: Text<'a>, name: &'a str, bytes: &'a [u8]) -> Result<Array<'a>> {
        let (header, start) = parse_header(text, name, bytes)?;
        text.advance(start);
        let bytes = &bytes[start..];
        // Decompression stops one byte after the expected length, so the actual length is unknown.
        let found = match header.bytes() {
            Some(needed) if bytes.len() as u64 > needed => "more".to_owned(),
            _ => bytes.len().to_string(),
        };
        check_length(text, name, &header, bytes.len() as u64, found)?;
        Ok(Array { text, name, header, bytes })
    }

    pub(crate) fn shape(&self) -> &[u64] {
        &self.header.shape
    }

    pub(crate) fn shape_in_words(&self) -> String {
        self.header.shape_in_words()
    }

    /// Checks whether the numbers are in Fortran order and this differs from C order.
    pub(crate) fn is_by_columns(&self) -> bool {
        self.header.fortran && self.header.shape.iter().filter(|&&size| size > 1).count() > 1
    }

    /// Returns the text of an array of one string, in either encoding.
    pub(crate) fn string(&self) -> Option<String> {
        self.text.advance(self.bytes.len());
        self.header.string(self.bytes)
    }

    /// Returns an error about this array.
    pub(crate) fn malformed(&self, expected: impl Into<String>, found: impl Into<String>) -> Error {
        malformed(self.text.path, self.name, expected.into(), found.into())
    }

    /// Iterates over the numbers in portions, each with the index of its first number, advancing the meter.
    fn portions(&self) -> Result<impl Iterator<Item = (usize, Numbers<'a>)>> {
        let first = Numbers::new(&self.header, &[]);
        let first = first.ok_or_else(|| unreadable(self.text.path, self.name, &self.header))?;
        let (text, width) = (self.text, self.header.width());
        Ok(self.bytes.chunks(PORTION).enumerate().map(move |(portion, bytes)| {
            text.advance(bytes.len());
            (portion * PORTION / width, first.with(bytes))
        }))
    }

    /// Converts the numbers to f64, in the order of the file; a number that is not finite is an error.
    pub(crate) fn values(&self) -> Result<Vec<f64>> {
        self.converted(false)
    }

    /// Converts the numbers to f64, in the order of the file. Unless `any` is set, a number that
    /// is not finite is an error.
    fn converted(&self, any: bool) -> Result<Vec<f64>> {
        let mut values = room(self.bytes.len() / self.header.width())?;
        self.convert(any, &mut values, |_, _| ())?;
        Ok(values)
    }

    /// Converts the numbers to f64 in portions: appends each portion to `values`, and calls `done` with the
    /// index of its first number and `values`.
    fn convert(
        &self,
        any: bool,
        values: &mut Vec<f64>,
        mut done: impl FnMut(usize, &mut Vec<f64>),
    ) -> Result<()> {
        let mut rounded = None;
        for (first, numbers) in self.portions()? {
            numbers.values(values, any).map_err(|(index, expected, found)| {
                let name = format!("{}[{}]", self.name, first + index);
                malformed(self.text.path, &name, expected.to_owned(), found)
            })?;
            rounded = rounded.or_else(|| numbers.first_rounded().map(|(index, n)| (first + index, n)));
            done(first, values);
        }
        if let Some((index, number)) = rounded {
            let (path, name) = (self.text.path.display(), self.name);
            log::warn!("{path}: {name}[{index}] is {number}, which f64 rounds to {}", number as f64);
        }
        Ok(())
    }

    /// Converts the numbers to integers; a number outside the range is an error.
    pub(crate) fn integers<T: TryFrom<i128>>(
        &self,
        what: &str,
        range: RangeInclusive<i128>,
    ) -> Result<Vec<T>> {
        let mut integers = room(self.bytes.len() / self.header.width())?;
        for (first, numbers) in self.portions()? {
            let numbers = numbers.integers();
            let numbers = numbers.ok_or_else(|| self.malformed("integers", self.header.descr.clone()))?;
            for (index, number) in numbers.enumerate() {
                let found = T::try_from(number).ok().filter(|_| range.contains(&number));
                integers.push(found.ok_or_else(|| {
                    let name = format!("{}[{}]", self.name, first + index);
                    let expected = format!("{what} from {} to {}", range.start(), range.end());
                    malformed(self.text.path, &name, expected, number.to_string())
                })?);
            }
        }
        Ok(integers)
    }

    /// Returns the rows and columns; a vector is one column.
    fn rows_and_columns(&self) -> Result<(usize, usize)> {
        let (rows, cols) = match *self.shape() {
            [rows] => (rows, 1),
            [rows, cols] => (rows, cols),
            _ => return Err(self.malformed("1 or 2 dimensions", format!("{}", self.shape().len()))),
        };
        if rows.max(cols) > u64::from(u32::MAX) {
            let expected = format!("at most {} rows and columns", u32::MAX);
            return Err(self.malformed(expected, self.shape_in_words()));
        }
        Ok((rows as usize, cols as usize))
    }

    /// Converts the array to dense columns; a vector is one column. With `any`, numbers may be
    /// NaN or infinite.
    fn dense(&self, any: bool) -> Result<Dense> {
        let (rows, cols) = self.rows_and_columns()?;
        let mut values = self.converted(any)?;
        if self.is_by_columns() {
            values =
                (0..rows).flat_map(|i| (0..cols).map(move |j| j * rows + i)).map(|k| values[k]).collect();
        }
        Dense::new(rows, cols, values)
    }
}

/// Parses the header of an array and returns it with the offset of the first number. Refuses
/// types of unknown width.
fn parse_header(text: Text, name: &str, bytes: &[u8]) -> Result<(Header, usize)> {
    let fault = |(expected, found)| malformed(text.path, name, expected, found);
    let (header, start) = header::parse(bytes).map_err(fault)?;
    if header.width() == 0 {
        return Err(unreadable(text.path, name, &header));
    }
    Ok((header, start))
}

/// Refuses an array whose numbers do not have as many bytes as its shape needs; `found` is the
/// actual size in words.
fn check_length(text: Text, name: &str, header: &Header, bytes: u64, found: String) -> Result<()> {
    if header.bytes() == Some(bytes) {
        return Ok(());
    }
    let needs = header.bytes().map_or("more than 2^64".to_owned(), |size| size.to_string());
    let expected = format!("{needs} bytes of numbers for the shape {}", header.shape_in_words());
    Err(malformed(text.path, name, expected, found))
}

/// Computes the size in bytes of the file that begins with `head`, from the header and the shape;
/// `None` if it is no array.
pub(super) fn length(head: &[u8]) -> Option<u64> {
    let (header, start) = header::parse(head).ok()?;
    header.bytes()?.checked_add(start as u64)
}

/// Reads the shape of an array in an archive and checks that it fits `claimed`, the member's size in bytes
/// according to the archive. Decompresses at most [`LONGEST_HEADER`] bytes.
pub(super) fn shape_of(text: Text, name: &str, member: impl Read, claimed: u64) -> Result<Vec<u64>> {
    let mut head = Vec::new();
    let read = member.take(LONGEST_HEADER).read_to_end(&mut head);
    read.map_err(|source| Error::Io { action: "decompress", path: text.path.to_owned(), source })?;
    let (header, start) = parse_header(text, name, &head)?;
    let bytes = claimed.saturating_sub(start as u64);
    check_length(text, name, &header, bytes, bytes.to_string())?;
    Ok(header.shape)
}

fn unreadable(path: &Path, name: &str, header: &Header) -> Error {
    Error::UnsupportedFile {
        path: path.to_owned(),
        what: format!("the type '{}' of {name}", header.descr),
        hint: "numbers are read as booleans, integers of up to 64 bits, float32 and float64; convert with astype",
    }
}

fn malformed(path: &Path, name: &str, expected: String, found: String) -> Error {
    Error::Malformed { path: path.to_owned(), part: name.to_owned(), expected, found }
}

/// Reads a two-dimensional array as a matrix: the nonzero numbers are the entries.
pub(super) fn read(text: Text, options: &Options) -> Result<Loaded> {
    text.begin("reading", text.bytes.len());
    let array = Array::parse(text, "the array", text.bytes)?;
    if array.shape().len() == 1 {
        return Err(text.unsupported(
            "a one-dimensional array as a matrix",
            "a matrix has two dimensions; a vector can be a right-hand side",
        ));
    }
    let dense = array.dense(false)?;
    let (rows, cols) = (dense.rows(), dense.cols());
    // An array without columns takes no bytes, so its header can claim any number of rows.
    check_rows(rows, dense.values().len() as u64)?;
    let mut sparse = Compressed { rows, cols, offsets: vec![0], indices: Vec::new(), values: Vec::new() };
    for row in 0..rows {
        let entries =
            dense.values()[row * cols..(row + 1) * cols].iter().enumerate().filter(|(_, v)| **v != 0.0);
        for (col, &value) in entries {
            sparse.indices.push(col as u32);
            sparse.values.push(value);
        }
        sparse.offsets.push(sparse.indices.len() as u64);
    }
    let stored = sparse.indices.len() as u64;
    Ok(Loaded::new(sparse.into_csr(options.duplicates)?, stored, false))
}

/// Reads a `.npy` file of one or two dimensions as dense columns; a one-dimensional array is one column.
/// Other dimensions and numbers that are not finite are errors.
pub(super) fn read_vectors(text: Text) -> Result<Dense> {
    Array::parse(text, "the array", text.bytes)?.dense(false)
}

/// Reads a `.npy` file as dense columns. The numbers of several columns may be NaN or infinite.
pub(super) fn read_columns(text: Text) -> Result<Dense> {
    let array = Array::parse(text, "the array", text.bytes)?;
    let several = matches!(*array.shape(), [_, columns] if columns > 1);
    array.dense(several)
}

/// Passes the numbers that [`read_vectors`] returns, or with `columns` those that [`read_columns`] returns,
/// on in portions. Returns rows and columns.
pub(super) fn pass(text: Text, columns: bool, take: Take<'_>) -> Result<(usize, usize)> {
    let array = Array::parse(text, "the array", text.bytes)?;
    let (rows, cols) = array.rows_and_columns()?;
    let by_columns = array.is_by_columns();
    array.convert(columns && cols > 1, &mut Vec::new(), |first, values| {
        if by_columns {
            let all = values.iter().zip(first..);
            all.for_each(|(value, index)| take(index % rows * cols + index / rows, &[*value]));
        } else {
            take(first, values);
        }
        values.clear();
    })?;
    Ok((rows, cols))
}

/// Writes vectors as a `.npy` file of f64: one column as a one-dimensional array, several as a
/// two-dimensional one.
pub fn write(path: &Path, vectors: &Dense) -> Result<()> {
    write_metered(path, vectors, None)
}

/// Writes vectors as [`write()`] does, and advances a meter.
pub fn write_metered(path: &Path, vectors: &Dense, meter: Option<&Meter>) -> Result<()> {
    if vectors.cols() == 1 {
        return write_numbers(path, &[vectors.rows()], vectors.values(), meter);
    }
    write_numbers(path, &[vectors.rows(), vectors.cols()], vectors.values(), meter)
}

/// Writes a vector as a one-dimensional array of f64.
pub fn write_vector(path: &Path, values: &[f64]) -> Result<()> {
    write_numbers(path, &[values.len()], values, None)
}

/// Writes vectors that come in portions as an array of f64, of one dimension if there is one vector.
pub(super) fn write_vectors(path: &Path, shape: [usize; 2], pass: &mut Pass<'_>) -> Result<()> {
    write_passed(path, if shape[1] == 1 { &shape[..1] } else { &shape }, pass)
}

/// Writes numbers that come in portions, in the order of the array, as an array of f64.
pub(crate) fn write_passed(path: &Path, shape: &[usize], pass: &mut Pass<'_>) -> Result<()> {
    crate::observe::write_file_with(path, Content::Answer, |file| {
        file.write_all(&header::encode("<f8", shape))?;
        pass(None, &mut |values| write_bytes(file, &mut values.iter().map(|v| v.to_le_bytes()), None))
    })
}

fn write_numbers(path: &Path, shape: &[usize], values: &[f64], meter: Option<&Meter>) -> Result<()> {
    if let Some(meter) = meter {
        meter.begin("writing", size_of_val(values) as u64);
    }
    crate::observe::write_file_with(path, Content::Answer, |file| {
        write_array(file, "<f8", shape, values.iter().map(|v| v.to_le_bytes()), meter)
    })
}

/// Writes an array's header and numbers.
pub(super) fn write_array<const N: usize>(
    out: &mut impl Write,
    descr: &str,
    shape: &[usize],
    mut numbers: impl Iterator<Item = [u8; N]>,
    meter: Option<&Meter>,
) -> std::io::Result<()> {
    out.write_all(&header::encode(descr, shape))?;
    write_bytes(out, &mut numbers, meter)
}

/// Writes the bytes of numbers.
fn write_bytes<const N: usize>(
    out: &mut impl Write,
    numbers: &mut impl Iterator<Item = [u8; N]>,
    meter: Option<&Meter>,
) -> std::io::Result<()> {
    /// Bytes per write.
    const PORTION: usize = 1 << 16;
    let mut portion = Vec::with_capacity(PORTION);
    loop {
        portion.clear();
        numbers.by_ref().take(PORTION / N).for_each(|number| portion.extend_from_slice(&number));
        if portion.is_empty() {
            return Ok(());
        }
        out.write_all(&portion)?;
        if let Some(meter) = meter {
            meter.add(portion.len() as u64);
        }
    }
}

/// Decompresses an array from an archive: up to `length` bytes, plus one byte that shows that there are more.
pub(super) fn unpack(text: Text, member: impl Read, length: u64) -> Result<Vec<u8>> {
    let most = length.saturating_add(1);
    read_all(text.path, "decompress", Metered { from: member.take(most), meter: text.meter }, most)
}
