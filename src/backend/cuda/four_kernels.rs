//! The kernels of four-kernels (A. Messa, GPU Computing, deliverables 1 and 2, University of Trento 2025), each in two versions: a thread a row, a warp a row, bins of rows, rows by their length.
//!
//! The second versions load the matrix read-only, several entries before the first is used; their grid stays on the GPU
//! and strides over the rows, and they fuse the dot product. The first ones (`-v1`) load entries one by one, like any
//! other memory, in a grid as large as the matrix, but for `bins-v1`, which strides. The study gives neither thresholds nor sizes
//! of bins: those here are ours. It reads x through the read-only cache, too. Here a kernel may begin while the one ahead still
//! writes x, and waits for it by itself, so that x is loaded like any memory.

use super::passes::{Form, Grid, Pass, Passes, with_sums};
use super::{number, numbers, schedule};
use crate::backend::{Family, Made, Params};
use crate::device::Cuda;
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

/// A thread a row.
pub struct Thread;
/// Its first version.
pub struct ThreadFirst;
/// A warp a row.
pub struct Warp;
/// Its first version.
pub struct WarpFirst;
/// A warp for each bin of rows.
pub struct Bins;
/// What bins were at first: a thread for each entry.
pub struct BinsFirst;
/// Threads, warps and blocks, by the length of rows.
pub struct Hybrid;
/// Its first version: threads and warps.
pub struct HybridFirst;

/// Threads in a block of `thread`: those of the study, then the other sizes for a sweep as in serial-vs-cuda.
pub const BLOCKS: &[&str] = &["256", "32", "64", "128", "512"];
/// Entries in a bin: as many as 8 rounds of a warp, so that matrices of a few million entries still keep a GPU busy.
pub const BIN_ENTRIES: &[&str] = &["256", "64", "1024", "4096"];
/// The longest row that a thread of `hybrid` takes.
pub const SHORT: &[&str] = &["16", "4", "8", "32"];
/// The longest row that a warp of `hybrid` takes.
pub const LONG: &[&str] = &["1024", "256", "4096"];
/// Threads of `hybrid` that shall fit on a multiprocessor at once, by which the compiler shares registers out.
pub const FIT: &[&str] = &["auto", "1024", "1280", "1536", "2048"];

/// Entries of a row that a thread loads before it uses the first.
const UNROLL: u32 = 4;
/// The same for each thread of a warp: rows of 64 entries make a round. The study unrolls by hand and does not say by how many.
const WARP_UNROLL: u32 = 2;
/// What `warp` can be asked for.
pub const WARP_UNROLLS: &[&str] = &["2", "4"];

/// Threads that shall fit on a multiprocessor at once, which leaves 40 registers for each. Where rows are short, it is the
/// number of threads that keeps the memory busy.
const THREADS_LIGHT: u32 = 1536;
/// The same for rows that are longer on average: 64 registers, in which the compiler puts several rounds together.
pub(super) const THREADS_HEAVY: u32 = 1024;
/// The same where a warp sums most rows in a round or two: 32 registers are enough, and twice as many rows are under way.
const THREADS_WARPS: u32 = 2048;
/// The same where rows are of many rounds.
const THREADS_ROUNDS: u32 = 1280;
/// Mean length of rows up to which the work is light, and up to which a warp sums them in few rounds.
const LIGHT: usize = 8;
const FEW_ROUNDS: usize = 128;

/// One thread a row: entries loaded at once, threads in a block, threads that shall fit on a multiprocessor.
pub(super) fn thread(unroll: u32, block: u32, fit: u32) -> Form {
    Form::new("spmv_csr_thread", with_sums!("thread.cu"), unroll).in_blocks_of(block).fitting(fit)
}

fn warp(unroll: u32) -> Form {
    Form::new("spmv_csr_warp", with_sums!("warp.cu"), unroll)
}

fn bins() -> Form {
    Form::new("spmv_csr_bins", with_sums!("bins.cu"), WARP_UNROLL)
}

fn hybrid(fit: u32) -> Form {
    hybrid_of(UNROLL, 3, fit).with("WARP_UNROLL", WARP_UNROLL)
}

/// Threads of `hybrid` that shall fit, by the mean length of rows. Measured on an H200 with 1024, 1280, 1536 and 2048: rows of 5
/// entries took 21.5, 19.7, 19.7 and 20.8 us, rows of 80 in the mean 166, 134, 125 and 105, of 199 42.3, 37.8, 39.9 and 43.4; the
/// bounds between these are guesses.
fn hybrid_fit(mean: usize) -> u32 {
    match mean {
        mean if mean <= LIGHT => THREADS_LIGHT,
        mean if mean <= FEW_ROUNDS => THREADS_WARPS,
        _ => THREADS_ROUNDS,
    }
}

fn hybrid_of(unroll: u32, classes: u32, fit: u32) -> Form {
    Form::new("spmv_csr_hybrid", with_sums!("hybrid.cu"), unroll).with("CLASSES", classes).fitting(fit)
}

/// y = beta y, and the products of single entries added to it.
fn entries() -> [Form; 2] {
    ["spmv_csr_scale", "spmv_csr_entries"]
        .map(|name| first_version(Form::new(name, include_str!("../../../kernels/entries.cu"), 1)))
}

fn first_version(form: Form) -> Form {
    form.with("PLAIN", 1).without_dots()
}

fn thread_first() -> Form {
    first_version(thread(1, 256, 0))
}

fn warp_first() -> Form {
    first_version(warp(1))
}

fn hybrid_first() -> Form {
    first_version(hybrid_of(1, 2, THREADS_HEAVY))
}

pub(super) fn forms() -> Vec<(&'static str, Form)> {
    let mut forms: Vec<_> = numbers(BLOCKS)
        .flat_map(|block| [THREADS_LIGHT, THREADS_HEAVY].map(|fit| ("thread", thread(UNROLL, block, fit))))
        .collect();
    forms.extend([("thread-v1", thread_first()), ("warp-v1", warp_first())]);
    forms.extend(numbers(WARP_UNROLLS).map(|unroll| ("warp", warp(unroll))));
    forms.extend([("bins", bins()), ("hybrid-v1", hybrid_first())]);
    forms.extend(numbers(FIT).map(|fit| ("hybrid", hybrid(fit))));
    forms.extend(entries().map(|form| ("bins-v1", form)));
    forms
}

fn finish<T: Scalar>(
    backend: &'static str,
    device: &Cuda,
    matrix: &Arc<Csr>,
    passes: impl IntoIterator<Item = Pass>,
    reserve: u64,
) -> Result<Made<Cuda, T>> {
    Ok(Arc::new(Passes::new::<T>(backend, device, matrix, passes, reserve)?))
}

impl Family<Cuda> for Thread {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<Made<Cuda, T>> {
        let light = matrix.nnz() <= LIGHT * matrix.rows();
        let fit = if light { THREADS_LIGHT } else { THREADS_HEAVY };
        let form = thread(UNROLL, number(params, "block", BLOCKS), fit);
        finish::<T>("thread", device, matrix, [Pass::over_all(form, matrix, 1)], reserve)
    }
}

impl Family<Cuda> for ThreadFirst {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, _: &Params, reserve: u64) -> Result<Made<Cuda, T>> {
        let pass = Pass::over_all(thread_first(), matrix, 1).without_stride();
        finish::<T>("thread-v1", device, matrix, [pass], reserve)
    }
}

impl Family<Cuda> for Warp {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<Made<Cuda, T>> {
        let form = warp(number(params, "unroll", WARP_UNROLLS));
        finish::<T>("warp", device, matrix, [Pass::over_all(form, matrix, 32)], reserve)
    }
}

impl Family<Cuda> for WarpFirst {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, _: &Params, reserve: u64) -> Result<Made<Cuda, T>> {
        let pass = Pass::over_all(warp_first(), matrix, 32).without_stride();
        finish::<T>("warp-v1", device, matrix, [pass], reserve)
    }
}

impl Family<Cuda> for Bins {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<Made<Cuda, T>> {
        let bounds = schedule::bins(matrix, number(params, "entries", BIN_ENTRIES) as usize);
        let pass = Pass::over_list(device, bins(), &bounds, bounds.len() - 1, 32)?;
        finish::<T>("bins", device, matrix, [pass], reserve)
    }
}

impl Family<Cuda> for BinsFirst {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, _: &Params, reserve: u64) -> Result<Made<Cuda, T>> {
        let [scale, add] = entries().map(|form| Pass::over_all(form, matrix, 1));
        let add = Pass { grid: Grid::Resident(matrix.nnz() as u64), ..add };
        finish::<T>("bins-v1", device, matrix, [scale, add], reserve)
    }
}

/// A pass over rows by their length; rows of more than `long` entries are taken by blocks.
fn by_length(device: &Cuda, form: Form, matrix: &Csr, short: u32, long: usize) -> Result<Pass> {
    let block = form.block;
    let (list, tiles) = tiles(&schedule::classes(matrix, short as usize, long), block as usize);
    Pass::over_list(device, form, &list, tiles, block)
}

/// What hybrid.cu finds in its list, and how many tiles that makes for blocks of so many threads.
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
    ) -> Result<Made<Cuda, T>> {
        let (short, long) = (number(params, "short", SHORT), number(params, "long", LONG));
        let mean = matrix.nnz() / matrix.rows().max(1);
        let fit = params.get("fit").and_then(|fit| fit.parse().ok()).unwrap_or_else(|| hybrid_fit(mean));
        let pass = by_length(device, hybrid(fit), matrix, short, long as usize)?;
        finish::<T>("hybrid", device, matrix, [pass], reserve)
    }
}

impl Family<Cuda> for HybridFirst {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<Made<Cuda, T>> {
        let short = number(params, "short", SHORT);
        let pass = by_length(device, hybrid_first(), matrix, short, usize::MAX)?;
        finish::<T>("hybrid-v1", device, matrix, [pass.without_stride()], reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_hold_a_long_row_or_a_medium_one_for_each_warp_or_a_short_one_for_each_thread() {
        let classes = [(0..257).collect(), (300..309).collect(), vec![500, 501, 502]];
        let (list, count) = tiles(&classes, 256);
        assert_eq!(
            (&list[..3], &list[3..6], list[6], list[15]),
            (&[3, 9, 257][..], &[500, 501, 502][..], 300, 0)
        );
        assert_eq!((list.len(), count), (3 + 3 + 9 + 257, 3 + 2 + 2));
        assert_eq!(tiles(&[const { Vec::new() }; 3], 256), (vec![0, 0, 0], 0));
    }

    #[test]
    fn as_many_blocks_are_asked_for_as_fit() {
        let min_blocks = |block, fit| thread(UNROLL, block, fit).defines[1].1.clone();
        let asked = [(256, THREADS_LIGHT), (32, THREADS_LIGHT), (512, THREADS_HEAVY), (256, 0)];
        assert_eq!(asked.map(|(block, fit)| min_blocks(block, fit)), ["6", "32", "2", "1"]);
    }
}
