//! One thread per entry, which adds to its row atomically: the first version of `bins`.

use super::first_version;
use crate::backend::cuda::compressed::{self, AllRows, Compressed};
use crate::backend::cuda::form::{AnyForm, Form, Grid};
use crate::backend::cuda::product::Pass;
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `bins-v1`.
pub(crate) struct BinsFirst;

/// Returns the two kernels: y = beta y, and the atomic addition of the products of single entries.
fn passes() -> [Form<Compressed, AllRows>; 2] {
    let form = |name| Form::new(name, include_str!("../../../../kernels/studies/entries.cu"));
    ["spmv_csr_scale", "spmv_csr_entries"].map(|name| first_version(form(name).with("UNROLL", 1)))
}

pub(super) fn forms() -> Vec<(&'static str, AnyForm)> {
    passes().map(|form| ("bins-v1", form.any())).into()
}

impl Family<Cuda> for BinsFirst {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        _: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let ([scale, add], all) = (passes(), AllRows::of(matrix));
        let scale = Pass::over(device, scale, &all, 1)?;
        let add = Pass::new(device, add, Grid::Resident(matrix.nnz() as u64), &all)?;
        compressed::operator::<T>("bins-v1", device, matrix, [scale, add], reserve)
    }
}
