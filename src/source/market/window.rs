//! The usual line at one glance: which of its next 64 bytes are blanks or line ends is found all at once, so where the
//! next line begins is known before a single number is, and the numbers of several lines are worked out side by side.
//!
//! Whatever is not usual is left to [`Cursor`](super::cursor::Cursor), which knows every form and finds every fault:
//! long lines, comments, and the end of the text.

use super::cursor::{eight, not_digits, of_digits};
use super::decimal::decimal;
use crate::bytes::{LANES, blanks, newlines};
use crate::memory::fetch;

/// Bytes that are looked at.
const SEEN: usize = LANES;
/// And a few more, for words of eight bytes that begin among them.
const HELD: usize = SEEN + 8;
/// How far ahead the text is asked for: processors do so themselves, but not beyond the end of a page.
const AHEAD: usize = 1024;

/// A line of three words, or of two where entries have no values.
pub(super) struct Usual {
    pub row: u64,
    pub col: u64,
    /// 1 where there are no values.
    pub value: f64,
    /// Bytes up to the next line.
    pub length: usize,
}

/// Bytes from the beginning of a line on.
#[derive(Clone, Copy)]
pub(super) struct Window<'a>(&'a [u8; HELD]);

impl<'a> Window<'a> {
    /// None near the end of the text.
    #[inline(always)]
    pub fn at(bytes: &'a [u8], at: usize) -> Option<Window<'a>> {
        let window = Window(bytes.get(at..at + HELD)?.try_into().ok()?);
        fetch(window.0, AHEAD);
        Some(window)
    }

    /// The entry, if its line is a usual one.
    #[inline(always)]
    pub fn entry<const VALUES: bool>(self) -> Option<Usual> {
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

    /// Likewise, with a value that is not looked at.
    #[inline(always)]
    pub fn place<const VALUES: bool>(self) -> Option<Usual> {
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
    pub fn row(self) -> Option<(u64, usize)> {
        let newline = first(newlines(self.seen()));
        let digits = self.word(0) ^ eight(b'0');
        let count = (not_digits(digits).trailing_zeros() / 8) as usize;
        if newline >= SEEN || count == 0 || self.byte(count) != b' ' {
            return None;
        }
        Some((of_digits(digits << (64 - 8 * count)), newline + 1))
    }

    /// Where the word after the first blank begins, and the blanks from its end on.
    #[inline(always)]
    fn next_word(self, mut blanks: u64) -> Option<(usize, u64)> {
        loop {
            let blank = first(blanks);
            if blank >= SEEN || !matches!(self.byte(blank), b' ' | b'\t') {
                return None;
            }
            blanks &= blanks - 1;
            if first(blanks) != blank + 1 {
                return Some((blank + 1, blanks));
            }
        }
    }

    /// Bytes up to the next line, if this one ends here.
    #[inline(always)]
    fn line_end(self, at: usize) -> Option<usize> {
        match (at < SEEN, self.byte(at), self.byte(at + 1)) {
            (true, b'\n', _) => Some(at + 1),
            (true, b'\r', b'\n') => Some(at + 2),
            _ => None,
        }
    }

    /// A word of at most 16 digits as a number.
    #[inline(always)]
    fn whole(self, start: usize, end: usize) -> Option<u64> {
        match end - start {
            length @ 1..=8 => self.digits(start, length),
            length @ 9..=16 => {
                Some(self.digits(start, 8)? * 100_000_000 + self.digits(start + 8, length - 8)?)
            }
            _ => None,
        }
    }

    /// So many digits, from 1 to 8, as a number.
    #[inline(always)]
    pub fn digits(self, start: usize, length: usize) -> Option<u64> {
        // Moves what comes after them out at the top and zeros in below.
        let digits = (self.word(start) ^ eight(b'0')) << (64 - 8 * length);
        (not_digits(digits) == 0).then(|| of_digits(digits))
    }

    /// One of the bytes that are looked at.
    #[inline(always)]
    pub fn byte(self, at: usize) -> u8 {
        self.0[at % SEEN]
    }

    /// Eight bytes from one that is looked at on, the first lowest.
    #[inline(always)]
    pub fn word(self, at: usize) -> u64 {
        let at = at % SEEN;
        self.0[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
    }

    #[inline(always)]
    fn seen(self) -> &'a [u8; SEEN] {
        self.0.first_chunk().unwrap_or(&[0; SEEN])
    }
}

#[inline(always)]
fn first(bits: u64) -> usize {
    bits.trailing_zeros() as usize
}
