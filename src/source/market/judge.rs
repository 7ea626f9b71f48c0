//! Reports the errors and warnings that result from the notes on the entries, after all entries are read.

use super::header::Header;
use super::lines::{Lines, Piece};
use super::notes::Notes;
use crate::error::Result;
use crate::source::text::{Fault, Text};
use crate::source::tokens::BlankTokens;
use memchr::memchr_iter;
use std::sync::atomic::Ordering;

/// Refuses a symmetric file with entries of both triangles, and warns of rounded integers.
pub(super) fn judge(text: Text, header: &Header) -> Result<()> {
    let Notes { above, below, rounded } = &header.notes;
    let above = above.load(Ordering::Relaxed);
    if above != usize::MAX && below.load(Ordering::Relaxed) {
        let mut lines = Lines::new(text, header, &Piece { start: above, ..Piece::whole(text, header) });
        let position = match lines.entry() {
            Ok(Some(entry)) => {
                format!("row {}, column {}", u64::from(entry.row) + 1, u64::from(entry.col) + 1)
            }
            _ => "an entry".to_owned(),
        };
        let expected = "entries of one triangle only, because the banner declares symmetry (if both triangles are \
                        stored, it must say general)";
        let found = Some(format!("{position} above the diagonal, and other entries are below it"));
        return Err(text.error(Fault { at: above, expected: expected.to_owned(), found }));
    }
    let rounded = rounded.load(Ordering::Relaxed);
    if rounded != usize::MAX {
        let line = memchr_iter(b'\n', &text.bytes[..rounded]).count() + 1;
        let (_, word) = BlankTokens::new(text.bytes, rounded).word();
        let word = String::from_utf8_lossy(word);
        let kept = word.parse().unwrap_or(f64::NAN);
        let path = text.path.display();
        log::warn!(
            "{path}:{line}: {word} is read as {kept}, and so are all later integers beyond 2^53: values are f64"
        );
    }
    Ok(())
}
