//! The inverses of square blocks along the diagonal.
//!
//! # Method
//! Each block has `block` consecutive rows; the last block has the remaining ones. Each block B = L L^T is
//! factored in double precision and its inverse L^-T L^-1 is stored, with equal triangles. On the CPU the
//! inverses are stored without indices and have a product of their own. On a GPU they form a sparse matrix,
//! for which a backend builds the operator.
//!
//! # Block size
//! If no size is given, the square block size that moves the fewest bytes in a product with the
//! matrix itself: the number of unknowns per mesh point. If no size moves fewer bytes than single
//! entries would, [`UNBLOCKED`].
//!
//! # Cost
//! One product with a matrix of `block` entries per row: 8 bytes per entry, and on a GPU 4 per block if the
//! backend supports blocks of that size.
//!
//! # Reference
//! Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, section 12.2.

use super::entry::{Construction, Given, Size};
use super::{beyond, holds};
use crate::backend::{Operator, Pick};
use crate::error::{Error, GpuError, Result};
use crate::format::stats::Blocks;
use crate::format::{Csr, DiagonalBlocks};
use crate::parallel::zeros;
use crate::params::{Kind, Param, Params, Value};
use crate::scalar::Scalar;
use rayon::prelude::*;

const PRECOND: &str = "block-jacobi";
/// The size for matrices without a natural block size.
const UNBLOCKED: u64 = 4;

/// The preconditioner's row in the table.
pub(super) struct Row;

impl Construction for Row {
    const NAME: &'static str = PRECOND;
    const SYNONYMS: &'static [&'static str] = &["bjacobi"];
    const SUMMARY: &'static str = "the inverses of square blocks along the diagonal";
    const PARAMS: &'static [Param] = &[Param::new(
        "block",
        Kind::Whole(2, 256),
        "rows of a block; left out: the size that fits the matrix",
    )];
    const READS_LOWER_TRIANGLE: bool = true;
    const BYTES_ARE_ESTIMATED: bool = true;
    const EXACT_OVER_RANKS: bool = true;

    fn together(params: &Params) -> usize {
        size(params).unwrap_or(0) as usize
    }

    fn settle(matrix: &Csr, params: &mut Params) {
        if size(params).is_none() {
            params.set("block", Value::Whole(best_size(matrix)));
        }
    }

    /// Returns a number between the blocks of a CPU, which have no indices, and compressed
    /// rows, which a GPU may need.
    fn bytes(params: &Params, size: Size, width: u64) -> u64 {
        size.rows * about(params) * (2 + width)
    }

    /// Counts the inverted blocks as compressed rows, with row offsets of 64 bits.
    fn bytes_to_build(params: &Params, size: Size) -> u64 {
        size.rows * (12 * about(params) + 12)
    }

    /// Builds the operator; every block must be positive definite.
    fn build<D: Pick<T>, T: Scalar>(given: &Given<'_, D, T>) -> Result<Operator<D, T>> {
        let inverses = inverses::<T>(given.matrix, Row::together(&given.params))?;
        given.diagonal_blocks(inverses).map_err(|e| match e {
            Error::Gpu(GpuError::DeviceMemory { needed, reserved, free, .. }) => {
                let hint = "preconditioner jacobi stores one number per row; smaller blocks need less (block-jacobi:block=2)";
                let (what, hint) = ("preconditioner block-jacobi", Some(hint.to_owned()));
                GpuError::DeviceMemory { what, needed, reserved, free, hint }.into()
            }
            other => other,
        })
    }
}

/// Chooses the block size for the matrix; see the module.
fn best_size(matrix: &Csr) -> u64 {
    Blocks::sampled(matrix).square().map_or(UNBLOCKED, |size| size as u64)
}

/// Returns the number of rows of a block, estimated if it depends on the matrix.
fn about(params: &Params) -> u64 {
    size(params).unwrap_or(UNBLOCKED)
}

/// Returns the number of rows of a block, if it does not depend on the matrix.
fn size(params: &Params) -> Option<u64> {
    params.find_whole("block")
}

/// A block that has no Cholesky factor.
struct Fault {
    /// The row of the pivot in the block.
    row: usize,
    pivot: f64,
}

/// Computes the inverted blocks and checks that `T` can represent its values.
fn inverses<T: Scalar>(matrix: &Csr, block: usize) -> Result<DiagonalBlocks> {
    let n = matrix.rows();
    let height = |first: usize| block.min(n - first);
    let (whole, rest) = (n / block, n % block);
    let mut values = zeros::<f64>(whole * block * block + rest * rest)?;
    let fault = values
        .par_chunks_mut(block * block)
        .enumerate()
        .filter_map(|(i, values)| {
            let first = i * block;
            let size = height(first);
            gather(matrix, first, size, values);
            let inverted = invert(values, size).map_err(|Fault { row, pivot }| Error::BadBlock {
                precond: PRECOND,
                row: first,
                size,
                at: first + row,
                pivot,
            });
            let lost = || values.iter().position(|&value| !holds::<T>(value));
            let checked = inverted.and_then(|()| match lost() {
                Some(position) => Err(beyond::<T>(PRECOND, first + position / size, values[position])),
                None => Ok(()),
            });
            checked.err().map(|fault| (first, fault))
        })
        .min_by_key(|(first, _)| *first);
    if let Some((_, fault)) = fault {
        return Err(fault);
    }
    Ok(DiagonalBlocks { rows: n, block, values })
}

/// Copies the lower triangle of the block with first row `first` to `values`, which must be zero.
fn gather(matrix: &Csr, first: usize, height: usize, values: &mut [f64]) {
    for (i, row) in values.chunks_exact_mut(height).enumerate() {
        let entries = matrix.row_range(first + i);
        let columns = &matrix.col_indices()[entries.clone()];
        let skipped = columns.partition_point(|&col| (col as usize) < first);
        for (position, &col) in columns[skipped..].iter().enumerate() {
            let Some(entry) = row[..=i].get_mut(col as usize - first) else { break };
            *entry += matrix.values().get(entries.start + skipped + position);
        }
    }
}

/// Replaces a symmetric matrix of n rows, given by its lower triangle, by its inverse.
fn invert(a: &mut [f64], n: usize) -> std::result::Result<(), Fault> {
    factor(a, n)?;
    // Computes L^-1 column by column; the columns to the right still contain L.
    for j in 0..n {
        a[j * n + j] = 1.0 / a[j * n + j];
        for i in j + 1..n {
            let sum: f64 = (j..i).map(|k| a[i * n + k] * a[k * n + j]).sum();
            a[i * n + j] = -sum / a[i * n + i];
        }
    }
    // Computes L^-T L^-1 row by row; the rows below still contain L^-1.
    for i in 0..n {
        for j in 0..=i {
            let sum = (i..n).map(|k| a[k * n + i] * a[k * n + j]).sum();
            a[i * n + j] = sum;
            a[j * n + i] = sum;
        }
    }
    Ok(())
}

/// Replaces the lower triangle by that of its Cholesky factor.
fn factor(a: &mut [f64], n: usize) -> std::result::Result<(), Fault> {
    for j in 0..n {
        let (row_j, below) = a[j * n..].split_at_mut(n);
        let before = row_j[j];
        let pivot = before - row_j[..j].iter().map(|l| l * l).sum::<f64>();
        // A pivot that consists of rounding alone has no reliable sign.
        if !(pivot > n as f64 * f64::EPSILON * before && pivot.is_finite()) {
            return Err(Fault { row: j, pivot });
        }
        row_j[j] = pivot.sqrt();
        for row_i in below.chunks_exact_mut(n) {
            let dot: f64 = row_i[..j].iter().zip(&row_j[..j]).map(|(x, y)| x * y).sum();
            row_i[j] = (row_i[j] - dot) / row_j[j];
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// min(i, j) + 1 with i and j from 0: its inverse is tridiagonal with 2 and -1, except that the
    /// last diagonal entry is 1.
    #[test]
    fn the_inverse_of_a_known_matrix_is_its_formula() {
        for n in [1, 2, 3, 5, 8, 21] {
            let mut a: Vec<f64> = (0..n * n).map(|p| (p / n).min(p % n) as f64 + 1.0).collect();
            assert!(invert(&mut a, n).is_ok());
            for (position, &value) in a.iter().enumerate() {
                let (i, j) = (position / n, position % n);
                let expected = match i.abs_diff(j) {
                    0 if i + 1 == n => 1.0,
                    0 => 2.0,
                    1 => -1.0,
                    _ => 0.0,
                };
                assert!((value - expected).abs() < 1e-12, "{n}: {value} at {i}, {j}");
                assert_eq!(value.to_bits(), a[j * n + i].to_bits());
            }
        }
    }

    #[test]
    fn blocks_without_a_positive_pivot_are_refused_with_its_row() {
        let fault = |a: &[f64], n| invert(&mut a.to_vec(), n).unwrap_err();
        let found = fault(&[4.0, 0.0, 2.0, 1.0], 2);
        assert_eq!((found.row, found.pivot), (1, 0.0));
        assert_eq!(fault(&[-1.0], 1).row, 0);
        assert!(fault(&[f64::NAN], 1).pivot.is_nan());
        assert!(fault(&[f64::INFINITY], 1).pivot.is_infinite());
    }
}
