//! Doubly compressed rows: only rows that hold entries are visited, for matrices most of whose rows are empty.
//!
//! A bit a row says which are empty: the same kernel ends them, as the sum of nothing.

use super::owner::{Arrays, Owner};
use super::passes::{Form, Grid, check_size};
use crate::backend::{Family, Made, Params};
use crate::device::Cuda;
use crate::device::cuda::modules::BLOCK;
use crate::error::Result;
use crate::format::{Csr, Dcsr};
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of one.
pub struct DcsrFamily;

/// Entries that each thread of a row loads at once.
const UNROLL: u32 = 3;
/// Threads for a row.
const THREADS: [u32; 3] = [2, 8, 32];

fn form(threads: u32) -> Form {
    let defines = [("THREADS", threads), ("UNROLL", UNROLL), ("RESIDENT", 5)];
    Form {
        name: "spmv_dcsr",
        text: include_str!("../../../kernels/dcsr.cu"),
        defines: defines.map(|(name, value)| (name, value.to_string())).to_vec(),
        block: BLOCK,
        owns_all_rows: true,
    }
}

pub(super) fn forms() -> Vec<Form> {
    THREADS.map(form).to_vec()
}

impl Family<Cuda> for DcsrFamily {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, _: &Params, reserve: u64) -> Result<Made<Cuda, T>> {
        check_size(matrix)?;
        let shape = (matrix.rows(), matrix.cols());
        let dcsr = Dcsr::from_csr(Csr::clone(matrix))?;
        let (stored, rows) = (dcsr.stored_rows(), dcsr.row_indices());
        let mut filled = vec![0_u32; shape.0.div_ceil(32)];
        rows.iter().for_each(|&row| filled[row as usize / 32] |= 1 << (row % 32));
        let mean = stored.nnz().div_ceil(rows.len().max(1));
        // As few as cover a row of mean length in about one round.
        let wanted = mean.div_ceil(UNROLL as usize) as u32;
        let threads = THREADS.into_iter().find(|&threads| threads >= wanted).unwrap_or(32);
        let arrays = Arrays::new()
            .add_offsets(stored.row_offsets())
            .add(stored.col_indices())
            .add_values(stored.values())
            .add(rows)
            .add(filled)
            .upload(device, reserve)?;
        let most = (rows.len() as u64 * u64::from(threads)).max(shape.0 as u64);
        let kernel = (form(threads), Grid::Resident(most));
        let numbers = vec![rows.len() as u32, shape.0 as u32];
        Ok(Arc::new(Owner::new::<T>("dcsr", shape, stored.nnz(), kernel, arrays, numbers)))
    }
}
