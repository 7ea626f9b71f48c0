//! Parses a description of a matrix: `name:SIZE,parameter=value,flag,...`.

use crate::error::{Error, Result};
use std::ops::RangeInclusive;

/// The parsed text after the name of a generator, with methods that report what is wrong with it.
pub(super) struct Spec<'a> {
    text: &'a str,
    form: &'static str,
    /// Names with their values; flags have no value. A first item that does not begin like a name is the value of `n`.
    items: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Spec<'a> {
    /// Parses `rest`, the part of `text` after the name and the colon.
    pub(super) fn new(text: &'a str, rest: &'a str, form: &'static str) -> Spec<'a> {
        let mut items: Vec<_> = rest
            .split(',')
            .map(|item| item.split_once('=').map_or((item, None), |(name, value)| (name, Some(value))))
            .collect();
        let (first, value) = items[0];
        if rest.is_empty() {
            items.clear();
        } else if value.is_none() && !first.starts_with(|c: char| c.is_ascii_alphabetic()) {
            items[0] = ("n", Some(first));
        }
        Spec { text, form, items }
    }

    pub(super) fn fault(&self, reason: impl Into<String>) -> Error {
        Error::Generator { spec: self.text.to_owned(), reason: reason.into(), form: self.form }
    }

    /// Checks that every parameter is one of `names` and is given once.
    pub(super) fn allow(&self, names: &[&str]) -> Result<()> {
        for (i, (name, _)) in self.items.iter().enumerate() {
            if !names.contains(name) {
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(self.fault(format!("there is no parameter '{name}'; there are: {known}")));
            }
            if self.items[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(self.fault(format!("parameter '{name}' is given twice")));
            }
        }
        Ok(())
    }

    /// Returns the value of a parameter as typed, empty if the parameter has no value.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.items.iter().find(|(n, _)| *n == name).map(|(_, value)| value.unwrap_or_default())
    }

    /// Checks whether a flag is given; a flag has no value.
    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        match self.items.iter().find(|(n, _)| *n == name) {
            None => Ok(false),
            Some((_, None)) => Ok(true),
            Some((_, Some(value))) => Err(self.fault(format!("{name} takes no value; '{value}' was given"))),
        }
    }

    /// Returns the value of a parameter that must be one of `words`; the first word if it is not given.
    pub(super) fn choice(&self, name: &str, words: &[&'static str]) -> Result<&'static str> {
        let Some(typed) = self.get(name) else { return Ok(words[0]) };
        let found = words.iter().find(|&&word| word == typed).copied();
        found.ok_or_else(|| self.fault(format!("{name} '{typed}' is not one of {}", words.join(", "))))
    }

    /// Returns an integer within the range.
    pub(super) fn integer(&self, name: &str, range: RangeInclusive<usize>) -> Result<Option<usize>> {
        let Some(typed) = self.get(name) else { return Ok(None) };
        let number = typed.parse().ok().filter(|number| range.contains(number));
        let (low, high) = (range.start(), range.end());
        let fault = || self.fault(format!("{name} '{typed}' is not a whole number from {low} to {high}"));
        number.ok_or_else(fault).map(Some)
    }

    /// Returns a number for which `fits` is true; `range` describes the condition in words.
    pub(super) fn number(&self, name: &str, range: &str, fits: impl Fn(f64) -> bool) -> Result<Option<f64>> {
        let Some(typed) = self.get(name) else { return Ok(None) };
        let number = typed.parse().ok().filter(|&number: &f64| number.is_finite() && fits(number));
        let fault = || self.fault(format!("{name} '{typed}' is not a number {range}"));
        number.ok_or_else(fault).map(Some)
    }

    /// Returns the parameter `seed`; 1 if it is not given.
    pub(super) fn seed(&self) -> Result<u64> {
        let Some(typed) = self.get("seed") else { return Ok(1) };
        let fault = || self.fault(format!("seed '{typed}' is not a whole number from 0 to {}", u64::MAX));
        typed.parse().map_err(|_| fault())
    }

    /// Parses the size as exactly N positive numbers separated by `x`.
    pub(super) fn extents<const N: usize>(&self) -> Result<[usize; N]> {
        let Some(size) = self.get("n") else {
            return Err(self.fault(format!("there is no size: it has {N} extents")));
        };
        let parts: Vec<&str> = size.split('x').collect();
        if parts.len() != N {
            return Err(self.fault(format!("size '{size}' has {} extents, not {N}", parts.len())));
        }
        let mut extents = [0; N];
        for (extent, part) in extents.iter_mut().zip(parts) {
            *extent = part
                .parse()
                .ok()
                .filter(|&e| e > 0)
                .ok_or_else(|| self.fault(format!("'{part}' is not a positive number")))?;
        }
        Ok(extents)
    }

    /// Parses the size as a number of rows.
    pub(super) fn order(&self) -> Result<usize> {
        if self.get("n").is_none() {
            return Err(self.fault("there is no size: n, the number of rows"));
        }
        let [n] = self.extents()?;
        self.rows(&[n])
    }

    /// Returns the number of columns, by default the number of rows.
    pub(super) fn columns(&self, rows: usize) -> Result<usize> {
        match self.integer("cols", 1..=usize::MAX)? {
            None => Ok(rows),
            Some(cols) => self.rows(&[cols]),
        }
    }

    /// Returns the product of `factors`, a number of rows or columns. Fails if it exceeds the limit of 32-bit column indices.
    pub(super) fn rows(&self, factors: &[usize]) -> Result<usize> {
        let product = factors.iter().try_fold(1u128, |p, &f| p.checked_mul(f as u128)).unwrap_or(u128::MAX);
        if product > u128::from(u32::MAX) {
            return Err(Error::TooLarge {
                what: "the number of columns",
                value: product,
                limit: u128::from(u32::MAX),
                container: "32-bit column indices",
            });
        }
        Ok(product as usize)
    }
}
