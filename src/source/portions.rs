//! Texts in portions of whole lines. Of a text that is compressed, no more than two portions are ever in memory: one
//! that is read, and the next one, which another thread unpacks meanwhile.

use super::gzip::{PORTION, Unpacking};
use super::text::{Text, without_mark};
use crate::error::{Error, Result};
use crate::parallel::threads_for;
use memchr::{memchr, memchr_iter};
use std::mem::swap;

/// Portions of a text in memory, about: what is made of one takes little then beside all of them, and threads seldom wait
/// for the last of them to be done with one.
const MOST: usize = 32;

/// A text that can be gone over more than once.
#[derive(Clone, Copy)]
pub(super) struct Portions<'a> {
    /// The file, packed or not.
    pub file: Text<'a>,
    start: usize,
    packed: bool,
}

impl<'a> Portions<'a> {
    /// Of a text in memory, from `start` on.
    pub fn of(file: Text<'a>, start: usize) -> Portions<'a> {
        Portions { file, start, packed: false }
    }

    /// Of what a gzip file holds.
    pub fn unpacking(file: Text<'a>) -> Portions<'a> {
        Portions { file, start: 0, packed: true }
    }

    /// The same, of which the meter is not told.
    pub fn unmetered(self) -> Portions<'a> {
        Portions { file: Text { meter: None, ..self.file }, ..self }
    }

    /// Tells the meter that the text is read from here on.
    pub fn begin(&self) {
        self.file.begin("reading", self.file.bytes.len() - self.start);
    }

    /// Calls `visit` for each portion in turn, until one is an error: its lines are those of the text from the offset
    /// on.
    pub fn each(&self, visit: impl FnMut(Text, usize) -> Result<()> + Send) -> Result<()> {
        if self.packed { self.each_unpacked(visit) } else { self.each_in_memory(visit) }
    }

    fn each_in_memory(&self, mut visit: impl FnMut(Text, usize) -> Result<()>) -> Result<()> {
        let bytes = self.file.bytes;
        let mut start = self.start;
        let left = bytes.len() - start;
        let size = (PORTION * threads_for(left)).max(left / MOST);
        while start < bytes.len() {
            let near = bytes.len().min(start + size);
            let end = memchr(b'\n', &bytes[near..]).map_or(bytes.len(), |rest| near + rest + 1);
            // What comes before stays in sight, so that errors count its lines.
            visit(Text { bytes: &bytes[..end], ..self.file }, start)?;
            start = end;
        }
        Ok(())
    }

    fn each_unpacked(&self, mut visit: impl FnMut(Text, usize) -> Result<()> + Send) -> Result<()> {
        let mut unpacking = Unpacking::new(self.file);
        let (mut portion, mut next) = (Vec::new(), Vec::new());
        let mut end = unpacking.fill(&mut portion, &[])?;
        let mut lines = 0;
        loop {
            let (whole, cut) = portion.split_at(end);
            let bytes = if lines == 0 { without_mark(whole) } else { whole };
            let mut read = || {
                visit(Text { bytes, meter: None, ..self.file }, 0).map_err(|error| below(lines, error))?;
                Ok(memchr_iter(b'\n', bytes).count() as u64)
            };
            if unpacking.ended {
                return read().map(drop);
            }
            let (read, filled) = rayon::join(read, || unpacking.fill(&mut next, cut));
            if let Err(Error::Parse { .. }) = read {
                // What damage has made of the text is no fault of the text.
                filled?;
                unpacking.check()?;
                return read.map(drop);
            }
            lines += read?;
            end = filled?;
            swap(&mut portion, &mut next);
        }
    }
}

/// An error in a portion that has so many lines of the text above it.
fn below(lines: u64, error: Error) -> Error {
    match error {
        Error::Parse { path, line, column, expected, found } => {
            Error::Parse { path, line: lines + line, column, expected, found }
        }
        other => other,
    }
}
