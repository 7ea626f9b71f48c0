//! One thread, row by row, straight from the definition: the reference that other backends are tested
//! against. Sums run in the precision of the vectors.

use super::chunked::check_shapes;
use crate::backend::{Family, SharedOperator};
use crate::device::Cpu;
use crate::device::cpu::CpuVector;
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{Cost, LinearOperator};
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `serial`.
pub(crate) struct Serial;

impl Family<Cpu> for Serial {
    fn build<T: Scalar>(_: &Cpu, matrix: &Arc<Csr>, _: &Params, _: u64) -> Result<SharedOperator<Cpu, T>> {
        Ok(Arc::new(SerialOperator(Arc::clone(matrix))))
    }
}

struct SerialOperator(Arc<Csr>);

impl<T: Scalar> LinearOperator<Cpu, T> for SerialOperator {
    fn shape(&self) -> (usize, usize) {
        (self.0.rows(), self.0.cols())
    }

    fn apply(&self, _: &Cpu, alpha: f64, x: &CpuVector<T>, beta: f64, y: &mut CpuVector<T>) -> Result<()> {
        let k = check_shapes((self.0.rows(), self.0.cols()), x, y)?;
        let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
        for row in 0..self.0.rows() {
            for column in 0..k {
                let mut sum = T::default();
                for (j, value) in self.0.row(row) {
                    sum += T::from_f64(value) * x.data()[j * k + column];
                }
                let y = &mut y.data_mut()[row * k + column];
                *y = if beta == T::default() { alpha * sum } else { alpha * sum + beta * *y };
            }
        }
        Ok(())
    }

    fn cost(&self) -> Cost {
        Cost::of_csr(&self.0, size_of::<T>())
    }

    fn storage(&self) -> u64 {
        self.0.storage_bytes()
    }
}
