//! Six ways to share the blocks of block rows among threads, with a serial baseline and a form for a
//! GPU, as a study of block-sparse products compared them. They are implemented as the study
//! describes them, costs included: two of them are *about* a barrier in every row, and about threads
//! that all pass through every row.
//!
//! | backend | how work is shared |
//! |---|---|
//! | `bsr-serial` | not at all |
//! | `bsr-rows` | block rows, one at a time to the next free thread |
//! | `bsr-split-naive` | the blocks of each row, in pieces that shrink; all threads wait for each other in every row |
//! | `bsr-split` | the same without the wait, in pieces of a least size; only threads that had work add to y |
//! | `bsr-max-tasks` | rows are cut into tasks with a maximum number of blocks, which any thread runs |
//! | `bsr-fixed-tasks` | one thread makes tasks with a fixed number of blocks, across rows, while the other threads run them |
//! | `bsr-fixed-tasks-pre` | the same tasks, made once beforehand |
//! | `bsr-flat` | the same tasks over single values: their row and column are found by division |
//!
//! By default the product of a block is compiled for the common sizes; with `size=runtime` it takes every
//! size as numbers, as in the study, and `bsr-flat` always does.
//!
//! y is scaled first. Each piece of a row adds its sums to y at its end, atomically if other threads may add
//! to the same row. The order of these additions depends on the threads, so bits may differ from run to run
//! if more than one thread works.

mod blocks;
mod strategies;
mod team;

use crate::backend::blocks::{is_compiled, named_or_found};
use crate::backend::cpu::chunked::check_shapes;
use crate::backend::{Family, SharedOperator};
use crate::device::Cpu;
use crate::device::cpu::CpuVector;
use crate::error::{Error, Result};
use crate::format::blocked::stored_bytes;
use crate::format::{Bsr, Csr};
use crate::operator::{Cost, LinearOperator};
use crate::parallel::lock;
use crate::params::Params;
use crate::scalar::Scalar;
use blocks::Arrays;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
pub(crate) use strategies::{
    FixedTasks, FixedTasksPre, Flat, MaxTasks, Serial, Split, SplitNaive, WholeRows,
};

/// The values of the parameter `chunks`: pieces of work for each thread.
pub(crate) const CHUNKS: &[&str] =
    &["8", "1", "2", "4", "16", "32", "64", "128", "256", "512", "1024", "2048"];

/// A strategy: what it prepares, and how its threads share one product.
pub(crate) trait Strategy: 'static {
    /// The backend's name.
    const NAME: &'static str;
    /// State kept from one product to the next; locked for a whole product.
    type State: Send + Sync;

    /// Prepares for `threads` threads with `chunks` pieces of work each.
    fn prepare(arrays: &Arrays, threads: usize, chunks: usize) -> Self::State;

    /// Computes y = alpha A x + beta y.
    fn multiply<T: Scalar>(state: &Self::State, arrays: &Arrays, device: &Cpu, task: &Product<'_, T>);
}

/// The scalars and vectors of a product.
pub(crate) struct Product<'a, T> {
    x: &'a [T],
    alpha: f64,
    beta: f64,
    y: team::Target<'a, T>,
}

/// A strategy as a family of the registry.
pub(crate) struct Shared<S>(PhantomData<S>);

impl<S: Strategy> Family<Cpu> for Shared<S> {
    const ADDS_REPEATS: bool = false;

    fn build<T: Scalar>(
        device: &Cpu,
        matrix: &Arc<Csr>,
        params: &Params,
        _: u64,
    ) -> Result<SharedOperator<Cpu, T>> {
        let block = named_or_found(matrix, params, stored_bytes(matrix));
        let chunks = params.word("chunks").and_then(|chunks| chunks.parse().ok()).unwrap_or(8);
        let bsr = Bsr::from_csr(matrix, block)?;
        let bytes = bsr.storage_bytes();
        let arrays = Arrays::new(bsr.into_parts(), is_compiled(params));
        let state = Mutex::new(S::prepare(&arrays, device.threads(), chunks));
        Ok(Arc::new(Tasks::<S> { arrays, bytes, state }))
    }
}

struct Tasks<S: Strategy> {
    arrays: Arrays,
    bytes: u64,
    state: Mutex<S::State>,
}

impl<T: Scalar, S: Strategy> LinearOperator<Cpu, T> for Tasks<S> {
    fn shape(&self) -> (usize, usize) {
        (self.arrays.parts.rows, self.arrays.parts.cols)
    }

    fn apply(
        &self,
        device: &Cpu,
        alpha: f64,
        x: &CpuVector<T>,
        beta: f64,
        y: &mut CpuVector<T>,
    ) -> Result<()> {
        let k = check_shapes((self.arrays.parts.rows, self.arrays.parts.cols), x, y)?;
        if k != 1 {
            return Err(Error::Unsupported {
                backend: S::NAME,
                device: "cpu",
                what: format!("{k} columns"),
                hint: "it was described for one vector; choose bsr".to_owned(),
            });
        }
        let y = team::Target::new(y.data_mut());
        S::multiply(&lock(&self.state), &self.arrays, device, &Product { x: x.data(), alpha, beta, y });
        Ok(())
    }

    fn cost(&self) -> Cost {
        let parts = &self.arrays.parts;
        let vectors = (parts.rows + parts.cols) * size_of::<T>();
        let flops = 2 * (parts.block_columns.len() * parts.block.0 * parts.block.1) as u64;
        Cost { bytes: self.bytes + vectors as u64, flops }
    }

    fn storage(&self) -> u64 {
        self.bytes
    }
}
