//! Splits texts into portions of complete lines. At most two portions of a compressed text are in memory: the
//! one being parsed and the next one, which another thread decompresses meanwhile.

use super::gzip::{PORTION, Unpacking};
use super::text::{Text, without_mark};
use crate::error::{Error, Result};
use crate::parallel::threads_for;
use memchr::{memchr, memchr_iter};
use std::mem::swap;

/// Approximate maximum number of portions of a text in memory: enough that the parsed edges of one portion
/// take little memory compared with the whole graph, and few enough that threads seldom wait for each other
/// at the end of a portion.
const MAX_PORTIONS: usize = 32;

/// A text that can be traversed more than once, in portions.
#[derive(Clone, Copy)]
pub(super) struct Portions<'a> {
    /// The file, compressed or not.
    pub file: Text<'a>,
    start: usize,
    /// Whether the file is compressed.
    pub packed: bool,
    /// Maximum bytes of a portion of a text in memory, before it is extended to a line end.
    most: usize,
    /// Maximum bytes of a compressed text.
    longest: u64,
}

impl<'a> Portions<'a> {
    /// Creates the portions of a text in memory that begins at `start`.
    pub(crate) fn of(file: Text<'a>, start: usize) -> Portions<'a> {
        Portions { file, start, packed: false, most: usize::MAX, longest: u64::MAX }
    }

    /// Returns the same portions of a text in memory, but none of more than about `most` bytes.
    pub(crate) fn at_most(self, most: usize) -> Portions<'a> {
        Portions { most, ..self }
    }

    /// Creates the portions of a compressed text; the first one begins at `start`, an offset in its text.
    pub(crate) fn unpacking(file: Text<'a>, start: usize) -> Portions<'a> {
        Portions { packed: true, ..Portions::of(file, start) }
    }

    /// Returns the same portions of a compressed text, which is refused if it has more than `longest` bytes.
    pub(crate) fn up_to(self, longest: u64) -> Portions<'a> {
        Portions { longest, ..self }
    }

    /// Returns the same portions without the meter.
    pub(crate) fn unmetered(self) -> Portions<'a> {
        Portions { file: Text { meter: None, ..self.file }, ..self }
    }

    /// Starts a phase of the meter.
    pub(crate) fn begin(&self, phase: &'static str) {
        let before = if self.packed { 0 } else { self.start };
        self.file.begin(phase, self.file.bytes.len() - before);
    }

    /// Calls `visit` for each portion in turn until one returns an error. A portion is the part of the passed
    /// text that begins at the passed offset.
    pub(crate) fn each(&self, visit: impl FnMut(Text, usize) -> Result<()> + Send) -> Result<()> {
        self.each_then(visit, |()| Ok(()))
    }

    /// Calls `visit` for each portion in turn, and `then` with the result of each. A thread of rayon's pool
    /// may run `visit`, so that must not wait for a thread that uses the pool; `then` may, because it runs on
    /// the calling thread.
    pub(crate) fn each_then<R: Send>(
        &self,
        visit: impl FnMut(Text, usize) -> Result<R> + Send,
        then: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        if self.packed { self.each_unpacked(visit, then) } else { self.each_in_memory(visit, then) }
    }

    fn each_in_memory<R>(
        &self,
        mut visit: impl FnMut(Text, usize) -> Result<R>,
        mut then: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let bytes = self.file.bytes;
        let mut start = self.start;
        let left = bytes.len() - start;
        let size = (PORTION * threads_for(left)).max(left / MAX_PORTIONS).min(self.most);
        while start < bytes.len() {
            let near = bytes.len().min(start + size);
            let end = memchr(b'\n', &bytes[near..]).map_or(bytes.len(), |rest| near + rest + 1);
            // The text before the portion is passed too, so that errors can count lines.
            then(visit(Text { bytes: &bytes[..end], ..self.file }, start)?)?;
            start = end;
        }
        Ok(())
    }

    fn each_unpacked<R: Send>(
        &self,
        mut visit: impl FnMut(Text, usize) -> Result<R> + Send,
        mut then: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let mut unpacking = Unpacking::new(self.file, self.longest);
        let (mut portion, mut next) = (Vec::new(), Vec::new());
        let mut end = unpacking.fill(&mut portion, &[])?;
        let (mut lines, mut start) = (0, self.start);
        loop {
            let (complete, cut) = portion.split_at(end);
            let bytes = if lines == 0 { without_mark(complete) } else { complete };
            let mut read = || {
                let result = visit(Text { bytes, meter: None, lines, ..self.file }, start)?;
                Ok((result, memchr_iter(b'\n', bytes).count() as u64))
            };
            if unpacking.ended {
                return then(read()?.0);
            }
            let (read, filled) = rayon::join(read, || unpacking.fill(&mut next, cut));
            if let Err(Error::Parse { .. }) = read {
                // If the file is damaged, that is the error to report, not its consequence for the text.
                filled?;
                unpacking.check()?;
                return read.map(drop);
            }
            let (result, more) = read?;
            then(result)?;
            lines += more;
            start = 0;
            end = filled?;
            swap(&mut portion, &mut next);
        }
    }
}
