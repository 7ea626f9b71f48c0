//! The labels of the vertices of a graph, and the search for a vertex by its label.

use super::text::{Fault, Text, without_mark};
use super::tokens::line_at;
use super::{gzip, mmap};
use crate::error::{Error, Result};
use crate::files::Content;
use crate::memory::fetch;
use crate::observe::write_file_with;
use crate::parallel::{grow, zeros};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Labels of the rows of a matrix. A label is text without control characters other than tabs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// All labels, concatenated.
    text: Vec<u8>,
    /// The end of each label in `text`.
    ends: Vec<usize>,
}

impl Labels {
    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of bytes of all labels.
    pub(crate) fn bytes_of_all(&self) -> u64 {
        self.text.len() as u64
    }

    /// Checks whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the label of a row.
    pub fn get(&self, row: usize) -> Option<&str> {
        (row < self.len()).then(|| std::str::from_utf8(self.bytes(row)).unwrap_or_default())
    }

    /// Iterates over the labels in the order of the rows.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|row| self.get(row))
    }

    /// Adds the label of the next row.
    pub fn push(&mut self, label: &str) -> Result<()> {
        self.push_bytes(label.as_bytes())
    }

    /// Adds the label of the next row, which is already [`checked`].
    #[inline]
    fn push_bytes(&mut self, label: &[u8]) -> Result<()> {
        grow(&mut self.text, label.len())?;
        grow(&mut self.ends, 1)?;
        self.text.extend_from_slice(label);
        self.ends.push(self.text.len());
        Ok(())
    }

    #[inline]
    fn bytes(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.text[start..self.ends[row]]
    }

    /// Selects the labels of the given rows, in the order of `rows`.
    pub(crate) fn of_rows(&self, rows: &[u32]) -> Result<Labels> {
        let mut selected = Labels::default();
        rows.iter().filter_map(|&row| self.get(row as usize)).try_for_each(|label| selected.push(label))?;
        Ok(selected)
    }

    /// Reads a file with one label per line, plain or compressed with gzip. An empty line is an empty label.
    pub fn read(path: &Path) -> Result<Labels> {
        mmap::with(path, |bytes| Labels::parse(path, bytes))
    }

    /// Parses such a file from memory; `path` appears in error messages.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Labels> {
        let file = Text { path, bytes, meter: None, lines: 0 };
        if !gzip::is_gzip(bytes) {
            return parse_lines(Text { bytes: without_mark(bytes), ..file });
        }
        let unpacked = gzip::decompress(file, u64::MAX)?;
        parse_lines(Text { bytes: without_mark(&unpacked), ..file })
    }

    /// Writes a file with one label per line.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_file_with(path, Content::Result, |out| {
            self.iter().try_for_each(|label| writeln!(out, "{label}"))
        })
    }

    /// Builds the hash table for `LabelIndex::find`.
    pub fn index(&self) -> Result<LabelIndex<'_>> {
        let mut table = Table::default();
        for row in 0..self.len() {
            table.make_room()?;
            let hash = hash(self.bytes(row));
            match table.find(hash, |other| self.bytes(other) == self.bytes(row)) {
                Lookup::Row(first) => table.repeats.push(first as u32),
                Lookup::Empty(slot) => table.put(slot, hash, row as u32),
            }
        }
        table.repeats.sort_unstable();
        Ok(LabelIndex { labels: self, table })
    }
}

/// Checks that the bytes are a valid label; `at` is their offset in the text.
#[inline]
pub(super) fn checked(bytes: &[u8], at: usize) -> std::result::Result<&str, Box<Fault>> {
    if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        // ASCII is valid UTF-8, so the default is never used.
        return Ok(std::str::from_utf8(bytes).unwrap_or_default());
    }
    check_characters(bytes, at)
}

#[cold]
fn check_characters(bytes: &[u8], at: usize) -> std::result::Result<&str, Box<Fault>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let byte = bytes[error.valid_up_to()];
        let expected = "a name in UTF-8; convert the file with iconv".to_owned();
        Box::new(Fault {
            at: at + error.valid_up_to(),
            expected,
            found: Some(format!("the byte {byte:02x}")),
        })
    })?;
    match text.char_indices().find(|(_, c)| c.is_control() && *c != '\t') {
        None => Ok(text),
        Some((offset, c)) => {
            let expected = "a name without control characters".to_owned();
            Err(Box::new(Fault { at: at + offset, expected, found: Some(c.escape_default().to_string()) }))
        }
    }
}

fn parse_lines(text: Text) -> Result<Labels> {
    let mut labels = Labels::default();
    let mut at = 0;
    while at < text.bytes.len() {
        let (line, next) = line_at(text.bytes, at);
        labels.push(checked(line, at).map_err(|fault| text.error(*fault))?)?;
        at = next;
    }
    Ok(labels)
}

/// The seed of the hash, different in each process, so that no file can be crafted to make its labels
/// collide. The numbering of labels does not depend on the seed.
static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0_u8));

/// Returns the 32 bits of a label's hash that the hash tables store.
#[inline]
pub(super) fn hash(label: &[u8]) -> u32 {
    xxh3_64_with_seed(label, *SEED) as u32
}

/// Labels with a hash table, for finding a row by its label.
pub struct LabelIndex<'a> {
    labels: &'a Labels,
    table: Table,
}

impl LabelIndex<'_> {
    /// Returns the first row with the label, and whether it is the only one.
    pub fn find(&self, label: &str) -> Option<(usize, bool)> {
        let same = |row: usize| self.labels.bytes(row) == label.as_bytes();
        match self.table.find(hash(label.as_bytes()), same) {
            Lookup::Row(row) => Some((row, self.table.repeats.binary_search(&(row as u32)).is_err())),
            Lookup::Empty(_) => None,
        }
    }
}

/// A table that numbers names consecutively from 0, in the order of their first occurrence.
#[derive(Default)]
pub struct Interner {
    pub(super) labels: Labels,
    table: Table,
}

impl Interner {
    /// Returns the number of a name.
    pub fn number_of(&mut self, name: &str) -> Result<u32> {
        self.number(name.as_bytes(), hash(name.as_bytes()))
    }

    /// Returns the number of a name, which is already [`checked`].
    #[inline]
    pub(super) fn number(&mut self, name: &[u8], hash: u32) -> Result<u32> {
        self.table.make_room()?;
        match self.table.find(hash, |row| self.labels.bytes(row) == name) {
            Lookup::Row(row) => Ok(row as u32),
            Lookup::Empty(slot) => {
                let row = self.labels.len() as u32;
                self.labels.push_bytes(name)?;
                self.table.put(slot, hash, row);
                Ok(row)
            }
        }
    }

    /// Prefetches the first slot that a search for this hash reads.
    #[inline]
    pub(super) fn expect(&self, hash: u32) {
        fetch(&self.table.slots, hash as usize & self.table.slots.len().wrapping_sub(1));
    }

    /// Prefetches the position of the label that a search for this hash compares; call it some time after
    /// [`Interner::expect`].
    #[inline]
    pub(super) fn expect_slot(&self, hash: u32) {
        if let Some(row) = self.first_row(hash) {
            fetch(&self.labels.ends, row.saturating_sub(1));
        }
    }

    /// Prefetches that label's text; call it some time after [`Interner::expect_slot`].
    #[inline]
    pub(super) fn expect_label(&self, hash: u32) {
        if let Some(row) = self.first_row(hash) {
            fetch(&self.labels.text, row.checked_sub(1).map_or(0, |before| self.labels.ends[before]));
        }
    }

    /// Returns the row in the first slot that a search for this hash reads.
    #[inline]
    fn first_row(&self, hash: u32) -> Option<usize> {
        let slot = *self.table.slots.get(hash as usize & self.table.slots.len().wrapping_sub(1))?;
        (slot != 0).then(|| (slot as u32 - 1) as usize)
    }
}

enum Lookup {
    Row(usize),
    /// The empty slot for a label that the table lacks.
    Empty(usize),
}

/// A hash table of rows with open addressing. Unlike the standard library's, it reports failed allocations as
/// errors and its slots can be prefetched.
#[derive(Default)]
struct Table {
    /// The hash in the upper half and the row plus 1 in the lower half; 0 for an empty slot.
    /// The length is a power of 2.
    slots: Vec<u64>,
    used: usize,
    /// First rows of labels that occur more than once.
    repeats: Vec<u32>,
}

impl Table {
    /// Makes room for one more row; at least half of the slots stay empty.
    #[inline]
    fn make_room(&mut self) -> Result<()> {
        if 2 * self.used < self.slots.len() { Ok(()) } else { self.double() }
    }

    #[cold]
    fn double(&mut self) -> Result<()> {
        if self.used >= u32::MAX as usize - 1 {
            let (what, limit) = ("the number of names", u128::from(u32::MAX) - 1);
            return Err(Error::TooLarge { what, value: self.used as u128 + 1, limit, container: "a graph" });
        }
        let wider = zeros(if self.slots.is_empty() { 1 << 10 } else { 2 * self.slots.len() })?;
        let old = std::mem::replace(&mut self.slots, wider);
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            let mut index = (slot >> 32) as usize & mask;
            while self.slots[index] != 0 {
                index = (index + 1) & mask;
            }
            self.slots[index] = slot;
        }
        Ok(())
    }

    #[inline]
    fn find(&self, hash: u32, same: impl Fn(usize) -> bool) -> Lookup {
        if self.slots.is_empty() {
            return Lookup::Empty(0);
        }
        let mask = self.slots.len() - 1;
        let mut index = hash as usize & mask;
        loop {
            let slot = self.slots[index];
            if slot == 0 {
                return Lookup::Empty(index);
            }
            let row = (slot as u32 - 1) as usize;
            if (slot >> 32) as u32 == hash && same(row) {
                return Lookup::Row(row);
            }
            index = (index + 1) & mask;
        }
    }

    #[inline]
    fn put(&mut self, slot: usize, hash: u32, row: u32) {
        self.slots[slot] = u64::from(hash) << 32 | u64::from(row + 1);
        self.used += 1;
    }
}
