//! NumPy arrays (`.npy`): a header in Python's syntax, then the numbers as they lie in memory.
//!
//! Read are booleans, integers of 8 to 64 bits and floating point of 32 and 64 bits, of either byte order, in the order
//! of C or of Fortran; complex numbers where all of them are real. Two dimensions are a matrix, whose entries are
//! the numbers other than 0, or vectors in columns; one dimension is a vector.

mod header;
mod numbers;

use super::compressed::Compressed;
use super::inflate::{Metered, read_all};
use super::text::{Text, check_rows};
use super::{Loaded, Options};
use crate::error::{Error, Result};
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
/// Bytes of the longest header that is read from an archive: all that the first version of the format can have, and more.
const LONGEST_HEADER: u64 = 1 << 17;
/// Bytes that are turned into numbers at a time: whole numbers of any type.
const PIECE: usize = 1 << 20;

/// An array in memory: its header, and its bytes as they are.
pub(super) struct Array<'a> {
    /// The file, or the file and the member of it.
    text: Text<'a>,
    /// What errors call it.
    name: &'a str,
    header: Header,
    bytes: &'a [u8],
}

/// Whether the bytes begin as every `.npy` file does.
pub(super) fn recognises(text: Text) -> bool {
    text.bytes.starts_with(MAGIC)
}

impl<'a> Array<'a> {
    /// Reads the header, and checks that there are as many numbers as it says.
    pub fn parse(text: Text<'a>, name: &'a str, bytes: &'a [u8]) -> Result<Array<'a>> {
        let (header, start) = parse_header(text, name, bytes)?;
        text.advance(start);
        let bytes = &bytes[start..];
        // Of what is compressed, no more than one byte too many is unpacked.
        let found = match header.bytes() {
            Some(needed) if bytes.len() as u64 > needed => "more".to_owned(),
            _ => bytes.len().to_string(),
        };
        check_length(text, name, &header, bytes.len() as u64, found)?;
        Ok(Array { text, name, header, bytes })
    }

    pub fn shape(&self) -> &[u64] {
        &self.header.shape
    }

    pub fn shape_in_words(&self) -> String {
        self.header.shape_in_words()
    }

    /// Whether the order is that of Fortran, and differs from that of C.
    pub fn is_by_columns(&self) -> bool {
        self.header.fortran && self.header.shape.iter().filter(|&&size| size > 1).count() > 1
    }

    /// The text in an array of one string, whatever its encoding.
    pub fn string(&self) -> Option<String> {
        self.text.advance(self.bytes.len());
        self.header.string(self.bytes)
    }

    /// An error about this array.
    pub fn malformed(&self, expected: impl Into<String>, found: impl Into<String>) -> Error {
        malformed(self.text.path, self.name, expected.into(), found.into())
    }

    /// The numbers in pieces, each with the place of its first; the meter is told as they are taken.
    fn pieces(&self) -> Result<impl Iterator<Item = (usize, Numbers<'a>)>> {
        let first = Numbers::new(&self.header, &[]);
        let first = first.ok_or_else(|| unreadable(self.text.path, self.name, &self.header))?;
        let (text, width) = (self.text, self.header.width());
        Ok(self.bytes.chunks(PIECE).enumerate().map(move |(piece, bytes)| {
            text.advance(bytes.len());
            (piece * PIECE / width, first.with(bytes))
        }))
    }

    /// The numbers as f64, in the order of the file, all of them finite.
    pub fn values(&self) -> Result<Vec<f64>> {
        let mut values = room(self.bytes.len() / self.header.width())?;
        let mut rounded = None;
        for (first, numbers) in self.pieces()? {
            numbers.values(&mut values).map_err(|(place, expected, found)| {
                let name = format!("{}[{}]", self.name, first + place);
                malformed(self.text.path, &name, expected.to_owned(), found)
            })?;
            rounded = rounded.or_else(|| numbers.first_rounded().map(|(place, n)| (first + place, n)));
        }
        if let Some((place, number)) = rounded {
            let (path, name) = (self.text.path.display(), self.name);
            log::warn!("{path}: {name}[{place}] is {number}, which f64 rounds to {}", number as f64);
        }
        Ok(values)
    }

    /// The numbers as integers within the range.
    pub fn integers<T: TryFrom<i128>>(&self, what: &str, range: RangeInclusive<i128>) -> Result<Vec<T>> {
        let mut integers = room(self.bytes.len() / self.header.width())?;
        for (first, numbers) in self.pieces()? {
            let numbers = numbers.integers();
            let numbers = numbers.ok_or_else(|| self.malformed("integers", self.header.descr.clone()))?;
            for (place, number) in numbers.enumerate() {
                let found = T::try_from(number).ok().filter(|_| range.contains(&number));
                integers.push(found.ok_or_else(|| {
                    let name = format!("{}[{}]", self.name, first + place);
                    let expected = format!("{what} from {} to {}", range.start(), range.end());
                    malformed(self.text.path, &name, expected, number.to_string())
                })?);
            }
        }
        Ok(integers)
    }

    /// The array as rows and columns; a vector is one column.
    fn dense(&self) -> Result<Dense> {
        let (rows, cols) = match *self.shape() {
            [rows] => (rows, 1),
            [rows, cols] => (rows, cols),
            _ => return Err(self.malformed("1 or 2 dimensions", format!("{}", self.shape().len()))),
        };
        if rows.max(cols) > u64::from(u32::MAX) {
            let expected = format!("at most {} rows and columns", u32::MAX);
            return Err(self.malformed(expected, self.shape_in_words()));
        }
        let (rows, cols) = (rows as usize, cols as usize);
        let mut values = self.values()?;
        if self.is_by_columns() {
            values =
                (0..rows).flat_map(|i| (0..cols).map(move |j| j * rows + i)).map(|k| values[k]).collect();
        }
        Dense::new(rows, cols, values)
    }
}

/// The header of an array whose numbers have a width, with the offset at which they begin.
fn parse_header(text: Text, name: &str, bytes: &[u8]) -> Result<(Header, usize)> {
    let fault = |(expected, found)| malformed(text.path, name, expected, found);
    let (header, start) = header::parse(bytes).map_err(fault)?;
    if header.width() == 0 {
        return Err(unreadable(text.path, name, &header));
    }
    Ok((header, start))
}

/// Refuses an array whose numbers do not take as many bytes as its shape needs; `found` says how many they take.
fn check_length(text: Text, name: &str, header: &Header, bytes: u64, found: String) -> Result<()> {
    if header.bytes() == Some(bytes) {
        return Ok(());
    }
    let needs = header.bytes().map_or("more than 2^64".to_owned(), |size| size.to_string());
    let expected = format!("{needs} bytes of numbers for the shape {}", header.shape_in_words());
    Err(malformed(text.path, name, expected, found))
}

/// Bytes of the file that begins with these: its header and the numbers of its shape. None where that is no array.
pub(super) fn length(head: &[u8]) -> Option<u64> {
    let (header, start) = header::parse(head).ok()?;
    header.bytes()?.checked_add(start as u64)
}

/// The shape of an array in an archive by its header, and the bytes of both together: `claimed` of them, as the archive
/// says. No more than the header is unpacked.
pub(super) fn shape_of(text: Text, name: &str, member: impl Read, claimed: u64) -> Result<Vec<u64>> {
    let mut head = Vec::new();
    let came = member.take(LONGEST_HEADER).read_to_end(&mut head);
    came.map_err(|source| Error::Io { action: "decompress", path: text.path.to_owned(), source })?;
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
    Error::Malformed { path: path.to_owned(), place: name.to_owned(), expected, found }
}

/// Reads a two-dimensional array as a matrix: its entries are the numbers other than 0.
pub(super) fn read(text: Text, options: &Options) -> Result<Loaded> {
    text.begin("reading", text.bytes.len());
    let array = Array::parse(text, "the array", text.bytes)?;
    if array.shape().len() == 1 {
        return Err(text.unsupported(
            "a one-dimensional array as a matrix",
            "a matrix has two dimensions; a vector can be a right-hand side",
        ));
    }
    let dense = array.dense()?;
    let (rows, cols) = (dense.rows(), dense.cols());
    // An array of no columns takes no bytes, and can claim any number of rows.
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

/// Reads an array as vectors in columns; one dimension is one column.
pub(super) fn read_vectors(text: Text) -> Result<Dense> {
    Array::parse(text, "the array", text.bytes)?.dense()
}

/// Writes vectors as a `.npy` file of f64: one column as an array of one dimension, several as rows and columns.
pub fn write(path: &Path, vectors: &Dense) -> Result<()> {
    write_metered(path, vectors, None)
}

/// Likewise, telling a meter how far it has come.
pub fn write_metered(path: &Path, vectors: &Dense, meter: Option<&Meter>) -> Result<()> {
    if vectors.cols() == 1 {
        return write_numbers(path, &[vectors.rows()], vectors.values(), meter);
    }
    write_numbers(path, &[vectors.rows(), vectors.cols()], vectors.values(), meter)
}

/// Writes a vector likewise.
pub fn write_vector(path: &Path, values: &[f64]) -> Result<()> {
    write_numbers(path, &[values.len()], values, None)
}

fn write_numbers(path: &Path, shape: &[usize], values: &[f64], meter: Option<&Meter>) -> Result<()> {
    if let Some(meter) = meter {
        meter.begin("writing", size_of_val(values) as u64);
    }
    crate::observe::write_file_with(path, |file| {
        write_array(file, "<f8", shape, values.iter().map(|v| v.to_le_bytes()), meter)
    })
}

/// Writes an array: header and numbers.
pub(super) fn write_array<const N: usize>(
    out: &mut impl Write,
    descr: &str,
    shape: &[usize],
    mut numbers: impl Iterator<Item = [u8; N]>,
    meter: Option<&Meter>,
) -> std::io::Result<()> {
    /// Bytes that are gathered for each write.
    const PIECE: usize = 1 << 16;
    out.write_all(&header::encode(descr, shape))?;
    let mut piece = Vec::with_capacity(PIECE);
    loop {
        piece.clear();
        numbers.by_ref().take(PIECE / N).for_each(|number| piece.extend_from_slice(&number));
        if piece.is_empty() {
            return Ok(());
        }
        out.write_all(&piece)?;
        if let Some(meter) = meter {
            meter.add(piece.len() as u64);
        }
    }
}

/// Unpacks an array from an archive: `length` bytes, and one more where there are more.
pub(super) fn unpack(text: Text, member: impl Read, length: u64) -> Result<Vec<u8>> {
    let most = length.saturating_add(1);
    read_all(text.path, "decompress", Metered { from: member.take(most), meter: text.meter }, most)
}
