//! Matrix Market files: the coordinate format with real, integer or pattern entries, plain or gzip-compressed.
//!
//! The file is mapped into memory and cut at line ends into chunks that the threads of rayon's current pool parse at
//! the same time, straight into arrays of triplets; the triplets then become compressed rows. Duplicates are summed in
//! the order of the file, so the matrix is the same, bit for bit, for any number of threads. Nothing is allocated on
//! the word of the header alone.

mod assemble;
mod body;
mod header;
mod write;

use super::{Loaded, gzip, mmap};
use crate::device::cpu::memory::zeroed;
use crate::error::{Error, Result};
use header::Symmetry;
use memchr::{memchr_iter, memrchr};
use rayon::prelude::*;
use std::path::Path;
pub use write::write_vector;

/// Bytes of text, or of indices, below which one thread is done sooner than several are set to work.
const SMALL: usize = 100_000;
/// Pieces of work for each thread, so that one that is held up does not hold up the rest.
const CHUNKS_PER_THREAD: usize = 8;
/// Characters of an offending word that an error message repeats.
const LONGEST_WORD: usize = 40;

/// Reads the Matrix Market file at `path`.
///
/// The file must not be shortened by others during the call: it is mapped, and the system ends programs that read
/// mapped pages which are no longer there.
pub fn read(path: &Path) -> Result<Loaded> {
    let bytes = mmap::open(path)?;
    parse(path, &bytes)
}

/// Reads a Matrix Market file that is already in memory, gzip-compressed or not; `path` is for error messages.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Loaded> {
    if gzip::is_gzip(bytes) {
        let unpacked = gzip::decompress(path, bytes)?;
        return parse_text(Text { path, bytes: &unpacked });
    }
    parse_text(Text { path, bytes })
}

fn parse_text(text: Text) -> Result<Loaded> {
    let header = header::read(text)?;
    let triplets = body::read(text, &header)?;
    let stored = triplets.rows.len() as u64;
    let matrix = assemble::assemble(text, &header, triplets)?;
    Ok(Loaded { matrix, stored, symmetric: header.symmetry == Symmetry::Symmetric })
}

/// The text of a file, with the name that its errors carry.
#[derive(Clone, Copy)]
struct Text<'a> {
    path: &'a Path,
    bytes: &'a [u8],
}

/// A departure from the format, placed by its offset; the line is counted only when it is reported.
struct Fault {
    at: usize,
    expected: String,
    /// What stands there; the word at the offset where this is `None`.
    found: Option<String>,
}

impl Fault {
    fn new(at: usize, expected: impl Into<String>) -> Fault {
        Fault { at, expected: expected.into(), found: None }
    }
}

impl Text<'_> {
    fn error(&self, fault: Fault) -> Error {
        let before = &self.bytes[..fault.at.min(self.bytes.len())];
        let line_start = memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        Error::Parse {
            path: self.path.to_owned(),
            line: memchr_iter(b'\n', before).count() as u64 + 1,
            column: (before.len() - line_start) as u64 + 1,
            expected: fault.expected,
            found: fault.found.unwrap_or_else(|| self.word(before.len())),
        }
    }

    fn unsupported(&self, what: &str, hint: &'static str) -> Error {
        Error::UnsupportedFile { path: self.path.to_owned(), what: what.to_owned(), hint }
    }

    /// `n` zeros that the system provides page by page as they are touched, or an error where it has not that much.
    fn zeros<T: Copy + Default>(&self, n: usize) -> Result<Vec<T>> {
        self.room::<T>(n).map(drop)?;
        Ok(zeroed(n))
    }

    /// An empty vector with room for `n` elements.
    fn room<T>(&self, n: usize) -> Result<Vec<T>> {
        let mut room = Vec::new();
        room.try_reserve_exact(n).map_err(|_| {
            let message = format!("{n} x {} bytes are more memory than there is", size_of::<T>());
            let source = std::io::Error::new(std::io::ErrorKind::OutOfMemory, message);
            Error::Io { action: "read", path: self.path.to_owned(), source }
        })?;
        // Without this the compiler may drop an allocation that is never written, and its failure with it.
        Ok(std::hint::black_box(room))
    }

    /// The word at an offset, made fit to print.
    fn word(&self, at: usize) -> String {
        let rest = &self.bytes[at..];
        match rest.first() {
            None => return "end of file".to_owned(),
            Some(b'\n' | b'\r') => return "end of line".to_owned(),
            Some(b' ' | b'\t') => return "a blank".to_owned(),
            Some(_) => {}
        }
        let word = &rest[..rest.iter().position(|&b| ends_word(b)).unwrap_or(rest.len())];
        // A character takes at most four bytes, so this much holds every character that is shown.
        let shown = String::from_utf8_lossy(&word[..word.len().min(4 * (LONGEST_WORD + 1))]);
        let mut printable = String::new();
        for (place, character) in shown.chars().enumerate() {
            if place == LONGEST_WORD {
                printable.push_str("...");
                break;
            }
            if character.is_control() {
                printable.extend(character.escape_default());
            } else {
                printable.push(character);
            }
        }
        printable
    }
}

/// Blanks within a line. A carriage return counts as one, which reads CRLF line ends.
#[inline(always)]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

#[inline(always)]
fn ends_word(byte: u8) -> bool {
    is_blank(byte) || byte == b'\n'
}

/// Threads to use on an input of this size. The pool is not even started for a small one.
fn threads_for(size: usize) -> usize {
    if size < SMALL { 1 } else { rayon::current_num_threads().max(1) }
}

/// Runs the tasks, on the pool where there are several, and returns their results in order.
fn run_all<T: Send, R: Send>(tasks: Vec<T>, run: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
    if tasks.len() > 1 {
        tasks.into_par_iter().with_max_len(1).map(run).collect()
    } else {
        tasks.into_iter().map(run).collect()
    }
}

/// Takes the first `n` elements off a slice, or as many as it has.
fn split_front<'a, T>(slice: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let n = n.min(slice.len());
    let (front, rest) = std::mem::take(slice).split_at_mut(n);
    *slice = rest;
    front
}
