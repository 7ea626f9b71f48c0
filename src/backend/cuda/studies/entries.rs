//! A thread for each entry, which adds to its row atomically: the first version of `bins`.

use super::first_version;
use crate::backend::cuda::passes::{Form, Grid, Pass, Passes};
use crate::backend::{Family, Made, Params};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

/// A thread for each entry.
pub struct BinsFirst;

/// y = beta y, and the products of single entries added to it.
fn passes() -> [Form; 2] {
    ["spmv_csr_scale", "spmv_csr_entries"]
        .map(|name| first_version(Form::new(name, include_str!("../../../../kernels/studies/entries.cu"), 1)))
}

pub(super) fn forms() -> Vec<(&'static str, Form)> {
    passes().map(|form| ("bins-v1", form)).to_vec()
}

impl Family<Cuda> for BinsFirst {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, _: &Params, reserve: u64) -> Result<Made<Cuda, T>> {
        let [scale, add] = passes().map(|form| Pass::over_all(form, matrix, 1));
        let add = Pass { grid: Grid::Resident(matrix.nnz() as u64), ..add };
        Ok(Arc::new(Passes::new::<T>("bins-v1", device, matrix, [scale, add], reserve)?))
    }
}
