//! Reports the errors and warnings that result from the notes on the entries, after all entries are read.

use super::header::Header;
use super::lines::{Lines, Piece};
use super::notes::Notes;
use crate::error::{Error, Result};
use crate::source::text::{Fault, Text};
use crate::source::tokens::BlankTokens;
use memchr::memchr_iter;
use std::sync::atomic::Ordering;

/// What the notes on the entries result in. It is updated after each part of the text, while
/// the part is in memory.
#[derive(Default)]
pub(crate) struct Judge {
    /// The error for the first entry above the diagonal of a symmetric file, if there is also
    /// an entry below it.
    above: Option<Error>,
    below: bool,
    /// The warning for the first integer that was rounded.
    rounded: Option<String>,
}

impl Judge {
    /// Updates the results after a part of the text; offsets in the notes are those in `text`.
    pub(super) fn note(&mut self, text: Text, header: &Header) {
        let Notes { above, below, rounded } = &header.notes;
        self.below |= below.load(Ordering::Relaxed);
        let above = above.load(Ordering::Relaxed);
        if above != usize::MAX && self.above.is_none() {
            self.above = Some(both_triangles(text, header, above));
        }
        let rounded = rounded.load(Ordering::Relaxed);
        if rounded != usize::MAX && self.rounded.is_none() {
            self.rounded = Some(rounding(text, rounded));
        }
    }

    /// Refuses a symmetric file with entries of both triangles, and warns of rounded integers.
    pub(crate) fn finish(self) -> Result<()> {
        if let Some(error) = self.above.filter(|_| self.below) {
            return Err(error);
        }
        self.rounded.iter().for_each(|warning| log::warn!("{warning}"));
        Ok(())
    }
}

fn both_triangles(text: Text, header: &Header, above: usize) -> Error {
    let mut lines = Lines::new(text, header, &Piece { start: above, end: text.bytes.len(), first: 0 });
    let position = match lines.entry() {
        Ok(Some(entry)) => {
            format!("row {}, column {}", u64::from(entry.row) + 1, u64::from(entry.col) + 1)
        }
        _ => "an entry".to_owned(),
    };
    let expected = "entries of one triangle only, because the banner declares symmetry (if both triangles are \
                    stored, it must say general)";
    let found = Some(format!("{position} above the diagonal, and other entries are below it"));
    text.error(Fault { at: above, expected: expected.to_owned(), found })
}

fn rounding(text: Text, at: usize) -> String {
    let line = text.lines + memchr_iter(b'\n', &text.bytes[..at]).count() as u64 + 1;
    let (_, word) = BlankTokens::new(text.bytes, at).word();
    let word = String::from_utf8_lossy(word);
    let kept = word.parse().unwrap_or(f64::NAN);
    let path = text.path.display();
    format!(
        "{path}:{line}: {word} is read as {kept}, and so are all later integers beyond 2^53: values are f64"
    )
}
