//! Rows of CSR, each shared by several neighbouring threads; the mean row length determines how many.

use super::compressed::{self, AllRows, Compressed};
use super::csr::threads_for;
use super::form::{AnyForm, Form};
use super::{mean_row, number, numbers};
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `vector`.
pub(crate) struct Vector;

/// Entries that each thread of a row loads at once. On an H200 three were the fastest both for rows of 5
/// entries and for rows of 81; more cost registers, fewer leave too few loads in flight. Rows of 199 took 53
/// us with three, 43 with one and 47 with four; seven-strategies tried one and four.
pub(crate) const UNROLLS: &[&str] = &["3", "1", "4"];
/// Threads in a block: the default, and the sizes that seven-strategies tried.
pub(crate) const BLOCKS: &[&str] = &["256", "128", "512"];

/// Returns the kernel for `threads` threads per row, with the default parameters.
pub(super) fn form<S>(threads: u32) -> Form<Compressed, S> {
    let standard = Params::default();
    form_of(threads, number(&standard, "unroll", UNROLLS), number(&standard, "block", BLOCKS))
}

fn form_of<S>(threads: u32, unroll: u32, block: u32) -> Form<Compressed, S> {
    let text = include_str!("../../../kernels/vector.cu");
    Form::new("spmv_csr_vector", text).with("UNROLL", unroll).with("THREADS", threads).in_blocks_of(block)
}

pub(super) fn forms() -> Vec<AnyForm> {
    let whole = |form: Form<Compressed, AllRows>| form.any();
    let mut forms: Vec<AnyForm> = [1, 2, 4, 8, 16].map(|threads| whole(form(threads))).into();
    // The study's kernel with a warp per row, in all combinations that the study tried.
    for block in numbers(BLOCKS) {
        forms.extend(numbers(UNROLLS).map(|unroll| whole(form_of(32, unroll, block))));
    }
    forms
}

impl Family<Cuda> for Vector {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let (unroll, block) = (number(params, "unroll", UNROLLS), number(params, "block", BLOCKS));
        let threads = match params.word("threads").and_then(|v| v.parse().ok()) {
            Some(threads) => threads,
            None => threads_for(mean_row(matrix), unroll as usize),
        };
        let pass = AllRows::pass(device, form_of(threads, unroll, block), matrix, threads)?;
        compressed::operator::<T>("vector", device, matrix, [pass], reserve)
    }
}
