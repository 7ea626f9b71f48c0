//! The answer of a linear system: for each column x, b - A x, and the x that a run proposes, in host memory,
//! in double precision, measured with the matrix as its source provides it.
//!
//! The loop over iterations uses norms and reasons only and accesses no whole vector. A system of k columns
//! has k right-hand sides and k answers. If the system is distributed over ranks, each rank has its rows of
//! every vector. Norms are combined in the order of ranks, so all ranks have the same ones.

mod rows;

use crate::backend::Operator;
use crate::device::{Device, Name, Product, Work};
use crate::error::{Error, Result};
use crate::operator::Residuals;
use crate::parallel::zeros;
use crate::scalar::Scalar;
use crate::solve::System;
use crate::solve::checkpoint::{Reader, Writer};
use crate::solve::forward_error::{self, Estimator, Evidence};
use crate::solve::given::MatrixRef;
use crate::solve::norms::{joined_norm, larger, largest_and_norm, norm};
use crate::solve::verdict::{self, Judge, Measured, Rows, normal_residual};
use rows::{each_entry, each_row, first_row, has_underflown, matrix_scale, one_column, scale};
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
    pub(crate) const OF_ZERO: Truth = Truth { residual: 1.0, at_most: 1.0, backward_error: 1.0 };
    /// The measures of an x whose residual is not known.
    pub(crate) const UNKNOWN: Truth =
        Truth { residual: f64::NAN, at_most: f64::NAN, backward_error: f64::NAN };
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

/// A column of the answer. It is contiguous, whereas b and the vectors of devices are row-major.
#[derive(Default)]
struct Column {
    /// Whether x is still zero as allocated.
    fresh: bool,
    x: Vec<f64>,
    /// b - A x, unless `is_b` is set.
    r: Vec<f64>,
    /// Whether b - A x is b, because x is zero. Then r is not written, which saves time.
    is_b: bool,
    /// The power of two that r was divided by when it was passed to the device.
    scale: f64,
    /// The largest |r_i / a_ii|, if r was computed from the entries of A.
    decoupled: f64,
}

/// Host memory for solves of one size, allocated once.
#[derive(Default)]
pub(super) struct Memory<T> {
    columns: Vec<Column>,
    /// The proposed x and its residual, until they replace those of a column, and the norms of that residual.
    next_x: Vec<f64>,
    next_r: Vec<f64>,
    found: Option<Measured>,
    /// A contiguous copy of a column of b, if there are several.
    b: Vec<f64>,
    /// The proposed x with the entries of other ranks, if there are any.
    complete: Vec<f64>,
    /// A buffer for transfers to and from the device.
    host: Vec<T>,
    judge: Judge,
    estimator: Estimator,
}

impl<T> Memory<T> {
    /// Lets a device compute the residuals of the systems, all of which have its matrix.
    pub(crate) fn compute_on_device(&mut self, there: Box<dyn Residuals>) {
        self.judge.compute_on_device(there);
    }
}

/// The answer of a system: x and b - A x of each column, and one proposed x at a time.
pub(super) struct Answer<'a, D, T> {
    device: &'a D,
    system: &'a System<'a>,
    k: usize,
    memory: &'a mut Memory<T>,
}

impl<'a, D: Device, T: Scalar> Answer<'a, D, T> {
    /// Creates the answer for a system of n rows and k columns.
    pub(crate) fn new(
        device: &'a D,
        system: &'a System<'a>,
        (n, k): (usize, usize),
        memory: &'a mut Memory<T>,
    ) -> Result<Answer<'a, D, T>> {
        if memory.columns.len() != k || memory.next_x.len() != n {
            let column = || {
                Ok(Column {
                    fresh: true,
                    x: zeros(n)?,
                    r: zeros(n)?,
                    is_b: false,
                    scale: 1.0,
                    decoupled: 0.0,
                })
            };
            *memory = Memory {
                columns: (0..k).map(|_| column()).collect::<Result<_>>()?,
                next_x: zeros(n)?,
                next_r: zeros(n)?,
                b: zeros(if k == 1 { 0 } else { n })?,
                host: zeros(n * k)?,
                judge: std::mem::take(&mut memory.judge),
                ..Memory::default()
            };
        }
        Ok(Answer { device, system, k, memory })
    }

    /// Returns the residual b - A x of a column.
    fn residual(&self, column: usize) -> &[f64] {
        residual(&self.memory.columns[column], self.system.b)
    }

    /// Computes the residual of the proposed x: the plain one if it certifies the goal,
    /// otherwise the compensated one.
    fn measure(&mut self, column: usize, aim: &Aim) -> Measured {
        let Memory { next_x: x, next_r: r, b, complete, judge, .. } = &mut *self.memory;
        let b = one_column(self.system.b, self.k, column, b);
        let found = match self.system.matrix {
            MatrixRef::Stored(matrix) => {
                judge.measure(self.device, Rows { matrix, below: 0, b, x }, aim.norm_b, aim.goal, r)
            }
            MatrixRef::Applied(product) => verdict::of_product(product, (b, x), aim.norm_a, r),
            MatrixRef::OfRank(rows) => {
                rows.halo().complete(x, complete);
                let rows = Rows { matrix: rows.matrix(), below: rows.halo().below(), b, x: complete };
                judge.measure(self.device, rows, aim.norm_b, aim.goal, r)
            }
        };
        self.memory.found = Some(found);
        found
    }

    /// Sets the proposed x to x + d for a column, with d as fetched, multiplied by `sigma` and
    /// the scale of the residual.
    fn add_d(&mut self, column: usize, sigma: f64) {
        let (k, Memory { columns, next_x, host, .. }) = (self.k, &mut *self.memory);
        let Column { x, scale, .. } = &columns[column];
        let by = scale * sigma;
        let grown = |d: f64| if by.is_normal() { d * by } else { d * scale * sigma };
        let d = |i: usize| host[i * k + column].to_f64();
        each_entry(self.device, next_x, |i, next| *next = x[i] + grown(d(i)));
    }

    /// Returns the largest magnitude in a column of b, and the norm of the column.
    pub(crate) fn right_hand_side(&self, column: usize) -> (f64, f64) {
        let b = self.system.b;
        let (largest, norm) = match self.k {
            1 => largest_and_norm(b),
            k => largest_and_norm(&b.iter().skip(column).step_by(k).copied().collect::<Vec<_>>()),
        };
        (self.device.fold(largest, larger), self.device.fold(norm, joined_norm))
    }

    /// Finds the first row in which a column of b is not finite.
    pub(crate) fn first_not_finite_in_b(&self, column: usize) -> Option<usize> {
        let b = self.system.b.iter().skip(column).step_by(self.k);
        first_row(self.device, b.copied())
    }

    /// Returns whether A is known only by its products, so that measurements need an estimate of its norm.
    pub(crate) fn needs_norm(&self) -> bool {
        matches!(self.system.matrix, MatrixRef::Applied(_))
    }

    /// Returns the power of two by which a method may multiply A so that squares of its
    /// entries stay in range.
    pub(crate) fn matrix_scale(&self) -> f64 {
        self.system.matrix.entries().map_or(1.0, |matrix| matrix_scale::<T>(self.device, matrix))
    }

    /// Sets a column of x to zero.
    pub(crate) fn clear(&mut self, column: usize) {
        let Column { fresh, x, .. } = &mut self.memory.columns[column];
        // Newly allocated pages are zero; not writing them saves time.
        if !std::mem::take(fresh) {
            each_entry(self.device, x, |_, x| *x = 0.0);
        }
    }

    /// Returns whether an entry of a column of x is not zero. Over ranks, the entries of all ranks count.
    pub(crate) fn is_nonzero(&self, column: usize) -> bool {
        self.device.agree(self.memory.columns[column].x.iter().any(|x| *x != 0.0))
    }

    /// Sets a column of x to the start and measures its residual. Fails if the residual is not finite.
    pub(crate) fn start(&mut self, column: usize, aim: &Aim) -> Result<Truth> {
        let k = self.k;
        let truth = match self.system.x0 {
            // Exact: b - A 0 = b.
            None => {
                self.clear(column);
                let b = self.system.b;
                let Column { r, is_b, decoupled, .. } = &mut self.memory.columns[column];
                (*is_b, *decoupled) = (k == 1, 0.0);
                if k > 1 {
                    each_entry(self.device, r, |i, r| *r = b[i * k + column]);
                }
                Truth::OF_ZERO
            }
            Some(x0) => {
                let Column { fresh, x, .. } = &mut self.memory.columns[column];
                *fresh = false;
                x.iter_mut().zip(x0.iter().skip(column).step_by(k)).for_each(|(x, x0)| *x = *x0);
                self.measure_again(column, aim)
            }
        };
        if !truth.residual.is_finite() {
            let r = self.residual(column);
            let row = first_row(self.device, r.iter().copied());
            let norm = self.device.fold(norm(r), joined_norm);
            return Err(Error::StartScale { row, norm, norm_b: aim.norm_b });
        }
        Ok(truth)
    }

    /// Sets vectors to the residuals of the columns for which `live` is true, each divided by a power of two
    /// near its largest entry. Sets the other columns to zero.
    pub(crate) fn upload_residuals(
        &mut self,
        live: &dyn Fn(usize) -> bool,
        work: &mut Work<'_, D, T>,
        to: &[Name],
    ) -> Result<()> {
        let Memory { columns, host, .. } = &mut *self.memory;
        for (index, column) in columns.iter_mut().enumerate() {
            if live(index) {
                let r = residual(column, self.system.b);
                let by = scale(self.device, r);
                each_row(self.device, host, self.k, |i, row| row[index] = T::from_f64(r[i] / by));
                column.scale = by;
            } else {
                let host = host.iter_mut().skip(index).step_by(self.k);
                host.for_each(|host| *host = T::default());
            }
        }
        to.iter().try_for_each(|name| work.upload(*name, host))
    }

    /// Returns the power of two by which the residual of a column was divided, or will be
    /// after it is measured again.
    pub(crate) fn scale(&self, column: usize) -> f64 {
        self.memory.columns[column].scale
    }

    /// Copies the d that a run has computed for the scaled residuals; [`propose`](Self::propose) then
    /// uses it column by column.
    pub(crate) fn fetch(&mut self, work: &Work<'_, D, T>, d: Name) -> Result<()> {
        work.download(d, &mut self.memory.host)
    }

    /// Proposes x + d for a column, with d multiplied by `sigma` and the scale of the residual. Returns
    /// the norm of its residual.
    pub(crate) fn propose(&mut self, column: usize, sigma: f64, aim: &Aim) -> f64 {
        self.add_d(column, sigma);
        self.measure(column, aim).norm / aim.norm_b
    }

    /// Returns the x that [`propose`](Self::propose) would propose for the first column,
    /// without measuring it.
    pub(crate) fn preview(&mut self, sigma: f64) -> &[f64] {
        self.add_d(0, sigma);
        &self.memory.next_x
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.memory.next_x.len()
    }

    /// Replaces x by the proposed x.
    pub(crate) fn accept(&mut self, column: usize, aim: &Aim) -> Truth {
        let Memory { columns, next_x, next_r, found, b, .. } = &mut *self.memory;
        let Column { x, r, is_b, decoupled, .. } = &mut columns[column];
        let Some(found) = found.take() else { return Truth::OF_ZERO };
        (*is_b, *decoupled) = (false, found.decoupled);
        std::mem::swap(x, next_x);
        std::mem::swap(r, next_r);
        let b = one_column(self.system.b, self.k, column, b);
        Truth {
            residual: found.norm / aim.norm_b,
            at_most: found.at_most / aim.norm_b,
            backward_error: found.backward_error(self.device, b, x, r),
        }
    }

    /// Finds the first row in which the proposed x or its residual is not finite, and the name
    /// of that vector.
    pub(crate) fn out_of_range(&self) -> Option<(&'static str, usize)> {
        let Memory { next_x, next_r, .. } = &*self.memory;
        [("x", next_x), ("b - A x", next_r)]
            .into_iter()
            .find_map(|(vector, values)| Some((vector, first_row(self.device, values.iter().copied())?)))
    }

    /// Measures the residual of the current x of a column.
    pub(crate) fn measure_again(&mut self, column: usize, aim: &Aim) -> Truth {
        let Memory { columns, next_x, .. } = &mut *self.memory;
        next_x.copy_from_slice(&columns[column].x);
        self.measure(column, aim);
        let truth = self.accept(column, aim);
        self.memory.columns[column].scale = scale(self.device, self.residual(column));
        truth
    }

    /// Returns the normal residual of a column; `norm_a` is the largest eigenvalue of A found so far.
    pub(crate) fn normal_residual(&mut self, column: usize, norm_a: Option<f64>) -> f64 {
        let r = self.residual(column);
        let product = self.system.matrix.multiply(r);
        if let Some(matrix) = self.system.matrix.entries() {
            return normal_residual(self.device, matrix, r, &product);
        }
        let (product, r) = (norm(&product), norm(r));
        // With a preconditioner, the eigenvalues of A are unknown; the quotient is then a
        // lower bound of the norm.
        product / norm_a.unwrap_or(product / r) / r
    }

    /// Finds the first row in which a column of a device's vector is not finite.
    pub(crate) fn first_not_finite(
        &mut self,
        work: &Work<'_, D, T>,
        vector: Name,
        column: usize,
    ) -> Result<Option<usize>> {
        let host = &mut self.memory.host;
        work.download(vector, host)?;
        Ok(first_row(self.device, host.iter().skip(column).step_by(self.k).map(|v| v.to_f64())))
    }

    /// Returns whether the curvature along a column of `direction` is positive but below the
    /// range of numbers.
    pub(crate) fn has_underflown(
        &mut self,
        work: &Work<'_, D, T>,
        direction: Name,
        column: usize,
    ) -> Result<bool> {
        let host = &mut self.memory.host;
        work.download(direction, host)?;
        let p = host.iter().skip(column).step_by(self.k).map(|p| p.to_f64()).collect();
        Ok(has_underflown::<T>(self.device, self.system.matrix, p))
    }

    /// Estimates the largest relative error of an entry of x. `m` is the preconditioner, with two vectors for
    /// its input and output; `smallest` is the smallest eigenvalue of M A found so far.
    pub(crate) fn error_estimate(
        &mut self,
        column: usize,
        m: Option<(&Operator<D, T>, [Name; 2])>,
        work: &mut Work<'_, D, T>,
        smallest: f64,
    ) -> Result<Option<f64>> {
        let Some(matrix) = self.system.matrix.entries() else { return Ok(None) };
        let Memory { columns, next_x, next_r: z, host, estimator, .. } = &mut *self.memory;
        let Column { x, decoupled, .. } = &columns[column];
        let r = residual(&columns[column], self.system.b);
        let mut z_of_m = r;
        if let Some((m, [from, to])) = m {
            let by = scale(self.device, r);
            if self.k > 1 {
                host.fill(T::default());
            }
            let of_column = host.iter_mut().skip(column).step_by(self.k);
            of_column.zip(r).for_each(|(host, r)| *host = T::from_f64(r / by));
            work.upload(from, host)?;
            work.product(m, &Product { x: from, y: to, then: None })?;
            work.download(to, host)?;
            let of_column = host.iter().skip(column).step_by(self.k);
            z.iter_mut().zip(of_column).for_each(|(z, host)| *z = host.to_f64() * by);
            z_of_m = z;
        }
        let answer = Evidence { x, r, decoupled: *decoupled, z: z_of_m, smallest };
        Ok(match self.system.matrix {
            MatrixRef::OfRank(_) => forward_error::over_ranks(self.device, &answer),
            _ => estimator.estimate(matrix, &answer, next_x),
        })
    }

    /// Copies x to the host, n x k, row-major.
    pub(crate) fn copy_to(&self, x: &mut [f64]) {
        for (index, column) in self.memory.columns.iter().enumerate() {
            each_row(self.device, x, self.k, |i, row| row[index] = column.x[i]);
        }
    }

    /// Writes x of a column to a checkpoint.
    pub(crate) fn save<W: Write>(&self, column: usize, to: &mut Writer<W>) -> io::Result<()> {
        to.rows(&self.memory.columns[column].x)
    }

    /// Reads x of a column from a checkpoint.
    pub(crate) fn load(&mut self, column: usize, from: &mut Reader<'_>) -> std::result::Result<(), String> {
        let Column { fresh, x, .. } = &mut self.memory.columns[column];
        *fresh = false;
        *x = from.rows(self.system.matrix.rows_of_all(x.len()), (self.device.row_numbers(), x.len(), 1))?;
        Ok(())
    }

    /// Writes a vector of the device to a checkpoint.
    pub(crate) fn save_vector<W: Write>(
        &mut self,
        work: &Work<'_, D, T>,
        vector: Name,
        to: &mut Writer<W>,
    ) -> io::Result<()> {
        let host = &mut self.memory.host;
        work.download(vector, host).map_err(io::Error::other)?;
        to.rows(host)
    }

    /// Reads a vector of the device from a checkpoint. The outer error concerns the file, the
    /// inner one the device.
    pub(crate) fn load_vector(
        &mut self,
        work: &mut Work<'_, D, T>,
        vector: Name,
        from: &mut Reader<'_>,
    ) -> std::result::Result<Result<()>, String> {
        let k = self.k;
        let n = self.memory.host.len() / k;
        let numbers = (self.device.row_numbers(), n, k);
        let values = from.rows::<T>(self.system.matrix.rows_of_all(n) * k, numbers)?;
        Ok(work.upload(vector, &values))
    }
}

/// Returns the residual b - A x of a column. If `is_b` is set, the solve has one column, and
/// the residual is b.
fn residual<'a>(column: &'a Column, b: &'a [f64]) -> &'a [f64] {
    if column.is_b { b } else { &column.r }
}
