//! Encodes numbers, texts and vectors as the bytes of a checkpoint, and decodes them.

use super::Identity;
use crate::device::{Ranks, RowNumbers};
use crate::scalar::Scalar;
use std::io::{self, Write};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// A byte that is not text, a name, and line ends that any conversion of text would change.
pub(super) const MAGIC: &[u8; 8] = b"\x93SCP\r\n\x1a\n";
/// Version of the layout; increment it when the layout changes.
const VERSION: u32 = 2;
/// Bytes of magic and version.
pub(super) const START: usize = 12;
/// Numbers converted to bytes at once.
const BLOCK: usize = 1 << 13;

const DAMAGED: &str = "it is truncated or damaged: its checksum is wrong";

/// Checks that a file begins with the magic and this version.
pub(super) fn check_start(start: &[u8; START]) -> Result<(), String> {
    let (magic, version) = start.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err("it is no checkpoint of this program".to_owned());
    }
    match version.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) {
        Some(VERSION) => Ok(()),
        other => {
            let version = other.unwrap_or(0);
            Err(format!("it has version {version} of the layout, and this program reads {VERSION}"))
        }
    }
}

/// Checks the checksum of a whole file, and returns the file's length without it, and the checksum.
pub(super) fn check_sum(bytes: &[u8]) -> Result<(usize, u64), String> {
    let (body, sum) = bytes.split_last_chunk().ok_or(DAMAGED)?;
    let sum = u64::from_le_bytes(*sum);
    if body.len() < START || sum != xxh3_64(body) {
        return Err(DAMAGED.to_owned());
    }
    Ok((body.len(), sum))
}

/// Writes a checkpoint and computes its checksum. After an error it writes nothing more, and [`finish`](Writer::finish) returns
/// the error: over ranks, the first rank collects the vectors of the others even if it cannot write them.
pub(in crate::solve) struct Writer<W> {
    out: W,
    ranks: Option<(Ranks, RowNumbers)>,
    sum: Box<Xxh3>,
    written: u64,
    error: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    /// Writes the identity. Over ranks, `ranks` has them and the numbers of this rank's rows.
    pub fn new(out: W, ranks: Option<(Ranks, RowNumbers)>, identity: &Identity) -> io::Result<Self> {
        let sum = Box::new(Xxh3::new());
        let mut writer = Writer { out, ranks, sum, written: 0, error: None };
        writer.bytes(MAGIC)?;
        writer.bytes(&VERSION.to_le_bytes())?;
        writer.count(identity.len())?;
        for (name, value) in identity {
            writer.text(name)?;
            writer.text(value)?;
        }
        Ok(writer)
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.written += bytes.len() as u64;
        if self.error.is_none() {
            self.error = self.out.write_all(bytes).err();
        }
        Ok(())
    }

    /// Writes a vector of which each rank has its rows, in the order of the matrix as given.
    pub fn rows<T: Scalar>(&mut self, mine: &[T]) -> io::Result<()> {
        let Some((ranks, numbers)) = &self.ranks else { return self.vector(mine) };
        let all = numbers.collect(ranks, mine).map_err(io::Error::other)?;
        self.vector(&all.unwrap_or_default())
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.count(text.len())?;
        self.bytes(text.as_bytes())
    }

    pub fn count(&mut self, count: usize) -> io::Result<()> {
        self.bytes(&(count as u64).to_le_bytes())
    }

    /// Writes a length and numbers in the width of their type.
    pub fn vector<T: Scalar>(&mut self, numbers: &[T]) -> io::Result<()> {
        self.count(numbers.len())?;
        let mut bytes = Vec::with_capacity(size_of::<T>() * BLOCK.min(numbers.len()));
        for block in numbers.chunks(BLOCK) {
            bytes.clear();
            for number in block {
                let number = number.to_f64();
                match size_of::<T>() {
                    4 => bytes.extend_from_slice(&(number as f32).to_le_bytes()),
                    _ => bytes.extend_from_slice(&number.to_le_bytes()),
                }
            }
            self.bytes(&bytes)?;
        }
        Ok(())
    }

    /// Writes the checksum and returns the length of the file.
    pub fn finish(mut self) -> io::Result<u64> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let sum = self.sum.digest();
        self.out.write_all(&sum.to_le_bytes())?;
        Ok(self.written + size_of_val(&sum) as u64)
    }
}

/// Reads numbers, texts and vectors from the bytes of a checkpoint. Errors complete a sentence about the file.
pub(in crate::solve) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Reader<'a> {
        Reader { rest }
    }

    /// Returns the number of bytes not read yet.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or("it ends too early")?;
        self.rest = rest;
        Ok(head)
    }

    pub fn count(&mut self) -> Result<usize, String> {
        let (head, rest) = self.rest.split_first_chunk().ok_or("it ends too early")?;
        self.rest = rest;
        let count = u64::from_le_bytes(*head);
        usize::try_from(count).map_err(|_| format!("{count} is more than this machine can address"))
    }

    fn text(&mut self) -> Result<String, String> {
        let length = self.count()?;
        String::from_utf8(self.bytes(length)?.to_vec()).map_err(|_| "a text in it is not UTF-8".to_owned())
    }

    pub(super) fn identity(&mut self) -> Result<Identity, String> {
        let pairs = self.count()?;
        (0..pairs).map(|_| Ok((self.text()?, self.text()?))).collect()
    }

    /// Reads a list of exactly `expected` numbers.
    pub fn vector<T: Scalar>(&mut self, expected: usize) -> Result<Vec<T>, String> {
        let numbers = self.list()?;
        match numbers.len() == expected {
            true => Ok(numbers),
            false => Err(format!("it has {} numbers instead of {expected}", numbers.len())),
        }
    }

    /// Reads the rows of this process, of which there are `n` with `k` columns, of a vector of `total` numbers.
    pub fn rows<T: Scalar>(
        &mut self,
        total: usize,
        (numbers, n, k): (&RowNumbers, usize, usize),
    ) -> Result<Vec<T>, String> {
        let mut all = self.vector(total)?;
        let RowNumbers::From(first) = numbers else { return Ok(numbers.pick(&all, n, k).into_owned()) };
        all.truncate((first + n) * k);
        all.drain(..first * k);
        Ok(all)
    }

    /// Reads a list of numbers.
    pub fn list<T: Scalar>(&mut self) -> Result<Vec<T>, String> {
        let length = self.count()?.checked_mul(size_of::<T>()).ok_or("it ends too early")?;
        let bytes = self.bytes(length)?;
        Ok(match size_of::<T>() {
            4 => bytes.as_chunks().0.iter().map(|b| T::from_f32(f32::from_le_bytes(*b))).collect(),
            _ => bytes.as_chunks().0.iter().map(|b| T::from_f64(f64::from_le_bytes(*b))).collect(),
        })
    }

    /// Checks that all bytes have been read.
    pub fn finish(self) -> Result<(), String> {
        match self.rest.len() {
            0 => Ok(()),
            more => Err(format!("it has {more} bytes after its end")),
        }
    }
}
