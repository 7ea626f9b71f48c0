//! Parameters that follow a preconditioner's name: `chebyshev:degree=8,ratio=20`.

use std::fmt;

/// A numeric parameter of a preconditioner.
#[derive(Debug)]
pub struct Param {
    /// The name of the parameter.
    pub name: &'static str,
    /// The letter of its value in help texts.
    pub letter: &'static str,
    /// Its meaning, its range and its default, for help texts.
    pub summary: &'static str,
    /// The permitted values, for errors.
    pub allowed: &'static str,
    /// Whether it is a whole number.
    pub is_integer: bool,
    /// Returns whether a number is in its range.
    pub has: fn(f64) -> bool,
    /// The value if the parameter is omitted. A default out of range means that the value depends on the matrix.
    pub default: f64,
    /// Whether the default is printed as a part of the preconditioner's name.
    pub always_printed: bool,
}

impl Param {
    /// Parses a value; `None` if it is not permitted.
    pub(super) fn parse(&self, typed: &str) -> Option<f64> {
        let value = if self.is_integer { typed.parse::<usize>().ok()? as f64 } else { typed.parse().ok()? };
        (self.has)(value).then_some(value)
    }
}

/// Formats the parameter for help texts: `block=B (rows of a block)`.
impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} ({})", self.name, self.letter, self.summary)
    }
}

/// The maximum number of parameters of a preconditioner.
pub(super) const MOST: usize = 4;

/// Values of parameters, in the order of their rows; unused ones are 0.
pub(super) type Numbers = [f64; MOST];

/// Returns the default values.
pub(super) const fn defaults(params: &[Param]) -> Numbers {
    let mut values = [0.0; MOST];
    let mut i = 0;
    while i < params.len() {
        values[i] = params[i].default;
        i += 1;
    }
    values
}
