//! A warp for each bin of consecutive rows; bins have about equally many entries.

use super::schedule::Ranges;
use super::{WARP_UNROLL, in_shared_memory, with_sums, with_sums_of};
use crate::backend::cuda::compressed::{self, Compressed};
use crate::backend::cuda::form::{AnyForm, Form};
use crate::backend::cuda::number;
use crate::backend::cuda::product::Pass;
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `bins`.
pub(crate) struct Bins;

/// Entries in a bin: 8 rounds of a warp by default, so that matrices of a few million entries
/// still keep a GPU busy.
pub(crate) const ENTRIES: &[&str] = &["256", "64", "1024", "4096"];

fn form() -> Form<Compressed, Ranges> {
    Form::new("spmv_csr_bins", with_sums!("bins.cu")).with("UNROLL", WARP_UNROLL)
}

pub(super) fn forms() -> Vec<(&'static str, AnyForm)> {
    vec![("bins", form().any()), ("bins", in_shared_memory(form()).any())]
}

impl Family<Cuda> for Bins {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let bins = Ranges::bins(matrix, number(params, "entries", ENTRIES) as usize);
        let pass = Pass::over(device, with_sums_of(params, form()), &bins, 32)?;
        compressed::operator::<T>("bins", device, matrix, [pass], reserve)
    }
}
