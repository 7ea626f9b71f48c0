//! Words and numbers of a line, taken off the text one after the other, in every form that they have.

use super::digits::{TENS, TENS_WHOLE, eight, not_digits, of_digits};
use super::window::Window;
use crate::source::text::{Fault, ends_word, is_blank};
use memchr::memchr;

/// A place in the text up to the end of a piece; places are offsets in the file.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pub at: usize,
}

/// What comes of reading a part of a line.
pub(super) type Read<T> = Result<T, Box<Fault>>;

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    /// What comes next at one glance, unless the end is near.
    #[inline(always)]
    pub fn window(&self) -> Option<Window<'a>> {
        Window::at(self.bytes, self.at)
    }

    /// What was read from there on.
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// Moves to the next line with an entry, past blank lines and comments; false at the end of the piece.
    #[inline(always)]
    pub fn seek(&mut self) -> bool {
        loop {
            self.skip_blanks();
            match self.bytes.get(self.at) {
                None => return false,
                Some(b'\n') => self.at += 1,
                Some(b'%') => {
                    let rest = &self.bytes[self.at..];
                    self.at += memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
                }
                Some(_) => return true,
            }
        }
    }

    /// Moves past the end of the line.
    #[inline(always)]
    pub fn skip_line(&mut self) {
        while let Some(word) = self.word(self.at) {
            // The lowest byte that becomes zero is the only one for which this test is exact, and the one wanted.
            let zeroed = word ^ eight(b'\n');
            let found = zeroed.wrapping_sub(eight(1)) & !zeroed & eight(0x80);
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8 + 1;
                return;
            }
            self.at += 8;
        }
        let rest = &self.bytes[self.at..];
        self.at += memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
    }

    #[inline(always)]
    pub fn skip_blanks(&mut self) {
        while self.at < self.bytes.len() && is_blank(self.bytes[self.at]) {
            self.at += 1;
        }
    }

    /// The end of the line, and nothing before it but a comment.
    #[inline(always)]
    pub fn end_line(&mut self) -> Read<()> {
        self.skip_blanks();
        match self.bytes.get(self.at) {
            None => {}
            Some(b'\n') => self.at += 1,
            Some(b'%') => self.skip_line(),
            Some(_) => return Err(fault(self.at, "end of line")),
        }
        Ok(())
    }

    /// An index from 1 to `limit`, which is below 2^32, counted from 0 thereafter.
    #[inline(always)]
    pub fn index(&mut self, what: &str, limit: u64) -> Read<u32> {
        let start = self.at;
        let (mut number, end) = self.digits(start);
        if end - start > 19 {
            number = saturating(&self.bytes[start..end]);
        }
        // No digits at all give 0, which wraps around and is out of range too.
        if number.wrapping_sub(1) >= limit || !self.word_ends(end) {
            return Err(index_fault(start, what, limit));
        }
        self.at = end;
        Ok((number - 1) as u32)
    }

    /// A finite number, as C, Fortran or MATLAB write it.
    #[inline(always)]
    pub fn value(&mut self) -> Read<f64> {
        let start = self.at;
        let negative = self.bytes.get(start) == Some(&b'-');
        let first = start + usize::from(negative);
        let (mut mantissa, mut end) = self.digits(first);
        let (mut digits, mut below) = (end - first, 0);
        if self.bytes.get(end) == Some(&b'.') {
            if self.sixteen_digits(end + 1) {
                return self.any_value(start);
            }
            let (fraction, after) = self.digits(end + 1);
            below = after - end - 1;
            digits += below;
            end = after;
            if digits <= 19 {
                mantissa = mantissa * TENS_WHOLE[below] + fraction;
            }
        }
        // Both are exact in f64, so one division rounds once: the nearest number, as the slower way finds it too.
        if (1..=19).contains(&digits) && mantissa <= 1 << 53 && self.word_ends(end) {
            self.at = end;
            let magnitude = mantissa as f64 / TENS[below];
            return Ok(if negative { -magnitude } else { magnitude });
        }
        self.any_value(start)
    }

    #[inline(never)]
    fn any_value(&mut self, start: usize) -> Read<f64> {
        let (value, length) = match fast_float2::parse_partial::<f64, _>(&self.bytes[start..]) {
            Ok((value, length)) if self.word_ends(start + length) => (value, length),
            _ => self.fortran(start)?,
        };
        if !value.is_finite() {
            return Err(fault(start, "a finite number"));
        }
        self.at = start + length;
        Ok(value)
    }

    /// A number with the exponent letter of Fortran's double precision, or with none after a point (`1.5D+3`,
    /// `1.5+300`), and its length. Without a point, `2015-12` is a date and no number.
    #[cold]
    fn fortran(&self, start: usize) -> Read<(f64, usize)> {
        let rest = &self.bytes[start..];
        let word = &rest[..rest.iter().position(|&byte| ends_word(byte)).unwrap_or(rest.len())];
        let mut usual: Vec<u8> =
            word.iter().map(|&b| if matches!(b, b'd' | b'D') { b'e' } else { b }).collect();
        let sign = usual.iter().rposition(|byte| matches!(byte, b'+' | b'-'));
        if let Some(sign) = sign.filter(|&sign| sign > 0 && matches!(usual[sign - 1], b'0'..=b'9' | b'.'))
            && usual[..sign].contains(&b'.')
        {
            usual.insert(sign, b'e');
        }
        let value = fast_float2::parse(&usual).map_err(|_| fault(start, "a number"))?;
        Ok((value, word.len()))
    }

    #[inline(always)]
    fn word_ends(&self, at: usize) -> bool {
        at >= self.bytes.len() || ends_word(self.bytes[at])
    }

    /// Eight bytes, the first lowest; none where fewer are left.
    #[inline(always)]
    fn word(&self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Whether 16 digits follow: such a number takes the slower way in any case, and is not read twice.
    #[inline(always)]
    fn sixteen_digits(&self, at: usize) -> bool {
        let digits = |at| self.word(at).is_some_and(|word| not_digits(word ^ eight(b'0')) == 0);
        digits(at) && digits(at + 8)
    }

    /// The digits from `at` on as a number, and where they end. More than 19 digits wrap around.
    #[inline(always)]
    fn digits(&self, at: usize) -> (u64, usize) {
        if let Some(word) = self.word(at) {
            let digits = word ^ eight(b'0');
            let others = not_digits(digits);
            if others != 0 {
                let count = others.trailing_zeros() / 8;
                // Moves what is not a digit out at the top and zeros in below; two steps, as none may be left.
                return (of_digits(digits << (56 - 8 * count) << 8), at + count as usize);
            }
        }
        self.many_digits(at)
    }

    /// The same for eight digits or more, and near the end of the text.
    #[inline(never)]
    fn many_digits(&self, mut at: usize) -> (u64, usize) {
        let mut number = 0_u64;
        while let Some(digits) = self.word(at).map(|word| word ^ eight(b'0')) {
            if not_digits(digits) != 0 {
                break;
            }
            number = number.wrapping_mul(100_000_000).wrapping_add(of_digits(digits));
            at += 8;
        }
        while at < self.bytes.len() {
            let digit = self.bytes[at].wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
        }
        (number, at)
    }
}

#[cold]
pub(super) fn fault(at: usize, expected: impl Into<String>) -> Box<Fault> {
    Box::new(Fault::new(at, expected))
}

#[cold]
fn index_fault(at: usize, what: &str, limit: u64) -> Box<Fault> {
    fault(at, format!("a {what} index from 1 to {limit}"))
}

/// Digits as a number, the largest where they are too many.
#[cold]
fn saturating(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number: u64, byte| {
        number.saturating_mul(10).saturating_add(u64::from(byte.wrapping_sub(b'0')))
    })
}
