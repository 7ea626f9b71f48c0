//! SELL-32-4096: a warp takes 32 rows, one thread each, and reads their entries with coalesced loads.
//!
//! Products of short rows are memory-bound, so the bytes of an entry matter, 12 in CSR. Here the columns of
//! 32 neighbouring rows are one number if they are consecutive, as in stencils and bands, and 16 bits each
//! if they lie near each other (`pack` describes the layout). Values that single precision represents
//! exactly take 4 bytes, which changes no bit of the result, because products and sums stay in the precision
//! of the vectors. Rows are sorted by length in windows of 4096 if that saves padding; x keeps its order,
//! and the sum of a row is written to the row's own element of y. Threads stop at the end of their row:
//! padding is never multiplied.
//!
//! A warp takes as long as its longest row: matrices with rows much longer than the rest are
//! for other backends.
//!
//! Moritz Kreutzer, Georg Hager, Gerhard Wellein, Holger Fehske, Alan R. Bishop: A unified sparse
//! matrix data format for efficient general sparse matrix-vector multiplication on modern processors
//! with wide SIMD units, 2014.

mod build;
mod pack;
mod sample;

use super::arrays::Arrays;
use super::form::{AnyForm, Form, Format, Grid, Types};
use super::mean_row;
use super::product::{Pass, Product};
use super::resident::made_there;
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::device::cuda::modules::KernelSource;
use crate::error::Result;
use crate::format::Csr;
use crate::format::narrow::narrowest;
use crate::params::Params;
use crate::scalar::Scalar;
use build::{Built, build};
use pack::Packed;
pub(super) use sample::{rounds_of, sampled};
use std::sync::Arc;

/// Rows of a slice: the threads of a warp.
const LANES: usize = 32;

/// Entries of a row that are loaded at once (all five of a stencil, or as many as registers allow), the
/// number at the end of a row, and the blocks that a multiprocessor then holds.
const ROUNDS: [Round; 2] =
    [Round { unroll: 5, rest: 5, resident: 5 }, Round { unroll: 8, rest: 4, resident: 4 }];

/// Mean row length up to which the first of these rounds is used.
pub(super) const SHORT: usize = ROUNDS[0].unroll as usize;

#[derive(Clone, Copy)]
struct Round {
    unroll: u32,
    rest: u32,
    resident: u32,
}

/// The family of the backend `sell`.
pub(crate) struct Sell;

fn form(round: Round) -> Form<Packed> {
    Form::new("spmv_sell", include_str!("../../../../kernels/sell.cu"))
        .with("UNROLL", round.unroll)
        .with("REST", round.rest)
        .with("RESIDENT", round.resident)
}

pub(super) fn forms() -> Vec<AnyForm> {
    ROUNDS.map(|round| form(round).any()).into()
}

/// Returns the kernels that pack slices.
pub(super) fn packing_sources() -> Vec<KernelSource> {
    build::sources()
}

/// Returns the stored values per entry, padding included, of slices of neighbouring rows. Sorting reduces
/// padding, but the sorted rows of a slice gather x from distant addresses: on an H200 slices of sorted rows
/// of 30 to 400 entries took 1.7 times as long as CSR.
pub(super) fn padding_ratio(matrix: &Csr) -> f64 {
    let lengths = matrix.map_rows(|row| matrix.row_range(row).len());
    let longest = lengths.chunks(LANES).filter_map(|slice| slice.iter().max());
    let padded_entries: usize = longest.map(|longest| longest * LANES).sum();
    padded_entries as f64 / matrix.nnz().max(1) as f64
}

/// Returns the numbers that the kernel takes. More rows than 32 bits count are refused before.
fn numbers(rows: usize, slices: usize) -> Vec<(&'static str, u32)> {
    vec![("rows_of_y", rows as u32), ("count", slices as u32)]
}

impl Format for Packed {
    fn empty(types: Types) -> Packed {
        let (slices, words, values) = (Vec::new(), Vec::new(), types.values());
        Packed { shape: (0, 0), slices, words, values, padded_entries: 0 }
    }

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn padded_entries(&self) -> usize {
        self.padded_entries
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        Arrays::new()
            .add("slices", &self.slices)
            .add("all_words", &self.words)
            .add_values("all_values", &self.values)
    }

    fn numbers(&self) -> Vec<(&'static str, u32)> {
        numbers(self.shape.0, self.slices.len())
    }
}

impl Family<Cuda> for Sell {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let [short, long] = ROUNDS;
        let form = form(if mean_row(matrix) <= SHORT { short } else { long });
        let pass = |slices: usize| Pass::new(device, form, Grid::Resident((slices * LANES) as u64), &());
        let build = || build(device, matrix, reserve);
        if let Some(Built { stored, slices }) = made_there(matrix, params, build)? {
            let numbers = numbers(stored.shape.0, slices);
            return Ok(Arc::new(Product::<T>::of("sell", stored, numbers, [pass(slices)?])));
        }
        let packed = Packed::of(&narrowest(matrix))?;
        let pass = pass(packed.slices.len())?;
        Ok(Arc::new(Product::<T>::new("sell", device, &packed, [pass], reserve)?))
    }
}
