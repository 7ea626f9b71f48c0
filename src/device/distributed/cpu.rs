//! The CPU of a rank.

use super::{Border, Halo, Local, Over, RankSlots, Ranks};
use crate::device::cpu::sweep::run_program;
use crate::device::cpu::{CpuSlots, CpuVector};
use crate::device::{Cpu, Device, Op, Slot};
use crate::error::Result;
use crate::parallel::{lock, run_all, threads_for, zeros};
use crate::scalar::Scalar;
use arrayvec::ArrayVec;
use std::sync::Mutex;

/// Sums that are combined without an allocation.
const FEW: usize = 16;

/// Returns the product of a row with the ghosts, in four partial sums: one sum would wait for each addition.
fn row_sum<T: Scalar>(columns: &[u32], values: &[T], ghost: impl Fn(u32) -> T) -> T {
    let mut sums = [T::default(); 4];
    let (columns, last_columns) = columns.as_chunks::<4>();
    let (values, last_values) = values.as_chunks::<4>();
    for (columns, values) in columns.iter().zip(values) {
        for lane in 0..4 {
            sums[lane] += values[lane] * ghost(columns[lane]);
        }
    }
    for (lane, (column, value)) in last_columns.iter().zip(last_values).enumerate() {
        sums[lane] += *value * ghost(*column);
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

/// Buffers for the entries that are sent and received, for `k` columns.
#[derive(Default)]
struct Buffers<T> {
    k: usize,
    sent: Vec<T>,
    ghosts: Vec<T>,
}

impl<T: Scalar> Buffers<T> {
    fn fit(&mut self, k: usize, halo: &Halo) -> Result<()> {
        if self.k != k {
            *self =
                Buffers { k, sent: zeros(k * halo.sent_rows().len())?, ghosts: zeros(k * halo.ghosts())? };
        }
        Ok(())
    }
}

/// A border with its buffers.
pub(crate) struct CpuBorder<T> {
    border: Border<T>,
    buffers: Mutex<Buffers<T>>,
}

/// A complete vector of `k` columns, and the entries that are sent.
pub(crate) struct CpuComplete<T>(Mutex<Room<T>>);

struct Room<T> {
    k: usize,
    sent: Vec<T>,
    complete: CpuVector<T>,
}

impl<T: Scalar> Room<T> {
    fn new(device: &Cpu, halo: &Halo, k: usize) -> Result<Room<T>> {
        let complete = device.vector(halo.complete_rows(), k)?;
        Ok(Room { k, sent: zeros(k * halo.sent_rows().len())?, complete })
    }

    fn fit(&mut self, device: &Cpu, halo: &Halo, k: usize) -> Result<()> {
        if self.k != k {
            *self = Room::new(device, halo, k)?;
        }
        Ok(())
    }
}

/// Copies a vector on all threads.
fn copy<T: Scalar>(from: &[T], to: &mut [T]) {
    let pieces = threads_for(size_of_val(from));
    let piece = from.len().div_ceil(pieces).max(1);
    let pieces = from.chunks(piece).zip(to.chunks_mut(piece)).collect();
    run_all(pieces, |(from, to): (&[T], &mut [T])| to.copy_from_slice(from));
}

/// Copies rows of a vector.
fn pack<T: Scalar>(x: &CpuVector<T>, rows: &[u32], to: &mut [T]) {
    let (k, x) = (x.k(), x.data());
    if k == 1 {
        to.iter_mut().zip(rows).for_each(|(to, row)| *to = x[*row as usize]);
        return;
    }
    for (to, row) in to.chunks_exact_mut(k).zip(rows) {
        to.copy_from_slice(&x[*row as usize * k..][..k]);
    }
}

impl Local for Cpu {
    type Link = ();
    type Gathered = ();
    type Border<T: Scalar> = CpuBorder<T>;
    type Complete<T: Scalar> = CpuComplete<T>;

    fn link(&self, _: &Ranks) -> Result<()> {
        Ok(())
    }

    fn gathered(&self, _: Over<'_, Cpu>, _: usize, _: usize) -> Result<()> {
        Ok(())
    }

    fn finish(
        &self,
        over: Over<'_, Cpu>,
        slots: &mut RankSlots<Cpu>,
        which: &mut dyn Iterator<Item = Slot>,
        program: &[Op],
    ) -> Result<()> {
        let (state, mut few) = (&mut slots.own.state, ArrayVec::<f64, FEW>::new());
        if state.done.iter().all(|code| *code != 0) {
            return Ok(());
        }
        let which: ArrayVec<usize, { crate::device::sweep::MAX_DOTS }> =
            which.map(|slot| slot.0 as usize * state.k).collect();
        let all = || which.iter().flat_map(|at| *at..*at + state.k);
        let mut many = Vec::new();
        let values = if which.len() * state.k <= FEW {
            few.extend(all().map(|at| state.values[at]));
            &mut few[..]
        } else {
            many.extend(all().map(|at| state.values[at]));
            &mut many[..]
        };
        over.ranks.sum(values);
        for (at, values) in which.iter().zip(values.chunks_exact(state.k)) {
            let to = state.values[*at..].iter_mut().zip(&state.done);
            to.zip(values).filter(|((_, done), _)| **done == 0).for_each(|((to, _), value)| *to = *value);
        }
        run_program(state, program);
        Ok(())
    }

    fn border<T: Scalar>(&self, _: Over<'_, Cpu>, _: &Halo, border: Border<T>) -> Result<CpuBorder<T>> {
        Ok(CpuBorder { border, buffers: Mutex::default() })
    }

    fn prepare_border<T: Scalar>(&self, halo: &Halo, border: &CpuBorder<T>, k: usize) -> Result<()> {
        lock(&border.buffers).fit(k, halo)
    }

    fn exchanged_bytes<T: Scalar>(&self, border: &CpuBorder<T>) -> u64 {
        let buffers = lock(&border.buffers);
        ((buffers.sent.len() + buffers.ghosts.len()) * size_of::<T>()) as u64
    }

    fn exchange<T: Scalar>(
        &self,
        _: Over<'_, Cpu>,
        (halo, border): (&Halo, &CpuBorder<T>),
        x: &CpuVector<T>,
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let buffers = &mut *lock(&border.buffers);
        buffers.fit(x.k(), halo)?;
        pack(x, halo.sent_rows(), &mut buffers.sent);
        let mut done = Ok(());
        halo.exchange(x.k(), &buffers.sent, &mut buffers.ghosts, &mut || done = meanwhile());
        done
    }

    fn add_border<T: Scalar>(
        &self,
        border: &CpuBorder<T>,
        alpha: f64,
        y: &mut CpuVector<T>,
        mut dot: Option<(&CpuVector<T>, &mut CpuSlots, Slot)>,
    ) -> Result<()> {
        let (k, alpha) = (y.k(), T::from_f64(alpha));
        let (ghosts, border) = (&lock(&border.buffers).ghosts, &border.border);
        for column in 0..k {
            let mut inner = 0.0;
            let x = dot.as_ref().map(|(x, ..)| x.data());
            for (row, ends) in border.rows.iter().zip(border.offsets.windows(2)) {
                let entries = ends[0]..ends[1];
                let (of_row, values) = (&border.ghosts[entries.clone()], &border.values[entries]);
                let sum = row_sum(of_row, values, |ghost| ghosts[ghost as usize * k + column]);
                let at = *row as usize * k + column;
                y.data_mut()[at] += alpha * sum;
                if let Some(x) = x {
                    inner += x[at].to_f64() * sum.to_f64();
                }
            }
            if let Some((_, slots, slot)) = &mut dot
                && slots.state.done[column] == 0
            {
                let value = slots.state.get(*slot, column);
                slots.state.set(*slot, column, value + inner);
            }
        }
        Ok(())
    }

    fn complete_room<T: Scalar>(&self, over: Over<'_, Cpu>, halo: &Halo) -> Result<CpuComplete<T>> {
        Ok(CpuComplete(Mutex::new(over.ranks.agreed(Room::new(self, halo, 1))?)))
    }

    fn prepare_complete<T: Scalar>(&self, halo: &Halo, room: &CpuComplete<T>, k: usize) -> Result<()> {
        lock(&room.0).fit(self, halo, k)
    }

    fn complete_bytes<T: Scalar>(&self, room: &CpuComplete<T>) -> u64 {
        let room = lock(&room.0);
        ((room.sent.len() + room.complete.data().len()) * size_of::<T>()) as u64
    }

    fn moved_to_complete<T: Scalar>(&self, halo: &Halo, _: &CpuComplete<T>) -> usize {
        2 * (halo.rows().len() + halo.sent_rows().len()) + halo.ghosts()
    }

    fn complete<T: Scalar>(
        &self,
        (halo, room): (&Halo, &CpuComplete<T>),
        x: &CpuVector<T>,
        multiply: &mut dyn FnMut(&CpuVector<T>) -> Result<()>,
    ) -> Result<()> {
        let (room, k) = (&mut *lock(&room.0), x.k());
        room.fit(self, halo, k)?;
        let Room { sent, complete, .. } = room;
        pack(x, halo.sent_rows(), sent);
        halo.exchange_around(k, sent, complete.data_mut(), |own| copy(x.data(), own));
        multiply(complete)
    }
}
