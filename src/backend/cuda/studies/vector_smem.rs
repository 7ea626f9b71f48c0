//! One warp per row, with segments of x in shared memory.

use super::with_sums;
use crate::backend::cuda::compressed::{self, AllRows, Compressed};
use crate::backend::cuda::form::{AnyForm, Form};
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `vector-smem`.
pub(crate) struct VectorSmem;

/// The entries of a row that `vector-smem` scans in each segment.
pub(crate) const SCANS: &[&str] = &["all", "onwards"];

/// Elements of x in a segment: about a hundred segments for the study's largest matrix, as in the study.
const SEGMENT: u32 = 1024;

fn form_of(onwards: bool) -> Form<Compressed, AllRows> {
    let all = Form::new("spmv_csr_vector_smem", with_sums!("vector_smem.cu"));
    let all = all.with("UNROLL", 1).with("SEGMENT", SEGMENT);
    if onwards { all.with("ONWARDS", 1) } else { all }
}

pub(super) fn forms() -> Vec<(&'static str, AnyForm)> {
    [false, true].map(|onwards| ("vector-smem", form_of(onwards).any())).into()
}

impl Family<Cuda> for VectorSmem {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let form = form_of(params.word("scan") == Some("onwards"));
        let pass = AllRows::pass(device, form, matrix, 32)?;
        compressed::operator::<T>("vector-smem", device, matrix, [pass], reserve)
    }
}
