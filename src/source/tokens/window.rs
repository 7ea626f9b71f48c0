//! A window of the next 64 bytes of a text, and the words and digits in it.

use super::digits::{eight, not_digits, of_digits};
use crate::bytes::LANES;
use crate::memory::fetch;

/// Bytes of a window.
pub(in crate::source) const WIDTH: usize = LANES;
/// Bytes of a window with padding, for words of eight bytes that begin in the window.
const PADDED: usize = WIDTH + 8;
/// Distance of the prefetch. Hardware prefetchers work as well, but not beyond the end of a page.
const AHEAD: usize = 1024;

/// 64 bytes of a text, and 8 more so that a word may begin at the last one.
#[derive(Clone, Copy)]
pub(in crate::source) struct Window<'a>(&'a [u8; PADDED]);

impl<'a> Window<'a> {
    /// Returns the window at an offset, or `None` near the end of the text.
    #[inline(always)]
    pub(crate) fn at(bytes: &'a [u8], at: usize) -> Option<Window<'a>> {
        let window = Window(bytes.get(at..at + PADDED)?.try_into().ok()?);
        fetch(window.0, AHEAD);
        Some(window)
    }

    /// Returns the start of the word after the first blank, and the mask of blanks from the
    /// end of that word on.
    #[inline(always)]
    pub(crate) fn next_word(self, mut blanks: u64) -> Option<(usize, u64)> {
        loop {
            let blank = first(blanks);
            if blank >= WIDTH || !matches!(self.byte(blank), b' ' | b'\t') {
                return None;
            }
            blanks &= blanks - 1;
            if first(blanks) != blank + 1 {
                return Some((blank + 1, blanks));
            }
        }
    }

    /// Returns the number of bytes up to the next line, if this line ends here.
    #[inline(always)]
    pub(crate) fn line_end(self, at: usize) -> Option<usize> {
        match (at < WIDTH, self.byte(at), self.byte(at + 1)) {
            (true, b'\n', _) => Some(at + 1),
            (true, b'\r', b'\n') => Some(at + 2),
            _ => None,
        }
    }

    /// Parses the bytes `start..end` of the window as a whole number; `None` if there are none or more than
    /// 16, or if one is not a digit.
    #[inline(always)]
    pub(crate) fn whole_number(self, start: usize, end: usize) -> Option<u64> {
        match end - start {
            length @ 1..=8 => self.digits(start, length),
            length @ 9..=16 => {
                Some(self.digits(start, 8)? * 100_000_000 + self.digits(start + 8, length - 8)?)
            }
            _ => None,
        }
    }

    /// Parses `length` digits, from 1 to 8.
    #[inline(always)]
    pub(crate) fn digits(self, start: usize, length: usize) -> Option<u64> {
        // Shifts the bytes after the digits out at the top and zeros in below.
        let digits = (self.word(start) ^ eight(b'0')) << (64 - 8 * length);
        (not_digits(digits) == 0).then(|| of_digits(digits))
    }

    /// Returns a byte of the window.
    #[inline(always)]
    pub(crate) fn byte(self, at: usize) -> u8 {
        self.0[at % WIDTH]
    }

    /// Returns eight bytes from one in the window on, the first one lowest.
    #[inline(always)]
    pub(crate) fn word(self, at: usize) -> u64 {
        let at = at % WIDTH;
        self.0[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
    }

    #[inline(always)]
    pub(crate) fn bytes(self) -> &'a [u8; WIDTH] {
        self.0.first_chunk().unwrap_or(&[0; WIDTH])
    }
}

/// Returns the index of the first bit that is set.
#[inline(always)]
pub(in crate::source) fn first(bits: u64) -> usize {
    bits.trailing_zeros() as usize
}
