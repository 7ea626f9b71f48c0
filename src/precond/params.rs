//! Parameters that ride on a preconditioner's name: `chebyshev:degree=8,ratio=20`.

use std::fmt;

/// One parameter of a preconditioner, a number.
#[derive(Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// The letter of its value in help texts.
    pub letter: &'static str,
    /// What it is, its range and its default, for people.
    pub summary: &'static str,
    /// What it must be, for errors.
    pub allowed: &'static str,
    /// Whether it is a whole number.
    pub whole: bool,
    /// Whether a number is in its range.
    pub has: fn(f64) -> bool,
    /// The value where none is typed. One out of range stands for the value that the matrix decides.
    pub default: f64,
    /// Whether the default is printed as a part of the preconditioner's name.
    pub always_printed: bool,
}

impl Param {
    /// The value that was typed, if it is one.
    pub(super) fn parse(&self, typed: &str) -> Option<f64> {
        let value = if self.whole { typed.parse::<usize>().ok()? as f64 } else { typed.parse().ok()? };
        (self.has)(value).then_some(value)
    }
}

/// For help texts: `block=B (rows of a block)`.
impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} ({})", self.name, self.letter, self.summary)
    }
}

/// The most parameters that a preconditioner has.
pub(super) const MOST: usize = 4;

/// Numbers of parameters, in the order of their rows; those that there are not are 0.
pub(super) type Numbers = [f64; MOST];

/// The values where none are typed.
pub(super) const fn defaults(params: &[Param]) -> Numbers {
    let mut values = [0.0; MOST];
    let mut i = 0;
    while i < params.len() {
        values[i] = params[i].default;
        i += 1;
    }
    values
}
