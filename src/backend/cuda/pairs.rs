//! Rows of CSR, two neighbouring threads each.

use super::compressed::{self, AllRows, Compressed};
use super::form::{AnyForm, Form};
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `pairs`.
pub(crate) struct Pairs;

fn form() -> Form<Compressed, AllRows> {
    Form::new("spmv_csr_pairs", include_str!("../../../kernels/pairs.cu"))
}

pub(super) fn forms() -> Vec<AnyForm> {
    vec![form().any()]
}

impl Family<Cuda> for Pairs {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        _: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let pass = AllRows::pass(device, form(), matrix, 2)?; // 2 threads per row
        compressed::operator::<T>("pairs", device, matrix, [pass], reserve)
    }
}
