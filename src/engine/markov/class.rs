//! A closed class of a chain with the method that solves it.

use super::ChainMethod;
use super::analysis::{Analysed, Steps};
use crate::backend::distributed::RankRows;
use crate::backend::{Choice, Operator, Pick};
use crate::device::distributed::Local;
use crate::device::{Device, Kept, Ranks};
use crate::engine::device::{DeviceHandle, on_device};
use crate::engine::ranks::{KeptOperator, Partition, kept_operator, parts_of, scatter, starts_from_first};
use crate::engine::running::{BackendOrder, Chosen};
use crate::engine::shared::{DeviceValue, Shared};
use crate::engine::transpose::{transposed_there, with_copy};
use crate::engine::tune::Choosing;
use crate::engine::watch::Phases;
use crate::error::Result;
use crate::format::{Csr, partition};
use crate::observe::report::Parts;
use crate::observe::{Observer, Phase, profile};
use crate::scalar::{Precision, Scalar};
use crate::solve::markov::chain::{Chain, Closed};
use crate::solve::markov::power::VECTORS;
use crate::solve::markov::{Stationary, StationaryProblem, power, serial};
use crate::stop::StoppingRule;
use std::sync::Arc;

/// A method, with its operator on a device.
pub(super) type Iterate =
    Box<dyn Fn(&StationaryProblem<'_>, &StoppingRule, &mut [&mut dyn Observer]) -> Result<Stationary> + Send>;

/// A class with the method and operator to solve it.
pub(super) struct PreparedClass {
    pub incoming: Arc<Csr>,
    /// The exchange between ranks.
    pub rows: Option<Arc<RankRows>>,
    /// The parts of the ranks.
    pub parts: Option<Parts>,
    pub iterate: Iterate,
    pub chosen: Chosen,
}

/// The choices by which classes are prepared.
pub(super) struct Recipe {
    pub method: ChainMethod,
    pub device: DeviceHandle,
    pub backend: Choice,
    pub precision: Precision,
    pub choosing: Choosing,
}

impl PreparedClass {
    /// Extracts the steps within a class, and builds the operator. Over ranks, all ranks call this together.
    pub(crate) fn new(
        chain: &Analysed,
        recipe: &Recipe,
        class: &Closed,
        phases: &mut Phases,
    ) -> Result<PreparedClass> {
        let extracting = profile::begin(Phase::Build);
        let of_rank = |rows: Arc<RankRows>| (Arc::clone(rows.matrix()), Some(rows), None);
        let (incoming, rows, kept) = match &chain.steps {
            Steps::Alone(chain) => {
                let (incoming, kept) = transposed(chain, recipe, class)?;
                (incoming, None, kept)
            }
            Steps::OnFirst(ranks, chain) => of_rank(distributed(ranks, chain.as_ref(), class)?),
            Steps::ByRows(rows) => of_rank(Arc::clone(rows)),
        };
        let (iterate, chosen) = match recipe.method {
            ChainMethod::Power => {
                drop(extracting);
                let matrix = (&incoming, rows.as_ref());
                on_device!(recipe.device, recipe.precision, |held, D, T| {
                    with_copy(kept, || power_iteration::<D, T>(held, matrix, recipe, phases))
                })?
            }
            method @ (ChainMethod::GaussSeidel | ChainMethod::Aggregation) => {
                let aggregation = method == ChainMethod::Aggregation;
                let iterate: Iterate =
                    Box::new(move |problem, rule, observers| serial(problem, aggregation, rule, observers));
                (iterate, Chosen::none())
            }
        };
        let parts =
            rows.as_ref().map(|rows| parts_of(rows, Partition::default().to_string(), recipe.precision));
        Ok(PreparedClass { incoming, rows, parts, iterate, chosen })
    }
}

/// Returns the steps into each state of a class, and a copy of them that the device may keep until the
/// operator uses it.
fn transposed(chain: &Chain, recipe: &Recipe, class: &Closed) -> Result<(Arc<Csr>, Option<Kept>)> {
    let steps = chain.steps_within(class)?;
    let there = match recipe.method {
        ChainMethod::Power => transposed_there(&recipe.device, &steps, (VECTORS, true), &mut || ())?,
        ChainMethod::GaussSeidel | ChainMethod::Aggregation => None,
    };
    Ok(match there {
        Some(there) => (there.matrix, Some(there.kept)),
        None => (Arc::new(steps.transposed()?), None),
    })
}

/// Distributes the steps into the states of a class of the chain of the first rank. All ranks call this
/// together.
fn distributed(ranks: &Ranks, chain: Option<&Chain>, class: &Closed) -> Result<Arc<RankRows>> {
    let within = chain.map(|chain| chain.within(class)).transpose();
    let within = ranks.agreed(within)?;
    let starts = within.as_ref().map_or_else(Vec::new, |m| partition::by_entries(m, ranks.size(), 1));
    let starts = starts_from_first(ranks, starts)?;
    let rows = ranks.agreed(scatter(ranks, within.as_deref(), &starts))?;
    drop(within);
    Ok(Arc::new(RankRows::new(ranks, &starts, rows)?))
}

/// Chooses a backend for steps in double precision, and prepares power iteration with its operator. Over
/// ranks, all ranks call this together.
fn power_iteration<D: Local + Pick<T>, T: Scalar>(
    held: &Arc<Shared<D>>,
    matrix: (&Arc<Csr>, Option<&Arc<RankRows>>),
    recipe: &Recipe,
    phases: &mut Phases,
) -> Result<(Iterate, Chosen)> {
    let Recipe { backend, precision, choosing, .. } = recipe;
    let (precision, choosing) = (*precision, *choosing);
    let order = BackendOrder { backend, precision, choosing, columns: 1, one_by_one: false };
    let (kept, chosen) = kept_operator::<D, T>(held, matrix, &order, VECTORS, phases)?;
    let iterate = match kept {
        KeptOperator::Whole(kept) => by_power(kept),
        KeptOperator::OverRanks(kept) => by_power(kept),
    };
    Ok((iterate, chosen))
}

/// Returns power iteration with an operator that a device keeps.
fn by_power<D: Device, E: Device, T: Scalar>(kept: DeviceValue<D, Operator<E, T>>) -> Iterate {
    Box::new(move |problem, rule, observers| {
        let (_device, operator) = kept.enter()?;
        power(operator.clone(), problem, rule, observers)
    })
}
