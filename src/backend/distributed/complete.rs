//! The product with the rows of a rank when most of x comes from other ranks, as in graphs.
//!
//! The ghosts are received into a complete vector, around a copy of the rank's own entries, and then any
//! backend multiplies the rows at once. Splitting off the entries in columns of other ranks would store them
//! with values and add them in a separate pass, and in a graph they are most entries. The price is a copy of
//! x, and that nothing is multiplied while the ghosts travel.

use super::RankRows;
use crate::device::Distributed;
use crate::device::distributed::Local;
use crate::error::Result;
use crate::operator::{Cost, LinearOperator, Operator, OwnBackend};
use crate::scalar::Scalar;
use std::sync::Arc;

struct Complete<D: Local, T: Scalar> {
    /// Multiplies all rows of the rank with a complete vector.
    multiply: Operator<D, T>,
    rows: Arc<RankRows>,
    room: D::Complete<T>,
}

/// Makes the operator of the rows of each rank. `multiply` is the operator of the rank's
/// [`matrix`](RankRows::matrix). All ranks call this together.
pub(crate) fn complete_operator<D: Local, T: Scalar>(
    device: &Distributed<D>,
    rows: &Arc<RankRows>,
    multiply: Operator<D, T>,
) -> Result<Operator<Distributed<D>, T>> {
    let room = device.local().complete_room(device.over(), rows.halo())?;
    Ok(Operator::new(device, Arc::new(Complete { multiply, rows: Arc::clone(rows), room })))
}

impl<D: Local, T: Scalar> LinearOperator<Distributed<D>, T> for Complete<D, T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows.rows(), self.rows.rows())
    }

    fn prepare(&self, device: &Distributed<D>, k: usize) -> Result<()> {
        device.local().prepare_complete(self.rows.halo(), &self.room, k)?;
        self.multiply.prepare(k)
    }

    fn plan_of(&self, k: usize) -> Option<String> {
        self.multiply.plan_of(k)
    }

    fn chosen_for(&self, k: usize) -> Option<Arc<OwnBackend>> {
        self.multiply.chosen_for(k)
    }

    fn apply(
        &self,
        device: &Distributed<D>,
        alpha: f64,
        x: &D::Vector<T>,
        beta: f64,
        y: &mut D::Vector<T>,
    ) -> Result<()> {
        let mut multiply = |complete: &D::Vector<T>| self.multiply.apply(alpha, complete, beta, y);
        device.local().complete((self.rows.halo(), &self.room), x, &mut multiply)
    }

    fn cost(&self) -> Cost {
        self.cost_of(1)
    }

    fn cost_of(&self, k: usize) -> Cost {
        let multiplied = self.multiply.cost_of(k);
        let moved = self.multiply.device().moved_to_complete(self.rows.halo(), &self.room);
        Cost { bytes: multiplied.bytes + (k * moved * size_of::<T>()) as u64, ..multiplied }
    }

    fn storage(&self) -> u64 {
        self.multiply.storage() + self.multiply.device().complete_bytes(&self.room)
    }
}
