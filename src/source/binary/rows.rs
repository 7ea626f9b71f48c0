//! Some rows of a binary matrix file. Only the blocks that contain them are read and checked.

use super::array::{self, Element};
use super::header::{BLOCK, Header, Kind, blocks};
use crate::error::{Error, Result};
use crate::format::{Csr, Offsets, Values};
use std::ops::Range;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// The arrays of a file, in its order.
const OFFSETS: usize = 0;
const COLUMNS: usize = 1;
const VALUES: usize = 2;

/// A binary matrix file whose header has been checked.
pub(in crate::source) struct FileRows<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    header: Header,
}

impl<'a> FileRows<'a> {
    pub(crate) fn new(path: &'a Path, bytes: &'a [u8]) -> Result<FileRows<'a>> {
        let header =
            Header::decode(bytes).map_err(|reason| Error::Binary { path: path.to_owned(), reason })?;
        let file = FileRows { path, bytes, header };
        if file.header.symmetric && file.header.rows != file.header.cols {
            return Err(file.fault("it marks a matrix as symmetric that is not square"));
        }
        Ok(file)
    }

    /// Returns a number that files with other content hardly share, from the checksums in the header.
    pub(crate) fn fingerprint(&self) -> u64 {
        let flags = u64::from(self.header.symmetric);
        xxh3_64(bytemuck::cast_slice(&self.header.checksums)).wrapping_add(flags)
    }

    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.header.rows, self.header.cols)
    }

    pub(crate) fn entries(&self) -> usize {
        self.header.entries
    }

    pub(crate) fn is_symmetric(&self) -> bool {
        self.header.symmetric
    }

    pub(crate) fn stand_in(&self) -> Option<&'static str> {
        self.header.stand_in
    }

    fn fault(&self, reason: impl Into<String>) -> Error {
        Error::Binary { path: self.path.to_owned(), reason: reason.into() }
    }

    /// Returns the number of entries before a row, as the file says: its block is checked when
    /// the row is read.
    pub(crate) fn entries_before(&self, row: usize) -> usize {
        let (span, width) = (&self.header.arrays()[OFFSETS], self.header.offset_width);
        let bytes = &self.bytes[span.start + row * width..][..width];
        let mut number = [0; 8];
        number[..width].copy_from_slice(bytes);
        usize::try_from(u64::from_le_bytes(number)).unwrap_or(usize::MAX).min(self.header.entries)
    }

    /// Reads some rows; their columns are those of the whole matrix.
    pub(crate) fn read(&self, rows: Range<usize>) -> Result<Csr> {
        let offsets: Vec<u64> = match self.header.offset_width {
            4 => self.part::<u32>(OFFSETS, rows.start..rows.end + 1)?.into_iter().map(u64::from).collect(),
            _ => self.part::<u64>(OFFSETS, rows.start..rows.end + 1)?,
        };
        let (first, last) = (offsets[0], offsets[rows.len()]);
        let begins = rows.start > 0 || first == 0;
        let ends = rows.end < self.header.rows || last == self.header.entries as u64;
        if first > last || last > self.header.entries as u64 || !begins || !ends {
            let reason = format!("the offsets of its rows {} to {} are wrong", rows.start + 1, rows.end);
            return Err(self.fault(reason));
        }
        let entries = first as usize..last as usize;
        let columns = self.part(COLUMNS, entries.clone())?;
        let values = match self.header.values {
            Kind::Ones => Values::Ones,
            Kind::F32 => Values::F32(self.part(VALUES, entries)?),
            Kind::F64 => Values::F64(self.part(VALUES, entries)?),
        };
        let offsets = offsets.into_iter().map(|offset| offset.wrapping_sub(first)).collect();
        let made = Csr::new(rows.len(), self.header.cols, Offsets::narrowest(offsets), columns, values);
        made.map_err(|error| match error {
            Error::InvalidCsr(e) => self.fault(format!("in its rows from {} on, {e}", rows.start + 1)),
            other => other,
        })
    }

    /// Reads some elements of an array, and checks the blocks that contain them.
    fn part<T: Element>(&self, array: usize, elements: Range<usize>) -> Result<Vec<T>> {
        let arrays = self.header.arrays();
        let span = &arrays[array];
        let before: usize = arrays[..array].iter().map(|span| blocks(span.length)).sum();
        let own = elements.start * T::WIDTH / BLOCK..(elements.end * T::WIDTH).div_ceil(BLOCK);
        if own.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = own.start * BLOCK..(own.end * BLOCK).min(span.length);
        let sums = &self.header.checksums[before + own.start..before + own.end];
        let read = array::read(&self.bytes[span.start..][bytes.clone()], sums, None)?;
        let mut numbers: Vec<T> = read.map_err(|block| {
            let block = own.start + block;
            self.fault(format!("it is damaged: the checksum of block {block} of its {} is wrong", span.name))
        })?;
        numbers.drain(..elements.start - bytes.start / T::WIDTH);
        numbers.truncate(elements.len());
        Ok(numbers)
    }
}
