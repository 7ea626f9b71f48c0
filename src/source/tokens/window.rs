//! The next 64 bytes of a text, and the words and digits among them.

use super::digits::{eight, not_digits, of_digits};
use crate::bytes::LANES;
use crate::memory::fetch;

/// Bytes that are looked at.
pub(in crate::source) const SEEN: usize = LANES;
/// And a few more, for words of eight bytes that begin among them.
const HELD: usize = SEEN + 8;
/// How far ahead the text is asked for: processors do so themselves, but not beyond the end of a page.
const AHEAD: usize = 1024;

/// Bytes from the beginning of a line on.
#[derive(Clone, Copy)]
pub(in crate::source) struct Window<'a>(&'a [u8; HELD]);

impl<'a> Window<'a> {
    /// None near the end of the text.
    #[inline(always)]
    pub fn at(bytes: &'a [u8], at: usize) -> Option<Window<'a>> {
        let window = Window(bytes.get(at..at + HELD)?.try_into().ok()?);
        fetch(window.0, AHEAD);
        Some(window)
    }

    /// Where the word after the first blank begins, and the blanks from its end on.
    #[inline(always)]
    pub fn next_word(self, mut blanks: u64) -> Option<(usize, u64)> {
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
    pub fn line_end(self, at: usize) -> Option<usize> {
        match (at < SEEN, self.byte(at), self.byte(at + 1)) {
            (true, b'\n', _) => Some(at + 1),
            (true, b'\r', b'\n') => Some(at + 2),
            _ => None,
        }
    }

    /// A word of at most 16 digits as a number.
    #[inline(always)]
    pub fn whole(self, start: usize, end: usize) -> Option<u64> {
        match end - start {
            length @ 1..=8 => self.digits(start, length),
            length @ 9..=16 => {
                Some(self.digits(start, 8)? * 100_000_000 + self.digits(start + 8, length - 8)?)
            }
            _ => None,
        }
    }

    /// The number that `length` digits make, from 1 to 8 of them.
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
    pub fn seen(self) -> &'a [u8; SEEN] {
        self.0.first_chunk().unwrap_or(&[0; SEEN])
    }
}

/// The place of the first bit that is set.
#[inline(always)]
pub(in crate::source) fn first(bits: u64) -> usize {
    bits.trailing_zeros() as usize
}
