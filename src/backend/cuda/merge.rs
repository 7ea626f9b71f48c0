//! CSR along its merge path: every block has the same number of rows and entries together, however they are
//! distributed, down to one row that holds everything.
//!
//! How many rows end before each tile of the list of ends and entries is searched for once, beforehand; the paper searches
//! in each product. Dot products are fused. The bits depend on the number of blocks, that is on the model of the GPU.
//!
//! Duane Merrill, Michael Garland: Merge-based parallel sparse matrix-vector multiplication, 2016.

use super::owner::{Arrays, Owner};
use super::passes::{Form, Grid, check_size};
use crate::backend::{Family, Made, Params};
use crate::device::Cuda;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

/// Threads of a block: few, so that others load while it waits for all of its own.
const BLOCK: u32 = 128;
/// Row ends and entries of a thread: odd, so that the threads of a warp read from different banks of shared memory.
const ITEMS: usize = 7;
/// Row ends and entries in a tile.
const TILE: usize = BLOCK as usize * ITEMS;
/// Blocks on a multiprocessor, all of which run at once: as many as leave registers for the loads of a thread.
const RESIDENT: u32 = 6;

/// The family of one.
pub struct Merge;

fn form() -> Form {
    Form {
        name: "spmv_csr_merge",
        text: include_str!("../../../kernels/merge.cu"),
        defines: vec![("ITEMS", ITEMS.to_string()), ("RESIDENT", RESIDENT.to_string())],
        block: BLOCK,
        owns_all_rows: true,
    }
}

pub(super) fn forms() -> Vec<Form> {
    vec![form()]
}

/// How many rows end before a place of the list.
fn rows_before(matrix: &Csr, place: usize) -> usize {
    let (mut low, mut high) = (place.saturating_sub(matrix.nnz()), place.min(matrix.rows()));
    while low < high {
        let middle = low + (high - low) / 2;
        if matrix.row_offsets().get(middle + 1) + middle < place { low = middle + 1 } else { high = middle }
    }
    low
}

impl Family<Cuda> for Merge {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, _: &Params, reserve: u64) -> Result<Made<Cuda, T>> {
        check_size(matrix)?;
        let items = matrix.rows() + matrix.nnz();
        let count = items.div_ceil(TILE);
        let tiles = u32::try_from(count).map_err(|_| Error::TooLarge {
            what: "the number of rows and entries",
            value: items as u128,
            limit: u128::from(u32::MAX) * TILE as u128,
            place: "backend merge",
        })?;
        let cuts: Vec<u32> =
            (0..=count).map(|tile| rows_before(matrix, (tile * TILE).min(items)) as u32).collect();
        let blocks = (device.multiprocessors() * RESIDENT).min(tiles).min(TILE as u32);
        let parts = vec![T::default(); 2 * blocks as usize];
        let arrays = Arrays::new()
            .add_offsets(matrix.row_offsets())
            .add(matrix.col_indices())
            .add_values(matrix.values())
            .add(cuts)
            .add(parts)
            .add(vec![0_u32])
            .upload(device, reserve)?;
        let shape = (matrix.rows(), matrix.cols());
        let kernel = (form(), Grid::Blocks(blocks));
        let numbers = vec![shape.0 as u32, tiles];
        Ok(Arc::new(Owner::new::<T>("merge", shape, matrix.nnz(), kernel, arrays, numbers)))
    }
}
