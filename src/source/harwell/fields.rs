//! Numbers in fixed fields, line after line.
//!
//! A number without a decimal point is whole. Fortran would insert the point at the position that the format
//! specifies, but no Fortran program writes such numbers, and programs in other languages do. A scale factor
//! (`1P`) divides numbers without an exponent, as in Fortran. After a decimal point, an exponent needs no
//! letter (`1.5-3`). Without a point, Fortran would insert one, so such a number is refused. Both forms are
//! refused in a field of integers.

use super::fault;
use super::format::Field;
use crate::error::{Error, Result};
use crate::source::text::{Fault, Text};
use crate::source::tokens::{Scan, line_at, signed_whole};

/// Longest part of a field that an error message repeats.
const LONGEST: usize = 40;
/// Bytes between two reports to the meter.
const REPORT: usize = 1 << 20;

/// A reader of numbers, positioned at the beginning of a line.
pub(super) struct Fields<'a> {
    text: Text<'a>,
    at: usize,
    /// The offset up to which the meter has been advanced.
    reported: usize,
}

/// The content of one field, without surrounding blanks.
pub(super) struct FieldText<'a> {
    at: usize,
    field: Field,
    digits: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(text: Text<'a>, at: usize) -> Fields<'a> {
        Fields { text, at, reported: at }
    }

    /// Advances the meter to the current offset.
    fn report(&mut self) {
        self.text.advance(self.at - self.reported);
        self.reported = self.at;
    }

    /// Returns an error at the current offset.
    pub(crate) fn fault(&self, expected: &str, found: &str) -> Error {
        self.text.error(*fault(self.at, expected, found))
    }

    /// Visits `count` numbers, which begin on this line and end with a line.
    pub(crate) fn section(
        &mut self,
        format: &[Field],
        count: u64,
        mut visit: impl FnMut(&FieldText<'a>) -> Scan<()>,
    ) -> Result<()> {
        let mut left = count;
        while left > 0 {
            if self.at == self.text.bytes.len() {
                let expected = format!("{left} more of the {count} numbers that the header announces");
                return Err(self.fault(&expected, "end of file"));
            }
            let (line, next) = line_at(self.text.bytes, self.at);
            for field in format.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
                visit(&field_text(line, self.at, *field)).map_err(|fault| self.text.error(*fault))?;
                left -= 1;
            }
            self.at = next;
            if self.at - self.reported >= REPORT {
                self.report();
            }
        }
        self.report();
        Ok(())
    }
}

fn field_text(line: &[u8], line_at: usize, field: Field) -> FieldText<'_> {
    let start = field.start.min(line.len());
    let whole = &line[start..(field.start + field.width).min(line.len())];
    let blanks = whole.len() - whole.trim_ascii_start().len();
    let digits = whole.trim_ascii();
    let at = if digits.is_empty() { line_at + start } else { line_at + start + blanks };
    FieldText { at, field, digits }
}

impl FieldText<'_> {
    /// Returns a fault in this field.
    pub(crate) fn fault(&self, expected: impl Into<String>) -> Box<Fault> {
        let found = if self.digits.is_empty() {
            format!("nothing in columns {} to {}", self.field.start + 1, self.field.start + self.field.width)
        } else {
            self.digits[..self.digits.len().min(LONGEST)].escape_ascii().to_string()
        };
        fault(self.at, expected, found)
    }

    /// Parses an integer within the range.
    pub(crate) fn whole_number(&self, what: &str, first: u64, last: u64) -> Scan<u64> {
        let within = signed_whole(self.digits).filter(|number| (first..=last).contains(number));
        within.ok_or_else(|| {
            self.fault(if first == last {
                format!("{what} {first}")
            } else {
                format!("{what} from {first} to {last}")
            })
        })
    }

    /// Parses a finite number with any letter of its exponent, or none; an integer if the format says so.
    pub(crate) fn number(&self) -> Scan<f64> {
        let value = self.standard_form().and_then(|number| fast_float2::parse::<f64, _>(number).ok());
        let expected = if self.field.integer { "an integer, as the format says" } else { "a number" };
        let value = value.ok_or_else(|| self.fault(expected))?;
        if value.is_finite() { Ok(value) } else { Err(self.fault("a finite number")) }
    }

    /// Returns the number in the notation of other languages.
    fn standard_form(&self) -> Option<Vec<u8>> {
        let is_mantissa = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let signs = usize::from(matches!(self.digits.first(), Some(b'+' | b'-')));
        let length = signs + self.digits[signs..].iter().take_while(|byte| is_mantissa(byte)).count();
        let (mantissa, exponent) = self.digits.split_at(length);
        let point = mantissa.contains(&b'.');
        if self.field.integer && (point || !exponent.is_empty()) {
            return None;
        }
        let mut number = mantissa.to_vec();
        if exponent.is_empty() {
            if self.field.scale != 0 && !self.field.integer {
                number.extend_from_slice(format!("e{}", -self.field.scale).as_bytes());
            }
            return Some(number);
        }
        let power = match exponent[0] {
            b'e' | b'E' | b'd' | b'D' | b'q' | b'Q' => exponent[1..].trim_ascii_start(),
            b'+' | b'-' if point => exponent,
            _ => return None,
        };
        number.push(b'e');
        number.extend_from_slice(power);
        Some(number)
    }
}
