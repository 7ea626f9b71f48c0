//! Verification of an answer x of A x = b, with the matrix as its source provides it.
//!
//! # The residual and its rounding bound
//! The residual b - A x computed in double precision is itself rounded. If b and A x cancel, it may consist
//! of rounding alone: it can even be exactly 0 for an x that is far from any solution. So each residual has a
//! bound on its error, and an answer meets a goal only if the sum of residual and bound does.
//!
//! With u = 2^-53, k entries in row i and m_i = |b_i| + sum_j |a_ij x_j|:
//! - [`Residual::plain`] sums each row in order. Its entries have an error of at most gamma_(k+1) m_i, with
//!   gamma_n = n u / (1 - n u).
//! - [`Residual::compensated`] computes the rounding error of each product and each sum exactly, and
//!   accumulates these errors in a second number (Dot2), as if in twice the precision. Only the sum of those
//!   errors and its addition to r_i are rounded: by at most u |r_i| + gamma_2k times the sum of their
//!   magnitudes. If no operation rounds, the bound is 0.
//!
//! Both bounds are enlarged to cover their own rounding, that of the norms, and products below the normal
//! range. The first form is one pass over the matrix at memory bandwidth and certifies most answers;
//! `Judge` uses the second only if the first does not certify the goal. A GPU that has the matrix computes
//! the rows of both forms itself, operation by operation, by code other than that of its backends; the
//! bits are those of the host.
//!
//! # Other numbers
//! - The normwise backward error: ||r|| / (||A|| ||x|| + ||b||), in maximum norms (of A: the largest sum of
//!   magnitudes in a row). It is the smallest relative change of A and b that makes x exact; the attainable
//!   minimum in double precision is a few times 1e-16.
//! - The normal residual: ||A r|| / (||A|| ||r||), with the Frobenius norm of A. It is small if r is nearly
//!   orthogonal to the range of a symmetric A, so that x minimises the residual.
//!
//! # Reference
//! T. Ogita, S. M. Rump, S. Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26, 2005 (Dot2 and its
//! bound); J. L. Rigal and J. Gaches, On the compatibility of a given solution with the data of a linear
//! system, J. ACM 14, 1967 (the backward error).

use super::given::{Product, multiply_or_nan};
use super::norms::{Norm, joined_norm, larger, largest_in, largest_magnitude, norm};
use crate::device::Device;
use crate::format::{Csr, Values};
use crate::operator::{RESIDUAL_CHUNK, Residuals};
use crate::parallel::run_all;

/// The unit roundoff of f64.
const U: f64 = f64::EPSILON / 2.0;
/// An upper bound of the loss of a product below the normal range, or of its rounding error.
const TINY: f64 = 64.0 * 5e-324;
/// Rows per task. The sums of the tasks are combined in order, so the bits of norms do not depend on threads.
const ROWS: usize = RESIDUAL_CHUNK;

/// Norms of b - A x, with a bound on their rounding error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// The Euclidean norm of the residual as computed.
    pub norm: f64,
    /// An upper bound of the Euclidean norm of the exact b - A x. NaN or infinity if the range
    /// of f64 is exceeded.
    pub at_most: f64,
    /// The largest |r_i / a_ii| over the rows of this process with a positive diagonal entry.
    pub decoupled: f64,
    /// The largest sum of magnitudes in a row of A.
    matrix_norm: f64,
    /// The norm of the bounds on the errors of the entries, and the roundings in a norm of the residual.
    error: f64,
    roundings: f64,
}

impl Measured {
    /// Returns the normwise backward error of x with the residual r.
    pub(crate) fn backward_error(&self, device: &impl Device, b: &[f64], x: &[f64], r: &[f64]) -> f64 {
        let [b, x, r] = [b, x, r].map(|v| device.fold(largest_in(v), larger));
        if r == 0.0 { 0.0 } else { r / (self.matrix_norm * x + b) }
    }

    /// Sets the bound on the norm of the exact residual.
    fn bounded(self) -> Measured {
        Measured { at_most: (self.norm + self.error) * (1.0 + 4.0 * self.roundings * U), ..self }
    }

    /// Combines the norms of all ranks, in the order of ranks.
    fn over_ranks(self, device: &impl Device) -> Measured {
        if device.ranks().is_none() {
            return self;
        }
        let combined = Measured {
            norm: device.fold(self.norm, joined_norm),
            matrix_norm: device.fold(self.matrix_norm, larger),
            error: device.fold(self.error, joined_norm),
            roundings: device.fold(self.roundings, |a, b| a + b),
            ..self
        };
        combined.bounded()
    }
}

/// b - A x with a bound on its rounding error.
#[derive(Clone, Debug)]
pub struct Residual {
    /// The entries, as computed.
    pub vector: Vec<f64>,
    /// The Euclidean norm of that vector.
    pub norm: f64,
    /// An upper bound of the Euclidean norm of the exact b - A x. NaN or infinity if the range
    /// of f64 is exceeded.
    pub at_most: f64,
    /// The largest |r_i / a_ii| over the rows with a positive diagonal entry.
    pub decoupled: f64,
}

/// The rows of A, b and x.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub matrix: &'a Csr,
    /// The column of the diagonal entry of the first row.
    pub below: usize,
    pub b: &'a [f64],
    pub x: &'a [f64],
}

/// The results of one task over its rows: the norm of the error bounds, the largest sum of magnitudes in a
/// row of A, and the largest |r_i / a_ii|.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    error: Norm,
    sum: f64,
    decoupled: f64,
}

impl From<[f64; 4]> for Part {
    fn from([scale, sum, largest, decoupled]: [f64; 4]) -> Part {
        Part { error: Norm { scale, sum }, sum: largest, decoupled }
    }
}

/// What computes residuals on a device, and memory for its parts.
type OnDevice = (Box<dyn Residuals>, Vec<[f64; 4]>);

/// Measures residuals. Its memory is reused.
#[derive(Default)]
pub(super) struct Judge {
    parts: Vec<Part>,
    /// Computes the residuals on a device.
    there: Option<OnDevice>,
}

impl Judge {
    /// Writes the residual to `r`: the plain one if it certifies that the norm is at most `goal` times
    /// `norm_b`, and otherwise the compensated one.
    pub(crate) fn measure<D: Device>(
        &mut self,
        device: &D,
        system: Rows<'_>,
        norm_b: f64,
        goal: f64,
        r: &mut [f64],
    ) -> Measured {
        self.parts.resize(r.len().div_ceil(ROWS), Part::default());
        let mut compute = |compensated: bool| {
            if !self.compute_there(compensated, system, r) {
                device.each_chunk(r, ROWS, &mut self.parts, |task, chunk, part| {
                    *part = judge(compensated, system, task * ROWS, chunk);
                });
            }
            measured(&self.parts, r).over_ranks(device)
        };
        let plain = compute(false);
        if plain.at_most / norm_b <= goal { plain } else { compute(true) }
    }

    /// Lets a device compute the residuals of the systems from now on, all of which have its matrix.
    pub(crate) fn compute_on_device(&mut self, there: Box<dyn Residuals>) {
        self.there = Some((there, Vec::new()));
    }

    /// Computes the residual on the device; returns whether it has. If the device fails, the host
    /// computes this and later ones.
    fn compute_there(&mut self, compensated: bool, Rows { b, x, .. }: Rows<'_>, r: &mut [f64]) -> bool {
        let Some((there, parts)) = &mut self.there else { return false };
        parts.resize(self.parts.len(), [0.0; 4]);
        if let Err(error) = there.compute(compensated, (b, x), r, parts) {
            log::warn!("the host computes the residual, which takes longer: {error}");
            self.there = None;
            return false;
        }
        self.parts.iter_mut().zip(&*parts).for_each(|(part, computed)| *part = Part::from(*computed));
        true
    }
}

/// Writes b - A x to `r`, computed with the caller's product, and estimates its rounding: that of the
/// subtraction, and a few units of `norm_a` times the norm of x for the product, whose arithmetic is not
/// known. `norm_a` is the largest eigenvalue found, or 0.
pub(super) fn of_product(
    product: &dyn Product,
    (b, x): (&[f64], &[f64]),
    norm_a: f64,
    r: &mut [f64],
) -> Measured {
    // If a product reads its output, the NaN shows it.
    r.fill(f64::NAN);
    multiply_or_nan(product, x, r);
    let mut error = Norm::default();
    for (r, b) in r.iter_mut().zip(b) {
        error.add(4.0 * U * (b.abs() + r.abs()));
        *r = b - *r;
    }
    let of_product = 4.0 * U * norm_a * norm(x);
    let norm = norm(r);
    let at_most = (norm + error.value() + of_product) * (1.0 + 4.0 * (r.len() as f64 + 8.0) * U);
    Measured {
        norm,
        at_most,
        decoupled: 0.0,
        matrix_norm: norm_a,
        error: error.value() + of_product,
        roundings: r.len() as f64 + 8.0,
    }
}

/// Computes a chunk of the residual that begins at row `first`.
fn judge(compensated: bool, system: Rows<'_>, first: usize, chunk: &mut [f64]) -> Part {
    match system.matrix.values() {
        Values::Ones => judge_by(compensated, system, first, chunk, |_| 1.0),
        Values::F32(values) => judge_by(compensated, system, first, chunk, |entry| f64::from(values[entry])),
        Values::F64(values) => judge_by(compensated, system, first, chunk, |entry| values[entry]),
    }
}

/// Computes a chunk of the residual with a function that returns the value of each entry: a test of the kind
/// of the values at each entry takes longer than its arithmetic.
fn judge_by(
    compensated: bool,
    Rows { matrix, below, b, x }: Rows<'_>,
    first: usize,
    chunk: &mut [f64],
    value: impl Fn(usize) -> f64,
) -> Part {
    let mut part = Part::default();
    for (residual, i) in chunk.iter_mut().zip(first..) {
        let range = matrix.row_range(i);
        let columns = &matrix.col_indices()[range.clone()];
        let entries = range.zip(columns).map(|(entry, &column)| (column as usize, value(entry)));
        let row = match compensated {
            true => Row::compensated(entries, below + i, b[i], x),
            false => Row::plain(entries, below + i, b[i], x),
        };
        *residual = row.residual;
        part.error.add(row.error);
        part.sum = part.sum.max(row.sum);
        if row.diagonal > 0.0 {
            part.decoupled = part.decoupled.max((row.residual / row.diagonal).abs());
        }
    }
    part
}

/// Combines the results of the tasks to the norms of the residual.
fn measured(parts: &[Part], r: &[f64]) -> Measured {
    let error = parts.iter().fold(Norm::default(), |all, part| all.combine(&part.error)).value();
    let matrix_norm = largest_magnitude(parts.iter().map(|part| part.sum));
    let decoupled = largest_magnitude(parts.iter().map(|part| part.decoupled));
    let norm = norm(r);
    // The norm of n entries has a relative error of less than n + 8 roundings.
    let roundings = r.len() as f64 + 8.0;
    Measured { norm, at_most: f64::NAN, decoupled, matrix_norm, error, roundings }.bounded()
}

impl Residual {
    /// Computes the residual in double precision.
    pub fn plain(matrix: &Csr, b: &[f64], x: &[f64]) -> Residual {
        Residual::compute(false, matrix, b, x)
    }

    /// Computes the residual as if in twice the precision.
    pub fn compensated(matrix: &Csr, b: &[f64], x: &[f64]) -> Residual {
        Residual::compute(true, matrix, b, x)
    }

    /// Computes the residual on a device: in double precision, or as if in twice the precision.
    #[cfg(test)]
    pub(crate) fn on_device(
        there: &mut dyn Residuals,
        compensated: bool,
        b: &[f64],
        x: &[f64],
    ) -> crate::error::Result<Residual> {
        let (mut vector, mut parts) = (vec![0.0; b.len()], vec![[0.0; 4]; b.len().div_ceil(ROWS)]);
        there.compute(compensated, (b, x), &mut vector, &mut parts)?;
        let parts: Vec<Part> = parts.into_iter().map(Part::from).collect();
        let Measured { norm, at_most, decoupled, .. } = measured(&parts, &vector);
        Ok(Residual { vector, norm, at_most, decoupled })
    }

    fn compute(compensated: bool, matrix: &Csr, b: &[f64], x: &[f64]) -> Residual {
        let n = matrix.rows();
        assert_eq!(
            (x.len(), b.len()),
            (matrix.cols(), n),
            "x must have one entry per column and b one per row"
        );
        let mut vector = vec![0.0; n];
        let tasks = vector.chunks_mut(ROWS).enumerate().collect();
        let parts = run_all(tasks, |(task, chunk): (usize, &mut [f64])| {
            judge(compensated, Rows { matrix, below: 0, b, x }, task * ROWS, chunk)
        });
        let Measured { norm, at_most, decoupled, .. } = measured(&parts, &vector);
        Residual { vector, norm, at_most, decoupled }
    }
}

/// The residual of one row and its bounds.
struct Row {
    /// b_i - sum_j a_ij x_j, as computed.
    residual: f64,
    /// An upper bound of its distance from the exact value.
    error: f64,
    /// The sum of the magnitudes of A in the row.
    sum: f64,
    /// The sum of the entries of A on the diagonal.
    diagonal: f64,
}

impl Row {
    /// Computes the residual of a row with these entries, whose diagonal entry is in column `own`.
    #[inline(always)]
    fn plain(row: impl Iterator<Item = (usize, f64)>, own: usize, b: f64, x: &[f64]) -> Row {
        let (mut product, mut magnitude, mut sum) = (0.0, 0.0, 0.0);
        let (mut entries, mut diagonal) = (0.0, 0.0);
        for (j, a) in row {
            let term = a * x[j];
            product += term;
            magnitude += term.abs();
            sum += a.abs();
            entries += 1.0;
            diagonal += if j == own { a } else { 0.0 };
        }
        let error = 1.01 * (entries + 2.0) * U * (magnitude + b.abs()) + entries * TINY;
        Row { residual: b - product, error, sum, diagonal }
    }

    /// Computes the residual of a row as if in twice the precision.
    #[inline(always)]
    fn compensated(row: impl Iterator<Item = (usize, f64)>, own: usize, b: f64, x: &[f64]) -> Row {
        let (mut high, mut low, mut diagonal) = (b, 0.0, 0.0);
        // Sums of the magnitudes of the rounding errors and of the entries of A, the number of entries, and a
        // bound for products whose rounding error may be inexact.
        let (mut errors, mut sum, mut entries, mut tiny) = (0.0, 0.0, 0.0, 0.0);
        for (j, a) in row {
            let (term, of_product) = product(-a, x[j]);
            let next = high + term;
            // The rounding error of that sum (Knuth).
            let back = next - high;
            let of_sum = (high - (next - back)) + (term - back);
            low += of_sum + of_product;
            high = next;
            errors += of_sum.abs() + of_product.abs();
            sum += a.abs();
            entries += 1.0;
            diagonal += if j == own { a } else { 0.0 };
            if term.abs() < SMALL && a != 0.0 && x[j] != 0.0 {
                tiny += TINY;
            }
        }
        let residual = high + low;
        let rounded = if low == 0.0 { 0.0 } else { U * residual.abs() };
        Row { residual, error: 1.01 * (rounded + 2.0 * entries * U * errors) + tiny, sum, diagonal }
    }
}

/// Below this, the computed rounding error of a product may be inexact.
const SMALL: f64 = 1e-290;

/// Computes a product and its rounding error, which is exact except for products below [`SMALL`], where its
/// error is less than [`TINY`].
fn product(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    // Compiled to a call of the C library's fma, which uses the machine's instruction.
    (p, a.mul_add(b, -p))
}

/// Computes the norm of b - A x divided by the norm of b, rounded about once.
#[cfg(test)]
pub(crate) fn true_residual<T: crate::scalar::Scalar>(matrix: &Csr, b: &[f64], x: &[T]) -> f64 {
    let x: Vec<f64> = x.iter().map(|v| v.to_f64()).collect();
    let difference = Residual::compensated(matrix, b, &x).norm;
    let norm_b = norm(b);
    if norm_b == 0.0 { difference } else { difference / norm_b }
}

/// Computes the normal residual of a symmetric system with the residual r, whose product with
/// A is `ar`; 0 if A r is 0.
pub(super) fn normal_residual(device: &impl Device, matrix: &Csr, r: &[f64], ar: &[f64]) -> f64 {
    let rows = matrix.map_rows(|i| {
        let mut row = Norm::default();
        matrix.row(i).for_each(|(_, a)| row.add(a));
        row.value()
    });
    let [ar, rows, r] = [ar, &rows[..], r].map(|v| device.fold(norm(v), joined_norm));
    if ar == 0.0 { 0.0 } else { ar / rows / r }
}
