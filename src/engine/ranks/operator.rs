//! The operator of a matrix, or of the rows of each rank of a graph or a chain.

use super::backend_label;
use crate::backend::distributed::{RankRows, complete_operator};
use crate::backend::{MatrixAgain, Operator, Pick};
use crate::device::Distributed;
use crate::device::distributed::Local;
use crate::engine::running::{BackendOrder, Chosen, operator};
use crate::engine::shared::{DeviceValue, Shared};
use crate::engine::tune::Choosing;
use crate::engine::watch::Phases;
use crate::error::Result;
use crate::format::Csr;
use crate::observe::{Phase, profile};
use crate::scalar::Scalar;
use std::sync::Arc;

/// An operator that the device of this process or rank keeps.
pub(in crate::engine) enum KeptOperator<D: Local, T: Scalar> {
    /// That of a matrix that this process has.
    Whole(DeviceValue<D, Operator<D, T>>),
    /// That of the rows of all ranks.
    OverRanks(DeviceValue<D, Operator<Distributed<D>, T>>),
}

/// Chooses a backend for a matrix in double precision and builds the operator. Leaves memory for `vectors`
/// vectors free. Over ranks, the matrix is that of `rows`, and all ranks call this together; the model then
/// chooses the backend of each, so that the choice is the same in every run.
pub(in crate::engine) fn kept_operator<D: Local + Pick<T>, T: Scalar>(
    held: &Arc<Shared<D>>,
    (exact, rows): (&Arc<Csr>, Option<&Arc<RankRows>>),
    order: &BackendOrder<'_>,
    vectors: usize,
    phases: &mut Phases,
) -> Result<(KeptOperator<D, T>, Chosen)> {
    let rounding = profile::begin(Phase::Build);
    let narrow = order.precision.narrow_values();
    let matrix = exact.narrowed(narrow);
    drop(rounding);
    let exact = Arc::clone(exact);
    let again: MatrixAgain = Box::new(move || Ok(exact.narrowed(narrow)));
    let matrix = (&matrix, again);
    let Some(rows) = rows else {
        let (operator, chosen) = operator(held, order, matrix, vectors, phases)?;
        return Ok((KeptOperator::Whole(DeviceValue::new(held, operator)), chosen));
    };
    let ranks = rows.halo().ranks();
    let order = BackendOrder { choosing: Choosing::Model, one_by_one: true, ..*order };
    let built = operator::<D, T>(held, &order, matrix, vectors, phases);
    let (multiply, mut chosen) = ranks.agreed(built)?;
    chosen.backend = backend_label(ranks, &chosen.backend)?;
    let device = held.acquire()?;
    device.enter()?;
    let distributed = Distributed::new(device.clone(), ranks.clone(), rows.numbers().clone())?;
    let operator = ranks.agreed(complete_operator(&distributed, rows, multiply))?;
    ranks.agreed(operator.prepare(order.columns))?;
    Ok((KeptOperator::OverRanks(DeviceValue::new(held, operator)), chosen))
}
