//! Devices: they store vectors and run vector algebra.
//!
//! A [`Device`] provides vectors, a bank of scalar slots, copies to and from the host, one fused operation
//! ([`Device::sweep`]), and the recording of a step that is then replayed without the host. Solvers use
//! nothing else of a device, so the same source runs on a CPU and on a GPU.

mod caller_arrays;
pub mod cpu;
pub mod cuda;
pub mod distributed;
pub(crate) mod formula;
pub(crate) mod stream;
pub mod sweep;
pub(crate) mod workspace;

use crate::error::{Error, Result};
use crate::scalar::Scalar;
pub use caller_arrays::{LentIndices, LentNumbers, LentProduct, LentRows};
pub use cpu::Cpu;
pub use cuda::Cuda;
pub(crate) use distributed::Distributed;
pub use distributed::{Ranks, RowNumbers};
pub(crate) use formula::Formula;
pub use formula::{Name, Product};
use rayon::prelude::*;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;
pub use sweep::{Coefficient, Dot, Factor, Op, Operand, Slot, Summand, Sweep, Term, Test, Track, Update};
pub(crate) use workspace::{Recorded, Work, Workspace};

/// Memory or an operator that a recorded step uses.
pub(crate) type Kept = Arc<dyn Any + Send + Sync>;

/// The number of residuals that a device keeps for the host between two reads: the longest
/// batch of iterations.
pub const RING: usize = 256;

/// The number of values that a device keeps of each iteration: the residual, and two
/// coefficients of the method.
pub const TRACKS: usize = 3;

/// The most columns that [`Device::gram`] and [`Device::combine`] take.
pub(crate) const MOST_COMBINED: usize = 256;

/// The second term of [`Device::combine`]: a vector, multiplied by a small matrix if there is one.
pub type Addend<'a, V> = (&'a V, Option<&'a [f64]>);

/// The host's copy of a bank of slots. On the CPU it is the bank itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotState {
    /// Columns.
    pub k: usize,
    /// Slot values, `k` for each slot.
    pub values: Vec<f64>,
    /// A [`StopCode`](crate::stop::StopCode) for each column.
    pub done: Vec<u32>,
    /// Iterations counted, for each column.
    pub counts: Vec<u32>,
    /// [`TRACKS`] times the last [`RING`] values, `k` for each; iteration `i` (from 0) has index `i % RING`.
    /// The first track holds the counted values.
    pub ring: Vec<f64>,
}

impl SlotState {
    /// Makes `slots` slots of `k` columns, all zero.
    pub fn new(slots: usize, k: usize) -> SlotState {
        SlotState {
            k,
            values: vec![0.0; slots * k],
            done: vec![0; k],
            counts: vec![0; k],
            ring: vec![0.0; TRACKS * RING * k],
        }
    }

    /// Sets values, codes and counts to zero.
    pub(crate) fn clear(&mut self) {
        self.values.fill(0.0);
        self.done.fill(0);
        self.counts.fill(0);
    }

    /// Copies another state of the same shape without allocating.
    pub(crate) fn copy_from(&mut self, other: &SlotState) {
        self.values.copy_from_slice(&other.values);
        self.done.copy_from_slice(&other.done);
        self.counts.copy_from_slice(&other.counts);
        self.ring.copy_from_slice(&other.ring);
    }

    /// Returns the value of a slot in one column.
    pub fn get(&self, slot: Slot, column: usize) -> f64 {
        self.values[slot.0 as usize * self.k + column]
    }

    /// Sets a slot in one column.
    pub fn set(&mut self, slot: Slot, column: usize, value: f64) {
        self.values[slot.0 as usize * self.k + column] = value;
    }

    /// Counts an iteration of a column and stores its value in the ring.
    pub(crate) fn count(&mut self, column: usize, value: f64) {
        let index = self.counts[column] as usize % RING;
        self.ring[index * self.k + column] = value;
        self.counts[column] += 1;
    }

    /// Stores a value on a track of the ring, for the iteration of a column that is counted next.
    pub(crate) fn note(&mut self, track: Track, column: usize, value: f64) {
        let index = track.0 as usize * RING + self.counts[column] as usize % RING;
        self.ring[index * self.k + column] = value;
    }

    /// Copies everything of columns of another state with as many slots. A pair has the column of
    /// `from` and that of this state.
    pub(crate) fn copy_columns(&mut self, from: &SlotState, pairs: &[[u32; 2]]) {
        for (to, k, from, wide) in
            [(&mut self.values, self.k, &from.values, from.k), (&mut self.ring, self.k, &from.ring, from.k)]
        {
            for (to, from) in to.chunks_exact_mut(k).zip(from.chunks_exact(wide)) {
                pairs.iter().for_each(|&[a, b]| to[b as usize] = from[a as usize]);
            }
        }
        for &[a, b] in pairs {
            self.done[b as usize] = from.done[a as usize];
            self.counts[b as usize] = from.counts[a as usize];
        }
    }

    /// Returns the value counted in iteration `i` (from 0) of a column, which the ring must still hold.
    pub fn counted(&self, iteration: usize, column: usize) -> f64 {
        self.noted(Track(0), iteration, column)
    }

    /// Returns the value on a track in iteration `i` (from 0) of a column, which the ring must still hold.
    pub(crate) fn noted(&self, track: Track, iteration: usize, column: usize) -> f64 {
        self.ring[(track.0 as usize * RING + iteration % RING) * self.k + column]
    }
}

/// Checks that devices, and everything made on them, may move to another thread.
const _: () = {
    const fn moves<T: Send>() {}
    const fn is_shared<T: Send + Sync>() {}
    const fn recorded<D: Device>() {
        moves::<(Recorded<D, f32, ()>, Workspace<D, f64>)>();
    }
    const fn everything_of<D: Device>() {
        moves::<(D::Slots, D::Graph, D::Scratch)>();
        is_shared::<(D, D::Vector<f32>, D::Vector<f64>)>();
        recorded::<D>();
    }
    everything_of::<Cpu>();
    everything_of::<Cuda>();
};

/// Vectors, scalars and the algebra on them.
///
/// Vectors are n x k, row-major: k = 1 is the plain case.
///
/// A device is a handle: clones are the same device, and threads may share it. Operations of several threads
/// take turns. Everything made on a device may move to another thread.
pub trait Device: Clone + Send + Sync + Sized + 'static {
    /// A vector of n x k elements on this device.
    type Vector<T: Scalar>: Send + Sync;
    /// A bank of scalar slots on this device.
    type Slots: Send;
    /// A recorded step on this device.
    type Graph: Send;
    /// Memory for [`gram`](Device::gram) and [`combine`](Device::combine).
    type Scratch: Send;
    /// The most iterations that the host may request at once and still read the value of each: 1 if the host
    /// runs every step, [`RING`] if the device runs a batch without the host.
    const BATCH: usize;
    /// Whether vectors lie in the memory of the host, so that the host's arrays can be lent.
    const ON_HOST: bool = false;

    /// Returns the name that users type: `cpu`, `cuda:0`.
    fn name(&self) -> String;
    /// Returns the name with the hardware behind it: `cpu (2 threads)`.
    fn describe(&self) -> String;
    /// Returns the hardware on which the bits of results depend: the model of a GPU, or the instructions of a
    /// CPU by which kernels are chosen.
    fn hardware(&self) -> String;

    /// Prepares the calling thread to use the device. Operations of the device do this themselves; libraries
    /// that enqueue work on it need it on each thread.
    fn enter(&self) -> Result<()> {
        Ok(())
    }

    /// Runs `work` while no other thread uses the device. `work` may use the device and call this
    /// function again. Take locks on memory that operations use inside `work`, so that no two
    /// threads wait for each other.
    fn in_turn<R>(&self, work: impl FnOnce() -> R) -> R {
        work()
    }

    /// If a step is being recorded, keeps memory or an operator that an operation uses for as long
    /// as the recording exists.
    fn keep(&self, _used: impl FnOnce() -> Kept) {}

    /// Fails if that many bytes are not free on the device. Allocates nothing.
    fn require_memory(&self, _what: &'static str, _bytes: u64) -> Result<()> {
        Ok(())
    }

    /// Returns the free bytes of the device's memory, or `u64::MAX` if the device does not count them.
    fn free_memory(&self) -> Result<u64> {
        Ok(u64::MAX)
    }

    /// Allocates a vector of zeros.
    fn vector<T: Scalar>(&self, n: usize, k: usize) -> Result<Self::Vector<T>>;
    /// Returns a vector over memory of the caller, which dropping the vector does not free.
    ///
    /// # Safety
    /// At `address` are n x k elements, row-major, in memory that this device uses. They live as long as the
    /// vector, and nothing else writes them meanwhile, or reads them if an operation writes to the vector.
    unsafe fn lend<T: Scalar>(&self, _address: u64, _n: usize, _k: usize) -> Result<Self::Vector<T>> {
        Err(Error::setting("device", self.name(), "it does not work on memory of the caller"))
    }

    /// Lets later work of this device wait for the earlier work of a stream of the caller, or of the
    /// default stream if it is 0.
    ///
    /// # Safety
    /// `stream` is a stream of this device, or 0.
    unsafe fn wait_for(&self, _stream: u64) -> Result<()> {
        Ok(())
    }

    /// Lets later work of a stream of the caller wait for the earlier work of this device.
    ///
    /// # Safety
    /// `stream` is a stream of this device, or 0.
    unsafe fn let_wait(&self, _stream: u64) -> Result<()> {
        Ok(())
    }

    /// Allocates a bank of zero slots.
    fn slots(&self, slots: usize, k: usize) -> Result<Self::Slots>;
    /// Returns the number of columns of a vector.
    fn columns<T: Scalar>(&self, vector: &Self::Vector<T>) -> usize;
    /// Sets all elements of a vector to zero.
    fn clear<T: Scalar>(&self, vector: &mut Self::Vector<T>) -> Result<()>;
    /// Copies from the host to a vector; the lengths must agree.
    fn upload<T: Scalar>(&self, host: &[T], vector: &mut Self::Vector<T>) -> Result<()>;
    /// Copies a vector to the host; the lengths must agree.
    fn download<T: Scalar>(&self, vector: &Self::Vector<T>, host: &mut [T]) -> Result<()>;
    /// Waits for all work and copies the slots to the host.
    fn read(&self, slots: &Self::Slots, into: &mut SlotState) -> Result<()>;
    /// Copies slot values, counts and done codes to the device; the ring does not change.
    fn write(&self, from: &SlotState, slots: &mut Self::Slots) -> Result<()>;
    /// Waits for all work.
    fn synchronize(&self) -> Result<()>;

    /// Runs `work`, waits for it, and returns the seconds that the device took. On a GPU these are the
    /// seconds between two events on its stream.
    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        self.synchronize()?;
        let began = Instant::now();
        work()?;
        self.synchronize()?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Runs one fused pass; see [`Sweep`]. If one of the vectors has several columns, the sweep may also read
    /// vectors of one column, which are then used for every column.
    fn sweep<T: Scalar>(
        &self,
        writes: &mut [&mut Self::Vector<T>],
        reads: &[&Self::Vector<T>],
        slots: &mut Self::Slots,
        sweep: &Sweep<'_>,
    ) -> Result<()>;

    /// Allocates memory for [`gram`](Device::gram) and [`combine`](Device::combine) of n x k vectors, with k
    /// at most `MOST_COMBINED`, and prepares both.
    fn scratch<T: Scalar>(&self, n: usize, k: usize) -> Result<Self::Scratch>;

    /// Computes X'Y, k x k, row-major, and waits for it. The sums are in double precision and
    /// in a fixed order.
    fn gram<T: Scalar>(
        &self,
        x: &Self::Vector<T>,
        y: &Self::Vector<T>,
        scratch: &mut Self::Scratch,
        into: &mut [f64],
    ) -> Result<()>;

    /// Computes Y = Y B + X C with small matrices, k x k, row-major. Without B the first term is Y; without C
    /// the second term is X; without X there is none.
    fn combine<T: Scalar>(
        &self,
        y: &mut Self::Vector<T>,
        b: Option<&[f64]>,
        xc: Option<Addend<'_, Self::Vector<T>>>,
        scratch: &mut Self::Scratch,
    ) -> Result<()>;

    /// Copies columns of a vector to columns of another one with as many rows. A pair has the column of
    /// `from` and that of `to`.
    fn copy_columns<T: Scalar>(
        &self,
        from: &Self::Vector<T>,
        to: &mut Self::Vector<T>,
        pairs: &[[u32; 2]],
    ) -> Result<()>;

    /// Computes y = alpha d .* x + beta y for `(alpha, d)` and vectors of several precisions; each element of
    /// d is the factor of a row of x. With beta = 0 the old y is not read.
    fn convert<A: Scalar, B: Scalar, C: Scalar>(
        &self,
        _factors: (f64, &Self::Vector<C>),
        _x: &Self::Vector<A>,
        _beta: f64,
        _y: &mut Self::Vector<B>,
    ) -> Result<()> {
        Err(Error::setting("device", self.name(), "it does not convert vectors to another precision"))
    }

    /// Calls `work(number, chunk, part)` once for each chunk of `length` elements of `data` and the
    /// element of `parts` that belongs to the chunk, on the threads of the host that serve this
    /// device. Allocates nothing.
    fn each_chunk<A: Send, B: Send>(
        &self,
        data: &mut [A],
        length: usize,
        parts: &mut [B],
        work: impl Fn(usize, &mut [A], &mut B) + Sync,
    ) {
        data.par_chunks_mut(length)
            .zip(parts)
            .enumerate()
            .for_each(|(number, (chunk, part))| work(number, chunk, part));
    }

    /// Returns the ranks of a distributed device.
    fn ranks(&self) -> Option<&Ranks> {
        None
    }

    /// Returns the numbers of the rows of this rank's part of a vector.
    fn row_numbers(&self) -> &RowNumbers {
        &RowNumbers::From(0)
    }

    /// Agrees among the ranks of a distributed device on a condition that the host finds, so that no rank
    /// waits for another. Returns whether it holds on any rank.
    fn agree(&self, stop: bool) -> bool {
        self.ranks().map_or(stop, |ranks| ranks.any(stop))
    }

    /// Returns the result if it is good on every rank of a distributed device; see `Ranks::agreed`.
    fn agreed<R>(&self, result: Result<R>) -> Result<R> {
        match self.ranks() {
            Some(ranks) => ranks.agreed(result),
            None => result,
        }
    }

    /// Returns the least number of iterations that a rank of a distributed device is about to run.
    fn least(&self, iterations: usize) -> usize {
        self.fold(iterations as f64, f64::min) as usize
    }

    /// Combines a number of every rank of a distributed device, in the order of ranks.
    fn fold(&self, mine: f64, with: fn(f64, f64) -> f64) -> f64 {
        self.ranks().map_or(mine, |ranks| ranks.fold(mine, with))
    }

    /// Records one step; see `Recorded` for steps over a workspace. The step does not run yet. The
    /// recording keeps everything that the step uses; a step that allocates is refused. Vectors that the
    /// step swaps, as [`apply_sweep`](crate::operator::LinearOperator::apply_sweep) may, are swapped
    /// after an odd number of steps.
    fn record(&self, step: &mut dyn FnMut() -> Result<()>) -> Result<Self::Graph>;

    /// Returns whether steps after the end of a run take no time, so that the host may request
    /// any number of them.
    fn stops_early(&self, _graph: &Self::Graph) -> bool {
        false
    }

    /// Runs the recorded step `times` times. On a GPU this returns before the work is done. `step` is the
    /// step itself, for devices whose steps the host runs.
    fn replay(
        &self,
        graph: &mut Self::Graph,
        times: usize,
        step: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()>;
}

/// Returns an error if two lengths that must agree differ.
fn check_length(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Dimension { what, expected, got }) }
}

/// Checks the shapes of the vectors of [`Device::gram`] or [`Device::combine`] and the lengths
/// of its small matrices.
fn check_combined(
    (n, k): (usize, usize),
    other: (usize, usize),
    small: impl Iterator<Item = usize>,
) -> Result<()> {
    check_length("rows of a vector in a dense product", n, other.0)?;
    check_length("columns of a vector in a dense product", k, other.1)?;
    assert!(k <= MOST_COMBINED, "dense products take at most {MOST_COMBINED} columns");
    { small }.try_for_each(|length| check_length("entries of a small matrix", k * k, length))
}

/// Checks the shapes of the vectors of [`Device::copy_columns`] and its columns.
fn check_copied(from: (usize, usize), to: (usize, usize), pairs: &[[u32; 2]]) -> Result<()> {
    check_length("rows of a vector whose columns are copied", from.0, to.0)?;
    let exist = |&[a, b]: &[u32; 2]| (a as usize) < from.1 && (b as usize) < to.1;
    assert!(pairs.iter().all(exist), "both vectors have the columns that are copied");
    Ok(())
}

/// Checks that a sweep gets as many operands as it declares, that all have one shape (rows, columns), and
/// that the bank has the slots of the sweep; returns the number of rows. If a vector has several columns,
/// those that are only read may have one.
fn check_operands(
    sweep: &Sweep<'_>,
    (writes, reads): (usize, usize),
    (slots, k): (usize, usize),
    (written, read): (
        impl Iterator<Item = (usize, usize)> + Clone,
        impl Iterator<Item = (usize, usize)> + Clone,
    ),
) -> Result<usize> {
    sweep.validate(slots);
    check_length("vectors that a sweep writes", sweep.writes as usize, writes)?;
    check_length("vectors that a sweep reads", sweep.reads as usize, reads)?;
    let several = written.clone().next().is_some() || read.clone().any(|(_, columns)| columns > 1);
    let read = read.map(|(rows, columns)| (rows, if columns == 1 && several { k } else { columns }));
    let mut shapes = written.chain(read);
    let Some((n, columns)) = shapes.next() else { return Ok(0) };
    check_length("columns of a vector in a sweep", k, columns)?;
    shapes.try_for_each(|s| {
        check_length("rows of a vector in a sweep", n, s.0)?;
        check_length("columns of a vector in a sweep", k, s.1)
    })?;
    Ok(n)
}

#[cfg(test)]
mod tests;
