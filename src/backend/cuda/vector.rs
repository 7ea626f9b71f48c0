//! Rows of CSR shared by several neighbouring threads, as many as the mean row length asks for.

use super::compressed::{self, AllRows, Compressed};
use super::csr::threads_for;
use super::form::{AnyForm, Form};
use super::{mean_row, number, numbers};
use crate::backend::{Family, Made, Params};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of one.
pub struct Vector;

/// Entries that each thread of a row loads at once. On an H200 three were the fastest both for rows of 5 entries and
/// for rows of 81; more cost registers, fewer leave too few loads in flight. Rows of 199 took 53 us so, 43 with one and 47
/// with four, as seven-strategies tried.
pub const UNROLLS: &[&str] = &["3", "1", "4"];
/// Threads in a block, likewise.
pub const BLOCKS: &[&str] = &["256", "128", "512"];

/// The kernel for so many threads a row, as it is unless the user says otherwise.
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
    // The warp of the study, in all that it tried.
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
    ) -> Result<Made<Cuda, T>> {
        let (unroll, block) = (number(params, "unroll", UNROLLS), number(params, "block", BLOCKS));
        let threads = match params.get("threads").and_then(|v| v.parse().ok()) {
            Some(threads) => threads,
            None => threads_for(mean_row(matrix), unroll as usize),
        };
        let pass = AllRows::pass(device, form_of(threads, unroll, block), matrix, threads)?;
        compressed::made::<T>("vector", device, matrix, [pass], reserve)
    }
}
