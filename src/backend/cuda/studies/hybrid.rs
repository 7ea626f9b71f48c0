//! Rows by length: short rows by threads, medium rows by warps, long rows by blocks; the first version
//! has no class for blocks.
//!
//! `auto` chooses `hybrid` for long uneven rows.

use super::{
    FIT, LIGHT, THREADS_HEAVY, THREADS_LIGHT, UNROLL, WARP_UNROLL, first_version, fit_or, in_shared_memory,
    schedule, with_sums, with_sums_of,
};
use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::compressed::{self, Compressed};
use crate::backend::cuda::form::{AnyForm, Form, Share};
use crate::backend::cuda::product::Pass;
use crate::backend::cuda::{number, numbers};
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `hybrid`: threads, warps and blocks, by row length.
pub(crate) struct Hybrid;
/// The family of the backend `hybrid-v1`: threads and warps.
pub(crate) struct HybridFirst;

/// The longest row that a thread of `hybrid` takes.
pub(crate) const SHORT: &[&str] = &["16", "4", "8", "32"];
/// The longest row that a warp of `hybrid` takes.
pub(crate) const LONG: &[&str] = &["1024", "256", "4096"];
/// Threads that must fit if a warp sums most rows in a round or two: 32 registers are enough, and twice as
/// many rows are in flight as with 64.
const THREADS_WARPS: u32 = 2048;
/// Threads that must fit if rows take many rounds.
const THREADS_ROUNDS: u32 = 1280;
/// Mean row length up to which a warp sums a row in few rounds.
const FEW_ROUNDS: usize = 128;
/// A row of more than this multiple of the mean length, summed by one block, takes longer than
/// the other rows.
const UNEVEN: usize = 16;

/// The lengths of the rows of a matrix.
#[derive(Clone, Copy)]
struct Lengths {
    mean: usize,
    longest: usize,
}

impl Lengths {
    fn of(matrix: &Csr) -> Lengths {
        let longest = (0..matrix.rows()).map(|row| matrix.row_range(row).len()).max().unwrap_or(0);
        Lengths { mean: matrix.nnz() / matrix.rows().max(1), longest }
    }
}

/// Returns the threads of `hybrid` that must fit, for rows of which blocks take those of more than `long`
/// entries. Measured on an H200 with 1024, 1280, 1536 and 2048 threads, in microseconds:
///
/// | mean | longest | 1024 | 1280 | 1536 | 2048 |
/// |---|---|---|---|---|---|
/// | 1 | 7,392,576 | 3,459 | 3,904 | 5,482 | 7,680 |
/// | 13 | 38,597 | 372 | 370 | 386 | 425 |
/// | 2 | 3 | 15.8 | 14.5 | 14.1 | 13.5 |
/// | 4 | 5 | 21.5 | 19.7 | 19.7 | 20.8 |
/// | 38 | 843 | 134 | 112 | 102 | 84.7 |
/// | 40 | 306 | 97.8 | 81.2 | 73.6 | 63.1 |
/// | 79 | 435 | 166 | 134 | 125 | 105 |
/// | 100 | 262 | 29.7 | 27.1 | 25.7 | 25.3 |
/// | 199 | 2,703 | 42.3 | 37.8 | 39.9 | 43.4 |
///
/// If the time is that of one long row, whose block has no other work, the registers for most loads in flight
/// are best. The thresholds between these lengths are guesses.
fn fit_for(rows: Lengths, long: usize) -> u32 {
    match rows {
        Lengths { mean, longest } if longest > long.max(UNEVEN * mean) => THREADS_HEAVY,
        Lengths { mean, .. } if mean <= LIGHT => THREADS_LIGHT,
        Lengths { mean, .. } if mean <= FEW_ROUNDS => THREADS_WARPS,
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
        let (short, long) = (number(params, "short", SHORT), number(params, "long", LONG) as usize);
        let fit = fit_or(params, || fit_for(Lengths::of(matrix), long));
        let pass = by_length(device, with_sums_of(params, form(fit)), matrix, short, long)?;
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
    fn threads_fit_as_measured_fastest_to_within_six_percent() {
        // Mean and longest row, and the times of the table above.
        for (mean, longest, times) in [
            (1, 7_392_576, [3459.0, 3904.0, 5482.0, 7680.0]),
            (13, 38_597, [372.0, 370.0, 386.0, 425.0]),
            (2, 3, [15.8, 14.5, 14.1, 13.5]),
            (4, 5, [21.5, 19.7, 19.7, 20.8]),
            (38, 843, [134.0, 112.0, 102.0, 84.7]),
            (40, 306, [97.8, 81.2, 73.6, 63.1]),
            (79, 435, [166.0, 134.0, 125.0, 105.0]),
            (100, 262, [29.7, 27.1, 25.7, 25.3]),
            (199, 2703, [42.3, 37.8, 39.9, 43.4]),
        ] {
            let fit = fit_for(Lengths { mean, longest }, 1024);
            let at = numbers(FIT).position(|listed| listed == fit).unwrap();
            let best = times.into_iter().fold(f64::INFINITY, f64::min);
            assert!(times[at] <= 1.06 * best, "mean {mean}: {fit} takes {} instead of {best}", times[at]);
        }
    }

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
