//! The seam between the loop over iterations and the answer: x, b - A x and the x that a run proposes, of each column.
//!
//! They lie where an implementation keeps them: on the host, on a device, or spread over ranks. The loop sees norms and
//! reasons only and touches no whole vector. A system of k columns has k right-hand sides and k answers.

mod host;

use super::checkpoint::{Reader, Writer};
use crate::backend::Operator;
use crate::device::{Device, Name, Work};
use crate::error::Result;
use crate::scalar::Scalar;
pub(super) use host::{Host, Memory};
use std::io::{self, Write};

/// What is true of the x of a column, relative to the norm of b.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truth {
    /// The norm of b - A x.
    pub residual: f64,
    /// A bound on that norm which includes rounding.
    pub at_most: f64,
    /// The normwise backward error of x.
    pub backward_error: f64,
}

impl Truth {
    /// That of x = 0, whose residual is b.
    pub const OF_ZERO: Truth = Truth { residual: 1.0, at_most: 1.0, backward_error: 1.0 };
}

/// What a residual is measured for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    /// The norm of b.
    pub norm_b: f64,
    /// The residual to certify, relative to that.
    pub goal: f64,
    /// The largest eigenvalue of A that was seen, or 0: where A is known by its products alone.
    pub norm_a: f64,
}

/// x and b - A x of each column, and one proposed x at a time.
pub(super) trait Answer<D: Device, T: Scalar> {
    /// The largest magnitude in a column of b, and the norm of the column.
    fn right_hand_side(&self, column: usize) -> (f64, f64);

    /// Whether A is known by its products alone, so that measurements need its norm from elsewhere.
    fn needs_norm(&self) -> bool;

    /// The power of two by which a method may multiply A so that squares of its entries stay in range.
    fn matrix_scale(&self) -> f64;

    /// Sets a column of x to zero.
    fn clear(&mut self, column: usize);

    /// Sets a column of x to the start and measures its residual; fails where that is not finite.
    fn start(&mut self, column: usize, aim: &Aim) -> Result<Truth>;

    /// Sets vectors to the residuals of the columns that `live` names, each divided by a power of two near its largest entry, and
    /// the other columns to zero.
    fn hand_over(
        &mut self,
        live: &dyn Fn(usize) -> bool,
        work: &mut Work<'_, D, T>,
        to: &[Name],
    ) -> Result<()>;

    /// The power of two that the residual of a column was divided by, or is when it is measured again.
    fn scale(&self, column: usize) -> f64;

    /// Takes the d that a run has found for the scaled residuals. It is proposed column by column.
    fn fetch(&mut self, work: &Work<'_, D, T>, d: Name) -> Result<()>;

    /// Proposes x + d of a column, times `sigma` and the scale of the residual. Returns the norm of its residual.
    fn propose(&mut self, column: usize, sigma: f64, aim: &Aim) -> f64;

    /// The proposed x becomes x.
    fn accept(&mut self, column: usize, aim: &Aim) -> Truth;

    /// The first row in which the proposed x or its residual is not finite, and which of the two it is.
    fn out_of_range(&self) -> Option<(&'static str, usize)>;

    /// Measures x of a column as it is.
    fn measure_again(&mut self, column: usize, aim: &Aim) -> Truth;

    /// The normal residual of a column; `norm_a` is the largest eigenvalue of A that was seen.
    fn normal_residual(&mut self, column: usize, norm_a: Option<f64>) -> f64;

    /// The first row in which a column of a device's vector is not finite.
    fn first_not_finite(
        &mut self,
        work: &Work<'_, D, T>,
        vector: Name,
        column: usize,
    ) -> Result<Option<usize>>;

    /// Whether the curvature along a column of `direction` is positive but below the range of numbers.
    fn has_underflown(&mut self, work: &Work<'_, D, T>, direction: Name, column: usize) -> Result<bool>;

    /// An estimate of the largest relative error of an entry of x; `m` is the
    /// preconditioner with two vectors that it may be applied to, and `smallest` the smallest eigenvalue of M A seen.
    fn error_estimate(
        &mut self,
        column: usize,
        m: Option<(&Operator<D, T>, [Name; 2])>,
        work: &mut Work<'_, D, T>,
        smallest: f64,
    ) -> Result<Option<f64>>;

    /// Copies x to the host, n x k, row-major.
    fn copy_to(&self, x: &mut [f64]);

    /// Writes x of a column to a checkpoint.
    fn save<W: Write>(&self, column: usize, to: &mut Writer<W>) -> io::Result<()>;

    /// Reads x of a column back.
    fn load(&mut self, column: usize, from: &mut Reader<'_>) -> std::result::Result<(), String>;

    /// Writes a vector of the device to a checkpoint.
    fn save_vector<W: Write>(
        &mut self,
        work: &Work<'_, D, T>,
        vector: Name,
        to: &mut Writer<W>,
    ) -> io::Result<()>;

    /// Reads a vector of the device back: the outer error is the file's.
    fn load_vector(
        &mut self,
        work: &mut Work<'_, D, T>,
        vector: Name,
        from: &mut Reader<'_>,
    ) -> std::result::Result<Result<()>, String>;
}
