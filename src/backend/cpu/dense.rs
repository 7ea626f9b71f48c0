//! A dense matrix: zeros are stored and multiplied. For small matrices, and as a check on the other backends.
//!
//! Values and sums are in double precision, with eight lanes. A zero that the sparse matrix does not store is
//! multiplied too: if x is not finite there, the row becomes NaN. Refuses matrices beyond
//! [`Dense::MAX_VALUES`] values.

use super::chunked::{Chunked, Product, RowRanges};
use crate::backend::{Family, Refusal, SharedOperator};
use crate::device::Cpu;
use crate::error::Result;
use crate::format::{Csr, Dense};
use crate::operator::Cost;
use crate::params::Params;
use crate::scalar::Scalar;
use std::ops::Range;
use std::sync::Arc;

/// Independent partial sums of a row.
const LANES: usize = 8;

/// The family of the backend `dense`.
pub(crate) struct DenseFamily;

impl Family<Cpu> for DenseFamily {
    const ADDS_REPEATS: bool = false;

    fn check(matrix: &Csr, _: &Params, _: usize) -> std::result::Result<(), Refusal> {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        if rows as u128 * cols as u128 > Dense::MAX_VALUES {
            let hint = format!(
                "it stores rows x columns values, at most {} of them; choose auto",
                Dense::MAX_VALUES
            );
            return Err(Refusal::new(format!("a matrix of {rows} x {cols}"), hint));
        }
        Ok(())
    }

    fn build<T: Scalar>(
        device: &Cpu,
        matrix: &Arc<Csr>,
        _: &Params,
        _: u64,
    ) -> Result<SharedOperator<Cpu, T>> {
        let dense = Dense::from_csr(matrix)?;
        Ok(Arc::new(Chunked::new::<T>(device, DenseMatrix { dense, avx2: device.avx2 })))
    }
}

struct DenseMatrix {
    dense: Dense,
    avx2: bool,
}

#[inline(always)]
fn dot<T: Scalar>(values: &[f64], x: &[T]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (values, values_rest) = values.as_chunks::<LANES>();
    let (x, x_rest) = x.as_chunks::<LANES>();
    for (values, x) in values.iter().zip(x) {
        for lane in 0..LANES {
            lanes[lane] += values[lane] * x[lane].to_f64();
        }
    }
    let rest: f64 = values_rest.iter().zip(x_rest).map(|(value, x)| value * x.to_f64()).sum();
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h)) + rest
}

impl DenseMatrix {
    #[inline(always)]
    fn rows<T: Scalar>(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        let Product { x, k, .. } = *product;
        for (row, y) in rows.zip(y.chunks_exact_mut(k)) {
            let values = self.dense.row(row);
            if k == 1 {
                product.emit(&mut y[0], T::from_f64(dot(values, x)));
                continue;
            }
            for (column, y) in y.iter_mut().enumerate() {
                let x = x.iter().skip(column).step_by(k);
                product.emit(y, T::from_f64(values.iter().zip(x).map(|(value, x)| value * x.to_f64()).sum()));
            }
        }
    }

    /// Runs the same loops compiled for AVX2; the bits are the same.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn rows_avx2<T: Scalar>(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        self.rows(rows, product, y)
    }
}

impl<T: Scalar> RowRanges<T> for DenseMatrix {
    fn shape(&self) -> (usize, usize) {
        (self.dense.rows(), self.dense.cols())
    }

    /// A fixed height: dense rows are long, so that even few rows are much work.
    fn height(&self) -> usize {
        32
    }

    fn work_before(&self, row: usize) -> usize {
        row
    }

    fn multiply(&self, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: the processor has AVX2.
            return unsafe { self.rows_avx2(rows, product, y) };
        }
        self.rows(rows, product, y)
    }

    fn cost(&self) -> Cost {
        let (rows, cols) = (self.dense.rows(), self.dense.cols());
        let bytes = self.dense.storage_bytes() + ((rows + cols) * size_of::<T>()) as u64;
        Cost { bytes, flops: 2 * (rows * cols) as u64 }
    }

    fn storage(&self) -> u64 {
        self.dense.storage_bytes()
    }
}
