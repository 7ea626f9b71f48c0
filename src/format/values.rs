//! The values of a matrix, apart from its pattern.

use super::pieces::{each, each_row};
use crate::error::Result;
use bytemuck::Zeroable;

/// The values of a matrix, apart from its pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Every entry is 1 and none is stored: a graph moves 4 bytes an edge.
    Ones,
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl Values {
    /// Value `j` in double precision.
    #[inline]
    pub fn get(&self, j: usize) -> f64 {
        match self {
            Values::Ones => 1.0,
            Values::F32(v) => f64::from(v[j]),
            Values::F64(v) => v[j],
        }
    }

    /// Bytes of one stored value.
    pub fn width(&self) -> usize {
        match self {
            Values::Ones => 0,
            Values::F32(_) => 4,
            Values::F64(_) => 8,
        }
    }

    /// The values in double precision, so many where they are implicit. Moved where they are in it already.
    pub fn into_f64(self, entries: usize) -> Result<Vec<f64>> {
        match self {
            Values::Ones => each_row(entries, 8 * entries, |_| Ok(1.0)),
            Values::F32(v) => each(&v, |v| Ok(f64::from(v))),
            Values::F64(v) => Ok(v),
        }
    }

    /// The values in single precision, rounded where they were in double, and so many where they are implicit. Moved
    /// where they are in it already.
    pub fn into_f32(self, entries: usize) -> Result<Vec<f32>> {
        match self {
            Values::Ones => each_row(entries, 4 * entries, |_| Ok(1.0)),
            Values::F32(v) => Ok(v),
            Values::F64(v) => each(&v, |v| Ok(v as f32)),
        }
    }

    /// A copy, or an error where there is no memory for it.
    pub fn copied(&self) -> Result<Values> {
        Ok(match self {
            Values::Ones => Values::Ones,
            Values::F32(v) => Values::F32(each(v, Ok)?),
            Values::F64(v) => Values::F64(each(v, Ok)?),
        })
    }

    /// How many are stored; none says so for implicit ones.
    pub fn stored(&self) -> Option<usize> {
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

/// A one that is not stored: a value of no size, so that whatever moves values about is written once for all kinds.
pub(crate) type One = [u8; 0];

/// A type that values are stored as.
pub(crate) trait Stored: Copy + Zeroable + Send + Sync {
    /// The values that a vector of this type stands for.
    fn wrap(values: Vec<Self>) -> Values;
    /// Whether every bit is zero: what padding is made of, and what -0 and entries of full formats are not.
    fn is_fill(&self) -> bool;
    /// For messages.
    fn text(self) -> String;
}

impl Stored for One {
    fn wrap(_: Vec<One>) -> Values {
        Values::Ones
    }
    /// Where nothing is stored, there is nothing wrong with it.
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

/// Runs the same code on the values of any kind: `|v|` is a slice of a [`Stored`] type, `$entries` long for ones.
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
