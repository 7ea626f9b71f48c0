//! The values of a matrix, stored apart from its pattern.

use super::pieces::{each, each_row};
use crate::error::Result;
use crate::parallel::{copied, threads_for};
use bytemuck::Zeroable;
use rayon::prelude::*;

/// The values of a matrix, stored apart from its pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Every entry is 1 and no values are stored: a graph moves 4 bytes per edge.
    Ones,
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

/// Finds the first value with a property, on the pool if there are many.
fn first_of<V: Sync>(values: &[V], has: impl Fn(&V) -> bool + Send + Sync) -> Option<usize> {
    match threads_for(values.len()) {
        1 => values.iter().position(has),
        _ => values.par_iter().position_first(has),
    }
}

impl Values {
    /// Returns value `j` in double precision.
    #[inline]
    pub fn get(&self, j: usize) -> f64 {
        match self {
            Values::Ones => 1.0,
            Values::F32(v) => f64::from(v[j]),
            Values::F64(v) => v[j],
        }
    }

    /// Returns whether every value is 1.
    pub(crate) fn are_ones(&self) -> bool {
        fn all<V: PartialEq + Sync>(values: &[V], one: V) -> bool {
            values.par_chunks(1 << 14).all(|values| values.iter().all(|value| *value == one))
        }
        match self {
            Values::Ones => true,
            Values::F32(values) => all(values, 1.0),
            Values::F64(values) => all(values, 1.0),
        }
    }

    /// Returns the index of the first value that is NaN or infinite.
    pub(crate) fn first_not_finite(&self) -> Option<usize> {
        match self {
            Values::Ones => None,
            Values::F32(values) => first_of(values, |value| !value.is_finite()),
            Values::F64(values) => first_of(values, |value| !value.is_finite()),
        }
    }

    /// Returns the bytes of one stored value; 0 for implicit ones.
    pub fn width(&self) -> usize {
        match self {
            Values::Ones => 0,
            Values::F32(_) => 4,
            Values::F64(_) => 8,
        }
    }

    /// Returns the values in double precision. Values in that precision are moved. Implicit ones
    /// become `entries` stored ones.
    pub(crate) fn into_f64(self, entries: usize) -> Result<Vec<f64>> {
        match self {
            Values::Ones => each_row(entries, 8 * entries, |_| Ok(1.0)),
            Values::F32(v) => each(&v, |v| Ok(f64::from(v))),
            Values::F64(v) => Ok(v),
        }
    }

    /// Returns the values in single precision. Values in that precision are moved; double precision is
    /// rounded. Implicit ones become `entries` stored ones.
    pub(crate) fn into_f32(self, entries: usize) -> Result<Vec<f32>> {
        match self {
            Values::Ones => each_row(entries, 4 * entries, |_| Ok(1.0)),
            Values::F32(v) => Ok(v),
            Values::F64(v) => each(&v, |v| Ok(v as f32)),
        }
    }

    /// Returns a copy, or an error if memory does not suffice.
    pub(crate) fn copied(&self) -> Result<Values> {
        Ok(match self {
            Values::Ones => Values::Ones,
            Values::F32(v) => Values::F32(copied(v)?),
            Values::F64(v) => Values::F64(copied(v)?),
        })
    }

    /// Returns the number of stored values; none for implicit ones.
    pub(crate) fn stored(&self) -> Option<usize> {
        match self {
            Values::Ones => None,
            Values::F32(v) => Some(v.len()),
            Values::F64(v) => Some(v.len()),
        }
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Values {
        Values::F32(values)
    }
}

impl From<Vec<f64>> for Values {
    fn from(values: Vec<f64>) -> Values {
        Values::F64(values)
    }
}

/// Returns the values whose `value_bits` these are, of the kind that `of` has.
pub(super) fn from_bits(of: &Values, bits: Vec<f64>) -> Result<Values> {
    Ok(match of {
        Values::Ones => Values::Ones,
        Values::F32(_) => Values::F32(each(&bits, |bits| Ok(f32::from_bits(bits.to_bits() as u32)))?),
        Values::F64(_) => Values::F64(bits),
    })
}

/// Returns a value of a matrix; one in single precision as its bits, so that NaN keeps its own.
#[inline(always)]
pub(super) fn value_bits(values: &Values, entry: usize) -> f64 {
    match values {
        Values::F32(values) => f64::from_bits(u64::from(values[entry].to_bits())),
        other => other.get(entry),
    }
}

/// An implicit one: a value of size 0, so that generic code serves all kinds of values.
pub(crate) type One = [u8; 0];

/// The element type of stored values.
pub(crate) trait Stored: Copy + PartialEq + Zeroable + Send + Sync {
    /// Wraps a vector of this type as [`Values`].
    fn wrap(values: Vec<Self>) -> Values;
    /// Returns whether the value is +0, with which padding and blocks are filled; -0 is not.
    fn is_fill(&self) -> bool;
    /// Formats the value for messages.
    fn text(self) -> String;
}

impl Stored for One {
    fn wrap(_: Vec<One>) -> Values {
        Values::Ones
    }
    /// Always true: an implicit value is never invalid padding.
    fn is_fill(&self) -> bool {
        true
    }
    fn text(self) -> String {
        "1".to_owned()
    }
}

impl Stored for f32 {
    fn wrap(values: Vec<f32>) -> Values {
        Values::F32(values)
    }
    fn is_fill(&self) -> bool {
        self.to_bits() == 0
    }
    fn text(self) -> String {
        self.to_string()
    }
}

impl Stored for f64 {
    fn wrap(values: Vec<f64>) -> Values {
        Values::F64(values)
    }
    fn is_fill(&self) -> bool {
        self.to_bits() == 0
    }
    fn text(self) -> String {
        self.to_string()
    }
}

/// Evaluates an expression for any kind of values: `v` is a slice of a [`Stored`] type, of length
/// `$entries` for implicit ones.
macro_rules! for_stored {
    ($values:expr, $entries:expr, |$v:ident| $body:expr) => {
        match $values {
            $crate::format::Values::Ones => {
                let $v = &vec![[0_u8; 0]; $entries][..];
                $body
            }
            $crate::format::Values::F32(values) => {
                let $v = &values[..];
                $body
            }
            $crate::format::Values::F64(values) => {
                let $v = &values[..];
                $body
            }
        }
    };
}
pub(crate) use for_stored;
