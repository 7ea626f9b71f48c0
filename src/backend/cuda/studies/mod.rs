//! Strategies that published studies compare, implemented as the studies describe them, costs included.
//!
//! | study | strategies |
//! |---|---|
//! | four-kernels (A. Messa, GPU Computing, deliverables 1 and 2, University of Trento 2025) | `thread`, `warp`, `bins`, `hybrid`, and the first version of each |
//! | seven-strategies (sparse kernels in Numba for a Tesla P100) | `scalar`, `adaptive`, `vector-smem`, `binned`, and `vector` with `threads=32,unroll=1` |
//! | serial-vs-cuda | `thread` in blocks of several sizes |
//! | block-band | the four of `bsr_tasks` |
//! | spmm (A. Tran, A. Agarwal and R. Ramana, 2025) | the five of `spmm`, for several columns |
//!
//! The second versions of four-kernels load the matrix with read-only loads, several entries before the first
//! is used; their grid is resident and strides over the rows, and they fuse the dot product. The first
//! versions (`-v1`) load entries one by one with ordinary loads, in a grid as large as the matrix, except
//! `bins-v1`, which strides. The study gives neither thresholds nor bin sizes: those here are ours. The study
//! reads x through the read-only cache as well. Here a kernel may start while the previous kernel still
//! writes x and waits for it inside the kernel, so x uses ordinary loads.
//!
//! `auto` chooses one of these strategies: `hybrid`. `vector` is not in this module, because `csr`
//! launches its kernel, too.

pub(crate) mod adaptive;
pub(crate) mod binned;
pub(crate) mod bins;
pub(crate) mod bsr_tasks;
pub(crate) mod entries;
pub(crate) mod hybrid;
mod schedule;
pub(crate) mod spmm;
pub(crate) mod thread;
pub(crate) mod vector_smem;
pub(crate) mod warp;

use super::form::{AnyForm, Form};
use crate::backend::Params;

/// Includes the source of a kernel, preceded by sums.cuh.
macro_rules! with_sums {
    ($file:literal) => {
        concat!(
            include_str!("../../../../kernels/studies/sums.cuh"),
            include_str!(concat!("../../../../kernels/studies/", $file))
        )
    };
}
use with_sums;

/// Entries of a row that a thread loads before it uses the first.
const UNROLL: u32 = 4;
/// The same for each thread of a warp: a round has 64 entries. The study unrolls by hand and
/// does not give the number.
const WARP_UNROLL: u32 = 2;

/// Threads that must fit on a multiprocessor at once, which leaves 40 registers for each. If rows are short,
/// occupancy is what keeps the memory busy.
const THREADS_LIGHT: u32 = 1536;
/// The same for longer rows: 64 registers, with which the compiler interleaves several rounds.
const THREADS_HEAVY: u32 = 1024;
/// Mean row length up to which rows are short.
const LIGHT: usize = 8;
/// Threads of `thread` and `hybrid` that must fit on a multiprocessor at once, which limits the registers of
/// a thread.
pub(crate) const FIT: &[&str] = &["auto", "1024", "1280", "1536", "2048"];

/// Returns the threads that must fit, as the user set them or else by `found`.
fn fit_or(params: &Params, found: impl FnOnce() -> u32) -> u32 {
    params.word("fit").and_then(|fit| fit.parse().ok()).unwrap_or_else(found)
}

/// Where a thread keeps its part of the sum of a row. four-kernels tried shared memory with each of its
/// kernels and found it slower.
pub(crate) const SUMS: &[&str] = &["registers", "shared"];

/// Turns a form into the one that keeps sums in shared memory.
fn in_shared_memory<F, S>(form: Form<F, S>) -> Form<F, S> {
    form.with("SHARED", 1)
}

/// Returns the form that keeps sums where the parameters say.
fn with_sums_of<F, S>(params: &Params, form: Form<F, S>) -> Form<F, S> {
    if params.word("sums") == Some("shared") { in_shared_memory(form) } else { form }
}

/// Turns a form into the first version: plain loads, and no fused dot product.
fn first_version<F, S>(form: Form<F, S>) -> Form<F, S> {
    form.with("PLAIN", 1).without_dots()
}

/// Returns the forms of the kernels, each with the name of the backend that launches it.
pub(super) fn forms() -> Vec<(&'static str, AnyForm)> {
    let all = [
        thread::forms(),
        warp::forms(),
        bins::forms(),
        entries::forms(),
        hybrid::forms(),
        adaptive::forms(),
        vector_smem::forms(),
        binned::forms(),
        bsr_tasks::forms(),
    ];
    all.into_iter().flatten().collect()
}
