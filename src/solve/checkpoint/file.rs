//! Encodes numbers, texts and vectors as the bytes of a checkpoint, and decodes them.

use super::Identity;
use crate::device::{Ranks, RowNumbers};
use crate::parallel::{room, zeros};
use crate::scalar::Scalar;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use xxhash_rust::xxh3::Xxh3;

/// A byte that is not text, a name, and line ends that any conversion of text would change.
pub(super) const MAGIC: &[u8; 8] = b"\x93SCP\r\n\x1a\n";
/// Version of the layout; increment it when the layout changes.
const VERSION: u32 = 2;
/// Bytes of magic and version.
pub(super) const START: usize = 12;
/// Bytes read at once.
const PORTION: usize = 1 << 20;
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

/// Checks the checksum of a whole file, which has this length and is read in portions. Returns the file's
/// length without the checksum, and the checksum.
pub(super) fn check_sum(mut file: &File, length: u64) -> io::Result<Result<(u64, u64), String>> {
    let damaged = || Ok(Err(DAMAGED.to_owned()));
    let Some(body) = length.checked_sub(size_of::<u64>() as u64).filter(|body| *body >= START as u64) else {
        return damaged();
    };
    file.rewind()?;
    let (mut hash, mut left, mut bytes) = (Xxh3::new(), body, vec![0; PORTION]);
    while left > 0 {
        let portion = &mut bytes[..left.min(PORTION as u64) as usize];
        file.read_exact(portion)?;
        hash.update(portion);
        left -= portion.len() as u64;
    }
    let mut sum = [0; size_of::<u64>()];
    file.read_exact(&mut sum)?;
    let sum = u64::from_le_bytes(sum);
    if sum == hash.digest() { Ok(Ok((body, sum))) } else { damaged() }
}

/// Writes a checkpoint and computes its checksum. After an error it writes nothing more, and
/// [`finish`](Writer::finish) returns the error: over ranks, the first rank collects the vectors of the
/// others even if it cannot write them.
pub(in crate::solve) struct Writer<W> {
    out: W,
    ranks: Option<(Ranks, RowNumbers)>,
    sum: Box<Xxh3>,
    written: u64,
    error: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    /// Writes the identity. Over ranks, `ranks` has them and the numbers of this rank's rows.
    pub(crate) fn new(out: W, ranks: Option<(Ranks, RowNumbers)>, identity: &Identity) -> io::Result<Self> {
        let sum = Box::new(Xxh3::new());
        let mut writer = Writer { out, ranks, sum, written: 0, error: None };
        writer.bytes(MAGIC);
        writer.bytes(&VERSION.to_le_bytes());
        writer.count(identity.len())?;
        for (name, value) in identity {
            writer.text(name)?;
            writer.text(value)?;
        }
        Ok(writer)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.written += bytes.len() as u64;
        if self.error.is_none() {
            self.error = self.out.write_all(bytes).err();
        }
    }

    /// Writes a vector of which each rank has its rows, in the order of the matrix as given.
    pub(crate) fn rows<T: Scalar>(&mut self, mine: &[T]) -> io::Result<()> {
        let Some((ranks, numbers)) = self.ranks.clone() else { return self.vector(mine) };
        self.count(ranks.total(mine.len() as u64) as usize)?;
        numbers.collect_in_portions(&ranks, mine, |portion| self.numbers(portion)).map_err(io::Error::other)
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.count(text.len())?;
        self.bytes(text.as_bytes());
        Ok(())
    }

    pub(crate) fn count(&mut self, count: usize) -> io::Result<()> {
        self.bytes(&(count as u64).to_le_bytes());
        Ok(())
    }

    /// Writes a length and numbers in the width of their type.
    pub(crate) fn vector<T: Scalar>(&mut self, numbers: &[T]) -> io::Result<()> {
        self.count(numbers.len())?;
        self.numbers(numbers);
        Ok(())
    }

    fn numbers<T: Scalar>(&mut self, numbers: &[T]) {
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
            self.bytes(&bytes);
        }
    }

    /// Writes the checksum and returns the length of the file.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let sum = self.sum.digest();
        self.out.write_all(&sum.to_le_bytes())?;
        Ok(self.written + size_of_val(&sum) as u64)
    }
}

/// Reads numbers, texts and vectors from a part of a checkpoint. Errors complete a sentence about the file.
pub(in crate::solve) struct Reader<'a> {
    from: BufReader<&'a File>,
    /// Bytes that are not read yet.
    left: u64,
}

fn unreadable(error: io::Error) -> String {
    format!("it cannot be read: {error}")
}

impl<'a> Reader<'a> {
    /// Reads the bytes from `start` to `end`.
    pub(super) fn new(mut file: &'a File, start: u64, end: u64) -> Result<Reader<'a>, String> {
        file.seek(SeekFrom::Start(start)).map_err(unreadable)?;
        Ok(Reader { from: BufReader::with_capacity(1 << 16, file), left: end - start })
    }

    /// Returns the number of bytes not read yet.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Counts bytes that are read next.
    fn take(&mut self, count: u64) -> Result<(), String> {
        self.left = self.left.checked_sub(count).ok_or("it ends too early")?;
        Ok(())
    }

    pub(crate) fn count(&mut self) -> Result<usize, String> {
        let mut bytes = [0; size_of::<u64>()];
        self.take(bytes.len() as u64)?;
        self.from.read_exact(&mut bytes).map_err(unreadable)?;
        let count = u64::from_le_bytes(bytes);
        usize::try_from(count).map_err(|_| format!("{count} is more than this machine can address"))
    }

    fn text(&mut self) -> Result<String, String> {
        let length = self.count()?;
        self.take(length as u64)?;
        let mut bytes = vec![0; length];
        self.from.read_exact(&mut bytes).map_err(unreadable)?;
        String::from_utf8(bytes).map_err(|_| "a text in it is not UTF-8".to_owned())
    }

    pub(super) fn identity(&mut self) -> Result<Identity, String> {
        let pairs = self.count()?;
        (0..pairs).map(|_| Ok((self.text()?, self.text()?))).collect()
    }

    /// Reads a list of exactly `expected` numbers.
    pub(crate) fn vector<T: Scalar>(&mut self, expected: usize) -> Result<Vec<T>, String> {
        self.check_count(expected)?;
        self.numbers(expected)
    }

    fn check_count(&mut self, expected: usize) -> Result<(), String> {
        match self.count()? {
            count if count == expected => Ok(()),
            count => Err(format!("it has {count} numbers instead of {expected}")),
        }
    }

    /// Reads the rows of this process, of which there are `n` with `k` columns, of a vector of `total`
    /// numbers. No other rows are kept.
    pub(crate) fn rows<T: Scalar>(
        &mut self,
        total: usize,
        (numbers, n, k): (&RowNumbers, usize, usize),
    ) -> Result<Vec<T>, String> {
        self.check_count(total)?;
        if let RowNumbers::From(first) = numbers {
            self.skip::<T>(first * k)?;
            let mine = self.numbers(n * k)?;
            self.skip::<T>(total - (first + n) * k)?;
            return Ok(mine);
        }
        let mut mine = zeros(n * k).map_err(|error| error.to_string())?;
        for at in (0..total).step_by(PORTION) {
            let part: Vec<T> = self.numbers(PORTION.min(total - at))?;
            numbers.keep(at, &part, &mut mine, k);
        }
        Ok(mine)
    }

    fn skip<T: Scalar>(&mut self, count: usize) -> Result<(), String> {
        let bytes = (count * size_of::<T>()) as u64;
        self.take(bytes)?;
        self.from.seek_relative(bytes.cast_signed()).map_err(unreadable)
    }

    /// Reads a list of numbers.
    pub(crate) fn list<T: Scalar>(&mut self) -> Result<Vec<T>, String> {
        let count = self.count()?;
        self.numbers(count)
    }

    fn numbers<T: Scalar>(&mut self, count: usize) -> Result<Vec<T>, String> {
        self.take((count as u64).checked_mul(size_of::<T>() as u64).ok_or("it ends too early")?)?;
        let mut numbers: Vec<T> = room(count).map_err(|error| error.to_string())?;
        let mut bytes = vec![0; size_of::<T>() * BLOCK.min(count)];
        while numbers.len() < count {
            let bytes = &mut bytes[..size_of::<T>() * BLOCK.min(count - numbers.len())];
            self.from.read_exact(bytes).map_err(unreadable)?;
            match size_of::<T>() {
                4 => numbers.extend(bytes.as_chunks().0.iter().map(|b| T::from_f32(f32::from_le_bytes(*b)))),
                _ => numbers.extend(bytes.as_chunks().0.iter().map(|b| T::from_f64(f64::from_le_bytes(*b)))),
            }
        }
        Ok(numbers)
    }

    /// Checks that all bytes have been read.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.left {
            0 => Ok(()),
            more => Err(format!("it has {more} bytes after its end")),
        }
    }
}
