//! CSR in windows of about equally many entries, with giant rows in pieces: for rows of all lengths.
//!
//! Rows of a power law differ in length by factors of 100,000, and neighbours differ most. If rows were
//! sorted by length, every vector that a sweep accesses row by row would move in 32-byte sectors for 8 useful
//! bytes each, and L2 sector throughput is what limits a gather. So rows keep their order here: a block takes
//! entries independently of row boundaries, and only the sums depend on rows. If no row is much longer than
//! the mean, windows are unnecessary, and the kernel of `vector` is used.
//!
//! Columns are stored in 16 bits if the matrix has at most 65,536 of them, or if the threads that share
//! a row have its index and all columns lie within 16 bits of it: an entry in double precision then
//! takes 10 bytes instead of 12.
//!
//! Sharing entries through shared memory follows J. Greathouse and M. Daga, Efficient sparse matrix-vector
//! multiplication on GPUs using the CSR storage format, SC 2014.

mod windows;

use super::arrays::DeviceArrays;
use super::columns::Columns;
use super::compressed::{AllRows, Compressed};
use super::form::{AnyForm, Ending, Form, Format, Real, Types};
use super::product::{Pass, Product, Stored};
use super::resident::{MADE, Resident};
use super::{MATRIX, mean_row};
use crate::backend::{Family, Refusal, SharedOperator};
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::{Cuda, Op, Sweep};
use crate::error::{Error, GpuError, Result};
use crate::format::{Csr, Values};
use crate::operator::DotInto;
use crate::params::{Param, Params};
use crate::scalar::Scalar;
use rayon::prelude::*;
use std::sync::Arc;
use windows::Windows;

/// The family of the backend `csr`: any matrix.
pub(crate) struct CsrFamily;

/// The family of the backend `pull`: graphs without values.
pub(crate) struct Pull;

/// How the work is divided.
pub(crate) const CUT: Param = Param::word(
    "cut",
    &["auto", "rows", "windows"],
    "rows: equally many threads per row; windows: equally many entries per block; auto decides by the longest row",
);

/// The differences between the two strategies.
struct Strategy {
    backend: &'static str,
    /// Entries that a thread loads at once in windows.
    unroll: usize,
    /// Entries that a thread loads at once if all rows get equally many threads: the fastest for
    /// rows of 5 entries and of 81.
    unroll_row: usize,
}

/// Entries that a thread of `csr` loads at once if all rows get equally many threads.
pub(super) const UNROLL_ROW: usize = 3;
const CSR: Strategy = Strategy { backend: "csr", unroll: 4, unroll_row: UNROLL_ROW };
/// Without values there are registers for more loads in flight.
const PULL: Strategy = Strategy { backend: "pull", unroll: 8, unroll_row: 4 };

/// Entries of a cache line; a window reserves one line, because its loads begin at the start of a line.
const LINE: usize = 32;
/// Ratio of the longest row to the mean up to which all rows get equally many threads.
const EVEN: usize = 4;
/// The same ratio, in rounds of loads, for short rows: many of them end before the longest does.
const ROUNDS: usize = 16;

/// Threads of a warp, which share a long row, and the number of load rounds from which a row is long.
const WARP: u32 = 32;
const LONG: usize = 4;

impl Family<Cuda> for CsrFamily {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        CSR.build::<T>(device, matrix, params, reserve)
    }
}

impl Family<Cuda> for Pull {
    fn check(matrix: &Csr, _: &Params, _: usize) -> std::result::Result<(), Refusal> {
        match matrix.values() {
            Values::Ones => Ok(()),
            _ => Err(Refusal::new("a matrix with values", "it multiplies graphs without weights; use csr")),
        }
    }

    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        PULL.build::<T>(device, matrix, params, reserve)
    }
}

impl Strategy {
    /// Returns the maximum number of entries of a window.
    fn capacity(&self) -> usize {
        self.unroll * BLOCK as usize - LINE
    }

    fn windows(&self) -> Form<Compressed, Windows> {
        Form::new("spmv_csr_windows", include_str!("../../../kernels/csr.cu"))
            .with("UNROLL", self.unroll as u32)
            .with("CAPACITY", self.capacity() as u32)
    }

    /// Returns whether all rows may get this many threads. Measured on an H200: rows of 75 entries on
    /// average, and of 840 at most, took 121 us that way and 146 in windows; rows of 200 on average, and of
    /// about 1,000 at most, took 50 and 47, and with a dot product 64 and 46.
    fn shares_evenly(&self, mean: usize, longest: usize, threads: usize) -> bool {
        let round = self.unroll_row * threads;
        longest <= EVEN * mean.max(round) || (mean <= round && longest <= ROUNDS * round)
    }

    fn rows(&self, threads: u32) -> Form<Compressed, AllRows> {
        Form::new("spmv_csr_vector", include_str!("../../../kernels/vector.cu"))
            .with("UNROLL", self.unroll_row as u32)
            .with("THREADS", threads)
    }

    fn long_rows(&self) -> Form<Compressed, AllRows> {
        self.rows(WARP).with("LONG", 1)
    }

    /// Returns the form for rows of a few rounds whose columns are 16-bit and not relative to the row: the
    /// compiler does not unroll those rounds in sequence anyway. On an H200 52,800 rows of 147 entries took
    /// 25 us in this form with a dot product, and 27 with rounds in sequence; for rows of 81 entries with
    /// 32-bit columns it was the reverse, 86 and 84.
    fn narrow_rows(&self) -> Form<Compressed, AllRows> {
        self.rows(WARP).with("ONCE", 1)
    }

    /// Returns the threads of a row if all rows get equally many, else none.
    fn threads(&self, matrix: &Csr, cut: Option<&str>) -> Option<u32> {
        let mean = mean_row(matrix);
        let threads = threads_for(mean, self.unroll_row);
        let by_rows = match cut {
            Some("rows") => true,
            Some("windows") => false,
            _ => self.shares_evenly(mean, longest_row(matrix), threads as usize),
        };
        by_rows.then_some(threads)
    }

    fn build<T: Scalar>(
        &self,
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let threads = self.threads(matrix, params.word(CUT.name));
        let columns = match threads {
            // Columns that are on the device only are not read.
            Some(_) if matrix.pattern().has_columns() => Columns::for_rows(matrix),
            _ => Columns::for_any_kernel(matrix),
        };
        let (columns, arrays) = arrays_there(device, matrix, columns, params, reserve)?;
        let compressed = Compressed::of(matrix, columns)?;
        let pass = match threads {
            Some(threads) => {
                let long = mean_row(matrix) >= LONG * self.unroll_row * WARP as usize;
                let form = match (threads, columns) {
                    _ if long => self.long_rows(),
                    (WARP, Columns::Narrow) => self.narrow_rows(),
                    _ => self.rows(threads),
                };
                AllRows::pass(device, form, matrix, threads)?
            }
            None => {
                if arrays.is_none() {
                    device.require_room(MATRIX, Compressed::bytes(matrix, columns), reserve)?;
                }
                let windows = Windows::cut(matrix, self.capacity());
                Pass::over(device, self.windows(), &windows, BLOCK)?
            }
        };
        let product = match arrays {
            Some(arrays) => {
                let (shape, padded_entries) = ((matrix.rows(), matrix.cols()), matrix.nnz());
                let stored = Stored { shape, padded_entries, arrays };
                Product::<T>::of(self.backend, stored, compressed.numbers(), [pass])
            }
            None => Product::<T>::new(self.backend, device, &compressed, [pass], reserve)?,
        };
        Ok(Arc::new(product.with_sweeps().with_values_in_order(matrix.nnz())))
    }
}

/// The parameter of `csr` and `pull` that says where their arrays come from.
pub(crate) const MADE_OF_COPY: Param = Param {
    summary: "where the arrays come from: device, from a copy of the matrix on the GPU, which is made if there is none; host; auto takes a copy if there is one",
    ..MADE
};

/// Returns the arrays of a copy of the matrix on the device, with their columns: of a copy that there is, or
/// of a new one if the parameter [`MADE`] says so. No arrays if the host provides them.
fn arrays_there(
    device: &Cuda,
    matrix: &Arc<Csr>,
    columns: Columns,
    params: &Params,
    reserve: u64,
) -> Result<(Columns, Option<DeviceArrays>)> {
    let resident = match params.word(MADE.name) {
        Some("host") => None,
        Some("device") if matrix.nnz() > 0 => Some(Resident::of(device, matrix, reserve)?),
        _ => Resident::existing(device, matrix),
    };
    let Some(resident) = resident else { return Ok((columns, None)) };
    match resident.compressed(columns, reserve) {
        // The columns of the copy need no more memory.
        Err(Error::Gpu(GpuError::DeviceMemory { .. })) if columns != Columns::Full => {
            log::info!("columns are stored in 32 bits, as there is no memory for a copy in 16 bits");
            Ok((Columns::Full, Some(resident.compressed(Columns::Full, reserve)?)))
        }
        arrays => Ok((columns, Some(arrays?))),
    }
}

/// Returns the bytes of a matrix as `csr` stores it, without the list of windows.
pub(crate) fn storage(matrix: &Csr) -> u64 {
    storage_and_threads(matrix).0
}

/// Returns the bytes of a matrix as `csr` stores it, and the threads of a row; none if rows
/// are cut into windows.
pub(super) fn storage_and_threads(matrix: &Csr) -> (u64, Option<u32>) {
    let threads = CSR.threads(matrix, None);
    let columns = match threads {
        Some(_) => Columns::for_rows(matrix),
        None => Columns::for_any_kernel(matrix),
    };
    (Compressed::bytes(matrix, columns), threads)
}

/// Returns the threads of a row: as few as cover a row of mean length in one round.
pub(super) fn threads_for(mean: usize, unroll: usize) -> u32 {
    mean.div_ceil(unroll).next_power_of_two().clamp(1, WARP as usize) as u32
}

pub(super) fn longest_row(matrix: &Csr) -> usize {
    let length = |row| matrix.row_range(row).len();
    (0..matrix.rows()).into_par_iter().with_min_len(4096).map(length).max().unwrap_or(0)
}

/// Returns the kernels in every form that a backend may request, except those that `vector` covers: plain,
/// and with the endings of these dot products and sweeps. If forms and types hardly interact, two
/// combinations of types that differ in all three represent all combinations.
pub(super) fn sources(endings: &[(DotInto, &[Op])], sweeps: &[Sweep<'_>]) -> Vec<KernelSource> {
    use Real::{F32, F64};
    let ones = [Types::new(F64, None, false), Types::new(F32, None, true)];
    let valued = [
        Types::new(F64, Some(F64), false),
        Types::new(F32, Some(F32), true),
        Types::new(F64, Some(F32), false),
    ];
    let both = [&valued[..], &ones[..]].concat();
    let dots = std::iter::once(Ending::Plain).chain(endings.iter().map(|(dot, then)| Ending::Dot(dot, then)));
    let dots: Vec<Ending<'_>> = dots.collect();
    let sweeps: Vec<Ending<'_>> = sweeps.iter().map(Ending::Sweep).collect();
    let mut all = Vec::new();
    let mut add = |form: &AnyForm, types: &[Types], endings: &[Ending<'_>]| {
        all.extend(endings.iter().flat_map(|ending| types.iter().map(|types| form.source(*types, *ending))));
    };
    add(&CSR.windows().any(), &both, &dots);
    add(&CSR.windows().any(), &valued[..2], &sweeps);
    add(&PULL.windows().any(), &ones, &dots);
    add(&PULL.windows().any(), &ones, &sweeps);
    add(&CSR.rows(8).any(), &valued[..1], &sweeps);
    add(&CSR.long_rows().any(), &valued[..2], &dots);
    add(&PULL.long_rows().any(), &ones, &dots);
    add(&CSR.long_rows().any(), &valued[..1], &sweeps);
    [1, 2, 4, 8, 16, 32].into_iter().for_each(|threads| add(&PULL.rows(threads).any(), &ones[..1], &dots));
    add(&PULL.rows(8).any(), &ones, &sweeps);
    // Plain and with a dot product if only the number of threads differs.
    let two = &dots[..dots.len().min(2)];
    let [near, near_ones] = [valued[0], ones[0]].map(|types| Types { columns: Columns::Near, ..types });
    for threads in [1, 2, 4, 16, 32] {
        add(&CSR.rows(threads).any(), &[near], two);
        add(&PULL.rows(threads).any(), &[near_ones], two);
    }
    for (form, types) in [
        (CSR.rows(8).any(), near),
        (CSR.long_rows().any(), near),
        (PULL.rows(8).any(), near_ones),
        (PULL.long_rows().any(), near_ones),
    ] {
        add(&form, &[types], &dots);
        add(&form, &[types], &sweeps);
    }
    let in_16_bits = |types: Types| Types { columns: Columns::Narrow, ..types };
    let (valued, ones) = (valued.map(in_16_bits), ones.map(in_16_bits));
    for (form, types) in [
        (CSR.windows().any(), &valued[..]),
        (CSR.windows().any(), &ones[..1]),
        (CSR.rows(8).any(), &valued),
        (CSR.long_rows().any(), &valued[..1]),
        (CSR.long_rows().any(), &ones[..1]),
        (CSR.narrow_rows().any(), &valued[..1]),
        (PULL.narrow_rows().any(), &ones[..1]),
        (PULL.windows().any(), &ones),
        (PULL.rows(8).any(), &ones),
    ] {
        add(&form, types, &dots);
        add(&form, &types[..1], &sweeps);
    }
    for threads in [1, 2, 4, 16] {
        add(&CSR.rows(threads).any(), &valued[..1], two);
        add(&PULL.rows(threads).any(), &ones[..1], two);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_fits_the_threads_wherever_in_a_cache_line_it_begins() {
        for strategy in [CSR, PULL] {
            assert!(strategy.capacity() + LINE - 1 <= strategy.unroll * BLOCK as usize);
        }
    }
}
