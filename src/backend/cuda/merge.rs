//! CSR along its merge path: every block has the same number of rows and entries together, even if
//! one row holds all entries.
//!
//! Row ends and entries are merged into one list, which is cut into tiles. The number of rows that end before
//! each tile is computed once, beforehand; the paper computes it in each product. Dot products are fused. The
//! bits depend on the number of blocks, that is on the model of the GPU.
//!
//! Duane Merrill, Michael Garland: Merge-based parallel sparse matrix-vector multiplication, 2016.

use super::arrays::Arrays;
use super::compressed::check_size;
use super::form::{AnyForm, Form, Format, Grid, Types};
use super::product::{Pass, Product};
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// Threads of a block: few, so that other blocks load while one waits at a barrier for all of its threads.
const BLOCK: u32 = 128;
/// Row ends and entries per thread: odd, so that the threads of a warp read from different
/// banks of shared memory.
const ITEMS: usize = 7;
/// Row ends and entries in a tile.
const TILE: usize = BLOCK as usize * ITEMS;
/// Blocks on a multiprocessor, all resident at once: as many as leave enough registers for the
/// loads of a thread.
const RESIDENT: u32 = 6;

/// The family of the backend `merge`.
pub(crate) struct Merge;

/// A matrix in CSR, cut into tiles of its merge path.
struct Path {
    matrix: Arc<Csr>,
    tiles: u32,
    /// The number of rows that end before each tile.
    cuts: Vec<u32>,
    /// Blocks that share the tiles.
    blocks: u32,
}

fn form() -> Form<Path> {
    Form::new("spmv_csr_merge", include_str!("../../../kernels/merge.cu"))
        .with("ITEMS", ITEMS as u32)
        .with("RESIDENT", RESIDENT)
        .in_blocks_of(BLOCK)
}

pub(super) fn forms() -> Vec<AnyForm> {
    vec![form().any()]
}

/// Returns the number of rows that end before a position of the list.
fn rows_before(matrix: &Csr, position: usize) -> usize {
    let (mut low, mut high) = (position.saturating_sub(matrix.nnz()), position.min(matrix.rows()));
    while low < high {
        let middle = low + (high - low) / 2;
        if matrix.row_offsets().get(middle + 1) + middle < position {
            low = middle + 1
        } else {
            high = middle
        }
    }
    low
}

impl Path {
    fn cut(matrix: &Arc<Csr>, multiprocessors: u32) -> Result<Path> {
        check_size(matrix)?;
        let items = matrix.rows() + matrix.nnz();
        let count = items.div_ceil(TILE);
        let tiles = u32::try_from(count).map_err(|_| Error::TooLarge {
            what: "the number of rows and entries",
            value: items as u128,
            limit: u128::from(u32::MAX) * TILE as u128,
            container: "backend merge",
        })?;
        let cut = |tile: usize| rows_before(matrix, (tile * TILE).min(items)) as u32;
        let cuts = (0..=count).map(cut).collect();
        let blocks = (multiprocessors * RESIDENT).min(tiles).min(TILE as u32);
        Ok(Path { matrix: Arc::clone(matrix), tiles, cuts, blocks })
    }
}

impl Format for Path {
    fn empty(types: Types) -> Path {
        Path { matrix: types.csr(), tiles: 0, cuts: Vec::new(), blocks: 0 }
    }

    fn shape(&self) -> (usize, usize) {
        (self.matrix.rows(), self.matrix.cols())
    }

    fn padded_entries(&self) -> usize {
        self.matrix.nnz()
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        Arrays::new()
            .add_offsets("row_offsets", self.matrix.row_offsets())
            .add("col_indices", self.matrix.col_indices())
            .add_values("values", self.matrix.values())
            .add("cuts", &self.cuts)
            .add_scalars::<T>("parts", 2 * self.blocks as usize)
            .add_scratch("ticket", vec![0_u32])
    }

    fn numbers(&self) -> Vec<(&'static str, u32)> {
        // `check_size` refuses more rows.
        vec![("rows_of_y", self.matrix.rows() as u32), ("tiles", self.tiles)]
    }
}

impl Family<Cuda> for Merge {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        _: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let path = Path::cut(matrix, device.multiprocessors())?;
        let pass = Pass::new(device, form(), Grid::Blocks(path.blocks), &())?;
        Ok(Arc::new(Product::<T>::new("merge", device, &path, [pass], reserve)?))
    }
}
