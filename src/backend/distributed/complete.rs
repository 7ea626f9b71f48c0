//! The product with the rows of a rank when most of x comes from other ranks, as in graphs.
//!
//! The ghosts are received into a complete vector, around a copy of the rank's own entries, and then any backend multiplies the
//! rows at once. Splitting off the entries in columns of other ranks would store them with values and add them in a separate pass,
//! and in a graph they are most entries. The price is a copy of x, and that nothing is multiplied while the ghosts travel.

use super::RankRows;
use crate::device::cpu::CpuVector;
use crate::device::distributed::pack;
use crate::device::{Cpu, Device, Distributed};
use crate::error::Result;
use crate::operator::{Cost, LinearOperator, Operator};
use crate::parallel::{lock, run_all, threads_for, zeros};
use crate::scalar::Scalar;
use std::sync::{Arc, Mutex};

/// Buffers for `k` columns: the entries that are sent, and the complete vector.
struct Buffers<T> {
    k: usize,
    sent: Vec<T>,
    complete: CpuVector<T>,
}

struct Complete<T: Scalar> {
    /// Multiplies all rows of the rank with a complete vector.
    multiply: Operator<Cpu, T>,
    rows: Arc<RankRows>,
    buffers: Mutex<Buffers<T>>,
}

/// Makes the operator of the rows of each rank. `multiply` is the operator of the rank's [`matrix`](RankRows::matrix).
pub fn complete_operator<T: Scalar>(
    device: &Distributed<Cpu>,
    rows: &Arc<RankRows>,
    multiply: Operator<Cpu, T>,
) -> Result<Operator<Distributed<Cpu>, T>> {
    let complete = device.vector(multiply.shape().1, 1)?;
    let sent = zeros(rows.halo().sent_rows().len())?;
    let buffers = Mutex::new(Buffers { k: 1, sent, complete });
    Ok(Operator::new(device, Arc::new(Complete { multiply, rows: Arc::clone(rows), buffers })))
}

/// Copies a vector on all threads.
fn copy<T: Scalar>(from: &[T], to: &mut [T]) {
    let pieces = threads_for(size_of_val(from));
    let piece = from.len().div_ceil(pieces).max(1);
    let pieces = from.chunks(piece).zip(to.chunks_mut(piece)).collect();
    run_all(pieces, |(from, to): (&[T], &mut [T])| to.copy_from_slice(from));
}

impl<T: Scalar> Complete<T> {
    fn fit(&self, device: &Distributed<Cpu>, buffers: &mut Buffers<T>, k: usize) -> Result<()> {
        if buffers.k != k {
            let complete = device.vector(self.multiply.shape().1, k)?;
            *buffers = Buffers { k, sent: zeros(k * self.rows.halo().sent_rows().len())?, complete };
        }
        Ok(())
    }
}

impl<T: Scalar> LinearOperator<Distributed<Cpu>, T> for Complete<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows.rows(), self.rows.rows())
    }

    fn prepare(&self, device: &Distributed<Cpu>, k: usize) -> Result<()> {
        self.fit(device, &mut lock(&self.buffers), k)?;
        self.multiply.prepare(k)
    }

    fn plan_of(&self, k: usize) -> Option<String> {
        self.multiply.plan_of(k)
    }

    fn apply(
        &self,
        device: &Distributed<Cpu>,
        alpha: f64,
        x: &CpuVector<T>,
        beta: f64,
        y: &mut CpuVector<T>,
    ) -> Result<()> {
        let (buffers, halo, k) = (&mut *lock(&self.buffers), self.rows.halo(), x.k());
        self.fit(device, buffers, k)?;
        let Buffers { sent, complete, .. } = buffers;
        pack(x, halo.sent_rows(), sent);
        halo.exchange_around(k, sent, complete.data_mut(), |own| copy(x.data(), own));
        self.multiply.apply(alpha, complete, beta, y)
    }

    fn cost(&self) -> Cost {
        self.cost_of(1)
    }

    fn cost_of(&self, k: usize) -> Cost {
        let (multiplied, halo) = (self.multiply.cost_of(k), self.rows.halo());
        // Own entries are copied, entries that are sent are read and written, and ghosts are written.
        let moved = 2 * (self.rows.rows() + halo.sent_rows().len()) + halo.ghosts();
        Cost { bytes: multiplied.bytes + (k * moved * size_of::<T>()) as u64, ..multiplied }
    }

    fn storage(&self) -> u64 {
        let buffers = lock(&self.buffers);
        let buffers = buffers.sent.len() + buffers.complete.data().len();
        self.multiply.storage() + (buffers * size_of::<T>()) as u64
    }
}
