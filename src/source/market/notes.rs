//! What threads notice about entries while they read them, and what is said of it when all are read.

use super::header::Header;
use super::lines::{Lines, Piece};
use crate::error::Result;
use crate::source::text::{Fault, Text, ends_word};
use memchr::memchr_iter;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Offsets in the file, the first in its order whichever thread found it; `usize::MAX` is none.
#[derive(Debug)]
pub(super) struct Notes {
    /// An entry above the diagonal, where the banner says that one triangle stands for both.
    above: AtomicUsize,
    /// Whether there is one below it.
    below: AtomicBool,
    /// An integer that f64 does not hold.
    rounded: AtomicUsize,
}

impl Notes {
    pub fn new() -> Notes {
        let none = || AtomicUsize::new(usize::MAX);
        Notes { above: none(), below: AtomicBool::new(false), rounded: none() }
    }

    /// Takes down which triangles have entries, and the first above the diagonal.
    pub fn triangles(&self, above: usize, below: bool) {
        self.above.fetch_min(above, Ordering::Relaxed);
        self.below.fetch_or(below, Ordering::Relaxed);
    }

    /// Takes down an integer if `value` is not all of it.
    #[cold]
    pub fn integer(&self, at: usize, word: &[u8], value: f64) {
        // Other spellings, as 1e20, were rounded by whoever wrote them. More digits than 128 bits hold are rounded
        // here.
        let digits = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"+")).unwrap_or(word);
        let exact = std::str::from_utf8(word).ok().and_then(|word| word.parse::<i128>().ok());
        if digits.iter().all(u8::is_ascii_digit) && exact != Some(value as i128) {
            self.rounded.fetch_min(at, Ordering::Relaxed);
        }
    }
}

/// Refuses what was noticed, or warns of it.
pub(super) fn judge(text: Text, header: &Header) -> Result<()> {
    let Notes { above, below, rounded } = &header.notes;
    let above = above.load(Ordering::Relaxed);
    if above != usize::MAX && below.load(Ordering::Relaxed) {
        let mut lines = Lines::new(text, header, &Piece { start: above, ..Piece::whole(text, header) });
        let place = match lines.entry() {
            Ok(Some(entry)) => {
                format!("row {}, column {}", u64::from(entry.row) + 1, u64::from(entry.col) + 1)
            }
            _ => "an entry".to_owned(),
        };
        let expected = "entries of one triangle only, as the banner says that each stands for the one across the \
                        diagonal too (where both are stored it must say general)";
        let found = Some(format!("{place} above the diagonal and others below it"));
        return Err(text.error(Fault { at: above, expected: expected.to_owned(), found }));
    }
    let rounded = rounded.load(Ordering::Relaxed);
    if rounded != usize::MAX {
        let line = memchr_iter(b'\n', &text.bytes[..rounded]).count() + 1;
        let rest = &text.bytes[rounded..];
        let word = &rest[..rest.iter().position(|&byte| ends_word(byte)).unwrap_or(rest.len())];
        let word = String::from_utf8_lossy(word);
        let kept = word.parse().unwrap_or(f64::NAN);
        let path = text.path.display();
        log::warn!(
            "{path}:{line}: {word} is read as {kept}, and integers beyond 2^53 after it likewise: values are f64"
        );
    }
    Ok(())
}
