//! The usual line at one glance: which of its next 64 bytes are blanks or line ends is found all at once, so where the
//! next line begins is known before a single number is, and the numbers of several lines are worked out side by side.
//!
//! Whatever is not usual is left to [`BlankTokens`](crate::source::tokens::BlankTokens), which knows every form and finds every fault:
//! long lines, comments, and the end of the text.

use crate::bytes::{blanks, newlines};
use crate::source::tokens::decimal::decimal;
use crate::source::tokens::digits::{eight, not_digits, of_digits};
use crate::source::tokens::window::{SEEN, Window, first};

/// A line of three words, or of two where entries have no values.
pub(super) struct Usual {
    pub row: u64,
    pub col: u64,
    /// 1 where there are no values.
    pub value: f64,
    /// Bytes up to the next line.
    pub length: usize,
}

impl Window<'_> {
    /// The entry, if its line is a usual one.
    #[inline(always)]
    pub(super) fn entry<const VALUES: bool>(self) -> Option<Usual> {
        let blanks = blanks(self.seen());
        let row = self.whole(0, first(blanks))?;
        let (start, blanks) = self.next_word(blanks)?;
        let col = self.whole(start, first(blanks))?;
        if !VALUES {
            return Some(Usual { row, col, value: 1.0, length: self.line_end(first(blanks))? });
        }
        let (start, blanks) = self.next_word(blanks)?;
        let length = self.line_end(first(blanks))?;
        Some(Usual { row, col, value: decimal(self, start, first(blanks))?, length })
    }

    /// The row and the column of the entry; its value is not read.
    #[inline(always)]
    pub(super) fn place<const VALUES: bool>(self) -> Option<Usual> {
        let blanks = blanks(self.seen());
        let row = self.whole(0, first(blanks))?;
        let (start, mut blanks) = self.next_word(blanks)?;
        let col = self.whole(start, first(blanks))?;
        if VALUES {
            (_, blanks) = self.next_word(blanks)?;
        }
        Some(Usual { row, col, value: 1.0, length: self.line_end(first(blanks))? })
    }

    /// The row alone, and the length of the line.
    #[inline(always)]
    pub(super) fn row(self) -> Option<(u64, usize)> {
        let newline = first(newlines(self.seen()));
        let digits = self.word(0) ^ eight(b'0');
        let count = (not_digits(digits).trailing_zeros() / 8) as usize;
        if newline >= SEEN || count == 0 || self.byte(count) != b' ' {
            return None;
        }
        Some((of_digits(digits << (64 - 8 * count)), newline + 1))
    }
}
