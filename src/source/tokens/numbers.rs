//! Parses whole and decimal numbers in every accepted form. Uncommon forms take a slow path,
//! which gives the same numbers.

use super::cursor::{Scan, Tokens, fault};
use super::digits::{TENS, TENS_WHOLE, eight, not_digits, of_digits};
use crate::source::text::Fault;
use std::ops::Range;

impl<const COMMA: bool> Tokens<'_, COMMA> {
    /// Reads a whole number within the range.
    #[inline]
    pub(crate) fn whole_number(&mut self, what: &str, range: Range<u64>) -> Scan<u64> {
        match self.whole_at(self.at) {
            Some((number, end)) if range.contains(&number) => {
                self.at = end;
                Ok(number)
            }
            _ => Err(whole_fault(self.at, what, range)),
        }
    }

    /// Reads an index from 1 to `limit`, which is below 2^32; returns it minus 1.
    #[inline(always)]
    pub(crate) fn index(&mut self, what: &str, limit: u64) -> Scan<u32> {
        match self.whole_at(self.at) {
            // 0 wraps around and is out of range too.
            Some((number, end)) if number.wrapping_sub(1) < limit => {
                self.at = end;
                Ok((number - 1) as u32)
            }
            _ => Err(index_fault(self.at, what, limit)),
        }
    }

    /// Reads a finite number.
    #[inline(always)]
    pub(crate) fn number(&mut self, what: &str) -> Scan<f64> {
        match self.short_decimal() {
            Some(value) => Ok(value),
            None => self.number_slow(what),
        }
    }

    /// Reads a finite number, also with exponents of Fortran.
    #[inline(always)]
    pub(crate) fn fortran_number(&mut self) -> Scan<f64> {
        match self.short_decimal() {
            Some(value) => Ok(value),
            None => self.fortran_number_slow(),
        }
    }

    #[inline(never)]
    fn number_slow(&mut self, what: &str) -> Scan<f64> {
        match self.decimal() {
            Some((value, length)) if value.is_finite() => {
                self.at += length;
                Ok(value)
            }
            _ => Err(fault(self.at, format!("{what}, a finite number"))),
        }
    }

    #[inline(never)]
    fn fortran_number_slow(&mut self) -> Scan<f64> {
        let read = self.decimal().or_else(|| self.fortran());
        let (value, length) = read.ok_or_else(|| fault(self.at, "a number"))?;
        if !value.is_finite() {
            return Err(fault(self.at, "a finite number"));
        }
        self.at += length;
        Ok(value)
    }

    /// Reads a number that is the quotient of two integers exact in f64; the division rounds
    /// to the nearest f64.
    #[inline(always)]
    fn short_decimal(&mut self) -> Option<f64> {
        let negative = self.peek() == Some(b'-');
        let first = self.at + usize::from(negative);
        let (mut mantissa, mut end) = self.digits(first);
        let (mut digits, mut below) = (end - first, 0);
        if self.bytes.get(end) == Some(&b'.') {
            if self.sixteen_digits(end + 1) {
                return None;
            }
            let (fraction, after) = self.digits(end + 1);
            below = after - end - 1;
            digits += below;
            end = after;
            if digits <= 19 {
                mantissa = mantissa * TENS_WHOLE[below] + fraction;
            }
        }
        if (1..=19).contains(&digits) && mantissa <= 1 << 53 && self.word_ends(end) {
            self.at = end;
            let magnitude = mantissa as f64 / TENS[below];
            return Some(if negative { -magnitude } else { magnitude });
        }
        None
    }

    /// Parses a number of any form; returns it with its length.
    fn decimal(&self) -> Option<(f64, usize)> {
        let (value, length) = fast_float2::parse_partial(&self.bytes[self.at..]).ok()?;
        self.word_ends(self.at + length).then_some((value, length))
    }

    /// Parses a number with the exponent letter of Fortran's double precision, or without a letter after
    /// a decimal point (`1.5D+3`, `1.5+300`); returns it with its length. Without a point, `2015-12` is
    /// a date and not a number.
    #[cold]
    fn fortran(&self) -> Option<(f64, usize)> {
        let (_, word) = Self::new(self.bytes, self.at).word();
        let mut number: Vec<u8> =
            word.iter().map(|&b| if matches!(b, b'd' | b'D') { b'e' } else { b }).collect();
        let sign = number.iter().rposition(|byte| matches!(byte, b'+' | b'-'));
        if let Some(sign) = sign.filter(|&sign| sign > 0 && matches!(number[sign - 1], b'0'..=b'9' | b'.'))
            && number[..sign].contains(&b'.')
        {
            number.insert(sign, b'e');
        }
        Some((fast_float2::parse(&number).ok()?, word.len()))
    }

    #[inline(always)]
    fn word_ends(&self, at: usize) -> bool {
        self.bytes.get(at).is_none_or(|&byte| Self::ends(byte))
    }

    /// Parses the word at an offset as a whole number, saturated to 64 bits; returns it with
    /// the end of the word.
    #[inline(always)]
    fn whole_at(&self, start: usize) -> Option<(u64, usize)> {
        let (mut number, end) = self.digits(start);
        if end == start || !self.word_ends(end) {
            return None;
        }
        if end - start > 19 {
            number = saturating(&self.bytes[start..end]);
        }
        Some((number, end))
    }

    /// Checks for 16 digits: such a number takes the slow path anyway, so it is not parsed here first.
    #[inline(always)]
    fn sixteen_digits(&self, at: usize) -> bool {
        let digits = |at| self.eight_bytes(at).is_some_and(|word| not_digits(word ^ eight(b'0')) == 0);
        digits(at) && digits(at + 8)
    }

    /// Returns the digits from `at` on as a number, and their end. More than 19 digits wrap around.
    #[inline(always)]
    fn digits(&self, at: usize) -> (u64, usize) {
        if let Some(word) = self.eight_bytes(at) {
            let digits = word ^ eight(b'0');
            let other_bytes = not_digits(digits);
            if other_bytes != 0 {
                let count = other_bytes.trailing_zeros() / 8;
                // Shifts the other bytes out at the top and zeros in below; in two steps, as
                // there may be no digits.
                return (of_digits(digits << (56 - 8 * count) << 8), at + count as usize);
            }
        }
        self.many_digits(at)
    }

    /// Parses eight or more digits, or digits near the end of the text.
    #[inline(never)]
    fn many_digits(&self, mut at: usize) -> (u64, usize) {
        let mut number = 0_u64;
        while let Some(digits) = self.eight_bytes(at).map(|word| word ^ eight(b'0')) {
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
fn index_fault(at: usize, what: &str, limit: u64) -> Box<Fault> {
    fault(at, format!("a {what} index from 1 to {limit}"))
}

#[cold]
fn whole_fault(at: usize, what: &str, range: Range<u64>) -> Box<Fault> {
    let expected = if range.is_empty() {
        "end of line".to_owned()
    } else if range.end == u64::MAX {
        what.to_owned()
    } else {
        format!("{what} from {} to {}", range.start, range.end - 1)
    };
    fault(at, expected)
}

/// Parses digits as a number, saturated to 64 bits.
#[cold]
fn saturating(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number: u64, byte| {
        number.saturating_mul(10).saturating_add(u64::from(byte.wrapping_sub(b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tokens::{BlankTokens, ListTokens};

    /// Numbers are parsed eight digits at a time, and one at a time near the end of the text.
    const TAILS: [&str; 2] = ["", " 1 2 3 4 5 6 7 8 9 10 11"];

    fn both<T>(
        text: &str,
        read: fn(&mut ListTokens) -> Scan<T>,
        plain: fn(&mut BlankTokens) -> Scan<T>,
    ) -> [Option<T>; 2] {
        let (mut list, mut blank) =
            (ListTokens::new(text.as_bytes(), 0), BlankTokens::new(text.as_bytes(), 0));
        [read(&mut list).ok(), plain(&mut blank).ok()]
    }

    #[test]
    fn a_comma_ends_a_word_only_in_a_list() {
        let whole = |text: &str| both(text, |t| t.whole_number("n", 0..99), |t| t.whole_number("n", 0..99));
        let number = |text: &str| both(text, |t| t.number("x"), |t| t.number("x"));
        for tail in TAILS {
            for end in [" ", "\t", "\r", "\n"] {
                assert_eq!(whole(&format!("12{end}{tail}")), [Some(12); 2]);
                assert_eq!(number(&format!("-1.5{end}{tail}")), [Some(-1.5); 2]);
                assert_eq!(number(&format!("1e300{end}{tail}")), [Some(1e300); 2]);
            }
            assert_eq!(whole(&format!("12,{tail}")), [Some(12), None]);
            assert_eq!(number(&format!("2.5,{tail}")), [Some(2.5), None]);
            assert_eq!(number(&format!("1e-300,{tail}")), [Some(1e-300), None]);
        }
    }

    #[test]
    fn a_whole_number_of_any_length_is_in_range_or_a_fault() {
        let read = |digits: &str, range: Range<u64>| {
            TAILS.map(|tail| {
                BlankTokens::new(format!("{digits}{tail}").as_bytes(), 0)
                    .whole_number("n", range.clone())
                    .ok()
            })
        };
        for digits in ["0", "7", "12345678", "123456789", "1234567890123456", "18446744073709551614"] {
            assert_eq!(read(digits, 0..u64::MAX), [digits.parse().ok(); 2], "{digits}");
        }
        // 2^64 + 5, which wraps around to 5.
        for digits in
            ["", "x", "1x", "18446744073709551615", "18446744073709551621", "99999999999999999999999999"]
        {
            assert_eq!(read(digits, 0..u64::MAX), [None; 2], "{digits}");
        }
        assert_eq!(read("0018446744073709551614", 0..u64::MAX), [Some(u64::MAX - 1); 2]);
    }

    #[test]
    fn fortran_exponents_are_read_only_in_formats_that_have_them() {
        for (word, value) in [("1.5D+3", 1500.0), ("2.d0", 2.0), ("1.5-3", 0.0015)] {
            let mut tokens = BlankTokens::new(word.as_bytes(), 0);
            assert!(tokens.number("x").is_err() && tokens.at == 0, "{word}");
            assert_eq!(tokens.fortran_number().ok(), Some(value), "{word}");
            assert_eq!(tokens.at, word.len());
        }
    }
}
