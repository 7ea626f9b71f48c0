//! Rows by length: short rows by threads, medium rows by warps, long rows by blocks; the first version has no class for blocks.
//!
//! `auto` chooses `hybrid` for long uneven rows.

use super::{
    LIGHT, THREADS_HEAVY, THREADS_LIGHT, UNROLL, WARP_UNROLL, first_version, in_shared_memory, schedule,
    with_sums, with_sums_of,
};
use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::compressed::{self, Compressed};
use crate::backend::cuda::form::{AnyForm, Form, Share};
use crate::backend::cuda::product::Pass;
use crate::backend::cuda::{number, numbers};
use crate::backend::{Family, Params, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `hybrid`: threads, warps and blocks, by row length.
pub struct Hybrid;
/// The family of the backend `hybrid-v1`: threads and warps.
pub struct HybridFirst;

/// The longest row that a thread of `hybrid` takes.
pub const SHORT: &[&str] = &["16", "4", "8", "32"];
/// The longest row that a warp of `hybrid` takes.
pub const LONG: &[&str] = &["1024", "256", "4096"];
/// Threads of `hybrid` that must fit on a multiprocessor at once, which limits the registers of a thread.
pub const FIT: &[&str] = &["auto", "1024", "1280", "1536", "2048"];

/// Threads that must fit if a warp sums most rows in a round or two: 32 registers are enough, and twice as many rows are in
/// flight as with 64.
const THREADS_WARPS: u32 = 2048;
/// Threads that must fit if rows take many rounds.
const THREADS_ROUNDS: u32 = 1280;
/// Mean row length up to which a warp sums a row in few rounds.
const FEW_ROUNDS: usize = 128;

/// Returns the threads of `hybrid` that must fit, by the mean row length. Measured on an H200 with 1024, 1280, 1536 and 2048:
/// rows of 5 entries took 21.5, 19.7, 19.7 and 20.8 us, rows of 80 on average 166, 134, 125 and 105, rows of 199 42.3, 37.8, 39.9
/// and 43.4; the thresholds between these lengths are guesses.
fn fit_for(mean: usize) -> u32 {
    match mean {
        mean if mean <= LIGHT => THREADS_LIGHT,
        mean if mean <= FEW_ROUNDS => THREADS_WARPS,
        _ => THREADS_ROUNDS,
    }
}

fn form_of(unroll: u32, classes: u32, fit: u32) -> Form<Compressed, Tiles> {
    let form = Form::new("spmv_csr_hybrid", with_sums!("hybrid.cu")).with("UNROLL", unroll);
    form.with("CLASSES", classes).fitting(fit)
}

fn form(fit: u32) -> Form<Compressed, Tiles> {
    form_of(UNROLL, 3, fit).with("WARP_UNROLL", WARP_UNROLL)
}

fn first() -> Form<Compressed, Tiles> {
    first_version(form_of(1, 2, THREADS_HEAVY))
}

pub(super) fn forms() -> Vec<(&'static str, AnyForm)> {
    let shared = in_shared_memory(form(THREADS_ROUNDS));
    let mut forms = vec![("hybrid-v1", first().any()), ("hybrid", shared.any())];
    forms.extend(numbers(FIT).map(|fit| ("hybrid", form(fit).any())));
    forms
}

/// Creates a launch over rows by length; blocks take rows of more than `long` entries.
fn by_length(
    device: &Cuda,
    form: Form<Compressed, Tiles>,
    matrix: &Csr,
    short: u32,
    long: usize,
) -> Result<Pass<Compressed>> {
    let block = form.kind.block;
    let tiles = Tiles::of(matrix, short, long, block);
    Pass::over(device, form, &tiles, block)
}

/// Rows by length, in tiles for blocks of threads.
struct Tiles {
    list: Vec<u32>,
    count: usize,
}

impl Tiles {
    fn of(matrix: &Csr, short: u32, long: usize, block: u32) -> Tiles {
        let (list, count) = tiles(&schedule::classes(matrix, short as usize, long), block as usize);
        Tiles { list, count }
    }
}

impl Share for Tiles {
    fn none() -> Tiles {
        Tiles { list: vec![0; 3], count: 0 }
    }

    fn arrays(&self) -> Arrays<'_> {
        Arrays::of(schedule::LISTS).add("list", &self.list)
    }

    fn count(&self) -> Option<u32> {
        // At most as many tiles as rows, which fit in 32 bits.
        Some(self.count as u32)
    }
}

/// Returns the list that hybrid.cu reads, and the number of tiles for blocks of this many threads.
fn tiles([short, medium, long]: &[Vec<u32>; 3], block: usize) -> (Vec<u32>, usize) {
    let mut list = [long, medium, short].map(|rows| rows.len() as u32).to_vec();
    [long, medium, short].iter().for_each(|rows| list.extend_from_slice(rows));
    (list, long.len() + medium.len().div_ceil(block / 32) + short.len().div_ceil(block))
}

impl Family<Cuda> for Hybrid {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let (short, long) = (number(params, "short", SHORT), number(params, "long", LONG));
        let mean = matrix.nnz() / matrix.rows().max(1);
        let fit = params.get("fit").and_then(|fit| fit.parse().ok()).unwrap_or_else(|| fit_for(mean));
        let pass = by_length(device, with_sums_of(params, form(fit)), matrix, short, long as usize)?;
        compressed::operator::<T>("hybrid", device, matrix, [pass], reserve)
    }
}

impl Family<Cuda> for HybridFirst {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let short = number(params, "short", SHORT);
        let pass = by_length(device, first(), matrix, short, usize::MAX)?.without_stride();
        compressed::operator::<T>("hybrid-v1", device, matrix, [pass], reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_is_a_long_row_or_a_medium_row_per_warp_or_a_short_row_per_thread() {
        let classes = [(0..257).collect(), (300..309).collect(), vec![500, 501, 502]];
        let (list, count) = tiles(&classes, 256);
        assert_eq!(
            (&list[..3], &list[3..6], list[6], list[15]),
            (&[3, 9, 257][..], &[500, 501, 502][..], 300, 0)
        );
        assert_eq!((list.len(), count), (3 + 3 + 9 + 257, 3 + 2 + 2));
        assert_eq!(tiles(&[const { Vec::new() }; 3], 256), (vec![0, 0, 0], 0));
    }
}
