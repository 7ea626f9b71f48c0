//! A thread a row: `thread` and its first version of four-kernels, and `scalar` of seven-strategies.

use super::{LIGHT, THREADS_HEAVY, THREADS_LIGHT, UNROLL, first_version, with_sums};
use crate::backend::cuda::passes::{Form, Pass, Passes};
use crate::backend::cuda::{number, numbers};
use crate::backend::{Family, Made, Params};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

/// A thread a row.
pub struct Thread;
/// Its first version.
pub struct ThreadFirst;
/// A thread a row, without unrolling.
pub struct ScalarRows;

/// Threads in a block of `thread`: those of the study, then the other sizes for a sweep as in serial-vs-cuda.
pub const BLOCKS: &[&str] = &["256", "32", "64", "128", "512"];

/// One thread a row: entries loaded at once, threads in a block, threads that shall fit on a multiprocessor.
fn form_of(unroll: u32, block: u32, fit: u32) -> Form {
    Form::new("spmv_csr_thread", with_sums!("thread.cu"), unroll).in_blocks_of(block).fitting(fit)
}

fn scalar() -> Form {
    form_of(1, 256, 0)
}

fn first() -> Form {
    first_version(scalar())
}

pub(super) fn forms() -> Vec<(&'static str, Form)> {
    let mut forms: Vec<_> = numbers(BLOCKS)
        .flat_map(|block| [THREADS_LIGHT, THREADS_HEAVY].map(|fit| ("thread", form_of(UNROLL, block, fit))))
        .collect();
    forms.extend([("thread-v1", first()), ("scalar", scalar())]);
    forms
}

impl Family<Cuda> for Thread {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<Made<Cuda, T>> {
        let light = matrix.nnz() <= LIGHT * matrix.rows();
        let fit = if light { THREADS_LIGHT } else { THREADS_HEAVY };
        let form = form_of(UNROLL, number(params, "block", BLOCKS), fit);
        let pass = Pass::over_all(form, matrix, 1);
        Ok(Arc::new(Passes::new::<T>("thread", device, matrix, [pass], reserve)?))
    }
}

impl Family<Cuda> for ThreadFirst {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, _: &Params, reserve: u64) -> Result<Made<Cuda, T>> {
        let pass = Pass::over_all(first(), matrix, 1).without_stride();
        Ok(Arc::new(Passes::new::<T>("thread-v1", device, matrix, [pass], reserve)?))
    }
}

impl Family<Cuda> for ScalarRows {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, _: &Params, reserve: u64) -> Result<Made<Cuda, T>> {
        let pass = Pass::over_all(scalar(), matrix, 1);
        Ok(Arc::new(Passes::new::<T>("scalar", device, matrix, [pass], reserve)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_blocks_are_asked_for_as_fit() {
        let min_blocks = |block, fit| form_of(UNROLL, block, fit).defines[1].1.clone();
        let asked = [(256, THREADS_LIGHT), (32, THREADS_LIGHT), (512, THREADS_HEAVY), (256, 0)];
        assert_eq!(asked.map(|(block, fit)| min_blocks(block, fit)), ["6", "32", "2", "1"]);
    }
}
