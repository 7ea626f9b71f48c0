//! A device over ranks: each rank has a contiguous range of rows on a device of its own.
//!
//! Sweeps run on the rows of each rank. The sums of a sweep are then added over all ranks, in the order of ranks, before its
//! program runs. Every rank does this, so all have the same scalars, bit for bit, and take the same decisions. Results have the
//! same bits in every run with the same number of ranks, whatever the number of threads.

mod communicator;
mod cpu;
mod halo;
#[cfg(feature = "mpi")]
mod mpi;

use super::{Addend, Device, Kept, Op, Slot, SlotState, Sweep};
use crate::error::Result;
use crate::scalar::Scalar;
pub use communicator::{Communicator, Incoming, Outgoing, Ranks};
pub use halo::Halo;
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
use std::fmt;

/// A matrix in compressed rows whose columns are ghosts, for the few rows that have such entries.
#[derive(Clone, Debug, Default)]
pub struct Border<T> {
    /// The rows, counted from the first row of the rank.
    pub rows: Vec<u32>,
    /// The offset of each row, and at the end the number of entries.
    pub offsets: Vec<usize>,
    /// The ghost of each entry.
    pub ghosts: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<T>,
}

/// What a device over ranks needs of the device of each rank.
pub trait Local: Device {
    /// A [`Border`] on the device.
    type Border<T: Scalar>: Send + Sync;

    /// Calls `combine` with these slots of all columns, and stores what it leaves there in the columns that are not done. If all
    /// columns are done, it does nothing.
    fn with_slots(
        &self,
        slots: &mut Self::Slots,
        which: &mut dyn Iterator<Item = Slot>,
        combine: &mut dyn FnMut(&mut [f64]),
    ) -> Result<()>;

    /// Runs a program.
    fn run(&self, slots: &mut Self::Slots, program: &[Op]) -> Result<()>;

    /// Copies rows of a vector to the host.
    fn pack<T: Scalar>(&self, x: &Self::Vector<T>, rows: &[u32], to: &mut [T]) -> Result<()>;

    /// Copies a border to the device.
    fn border<T: Scalar>(&self, border: Border<T>) -> Result<Self::Border<T>>;

    /// Computes y = y + alpha B g with the ghosts g. Adds `<x, B g>` to a slot of the columns that are not done, if there is one.
    fn add_border<T: Scalar>(
        &self,
        border: &Self::Border<T>,
        alpha: f64,
        ghosts: &[T],
        y: &mut Self::Vector<T>,
        dot: Option<(&Self::Vector<T>, &mut Self::Slots, Slot)>,
    ) -> Result<()>;
}

/// A device of each rank, together.
#[derive(Clone)]
pub struct Distributed<D> {
    local: D,
    ranks: Ranks,
    first_row: usize,
}

/// Prints the ranks and the device of each.
impl<D: Local> fmt::Debug for Distributed<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl<D: Local> Distributed<D> {
    /// Joins the devices of all ranks. `first_row` is the first row of this rank.
    pub fn new(local: D, ranks: Ranks, first_row: usize) -> Distributed<D> {
        Distributed { local, ranks, first_row }
    }

    /// Returns the device of this rank.
    pub fn local(&self) -> &D {
        &self.local
    }

    /// Returns the ranks.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Adds these slots over all ranks, and then runs a program.
    pub fn finish(
        &self,
        slots: &mut D::Slots,
        which: impl Iterator<Item = Slot>,
        program: &[Op],
    ) -> Result<()> {
        self.local.with_slots(slots, &mut { which }, &mut |values| self.ranks.sum(values))?;
        self.local.run(slots, program)
    }
}

impl<D: Local> Device for Distributed<D> {
    type Vector<T: Scalar> = D::Vector<T>;
    type Slots = D::Slots;
    type Graph = ();
    type Scratch = D::Scratch;
    // The host takes part in every sum.
    const BATCH: usize = 1;

    fn name(&self) -> String {
        format!("{} over {} ranks", self.local.name(), self.ranks.size())
    }

    fn describe(&self) -> String {
        format!("{} ranks, each {}", self.ranks.size(), self.local.describe())
    }

    fn hardware(&self) -> String {
        self.local.hardware()
    }

    fn enter(&self) -> Result<()> {
        self.local.enter()
    }

    fn in_turn<R>(&self, work: impl FnOnce() -> R) -> R {
        self.local.in_turn(work)
    }

    fn keep(&self, used: impl FnOnce() -> Kept) {
        self.local.keep(used);
    }

    fn require_memory(&self, what: &'static str, bytes: u64) -> Result<()> {
        self.local.require_memory(what, bytes)
    }

    fn free_memory(&self) -> Result<u64> {
        self.local.free_memory()
    }

    fn vector<T: Scalar>(&self, n: usize, k: usize) -> Result<D::Vector<T>> {
        self.local.vector(n, k)
    }

    fn slots(&self, slots: usize, k: usize) -> Result<D::Slots> {
        self.local.slots(slots, k)
    }

    fn columns<T: Scalar>(&self, vector: &D::Vector<T>) -> usize {
        self.local.columns(vector)
    }

    fn clear<T: Scalar>(&self, vector: &mut D::Vector<T>) -> Result<()> {
        self.local.clear(vector)
    }

    fn upload<T: Scalar>(&self, host: &[T], vector: &mut D::Vector<T>) -> Result<()> {
        self.local.upload(host, vector)
    }

    fn download<T: Scalar>(&self, vector: &D::Vector<T>, host: &mut [T]) -> Result<()> {
        self.local.download(vector, host)
    }

    fn read(&self, slots: &D::Slots, into: &mut SlotState) -> Result<()> {
        self.local.read(slots, into)
    }

    fn write(&self, from: &SlotState, slots: &mut D::Slots) -> Result<()> {
        self.local.write(from, slots)
    }

    fn synchronize(&self) -> Result<()> {
        self.local.synchronize()
    }

    fn sweep<T: Scalar>(
        &self,
        writes: &mut [&mut D::Vector<T>],
        reads: &[&D::Vector<T>],
        slots: &mut D::Slots,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        if sweep.dots.is_empty() {
            return self.local.sweep(writes, reads, slots, sweep);
        }
        self.local.sweep(writes, reads, slots, &Sweep { then: &[], ..*sweep })?;
        self.finish(slots, sweep.dots.iter().map(|dot| dot.out), sweep.then)
    }

    fn scratch<T: Scalar>(&self, n: usize, k: usize) -> Result<D::Scratch> {
        self.local.scratch::<T>(n, k)
    }

    fn gram<T: Scalar>(
        &self,
        x: &D::Vector<T>,
        y: &D::Vector<T>,
        scratch: &mut D::Scratch,
        into: &mut [f64],
    ) -> Result<()> {
        self.local.gram(x, y, scratch, into)?;
        self.ranks.sum(into);
        Ok(())
    }

    fn combine<T: Scalar>(
        &self,
        y: &mut D::Vector<T>,
        b: Option<&[f64]>,
        xc: Option<Addend<'_, D::Vector<T>>>,
        scratch: &mut D::Scratch,
    ) -> Result<()> {
        self.local.combine(y, b, xc, scratch)
    }

    fn copy_columns<T: Scalar>(
        &self,
        from: &D::Vector<T>,
        to: &mut D::Vector<T>,
        pairs: &[[u32; 2]],
    ) -> Result<()> {
        self.local.copy_columns(from, to, pairs)
    }

    fn each_chunk<A: Send, B: Send>(
        &self,
        data: &mut [A],
        length: usize,
        parts: &mut [B],
        work: impl Fn(usize, &mut [A], &mut B) + Sync,
    ) {
        self.local.each_chunk(data, length, parts, work);
    }

    fn first_row(&self) -> usize {
        self.first_row
    }

    fn ranks(&self) -> Option<&Ranks> {
        Some(&self.ranks)
    }

    fn record(&self, _: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Ok(())
    }

    fn replay(&self, (): &mut (), times: usize, step: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        (0..times).try_for_each(|_| step())
    }
}
