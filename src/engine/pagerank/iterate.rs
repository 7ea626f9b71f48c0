//! A method of ranking with its operator on a device.

use crate::backend::{Operator, Pick};
use crate::device::Device;
use crate::device::distributed::Local;
use crate::engine::memory;
use crate::engine::ranks::{KeptOperator, kept_operator};
use crate::engine::running::{BackendOrder, Chosen};
use crate::engine::shared::{DeviceValue, Shared};
use crate::engine::watch::Phases;
use crate::error::Result;
use crate::observe::Observer;
use crate::operator::Inflow;
use crate::scalar::Scalar;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::{Jumps, RankProblem, Ranking, power, power_each};
use crate::stop::StoppingRule;
use std::sync::Arc;

/// Several distributions of the jumps: their number, and a function that returns one.
pub(super) type Each<'a> = (usize, &'a dyn Fn(usize) -> Result<Jumps>);

/// A method with its operator on a device. Returns the ranks of the problem, or those for each
/// of several distributions.
pub(super) type Iterate = Box<
    dyn Fn(
            &RankProblem<'_>,
            Option<Each<'_>>,
            &StoppingRule,
            &mut [&mut dyn Observer],
        ) -> Result<Vec<Ranking>>
        + Send,
>;

/// Chooses a backend for links in double precision, and prepares power iteration with its operator. Over
/// ranks, all ranks call this together.
pub(super) fn power_iteration<D: Local + Pick<T>, T: Scalar>(
    held: &Arc<Shared<D>>,
    links: &Links,
    order: &BackendOrder<'_>,
    (vectors, extrapolate): (usize, bool),
    phases: &mut Phases,
) -> Result<(Iterate, Chosen)> {
    let matrix = (links.incoming(), links.rank_rows());
    let (kept, chosen) = kept_operator::<D, T>(held, matrix, order, vectors, phases)?;
    let iterate = match kept {
        KeptOperator::Whole(kept) => by_power(kept, extrapolate),
        KeptOperator::OverRanks(kept) => by_power(kept, extrapolate),
    };
    Ok((iterate, chosen))
}

/// Returns power iteration with an operator that a device keeps.
fn by_power<D: Device, E: Device, T: Scalar>(
    kept: DeviceValue<D, Operator<E, T>>,
    extrapolate: bool,
) -> Iterate {
    Box::new(move |problem, each, rule, observers| {
        let (_device, operator) = kept.enter()?;
        let operator = operator.clone();
        match each {
            None => power(operator, problem, extrapolate, rule, observers).map(|one| vec![one]),
            Some((k, teleport)) => power_each(operator, problem, k, teleport, rule, observers),
        }
    })
}

/// Returns what computes the sums of certificates on the device, if it has memory for it and for `vectors`
/// vectors; none if the host does it.
pub(super) fn inflow_there<D: Pick<T>, T: Scalar>(
    held: &Arc<Shared<D>>,
    links: &Links,
    vectors: usize,
) -> Result<Option<Box<dyn Inflow>>> {
    let reserve = memory::vectors(vectors, links.rows(), size_of::<T>());
    Ok(held.acquire()?.inflow(links.incoming(), reserve).unwrap_or_else(|error| {
        log::warn!("the host computes the certificate, which takes longer: {error}");
        None
    }))
}
