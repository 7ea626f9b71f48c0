//! Doubly compressed rows: only rows with entries are visited, for matrices with mostly empty rows.
//!
//! A bitmap with one bit per row marks the rows with entries; the same kernel writes the empty rows with a sum of zero.

use super::arrays::Arrays;
use super::compressed::check_size;
use super::form::{AnyForm, Form, Format, Grid, Types};
use super::product::{Pass, Product};
use crate::backend::{Family, Params, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::{Csr, Dcsr};
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `dcsr`.
pub struct DcsrFamily;

/// Entries that each thread of a row loads at once.
const UNROLL: u32 = 3;
/// Threads per row.
const THREADS: [u32; 3] = [2, 8, 32];

/// A matrix in doubly compressed rows, with a bitmap of the rows that are stored.
struct Stored {
    dcsr: Dcsr,
    filled: Vec<u32>,
}

impl Format for Stored {
    fn empty(types: Types) -> Stored {
        let dcsr = Dcsr::new(0, Vec::new(), Csr::clone(&types.csr()));
        let dcsr = dcsr.unwrap_or_else(|_| unreachable!("an empty matrix is valid"));
        Stored { dcsr, filled: Vec::new() }
    }

    fn shape(&self) -> (usize, usize) {
        (self.dcsr.rows(), self.dcsr.cols())
    }

    fn padded_entries(&self) -> usize {
        self.dcsr.nnz()
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        let stored = self.dcsr.stored_rows();
        Arrays::new()
            .add_offsets("row_offsets", stored.row_offsets())
            .add("col_indices", stored.col_indices())
            .add_values("values", stored.values())
            .add("row_indices", self.dcsr.row_indices())
            .add("filled", &self.filled)
    }

    fn numbers(&self) -> Vec<(&'static str, u32)> {
        // `check_size` refuses more rows.
        let (stored, rows) = (self.dcsr.row_indices().len(), self.dcsr.rows());
        vec![("count", stored as u32), ("rows_of_y", rows as u32)]
    }
}

fn form(threads: u32) -> Form<Stored> {
    Form::new("spmv_dcsr", include_str!("../../../kernels/dcsr.cu"))
        .with("THREADS", threads)
        .with("UNROLL", UNROLL)
        .with("RESIDENT", 5)
}

pub(super) fn forms() -> Vec<AnyForm> {
    THREADS.map(|threads| form(threads).any()).into()
}

impl Family<Cuda> for DcsrFamily {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        _: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        check_size(matrix)?;
        let dcsr = Dcsr::from_csr(Csr::clone(matrix))?;
        let rows = dcsr.row_indices();
        let mut filled = vec![0_u32; matrix.rows().div_ceil(32)];
        rows.iter().for_each(|&row| filled[row as usize / 32] |= 1 << (row % 32));
        let mean = dcsr.nnz().div_ceil(rows.len().max(1));
        // As few as cover a row of mean length in about one round.
        let wanted = mean.div_ceil(UNROLL as usize) as u32;
        let threads = THREADS.into_iter().find(|&threads| threads >= wanted).unwrap_or(32);
        let most = (rows.len() as u64 * u64::from(threads)).max(matrix.rows() as u64);
        let pass = Pass::new(device, form(threads), Grid::Resident(most), &())?;
        let stored = Stored { dcsr, filled };
        Ok(Arc::new(Product::<T>::new("dcsr", device, &stored, [pass], reserve)?))
    }
}
