//! A device over ranks: each rank has a part of the rows on a device of its own.
//!
//! Sweeps run on the rows of each rank. The sums of a sweep are then added over all ranks, in the order of
//! ranks, before its program runs. Every rank does this, so all have the same scalars, bit for bit, and
//! take the same decisions. Results have the same bits in every run with the same number of ranks,
//! whatever the number of threads.

mod communicator;
mod cpu;
mod halo;
pub(crate) mod launcher;
#[cfg(feature = "mpi")]
mod mpi;
mod numbers;
mod retired;
mod threads;

use super::{Addend, Device, Kept, Op, Slot, SlotState, Sweep};
use crate::error::Result;
use crate::scalar::Scalar;
pub(crate) use communicator::Connection;
pub use communicator::Ranks;
pub(crate) use halo::Halo;
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub use numbers::RowNumbers;
pub(crate) use retired::Retired;
use std::fmt;
pub(crate) use threads::is_following_thread;
pub use threads::{Threads, in_threads};

/// A matrix in compressed rows whose columns are ghosts, for the few rows that have such entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Border<T> {
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
pub(crate) trait Local: Device {
    /// The connection to the devices of the other ranks.
    type Link: Clone + Send + Sync;
    /// Room for the scalars of all ranks, for a bank of slots.
    type Gathered: Send;
    /// A [`Border`] on the device, with room for the entries that are sent and received.
    type Border<T: Scalar>: Send + Sync;
    /// A complete vector (see `Halo`) on the device, with room for the entries that are sent.
    type Complete<T: Scalar>: Send + Sync;

    /// Connects the devices. All ranks call this together.
    fn link(&self, ranks: &Ranks) -> Result<Self::Link>;

    /// Allocates room for the scalars of all ranks, for a bank of `slots` slots of `k` columns. All
    /// ranks call this together.
    fn gathered(&self, over: Over<'_, Self>, slots: usize, k: usize) -> Result<Self::Gathered>;

    /// Adds these slots over all ranks, in the order of ranks, in the columns that are not done,
    /// and then runs a program.
    fn finish(
        &self,
        over: Over<'_, Self>,
        slots: &mut RankSlots<Self>,
        which: &mut dyn Iterator<Item = Slot>,
        program: &[Op],
    ) -> Result<()>;

    /// Copies a border to the device. All ranks call this together.
    fn border<T: Scalar>(
        &self,
        over: Over<'_, Self>,
        halo: &Halo,
        border: Border<T>,
    ) -> Result<Self::Border<T>>;

    /// Prepares products with vectors of `k` columns. All ranks call this together.
    fn prepare_border<T: Scalar>(&self, halo: &Halo, border: &Self::Border<T>, k: usize) -> Result<()>;

    /// Returns the bytes of the room for entries that are sent and received.
    fn exchanged_bytes<T: Scalar>(&self, border: &Self::Border<T>) -> u64;

    /// Sends the entries of x that other ranks need, and receives the ghosts, while `meanwhile` runs.
    fn exchange<T: Scalar>(
        &self,
        over: Over<'_, Self>,
        border: (&Halo, &Self::Border<T>),
        x: &Self::Vector<T>,
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()>;

    /// Computes y = y + alpha B g with the ghosts g of the last exchange. Adds `<x, B g>` to a slot of the
    /// columns that are not done, if there is one.
    fn add_border<T: Scalar>(
        &self,
        border: &Self::Border<T>,
        alpha: f64,
        y: &mut Self::Vector<T>,
        dot: Option<(&Self::Vector<T>, &mut Self::Slots, Slot)>,
    ) -> Result<()>;

    /// Allocates a complete vector of one column. All ranks call this together.
    fn complete_room<T: Scalar>(&self, over: Over<'_, Self>, halo: &Halo) -> Result<Self::Complete<T>>;

    /// Prepares complete vectors of `k` columns. All ranks call this together.
    fn prepare_complete<T: Scalar>(&self, halo: &Halo, room: &Self::Complete<T>, k: usize) -> Result<()>;

    /// Returns the bytes of the complete vector and of the room for entries that are sent.
    fn complete_bytes<T: Scalar>(&self, room: &Self::Complete<T>) -> u64;

    /// Returns the entries of a column that [`complete`](Local::complete) reads and writes in
    /// the memory of this rank.
    fn moved_to_complete<T: Scalar>(&self, halo: &Halo, room: &Self::Complete<T>) -> usize;

    /// Copies x to the complete vector, and receives the ghosts around it; then calls `multiply`
    /// with the complete vector.
    fn complete<T: Scalar>(
        &self,
        room: (&Halo, &Self::Complete<T>),
        x: &Self::Vector<T>,
        multiply: &mut dyn FnMut(&Self::Vector<T>) -> Result<()>,
    ) -> Result<()>;
}

/// The ranks, and the connection of a device to the devices of the other ranks.
pub(crate) struct Over<'a, D: Local> {
    /// The ranks.
    pub ranks: &'a Ranks,
    /// The connection.
    pub link: &'a D::Link,
}

/// A bank of slots on the device of each rank, with the same values on all ranks.
pub(crate) struct RankSlots<D: Local> {
    /// The slots of this rank.
    pub own: D::Slots,
    pub(super) gathered: D::Gathered,
}

/// A device of each rank, together.
#[derive(Clone)]
pub(crate) struct Distributed<D: Local> {
    local: D,
    ranks: Ranks,
    link: D::Link,
    rows: RowNumbers,
}

/// Prints the ranks and the device of each.
impl<D: Local> fmt::Debug for Distributed<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl<D: Local> Distributed<D> {
    /// Joins the devices of all ranks, which call this together. `rows` are the numbers of this rank's rows.
    pub(crate) fn new(local: D, ranks: Ranks, rows: RowNumbers) -> Result<Distributed<D>> {
        let link = local.link(&ranks)?;
        Ok(Distributed { local, ranks, link, rows })
    }

    /// Returns the device of this rank.
    pub(crate) fn local(&self) -> &D {
        &self.local
    }

    /// Returns the ranks with the connection of their devices.
    pub(crate) fn over(&self) -> Over<'_, D> {
        Over { ranks: &self.ranks, link: &self.link }
    }

    /// Adds these slots over all ranks, and then runs a program.
    pub(crate) fn finish(
        &self,
        slots: &mut RankSlots<D>,
        which: impl Iterator<Item = Slot>,
        program: &[Op],
    ) -> Result<()> {
        self.local.finish(self.over(), slots, &mut { which }, program)
    }
}

impl<D: Local> Device for Distributed<D> {
    type Vector<T: Scalar> = D::Vector<T>;
    type Slots = RankSlots<D>;
    type Graph = D::Graph;
    type Scratch = D::Scratch;
    const BATCH: usize = D::BATCH;

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
        self.ranks.agreed(self.local.require_memory(what, bytes))
    }

    fn free_memory(&self) -> Result<u64> {
        self.local.free_memory()
    }

    fn vector<T: Scalar>(&self, n: usize, k: usize) -> Result<D::Vector<T>> {
        self.local.vector(n, k)
    }

    fn slots(&self, slots: usize, k: usize) -> Result<RankSlots<D>> {
        let gathered = self.local.gathered(self.over(), slots, k)?;
        let own = self.ranks.agreed(self.local.slots(slots, k))?;
        Ok(RankSlots { own, gathered })
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

    fn read(&self, slots: &RankSlots<D>, into: &mut SlotState) -> Result<()> {
        self.local.read(&slots.own, into)
    }

    fn write(&self, from: &SlotState, slots: &mut RankSlots<D>) -> Result<()> {
        self.local.write(from, &mut slots.own)
    }

    fn synchronize(&self) -> Result<()> {
        self.local.synchronize()
    }

    fn sweep<T: Scalar>(
        &self,
        writes: &mut [&mut D::Vector<T>],
        reads: &[&D::Vector<T>],
        slots: &mut RankSlots<D>,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        if sweep.dots.is_empty() {
            return self.local.sweep(writes, reads, &mut slots.own, sweep);
        }
        self.local.sweep(writes, reads, &mut slots.own, &Sweep { then: &[], ..*sweep })?;
        self.finish(slots, sweep.dots.iter().map(|dot| dot.out), sweep.then)
    }

    fn scratch<T: Scalar>(&self, n: usize, k: usize) -> Result<D::Scratch> {
        self.ranks.agreed(self.local.scratch::<T>(n, k))
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

    fn row_numbers(&self) -> &RowNumbers {
        &self.rows
    }

    fn ranks(&self) -> Option<&Ranks> {
        Some(&self.ranks)
    }

    fn record(&self, step: &mut dyn FnMut() -> Result<()>) -> Result<D::Graph> {
        self.ranks.agreed(self.local.record(step))
    }

    fn stops_early(&self, graph: &D::Graph) -> bool {
        self.local.stops_early(graph)
    }

    fn replay(&self, graph: &mut D::Graph, times: usize, step: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.local.replay(graph, times, step)
    }
}
