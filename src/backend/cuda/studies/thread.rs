//! One thread per row: `thread` and its first version of four-kernels, and `scalar` of seven-strategies.

use super::{
    FIT, LIGHT, THREADS_HEAVY, THREADS_LIGHT, UNROLL, first_version, fit_or, in_shared_memory, with_sums,
    with_sums_of,
};
use crate::backend::cuda::compressed::{self, AllRows, Compressed};
use crate::backend::cuda::form::{AnyForm, Form};
use crate::backend::cuda::{number, numbers};
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `thread`.
pub(crate) struct Thread;
/// The family of the backend `thread-v1`.
pub(crate) struct ThreadFirst;
/// The family of the backend `scalar`: one thread per row, without unrolling.
pub(crate) struct ScalarRows;

/// Threads in a block of `thread` and `thread-v1`: those of four-kernels, then the other sizes that
/// serial-vs-cuda sweeps over.
pub(crate) const BLOCKS: &[&str] = &["256", "32", "64", "128", "512"];

/// Returns the kernel for entries loaded at once, threads in a block, and threads that must
/// fit on a multiprocessor.
fn form_of(unroll: u32, block: u32, fit: u32) -> Form<Compressed, AllRows> {
    let form = Form::new("spmv_csr_thread", with_sums!("thread.cu")).with("UNROLL", unroll);
    form.in_blocks_of(block).fitting(fit)
}

fn scalar() -> Form<Compressed, AllRows> {
    form_of(1, 256, 0)
}

fn first(block: u32) -> Form<Compressed, AllRows> {
    first_version(form_of(1, block, 0))
}

pub(super) fn forms() -> Vec<(&'static str, AnyForm)> {
    let mut forms: Vec<_> = numbers(BLOCKS)
        .flat_map(|block| {
            [THREADS_LIGHT, THREADS_HEAVY].map(|fit| ("thread", form_of(UNROLL, block, fit).any()))
        })
        .collect();
    let others = numbers(FIT).filter(|fit| ![THREADS_LIGHT, THREADS_HEAVY].contains(fit));
    forms.extend(others.map(|fit| ("thread", form_of(UNROLL, 256, fit).any())));
    forms.extend(numbers(BLOCKS).map(|block| ("thread-v1", first(block).any())));
    forms.push(("thread", in_shared_memory(form_of(UNROLL, 256, THREADS_HEAVY)).any()));
    forms.push(("scalar", scalar().any()));
    forms
}

impl Family<Cuda> for Thread {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let light = matrix.nnz() <= LIGHT * matrix.rows();
        let fit = fit_or(params, || if light { THREADS_LIGHT } else { THREADS_HEAVY });
        let form = form_of(UNROLL, number(params, "block", BLOCKS), fit);
        let pass = AllRows::pass(device, with_sums_of(params, form), matrix, 1)?;
        compressed::operator::<T>("thread", device, matrix, [pass], reserve)
    }
}

impl Family<Cuda> for ThreadFirst {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let form = first(number(params, "block", BLOCKS));
        let pass = AllRows::pass(device, form, matrix, 1)?.without_stride();
        compressed::operator::<T>("thread-v1", device, matrix, [pass], reserve)
    }
}

impl Family<Cuda> for ScalarRows {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        _: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let pass = AllRows::pass(device, scalar(), matrix, 1)?;
        compressed::operator::<T>("scalar", device, matrix, [pass], reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_blocks_is_the_number_of_blocks_that_fit() {
        let min_blocks = |block, fit| form_of(UNROLL, block, fit).kind.defines[1].1.clone();
        let requested = [(256, THREADS_LIGHT), (32, THREADS_LIGHT), (512, THREADS_HEAVY), (256, 0)];
        assert_eq!(requested.map(|(block, fit)| min_blocks(block, fit)), ["6", "32", "2", "1"]);
    }
}
