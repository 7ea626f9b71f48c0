//! The interface between the loop over iterations and the answer. For each column, the answer consists of x, b - A x and the x
//! that a run proposes.
//!
//! An implementation chooses where these vectors are stored: on the host, on a device, or distributed over ranks. The loop uses
//! norms and reasons only and accesses no whole vector. A system of k columns has k right-hand sides and k answers.

mod host;

use super::checkpoint::{Reader, Writer};
use crate::backend::Operator;
use crate::device::{Device, Name, Work};
use crate::error::Result;
use crate::scalar::Scalar;
pub(super) use host::{Host, Memory};
use std::io::{self, Write};

/// Residuals and backward error of the x of a column, relative to the norm of b.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truth {
    /// The norm of b - A x.
    pub residual: f64,
    /// A bound on that norm that includes rounding.
    pub at_most: f64,
    /// The normwise backward error of x.
    pub backward_error: f64,
}

impl Truth {
    /// The measures of x = 0, whose residual is b.
    pub const OF_ZERO: Truth = Truth { residual: 1.0, at_most: 1.0, backward_error: 1.0 };
    /// The measures of an x whose residual is not known.
    pub const UNKNOWN: Truth = Truth { residual: f64::NAN, at_most: f64::NAN, backward_error: f64::NAN };
}

/// The goal and the norms that the measurement of a residual needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    /// The norm of b.
    pub norm_b: f64,
    /// The residual to certify, relative to the norm of b.
    pub goal: f64,
    /// The largest eigenvalue of A found so far, for a matrix known only by its products; otherwise 0.
    pub norm_a: f64,
}

/// x and b - A x of each column, and one proposed x at a time.
pub(super) trait Answer<D: Device, T: Scalar> {
    /// Returns the largest magnitude in a column of b, and the norm of the column.
    fn right_hand_side(&self, column: usize) -> (f64, f64);

    /// Finds the first row in which a column of b is not finite.
    fn first_not_finite_in_b(&self, column: usize) -> Option<usize>;

    /// Returns whether A is known only by its products, so that measurements need an estimate of its norm.
    fn needs_norm(&self) -> bool;

    /// Returns the power of two by which a method may multiply A so that squares of its entries stay in range.
    fn matrix_scale(&self) -> f64;

    /// Sets a column of x to zero.
    fn clear(&mut self, column: usize);

    /// Returns whether an entry of a column of x is not zero. Over ranks, the entries of all ranks count.
    fn is_nonzero(&self, column: usize) -> bool;

    /// Sets a column of x to the start and measures its residual. Fails if the residual is not finite.
    fn start(&mut self, column: usize, aim: &Aim) -> Result<Truth>;

    /// Sets vectors to the residuals of the columns for which `live` is true, each divided by a power of two near its largest
    /// entry. Sets the other columns to zero.
    fn upload_residuals(
        &mut self,
        live: &dyn Fn(usize) -> bool,
        work: &mut Work<'_, D, T>,
        to: &[Name],
    ) -> Result<()>;

    /// Returns the power of two by which the residual of a column was divided, or will be after it is measured again.
    fn scale(&self, column: usize) -> f64;

    /// Copies the d that a run has computed for the scaled residuals; [`propose`](Self::propose) then uses it column by column.
    fn fetch(&mut self, work: &Work<'_, D, T>, d: Name) -> Result<()>;

    /// Proposes x + d for a column, with d multiplied by `sigma` and the scale of the residual. Returns the norm of its residual.
    fn propose(&mut self, column: usize, sigma: f64, aim: &Aim) -> f64;

    /// Returns the x that [`propose`](Self::propose) would propose for the first column, without measuring it.
    fn preview(&mut self, sigma: f64) -> &[f64];

    /// Returns the number of rows.
    fn rows(&self) -> usize;

    /// Replaces x by the proposed x.
    fn accept(&mut self, column: usize, aim: &Aim) -> Truth;

    /// Finds the first row in which the proposed x or its residual is not finite, and the name of that vector.
    fn out_of_range(&self) -> Option<(&'static str, usize)>;

    /// Measures the residual of the current x of a column.
    fn measure_again(&mut self, column: usize, aim: &Aim) -> Truth;

    /// Returns the normal residual of a column; `norm_a` is the largest eigenvalue of A found so far.
    fn normal_residual(&mut self, column: usize, norm_a: Option<f64>) -> f64;

    /// Finds the first row in which a column of a device's vector is not finite.
    fn first_not_finite(
        &mut self,
        work: &Work<'_, D, T>,
        vector: Name,
        column: usize,
    ) -> Result<Option<usize>>;

    /// Returns whether the curvature along a column of `direction` is positive but below the range of numbers.
    fn has_underflown(&mut self, work: &Work<'_, D, T>, direction: Name, column: usize) -> Result<bool>;

    /// Estimates the largest relative error of an entry of x. `m` is the preconditioner, with two vectors for its input and
    /// output; `smallest` is the smallest eigenvalue of M A found so far.
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

    /// Reads x of a column from a checkpoint.
    fn load(&mut self, column: usize, from: &mut Reader<'_>) -> std::result::Result<(), String>;

    /// Writes a vector of the device to a checkpoint.
    fn save_vector<W: Write>(
        &mut self,
        work: &Work<'_, D, T>,
        vector: Name,
        to: &mut Writer<W>,
    ) -> io::Result<()>;

    /// Reads a vector of the device from a checkpoint. The outer error concerns the file, the inner one the device.
    fn load_vector(
        &mut self,
        work: &mut Work<'_, D, T>,
        vector: Name,
        from: &mut Reader<'_>,
    ) -> std::result::Result<Result<()>, String>;
}
