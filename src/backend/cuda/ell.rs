//! ELLPACK: one thread per row, with entry j of all rows stored contiguously, so that every load is coalesced.
//!
//! All rows are padded to the longest one, which limits the matrices that it supports. Threads stop at the end of their row all
//! the same, so padding is never multiplied.
//!
//! Nathan Bell, Michael Garland: Efficient sparse matrix-vector multiplication on CUDA, 2008.

use super::arrays::Arrays;
use super::compressed::check_size;
use super::csr::longest_row;
use super::form::{AnyForm, Form, Format, Grid, Types};
use super::product::{Pass, Product};
use crate::backend::{Family, Params, Refusal, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::{Csr, Ell};
use crate::scalar::Scalar;
use std::sync::Arc;

/// Stored values per entry, padding included, above which a matrix is refused.
pub const MAX_SLOTS_PER_ENTRY: usize = 3;

/// The family of the backend `ell`.
pub struct EllFamily;

fn form() -> Form<Ell> {
    /// Loads in flight, including at the end of a row, and blocks of a multiprocessor, as in `sell` for short rows.
    const ROUND: u32 = 5;
    Form::new("spmv_ell", include_str!("../../../kernels/sell.cu"))
        .with("UNROLL", ROUND)
        .with("ELL", 1)
        .with("REST", ROUND)
        .with("RESIDENT", 5)
}

pub(super) fn forms() -> Vec<AnyForm> {
    vec![form().any()]
}

impl Format for Ell {
    fn empty(types: Types) -> Ell {
        let ell = Ell::new(0, 0, Vec::new(), Vec::new(), types.values());
        ell.unwrap_or_else(|_| unreachable!("an empty matrix is valid"))
    }

    fn shape(&self) -> (usize, usize) {
        (self.rows(), self.cols())
    }

    fn padded_entries(&self) -> usize {
        self.col_indices().len()
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        Arrays::new()
            .add("row_lengths", self.row_lengths())
            .add("col_indices", self.col_indices())
            .add_values("values", self.values())
    }

    fn numbers(&self) -> Vec<(&'static str, u32)> {
        // `check_size` refuses more rows.
        vec![("rows_of_y", self.rows() as u32)]
    }
}

impl Family<Cuda> for EllFamily {
    const ADDS_REPEATS: bool = false;

    fn check(matrix: &Csr, _: &Params, _: usize) -> std::result::Result<(), Refusal> {
        let entries = matrix.nnz();
        let width = longest_row(matrix);
        let padded_entries = matrix.rows() as u128 * width as u128;
        if padded_entries > entries as u128 * MAX_SLOTS_PER_ENTRY as u128 {
            return Err(Refusal::new(
                format!(
                    "{entries} entries padded to {padded_entries} values, with all rows as long as the longest ({width} entries)"
                ),
                format!(
                    "it stores at most {MAX_SLOTS_PER_ENTRY} values per entry, padding included; sell pads 32 rows at a time"
                ),
            ));
        }
        Ok(())
    }

    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        _: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        check_size(matrix)?;
        let ell = Ell::with_limit(matrix, MAX_SLOTS_PER_ENTRY)?;
        let pass = Pass::new(device, form(), Grid::Resident(matrix.rows() as u64), &())?;
        Ok(Arc::new(Product::<T>::new("ell", device, &ell, [pass], reserve)?))
    }
}
