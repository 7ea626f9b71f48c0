//! Graphs without values: each row adds up the elements of x at its columns, and an entry moves only the 4
//! bytes of its column index.
//!
//! A single sum waits for each of its additions, about four cycles on current processors, and the rows that
//! dominate the time are long. So four partial sums share a row and are added in fixed order at its end. Rows
//! are cut and shared as in `rows`.

use super::chunked::{Chunked, Product, RowRanges};
use crate::backend::{Family, Refusal, SharedOperator};
use crate::device::Cpu;
use crate::error::Result;
use crate::format::{Csr, Offset, Offsets, Values};
use crate::operator::Cost;
use crate::params::Params;
use crate::scalar::Scalar;
use std::ops::Range;
use std::sync::Arc;

/// The family of the backend `pull`.
pub(crate) struct Pull;

impl Family<Cpu> for Pull {
    fn check(matrix: &Csr, _: &Params, _: usize) -> std::result::Result<(), Refusal> {
        match matrix.values() {
            Values::Ones => Ok(()),
            _ => {
                let hint = "it multiplies graphs without weights; use rows, or leave the choice to auto";
                Err(Refusal::new("a matrix with values", hint))
            }
        }
    }

    fn build<T: Scalar>(
        device: &Cpu,
        matrix: &Arc<Csr>,
        _: &Params,
        _: u64,
    ) -> Result<SharedOperator<Cpu, T>> {
        Ok(Arc::new(Chunked::new::<T>(device, PullMatrix(Arc::clone(matrix)))))
    }
}

struct PullMatrix(Arc<Csr>);

/// Partial sums of a row.
const SUMS: usize = 4;

/// Returns the sum of x at the columns.
///
/// # Safety
/// Every column lies below the length of x.
#[inline(always)]
unsafe fn gather<T: Scalar>(columns: &[u32], x: &[T]) -> f64 {
    // SAFETY: promised by the caller.
    let value = |column: u32| unsafe { x.get_unchecked(column as usize).to_f64() };
    let mut sums = [0.0; SUMS];
    let groups = columns.chunks_exact(SUMS);
    let rest = groups.remainder();
    for group in groups {
        for (sum, &column) in sums.iter_mut().zip(group) {
            *sum += value(column);
        }
    }
    for (sum, &column) in sums.iter_mut().zip(rest) {
        *sum += value(column);
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

fn rows<T: Scalar, O: Offset>(
    offsets: &[O],
    columns: &[u32],
    rows: Range<usize>,
    product: &Product<'_, T>,
    y: &mut [T],
) {
    for (row, y) in rows.zip(y) {
        // SAFETY: columns lie below the number of columns, which is the length of x.
        let sum = unsafe { gather(&columns[offsets[row].at()..offsets[row + 1].at()], product.x) };
        product.emit(y, T::from_f64(sum));
    }
}

/// Multiplies rows for several columns of x.
fn rows_columns<T: Scalar>(matrix: &Csr, rows: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
    let k = product.k;
    for (row, y) in rows.zip(y.chunks_exact_mut(k)) {
        for (column, y) in y.iter_mut().enumerate() {
            let terms = matrix.row_columns(row).iter().map(|&j| product.x[j as usize * k + column].to_f64());
            product.emit(y, T::from_f64(terms.sum()));
        }
    }
}

impl<T: Scalar> RowRanges<T> for PullMatrix {
    fn shape(&self) -> (usize, usize) {
        (self.0.rows(), self.0.cols())
    }

    fn work_before(&self, row: usize) -> usize {
        // A row counts as four more entries: for its y, its offset, and the branch misprediction at its end.
        self.0.row_offsets().get(row) + 4 * row
    }

    fn multiply(&self, range: Range<usize>, product: &Product<'_, T>, y: &mut [T]) {
        let columns = self.0.col_indices();
        match self.0.row_offsets() {
            _ if product.k > 1 => rows_columns(&self.0, range, product, y),
            Offsets::U32(offsets) => rows(offsets.as_slice(), columns, range, product, y),
            Offsets::U64(offsets) => rows(offsets.as_slice(), columns, range, product, y),
        }
    }

    fn cost(&self) -> Cost {
        Cost::of_csr(&self.0, size_of::<T>())
    }

    fn storage(&self) -> u64 {
        self.0.storage_bytes()
    }
}
