//! The parameters of a generator, with what their table cannot describe: ranges that depend on other
//! parameters, and sizes.

use super::Generator;
use crate::error::{Error, Result};
use crate::params::{Kind, Param, Params, Value};
use std::ops::{Bound, Deref, RangeInclusive};

/// A parsed description of a matrix.
pub(super) struct Spec<'a> {
    text: &'a str,
    form: &'static str,
    params: Params,
}

impl Deref for Spec<'_> {
    type Target = Params;

    fn deref(&self) -> &Params {
        &self.params
    }
}

impl<'a> Spec<'a> {
    /// Parses `parameters`, the part of `text` after the colon.
    pub(super) fn new(text: &'a str, parameters: Option<&str>, generator: &Generator) -> Result<Spec<'a>> {
        let Generator { form, params, .. } = *generator;
        let fault = |reason| Error::Generator { spec: text.to_owned(), reason, form };
        Ok(Spec { text, form, params: Params::parse(params, parameters).map_err(fault)? })
    }

    pub(super) fn fault(&self, reason: impl Into<String>) -> Error {
        Error::Generator { spec: self.text.to_owned(), reason: reason.into(), form: self.form }
    }

    /// Returns an integer; it must be within a range that the table does not know.
    pub(super) fn within(&self, name: &str, range: RangeInclusive<usize>) -> Result<Option<usize>> {
        match self.find_whole(name).map(|number| number as usize) {
            Some(number) if !range.contains(&number) => {
                let kind = Kind::Whole(*range.start() as u64, *range.end() as u64);
                Err(self.fault(format!("{name} '{number}' is not {kind}")))
            }
            number => Ok(number),
        }
    }

    /// Returns the size, of N extents.
    pub(super) fn extents<const N: usize>(&self) -> Result<[usize; N]> {
        let extents = match self.find("n") {
            Some(Value::Extents(extents)) => extents.iter().map(|&extent| extent as usize).collect(),
            _ => Vec::new(),
        };
        let missing = |_| self.fault(format!("there is no size: it has {N} extents"));
        extents.try_into().map_err(missing)
    }

    /// Returns the size as a number of rows.
    pub(super) fn order(&self) -> Result<usize> {
        match self.find_whole("n") {
            Some(n) => self.rows(&[n as usize]),
            None => Err(self.fault("there is no size: n, the number of rows")),
        }
    }

    /// Returns the number of columns, by default the number of rows.
    pub(super) fn columns(&self, rows: usize) -> Result<usize> {
        self.find_whole("cols").map_or(Ok(rows), |cols| self.rows(&[cols as usize]))
    }

    /// Returns the product of `factors`, a number of rows or columns. Fails if it exceeds the limit of 32-bit
    /// column indices.
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

/// The number of rows.
pub(super) const ORDER: Param = Param::new("n", Kind::Whole(1, u64::MAX), "the number of rows");
/// The points of a plane.
pub(super) const PLANE: Param =
    Param::new("n", Kind::Extents("NXxNY", 1, u64::MAX), "the points of each axis");
/// The points of a box.
pub(super) const VOLUME: Param =
    Param::new("n", Kind::Extents("NXxNYxNZ", 1, u64::MAX), "the points of each axis");
/// The number of entries of a row.
pub(super) const ENTRIES_OF_ROW: Param =
    Param::new("row", Kind::Whole(1, u64::MAX), "entries of a row, on average if random; left out: 16");
pub(super) const COLUMNS: Param =
    Param::new("cols", Kind::Whole(1, u64::MAX), "the number of columns; left out: that of rows");
pub(super) const SEED: Param =
    Param::new("seed", Kind::Whole(0, u64::MAX), "selects the random numbers").or("1");
/// Above 0 and at most 1.
pub(super) const SHARE: Kind = Kind::Real(Bound::Excluded(0.0), Bound::Included(1.0));

/// Describes a number from `low` to `high`.
pub(super) const fn from_to(low: f64, high: f64) -> Kind {
    Kind::Real(Bound::Included(low), Bound::Included(high))
}

/// Describes a flag.
pub(super) const fn flag(name: &'static str, summary: &'static str) -> Param {
    Param::new(name, Kind::Flag, summary)
}
