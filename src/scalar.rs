//! The two number types of vectors and matrix values.

use bytemuck::Pod;
use std::fmt::{Debug, Display};
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A vector element: `f32` or `f64`.
///
/// Both are plain data ([`Pod`]), which devices copy bit by bit.
pub trait Scalar:
    Pod
    + Default
    + Debug
    + Display
    + PartialEq
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
{
    /// The name users type: `f32` or `f64`.
    const NAME: &'static str;
    /// The name of the same type in CUDA C++.
    const CUDA_NAME: &'static str;
    /// The distance from 1 to the next number.
    const EPSILON: f64;
    /// Returns an array of `N` ones.
    fn ones<const N: usize>() -> &'static [Self; N];
    /// Rounds to the nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// Converts exactly from single precision.
    fn from_f32(value: f32) -> Self;
    /// Converts exactly to double precision.
    fn to_f64(self) -> f64;
    /// Returns `self * by + add`, rounded once.
    fn fused(self, by: Self, add: Self) -> Self;
}

impl Scalar for f32 {
    const NAME: &'static str = "f32";
    const CUDA_NAME: &'static str = "float";
    const EPSILON: f64 = f32::EPSILON as f64;
    #[inline(always)]
    fn ones<const N: usize>() -> &'static [f32; N] {
        const { &[1.0; N] }
    }
    #[inline(always)]
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
    #[inline(always)]
    fn from_f32(value: f32) -> f32 {
        value
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn fused(self, by: f32, add: f32) -> f32 {
        self.mul_add(by, add)
    }
}

impl Scalar for f64 {
    const NAME: &'static str = "f64";
    const CUDA_NAME: &'static str = "double";
    const EPSILON: f64 = f64::EPSILON;
    #[inline(always)]
    fn ones<const N: usize>() -> &'static [f64; N] {
        const { &[1.0; N] }
    }
    #[inline(always)]
    fn from_f64(value: f64) -> f64 {
        value
    }
    #[inline(always)]
    fn from_f32(value: f32) -> f64 {
        f64::from(value)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn fused(self, by: f64, add: f64) -> f64 {
        self.mul_add(by, add)
    }
}

/// The precision of matrix values and vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precision {
    /// Matrix and vectors in double precision.
    F64,
    /// Matrix and vectors in single precision; sums of dot products in double precision.
    F32,
    /// Matrix in single, vectors in double precision.
    Mixed,
}

impl Precision {
    /// Returns the name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F64 => "f64",
            Precision::F32 => "f32",
            Precision::Mixed => "mixed",
        }
    }

    /// Returns whether the matrix is stored in single precision.
    pub(crate) fn narrow_values(self) -> bool {
        self != Precision::F64
    }
}
