//! The text of a file, and errors with the line, the column and the offending word.

use super::tokens::ends_word;
use crate::error::{Error, Result};
use crate::observe::Meter;
use memchr::{memchr_iter, memrchr};
use std::path::Path;

/// Maximum number of characters of an offending word in an error message.
const LONGEST_WORD: usize = 40;
/// Number of rows that any file may have. Together with [`ROWS_PER_ENTRY`], this limits the memory
/// that a header can claim.
const FREE_ROWS: u64 = 1 << 24;
/// Number of additional rows for each entry.
const ROWS_PER_ENTRY: u64 = 64;

/// Refuses a number of rows that is implausibly large for the number of entries, before memory
/// for it is allocated.
pub(super) fn check_rows(rows: usize, entries: u64) -> Result<()> {
    check_size("the number of rows", rows as u64, entries)
}

/// Refuses an implausibly large size of any other array that is allocated independently of the
/// number of entries.
pub(super) fn check_size(what: &'static str, size: u64, entries: u64) -> Result<()> {
    let limit = FREE_ROWS.saturating_add(ROWS_PER_ENTRY.saturating_mul(entries));
    if size <= limit {
        return Ok(());
    }
    Err(Error::TooLarge {
        what,
        value: size.into(),
        limit: limit.into(),
        container: "a file of so few entries",
    })
}

/// Adds the path of the file to an error that has none.
pub(super) fn in_file(path: &Path) -> impl Fn(Error) -> Error {
    |error| match error {
        Error::TooLarge { .. }
        | Error::DuplicateOverflow { .. }
        | Error::OutOfMemory { .. }
        | Error::Dimension { .. }
        | Error::BadCoordinates { .. }
        | Error::InvalidCsr(_)
        | Error::InvalidFormat { .. }
        | Error::Padding { .. } => Error::InFile { path: path.to_owned(), fault: Box::new(error) },
        _ => error,
    }
}

/// Strips the UTF-8 byte order mark.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// The content of a file, with its path for error messages.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub path: &'a Path,
    pub bytes: &'a [u8],
    /// Counts the bytes read.
    pub meter: Option<&'a Meter>,
    /// Lines of the file before these bytes.
    pub lines: u64,
}

/// A violation of the format at an offset; its line number is computed only when it is reported.
pub(super) struct Fault {
    pub at: usize,
    pub expected: String,
    /// The text found; the word at the offset if this is `None`.
    pub found: Option<String>,
}

impl Fault {
    pub(crate) fn new(at: usize, expected: impl Into<String>) -> Fault {
        Fault { at, expected: expected.into(), found: None }
    }
}

impl Text<'_> {
    /// Starts a phase of the meter.
    pub(crate) fn begin(&self, phase: &'static str, bytes: usize) {
        if let Some(meter) = self.meter {
            meter.begin(phase, bytes as u64);
        }
    }

    /// Advances the meter by a number of bytes.
    pub(crate) fn advance(&self, bytes: usize) {
        if let Some(meter) = self.meter {
            meter.add(bytes as u64);
        }
    }

    pub(crate) fn error(&self, fault: Fault) -> Error {
        let before = &self.bytes[..fault.at.min(self.bytes.len())];
        let line_start = memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        Error::Parse {
            path: self.path.to_owned(),
            line: self.lines + memchr_iter(b'\n', before).count() as u64 + 1,
            column: (before.len() - line_start) as u64 + 1,
            expected: fault.expected,
            found: fault.found.unwrap_or_else(|| self.word(before.len())),
        }
    }

    pub(crate) fn unsupported(&self, what: &str, hint: &'static str) -> Error {
        Error::UnsupportedFile { path: self.path.to_owned(), what: what.to_owned(), hint }
    }

    /// Returns the word at an offset, truncated and with control characters escaped.
    fn word(&self, at: usize) -> String {
        let rest = &self.bytes[at..];
        match rest.first() {
            None => return "end of file".to_owned(),
            Some(b'\n' | b'\r') => return "end of line".to_owned(),
            Some(b' ' | b'\t') => return "a blank".to_owned(),
            Some(_) => {}
        }
        let word = &rest[..rest.iter().position(|&b| ends_word(b)).unwrap_or(rest.len())];
        // A character takes at most four bytes, so this slice holds every character that is shown.
        let shown = String::from_utf8_lossy(&word[..word.len().min(4 * (LONGEST_WORD + 1))]);
        let mut printable = String::new();
        for (index, character) in shown.chars().enumerate() {
            if index == LONGEST_WORD {
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
