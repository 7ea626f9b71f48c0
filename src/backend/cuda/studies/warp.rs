//! One warp per row, and the first version of that kernel.

use super::{first_version, in_shared_memory, with_sums, with_sums_of};
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

/// The family of the backend `warp`.
pub(crate) struct Warp;
/// The family of the backend `warp-v1`.
pub(crate) struct WarpFirst;

/// Entries of a row that a thread of a warp loads before it uses the first.
pub(crate) const UNROLLS: &[&str] = &["2", "4"];

fn form_of(unroll: u32) -> Form<Compressed, AllRows> {
    Form::new("spmv_csr_warp", with_sums!("warp.cu")).with("UNROLL", unroll)
}

fn first() -> Form<Compressed, AllRows> {
    first_version(form_of(1))
}

pub(super) fn forms() -> Vec<(&'static str, AnyForm)> {
    let mut forms = vec![("warp-v1", first().any()), ("warp", in_shared_memory(form_of(2)).any())];
    forms.extend(numbers(UNROLLS).map(|unroll| ("warp", form_of(unroll).any())));
    forms
}

impl Family<Cuda> for Warp {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let form = with_sums_of(params, form_of(number(params, "unroll", UNROLLS)));
        let pass = AllRows::pass(device, form, matrix, 32)?;
        compressed::operator::<T>("warp", device, matrix, [pass], reserve)
    }
}

impl Family<Cuda> for WarpFirst {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        _: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let pass = AllRows::pass(device, first(), matrix, 32)?.without_stride();
        compressed::operator::<T>("warp-v1", device, matrix, [pass], reserve)
    }
}
