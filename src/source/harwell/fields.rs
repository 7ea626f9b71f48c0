//! Numbers in fixed fields, line after line.
//!
//! Digits count for what they look like: a number without a decimal point is whole, although Fortran would put the
//! point where the format says, because no Fortran program writes such numbers and programs in other languages do. A
//! scale factor (`1P`) divides numbers without an exponent, as in Fortran. An exponent needs no letter after a point
//! (`1.5-3`); without one, where Fortran would put a point of its own, such a number is refused, and so is either in a
//! field of integers.

use super::fault;
use super::format::Field;
use crate::error::{Error, Result};
use crate::source::text::{Fault, Text};
use crate::source::tokens::{Scan, line_at, signed_whole};

/// Characters of a field that an error message repeats.
const LONGEST: usize = 40;
/// Bytes after which the meter is told.
const REPORT: usize = 1 << 20;

/// A place in the file, at the beginning of a line.
pub(super) struct Fields<'a> {
    text: Text<'a>,
    at: usize,
    /// The place that the meter knows of.
    told: usize,
}

/// One field, blanks around it taken off.
pub(super) struct Place<'a> {
    at: usize,
    field: Field,
    digits: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(text: Text<'a>, at: usize) -> Fields<'a> {
        Fields { text, at, told: at }
    }

    /// Tells the meter of what it does not know yet.
    fn tell(&mut self) {
        self.text.advance(self.at - self.told);
        self.told = self.at;
    }

    /// An error at this place.
    pub fn fault(&self, expected: &str, found: &str) -> Error {
        self.text.error(*fault(self.at, expected, found))
    }

    /// Visits so many numbers, which begin on this line and end with a line.
    pub fn section(
        &mut self,
        format: &[Field],
        count: u64,
        mut visit: impl FnMut(&Place<'a>) -> Scan<()>,
    ) -> Result<()> {
        let mut left = count;
        while left > 0 {
            if self.at == self.text.bytes.len() {
                let expected = format!("{left} more of the {count} numbers that the header announces");
                return Err(self.fault(&expected, "end of file"));
            }
            let (line, next) = line_at(self.text.bytes, self.at);
            for field in format.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
                visit(&place(line, self.at, *field)).map_err(|fault| self.text.error(*fault))?;
                left -= 1;
            }
            self.at = next;
            if self.at - self.told >= REPORT {
                self.tell();
            }
        }
        self.tell();
        Ok(())
    }
}

fn place(line: &[u8], line_at: usize, field: Field) -> Place<'_> {
    let start = field.start.min(line.len());
    let whole = &line[start..(field.start + field.width).min(line.len())];
    let blanks = whole.len() - whole.trim_ascii_start().len();
    let digits = whole.trim_ascii();
    let at = if digits.is_empty() { line_at + start } else { line_at + start + blanks };
    Place { at, field, digits }
}

impl Place<'_> {
    /// A fault in this field.
    pub fn fault(&self, expected: impl Into<String>) -> Box<Fault> {
        let found = if self.digits.is_empty() {
            format!("nothing in columns {} to {}", self.field.start + 1, self.field.start + self.field.width)
        } else {
            self.digits[..self.digits.len().min(LONGEST)].escape_ascii().to_string()
        };
        fault(self.at, expected, found)
    }

    /// A whole number in the range.
    pub fn whole(&self, what: &str, first: u64, last: u64) -> Scan<u64> {
        let within = signed_whole(self.digits).filter(|number| (first..=last).contains(number));
        within.ok_or_else(|| {
            self.fault(if first == last {
                format!("{what} {first}")
            } else {
                format!("{what} from {first} to {last}")
            })
        })
    }

    /// A finite number, whatever the letter of its exponent, or without one; an integer where the format says so.
    pub fn number(&self) -> Scan<f64> {
        let value = self.usual().and_then(|usual| fast_float2::parse::<f64, _>(usual).ok());
        let expected = if self.field.integer { "an integer, as the format says" } else { "a number" };
        let value = value.ok_or_else(|| self.fault(expected))?;
        if value.is_finite() { Ok(value) } else { Err(self.fault("a finite number")) }
    }

    /// The number as the rest of the world spells it.
    fn usual(&self) -> Option<Vec<u8>> {
        let is_mantissa = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let signs = usize::from(matches!(self.digits.first(), Some(b'+' | b'-')));
        let length = signs + self.digits[signs..].iter().take_while(|byte| is_mantissa(byte)).count();
        let (mantissa, exponent) = self.digits.split_at(length);
        let point = mantissa.contains(&b'.');
        if self.field.integer && (point || !exponent.is_empty()) {
            return None;
        }
        let mut usual = mantissa.to_vec();
        if exponent.is_empty() {
            if self.field.scale != 0 && !self.field.integer {
                usual.extend_from_slice(format!("e{}", -self.field.scale).as_bytes());
            }
            return Some(usual);
        }
        let power = match exponent[0] {
            b'e' | b'E' | b'd' | b'D' | b'q' | b'Q' => exponent[1..].trim_ascii_start(),
            b'+' | b'-' if point => exponent,
            _ => return None,
        };
        usual.push(b'e');
        usual.extend_from_slice(power);
        Some(usual)
    }
}
