//! The fast path for simple lines. All blanks and line ends among the next 64 bytes are found at once. The
//! start of the next line is therefore known before any number is parsed, and the processor converts the
//! numbers of several lines in parallel.
//!
//! All other lines, such as long ones, comments and the end of the text, take the slow path through
//! [`BlankTokens`](crate::source::tokens::BlankTokens), which accepts every form and reports every fault.

use crate::bytes::{blanks, newlines};
use crate::source::tokens::decimal::decimal;
use crate::source::tokens::digits::{eight, not_digits, of_digits};
use crate::source::tokens::window::{WIDTH, Window, first};

/// A parsed line of three words, or of two if entries have no values.
pub(super) struct SimpleLine {
    pub row: u64,
    pub col: u64,
    /// The value; 1 if entries have no values.
    pub value: f64,
    /// Bytes up to the start of the next line.
    pub length: usize,
}

impl Window<'_> {
    /// Parses an entry, if its line is simple.
    #[inline(always)]
    pub(super) fn entry<const VALUES: bool>(self) -> Option<SimpleLine> {
        let blanks = blanks(self.bytes());
        let row = self.whole_number(0, first(blanks))?;
        let (start, blanks) = self.next_word(blanks)?;
        let col = self.whole_number(start, first(blanks))?;
        if !VALUES {
            return Some(SimpleLine { row, col, value: 1.0, length: self.line_end(first(blanks))? });
        }
        let (start, blanks) = self.next_word(blanks)?;
        let length = self.line_end(first(blanks))?;
        Some(SimpleLine { row, col, value: decimal(self, start, first(blanks))?, length })
    }

    /// Parses the row and the column of an entry and skips its value.
    #[inline(always)]
    pub(super) fn position<const VALUES: bool>(self) -> Option<SimpleLine> {
        let blanks = blanks(self.bytes());
        let row = self.whole_number(0, first(blanks))?;
        let (start, mut blanks) = self.next_word(blanks)?;
        let col = self.whole_number(start, first(blanks))?;
        if VALUES {
            (_, blanks) = self.next_word(blanks)?;
        }
        Some(SimpleLine { row, col, value: 1.0, length: self.line_end(first(blanks))? })
    }

    /// Parses the row, and returns it with the length of the line.
    #[inline(always)]
    pub(super) fn row(self) -> Option<(u64, usize)> {
        let newline = first(newlines(self.bytes()));
        let digits = self.word(0) ^ eight(b'0');
        let count = (not_digits(digits).trailing_zeros() / 8) as usize;
        if newline >= WIDTH || count == 0 || self.byte(count) != b' ' {
            return None;
        }
        Some((of_digits(digits << (64 - 8 * count)), newline + 1))
    }
}
