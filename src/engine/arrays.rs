//! Borrowed or owned arrays of the element types that other libraries use for sparse matrices.

use crate::error::{CsrFault, Error, Result};
use crate::format::{Offsets, Values};
use crate::parallel::{copied, in_pieces};
use bytemuck::Zeroable;
use std::borrow::Cow;

/// Row offsets or column indices.
#[derive(Clone, Debug)]
pub enum Indices<'a> {
    /// Unsigned, 32 bits.
    U32(Cow<'a, [u32]>),
    /// Unsigned, 64 bits.
    U64(Cow<'a, [u64]>),
    /// Unsigned, pointer width.
    Usize(Cow<'a, [usize]>),
    /// Signed, 32 bits.
    I32(Cow<'a, [i32]>),
    /// Signed, 64 bits.
    I64(Cow<'a, [i64]>),
}

/// Values of entries.
#[derive(Clone, Debug)]
pub enum Numbers<'a> {
    /// Single precision.
    F32(Cow<'a, [f32]>),
    /// Double precision.
    F64(Cow<'a, [f64]>),
    /// Every entry is 1.
    Ones,
}

macro_rules! from_arrays {
    ($($Into:ident::$Variant:ident($T:ty)),*) => {$(
        impl From<Vec<$T>> for $Into<'_> {
            fn from(array: Vec<$T>) -> Self {
                $Into::$Variant(Cow::Owned(array))
            }
        }

        impl<'a> From<&'a [$T]> for $Into<'a> {
            fn from(array: &'a [$T]) -> Self {
                $Into::$Variant(Cow::Borrowed(array))
            }
        }

        impl<'a> From<&'a Vec<$T>> for $Into<'a> {
            fn from(array: &'a Vec<$T>) -> Self {
                $Into::$Variant(Cow::Borrowed(array))
            }
        }
    )*};
}

from_arrays!(
    Indices::U32(u32),
    Indices::U64(u64),
    Indices::Usize(usize),
    Indices::I32(i32),
    Indices::I64(i64),
    Numbers::F32(f32),
    Numbers::F64(f64)
);

fn does_not_fit(what: &'static str, value: impl Into<i128>, limit: u64, container: &'static str) -> Error {
    let value: i128 = value.into();
    match u128::try_from(value) {
        Ok(value) => Error::TooLarge { what, value, limit: limit.into(), container },
        Err(_) => CsrFault::NegativeIndex { what, value }.into(),
    }
}

/// Converts each number to another type. The error names the first number that does not fit.
fn convert<T, U>(array: &[T], what: &'static str, limit: u64, container: &'static str) -> Result<Vec<U>>
where
    T: Copy + Send + Sync + TryInto<U> + TryInto<i128>,
    U: Copy + Zeroable + Send,
{
    let fit = |number: T| TryInto::<U>::try_into(number).ok();
    let (converted, unfit) = in_pieces(array, |from: &[T], to: &mut [U]| {
        // Without an early exit the loop is vectorised.
        let mut all = true;
        for (&number, to) in from.iter().zip(to) {
            let fitting = fit(number);
            all &= fitting.is_some();
            *to = fitting.unwrap_or(U::zeroed());
        }
        if all { None } else { from.iter().copied().find(|&number| fit(number).is_none()) }
    })?;
    match unfit.into_iter().flatten().next() {
        None => Ok(converted),
        Some(number) => {
            let number = TryInto::<i128>::try_into(number).unwrap_or(i128::MAX);
            Err(does_not_fit(what, number, limit, container))
        }
    }
}

/// Returns an owned array. A borrowed one is copied.
fn owned<T: Copy + Zeroable + Send + Sync>(array: Cow<'_, [T]>) -> Result<Vec<T>> {
    match array {
        Cow::Owned(array) => Ok(array),
        Cow::Borrowed(array) => copied(array),
    }
}

impl Indices<'_> {
    /// Converts to row offsets, of 32 bits if the last one fits.
    pub(super) fn offsets(self) -> Result<Offsets> {
        const WHAT: &str = "a row offset";
        let wide = |array: Vec<u64>| match array.last() {
            Some(&last) if last > Offsets::MOST_NARROW => Ok(Offsets::U64(array)),
            _ => narrow(&array).map(Offsets::U32),
        };
        // Decreasing offsets are refused later, with the row; here an earlier offset may exceed
        // the last one and 32 bits.
        fn narrow(array: &[u64]) -> Result<Vec<u32>> {
            convert(array, WHAT, u32::MAX.into(), "32-bit row offsets")
        }
        match self {
            Indices::U32(array) => match array.last() {
                Some(&last) if u64::from(last) > Offsets::MOST_NARROW => {
                    convert(&array, WHAT, u64::MAX, "64-bit row offsets").map(Offsets::U64)
                }
                _ => owned(array).map(Offsets::U32),
            },
            Indices::U64(array) => wide(owned(array)?),
            Indices::Usize(array) => wide(convert(&array, WHAT, u64::MAX, "64-bit row offsets")?),
            Indices::I32(array) => {
                convert(&array, WHAT, u32::MAX.into(), "32-bit row offsets").map(Offsets::U32)
            }
            Indices::I64(array) => wide(convert(&array, WHAT, u64::MAX, "64-bit row offsets")?),
        }
    }

    /// Converts to column indices.
    pub(super) fn columns(self) -> Result<Vec<u32>> {
        const WHAT: &str = "a column index";
        const PLACE: &str = "32-bit column indices";
        let limit = u32::MAX.into();
        match self {
            Indices::U32(array) => owned(array),
            Indices::U64(array) => convert(&array, WHAT, limit, PLACE),
            Indices::Usize(array) => convert(&array, WHAT, limit, PLACE),
            Indices::I32(array) => convert(&array, WHAT, limit, PLACE),
            Indices::I64(array) => convert(&array, WHAT, limit, PLACE),
        }
    }
}

impl Numbers<'_> {
    pub(super) fn values(self) -> Result<Values> {
        Ok(match self {
            Numbers::F32(array) => Values::from(owned(array)?),
            Numbers::F64(array) => Values::from(owned(array)?),
            Numbers::Ones => Values::Ones,
        })
    }
}
