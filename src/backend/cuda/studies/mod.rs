//! Strategies that published studies compare, kept as they are described there, costs included.
//!
//! | study | strategies |
//! |---|---|
//! | four-kernels (A. Messa, GPU Computing, deliverables 1 and 2, University of Trento 2025) | `thread`, `warp`, `bins`, `hybrid`, and the first version of each |
//! | seven-strategies (sparse kernels in Numba for a Tesla P100) | `scalar`, `adaptive`, `vector-smem`, `binned`, and `vector` with `threads=32` |
//! | serial-vs-cuda | `thread` in blocks of several sizes |
//! | block-band | the four of `bsr_tasks` |
//!
//! The second versions of four-kernels load the matrix read-only, several entries before the first is used; their grid stays on
//! the GPU and strides over the rows, and they fuse the dot product. The first ones (`-v1`) load entries one by one, like any
//! other memory, in a grid as large as the matrix, but for `bins-v1`, which strides. The study gives neither thresholds nor sizes
//! of bins: those here are ours. It reads x through the read-only cache, too. Here a kernel may begin while the one ahead still
//! writes x, and waits for it by itself, so that x is loaded like any memory.
//!
//! `auto` chooses one of these strategies: `hybrid`. `vector` is not here, because `csr` launches its kernel, too.

pub mod adaptive;
pub mod binned;
pub mod bins;
pub mod bsr_tasks;
pub mod entries;
pub mod hybrid;
mod schedule;
pub mod thread;
pub mod vector_smem;
pub mod warp;

use super::form::{AnyForm, Form};

/// The text of a kernel that begins with sums.cuh.
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
/// The same for each thread of a warp: rows of 64 entries make a round. The study unrolls by hand and does not say by how many.
const WARP_UNROLL: u32 = 2;

/// Threads that shall fit on a multiprocessor at once, which leaves 40 registers for each. Where rows are short, it is the
/// number of threads that keeps the memory busy.
const THREADS_LIGHT: u32 = 1536;
/// The same for rows that are longer on average: 64 registers, in which the compiler puts several rounds together.
const THREADS_HEAVY: u32 = 1024;
/// Mean length of rows up to which the work is light.
const LIGHT: usize = 8;

/// The first version of a form: plain loads, and no dot product fused.
fn first_version<F, S>(form: Form<F, S>) -> Form<F, S> {
    form.with("PLAIN", 1).without_dots()
}

/// The forms of the kernels, each with the name of the backend that launches it.
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
