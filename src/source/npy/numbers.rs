//! Numbers of any type and byte order, converted to indices or to f64.

use super::header::Header;

/// The bytes of an array, with the type of the numbers.
pub(in crate::source) struct Numbers<'a> {
    kind: Kind,
    swapped: bool,
    bytes: &'a [u8],
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    C64,
    C128,
}

/// Index of the number, the expected content, and the found content.
pub(in crate::source) type Fault = (usize, &'static str, String);

/// Calls `$visit` for every number, in the order of the file.
macro_rules! each {
    ($self:ident, $type:ty, $visit:expr) => {
        $self.bytes.as_chunks::<{ size_of::<$type>() }>().0.iter().enumerate().map(|(index, bytes)| {
            let mut bytes = *bytes;
            if $self.swapped {
                bytes.reverse();
            }
            $visit(index, <$type>::from_ne_bytes(bytes))
        })
    };
}

impl<'a> Numbers<'a> {
    /// Returns `None` for a type that is not supported.
    pub(super) fn new(header: &Header, bytes: &'a [u8]) -> Option<Numbers<'a>> {
        let kind = match (header.kind()?, header.width()) {
            ('b', 1) => Kind::Bool,
            ('i', 1) => Kind::I8,
            ('i', 2) => Kind::I16,
            ('i', 4) => Kind::I32,
            ('i', 8) => Kind::I64,
            ('u', 1) => Kind::U8,
            ('u', 2) => Kind::U16,
            ('u', 4) => Kind::U32,
            ('u', 8) => Kind::U64,
            ('f', 4) => Kind::F32,
            ('f', 8) => Kind::F64,
            ('c', 8) => Kind::C64,
            ('c', 16) => Kind::C128,
            _ => return None,
        };
        Some(Numbers { kind, swapped: header.is_swapped(), bytes })
    }

    /// Returns other bytes with the same type.
    pub(super) fn with(&self, bytes: &'a [u8]) -> Numbers<'a> {
        Numbers { bytes, ..*self }
    }

    /// Appends the numbers as f64. All must be finite unless `any` is set, and complex ones real.
    pub(crate) fn values(&self, to: &mut Vec<f64>, any: bool) -> Result<(), Fault> {
        let finite = |index: usize, value: f64| {
            if any || value.is_finite() {
                Ok(value)
            } else {
                Err((index, "a finite number", value.to_string()))
            }
        };
        match self.kind {
            Kind::F32 => append(to, each!(self, f32, |index, v| finite(index, f64::from(v)))),
            Kind::F64 => append(to, each!(self, f64, finite)),
            Kind::C64 => real(to, each!(self, f32, |index, v| finite(index, f64::from(v)))),
            Kind::C128 => real(to, each!(self, f64, finite)),
            _ => append(to, self.integers().into_iter().flatten().map(|number| Ok(number as f64))),
        }
    }

    /// Returns index and value of the first integer that f64 does not represent exactly.
    pub(crate) fn first_rounded(&self) -> Option<(usize, i128)> {
        if !matches!(self.kind, Kind::I64 | Kind::U64) {
            return None;
        }
        self.integers()?.enumerate().find(|(_, number)| *number as f64 as i128 != *number)
    }

    /// Returns the numbers as integers; `None` if the type is not an integer.
    pub(crate) fn integers(&self) -> Option<Box<dyn Iterator<Item = i128> + '_>> {
        Some(match self.kind {
            Kind::Bool => Box::new(each!(self, u8, |_, v| i128::from(v != 0))),
            Kind::I8 => Box::new(each!(self, i8, |_, v| i128::from(v))),
            Kind::I16 => Box::new(each!(self, i16, |_, v| i128::from(v))),
            Kind::I32 => Box::new(each!(self, i32, |_, v| i128::from(v))),
            Kind::I64 => Box::new(each!(self, i64, |_, v| i128::from(v))),
            Kind::U8 => Box::new(each!(self, u8, |_, v| i128::from(v))),
            Kind::U16 => Box::new(each!(self, u16, |_, v| i128::from(v))),
            Kind::U32 => Box::new(each!(self, u32, |_, v| i128::from(v))),
            Kind::U64 => Box::new(each!(self, u64, |_, v| i128::from(v))),
            Kind::F32 | Kind::F64 | Kind::C64 | Kind::C128 => return None,
        })
    }
}

fn append(to: &mut Vec<f64>, values: impl Iterator<Item = Result<f64, Fault>>) -> Result<(), Fault> {
    for value in values {
        to.push(value?);
    }
    Ok(())
}

/// Appends the real parts of complex numbers; the imaginary parts must be 0.
fn real(to: &mut Vec<f64>, parts: impl Iterator<Item = Result<f64, Fault>>) -> Result<(), Fault> {
    for (index, part) in parts.enumerate() {
        match part {
            Ok(value) if index % 2 == 0 => to.push(value),
            Ok(0.0) => {}
            Ok(value) => {
                return Err((
                    index / 2,
                    "a real number, as complex matrices are not read",
                    format!("an imaginary part of {value}"),
                ));
            }
            Err((_, expected, found)) => return Err((index / 2, expected, found)),
        }
    }
    Ok(())
}
