//! The operator of the rows of each rank of a graph or a chain.

use super::backend_label;
use crate::backend::distributed::{RankRows, complete_operator};
use crate::backend::{Choice, Operator, Pick};
use crate::device::Distributed;
use crate::device::distributed::Local;
use crate::engine::running::{BackendOrder, Chosen, operator};
use crate::engine::shared::{DeviceValue, Shared};
use crate::engine::tune::Choosing;
use crate::engine::watch::Phases;
use crate::error::Result;
use crate::scalar::{Precision, Scalar};
use std::sync::Arc;

/// The operator of all ranks, which the device of this rank keeps.
pub(in crate::engine) type Kept<D, T> = DeviceValue<D, Operator<Distributed<D>, T>>;

/// The choices by which the operator is built.
#[derive(Clone, Copy)]
pub(in crate::engine) struct RankOrder<'a> {
    pub backend: &'a Choice,
    pub precision: Precision,
    /// Number of vectors that are multiplied at once.
    pub columns: usize,
    /// Number of vectors for which memory stays free.
    pub vectors: usize,
}

/// Chooses the backend of each rank by the model, so that the choice is the same in every run, and builds the
/// operator. All ranks call this together.
pub(in crate::engine) fn of_rows<D: Local + Pick<T>, T: Scalar>(
    held: &Arc<Shared<D>>,
    rows: &Arc<RankRows>,
    order: RankOrder<'_>,
    phases: &mut Phases,
) -> Result<(Kept<D, T>, Chosen)> {
    let RankOrder { backend, precision, columns, vectors } = order;
    let (ranks, exact) = (rows.halo().ranks(), rows.matrix());
    let matrix = if precision.narrow_values() { Arc::new(exact.to_f32()) } else { Arc::clone(exact) };
    let order = BackendOrder { backend, precision, choosing: Choosing::Model, columns, one_by_one: true };
    let built = operator::<D, T>(held, &order, &matrix, vectors, phases);
    let (multiply, mut chosen) = ranks.agreed(built)?;
    chosen.backend = backend_label(ranks, &chosen.backend)?;
    let device = held.acquire()?;
    device.enter()?;
    let distributed = Distributed::new(device.clone(), ranks.clone(), rows.numbers().clone())?;
    let operator = ranks.agreed(complete_operator(&distributed, rows, multiply))?;
    ranks.agreed(operator.prepare(columns))?;
    Ok((DeviceValue::new(held, operator), chosen))
}
