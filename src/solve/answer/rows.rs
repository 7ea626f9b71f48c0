//! Passes over vectors of the answer, on the threads of the device and over all ranks.

use crate::device::Device;
use crate::format::Csr;
use crate::scalar::Scalar;
use crate::solve::given::MatrixRef;
use crate::solve::norms::{larger, largest_in, largest_magnitude};

/// Rows of an array that a thread processes as one task.
const ROWS: usize = 1 << 14;

/// Calls `f` with the index of each row of a row-major array of k columns, and the row, on the threads that
/// serve the device. The first write to new memory takes longer than the work itself.
pub(super) fn each_row<A: Send>(
    device: &impl Device,
    array: &mut [A],
    k: usize,
    f: impl Fn(usize, &mut [A]) + Sync,
) {
    // Of size 0, so that nothing is allocated.
    let mut parts = vec![(); array.len().div_ceil(ROWS * k)];
    device.each_chunk(array, ROWS * k, &mut parts, |task, chunk, ()| {
        chunk.chunks_exact_mut(k).enumerate().for_each(|(i, row)| f(task * ROWS + i, row));
    });
}

/// Calls `f` with each index and entry of an array of one column, on the threads that serve the device.
pub(super) fn each_entry<A: Send>(device: &impl Device, array: &mut [A], f: impl Fn(usize, &mut A) + Sync) {
    each_row(device, array, 1, |i, row| f(i, &mut row[0]));
}

/// Returns a column of a row-major array of k columns, copied to `buffer` if there are several.
pub(super) fn one_column<'a>(all: &'a [f64], k: usize, column: usize, buffer: &'a mut [f64]) -> &'a [f64] {
    if k == 1 {
        return all;
    }
    buffer.iter_mut().zip(all.iter().skip(column).step_by(k)).for_each(|(to, from)| *to = *from);
    buffer
}

/// Finds the first row, counted in the matrix as given, whose entry is not finite.
pub(super) fn first_row(device: &impl Device, mut entries: impl Iterator<Item = f64>) -> Option<usize> {
    // The numbers of a rank's rows increase.
    let row = entries.position(|entry| !entry.is_finite()).map(|row| device.row_numbers().of(row));
    let first = device.fold(row.map_or(f64::INFINITY, |row| row as f64), f64::min);
    first.is_finite().then_some(first as usize)
}

/// Returns whether p'Ap is positive, but p'Ap or entries of A p are below the range of numbers. Scales both
/// by powers of two to detect this.
pub(super) fn has_underflown<T: Scalar>(device: &impl Device, matrix: MatrixRef<'_>, p: Vec<f64>) -> bool {
    let scaled = |mut v: Vec<f64>| {
        let by = scale(device, &v);
        v.iter_mut().for_each(|v| *v /= by);
        (v, by)
    };
    let (p, by_p) = scaled(p);
    let (q, by_q) = scaled(matrix.multiply(&p));
    let curvature: f64 = p.iter().zip(&q).map(|(p, q)| p * q).sum();
    let curvature = device.fold(curvature, |a, b| a + b);
    let sum = curvature * by_q * by_p * by_p;
    let entry = T::from_f64(by_q * by_p * T::EPSILON).to_f64();
    curvature > 0.0 && (sum < f64::MIN_POSITIVE || entry == 0.0)
}

/// Returns a power of two near the largest magnitude, by which a residual is scaled without rounding; 1 if
/// the largest magnitude is not a normal number.
pub(super) fn scale(device: &impl Device, r: &[f64]) -> f64 {
    let largest = device.fold(largest_in(r), larger);
    if largest.is_normal() { 2f64.powi(largest.log2().floor().clamp(-1000.0, 1000.0) as i32) } else { 1.0 }
}

/// Returns the power of two that brings the largest entry of a matrix to about 1; exactly 1 if the squares of
/// its entries, in vectors of this precision, are in range anyway.
pub(super) fn matrix_scale<T: Scalar>(device: &impl Device, matrix: &Csr) -> f64 {
    let safe = if size_of::<T>() == 4 { 16 } else { 256 };
    let largest = largest_magnitude((0..matrix.nnz()).map(|j| matrix.values().get(j)));
    let largest = device.fold(largest, larger);
    let exponent = if largest.is_normal() { largest.log2().floor() as i32 } else { 0 };
    if exponent.abs() <= safe { 1.0 } else { 2f64.powi(-exponent.clamp(-1000, 1000)) }
}
