//! One launch of the `vector` kernel for each class of row lengths.

use super::schedule::Listed;
use crate::backend::cuda::compressed::{self, Compressed};
use crate::backend::cuda::form::{AnyForm, Form};
use crate::backend::cuda::product::Pass;
use crate::backend::cuda::{number, vector};
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `binned`.
pub(crate) struct Binned;

/// The longest row of the first class of `binned`.
pub(crate) const FIRST_CLASS: &[&str] = &["8", "4", "16"];
/// The longest row of the second class of `binned`.
pub(crate) const SECOND_CLASS: &[&str] = &["64", "32", "256"];

/// Threads per row in each class of `binned`.
const CLASS_THREADS: [u32; 3] = [1, 8, 32];

/// Returns the kernel of `vector` over a list of rows.
fn form_of(threads: u32) -> Form<Compressed, Listed> {
    vector::form(threads).with("LISTED", 1).without_dots()
}

pub(super) fn forms() -> Vec<(&'static str, AnyForm)> {
    CLASS_THREADS.map(|threads| ("binned", form_of(threads).any())).into()
}

impl Family<Cuda> for Binned {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let (short, long) = (number(params, "short", FIRST_CLASS), number(params, "long", SECOND_CLASS));
        let classes = Listed::by_length(matrix, short as usize, long as usize);
        let mut passes = Vec::new();
        for (rows, threads) in classes.iter().zip(CLASS_THREADS) {
            passes.push(Pass::over(device, form_of(threads), rows, threads)?);
        }
        compressed::operator::<T>("binned", device, matrix, passes, reserve)
    }
}
