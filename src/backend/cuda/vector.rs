//! Rows of CSR shared by several neighbouring threads, as many as the mean row length asks for.

use super::csr::threads_for;
use super::mean_row;
use super::passes::{Form, Pass, Passes};
use crate::backend::{Family, Operator, Params};
use crate::device::Cuda;
use crate::device::cuda::modules::BLOCK;
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
use std::rc::Rc;
use std::sync::Arc;

/// The family of one.
pub struct Vector;

/// Entries that each thread of a row loads at once. On an H200 three were the fastest both for rows of 5 entries and
/// for rows of 81; more cost registers, fewer leave too few loads in flight.
const UNROLL: usize = 3;

pub(super) fn form(threads: u32) -> Form {
    Form {
        name: "spmv_csr_vector",
        text: include_str!("../../../kernels/vector.cu"),
        defines: vec![("THREADS", threads.to_string()), ("UNROLL", UNROLL.to_string())],
        block: BLOCK,
        owns_all_rows: true,
    }
}

pub(super) fn forms() -> Vec<Form> {
    [1, 2, 4, 8, 16, 32].map(form).to_vec()
}

impl Family<Cuda> for Vector {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, params: &Params) -> Result<Operator<Cuda, T>> {
        let threads = match params.get("threads").and_then(|v| v.parse().ok()) {
            Some(threads) => threads,
            None => threads_for(mean_row(matrix), UNROLL),
        };
        let pass = Pass::over_all(form(threads), matrix, threads);
        Ok(Rc::new(Passes::new::<T>("vector", device, matrix, [pass])?))
    }
}
