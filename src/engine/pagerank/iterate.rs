//! A method of ranking with its operator on a device.

use crate::backend::{Operator, Pick};
use crate::device::distributed::Local;
use crate::device::{Cpu, Device};
use crate::engine::memory;
use crate::engine::ranks::{KeptOperator, kept_operator};
use crate::engine::running::{BackendOrder, Chosen};
use crate::engine::shared::{DeviceValue, Shared};
use crate::engine::watch::Phases;
use crate::error::Result;
use crate::observe::Observer;
use crate::operator::{self, Inflow};
use crate::scalar::Scalar;
use crate::solve::pagerank::gauss_seidel::Parts;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::{Each, RankProblem, Ranking, gauss_seidel, power_each};
use crate::stop::StoppingRule;
use std::sync::Arc;

/// A method with its operator on a device.
pub(super) trait Iterate: Send {
    /// Prepares products with `k` columns. Returns the backend, if it is another one than for a vector.
    fn prepare(&self, k: usize) -> Result<Option<Arc<operator::OwnBackend>>>;

    /// Returns the ranks of the problem, or those for each of several distributions.
    fn run(
        &self,
        problem: &RankProblem<'_>,
        each: Option<Each<'_>>,
        rule: &StoppingRule,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Vec<Ranking>>;
}

/// Chooses a backend for links in double precision, and prepares power iteration with its operator. Over
/// ranks, all ranks call this together.
pub(super) fn power_iteration<D: Local + Pick<T>, T: Scalar>(
    held: &Arc<Shared<D>>,
    links: &Links,
    order: &BackendOrder<'_>,
    (vectors, extrapolate): (usize, bool),
    phases: &mut Phases,
) -> Result<(Box<dyn Iterate>, Chosen)> {
    let matrix = (links.incoming(), links.rank_rows());
    let (kept, chosen) = kept_operator::<D, T>(held, matrix, order, vectors, phases)?;
    let iterate: Box<dyn Iterate> = match kept {
        KeptOperator::Whole(kept) => Box::new(Power { kept, extrapolate }),
        KeptOperator::OverRanks(kept) => Box::new(Power { kept, extrapolate }),
    };
    Ok((iterate, chosen))
}

/// Power iteration with an operator that a device keeps.
struct Power<D, E: Device, T: Scalar> {
    kept: DeviceValue<D, Operator<E, T>>,
    extrapolate: bool,
}

impl<D: Device, E: Device, T: Scalar> Iterate for Power<D, E, T> {
    fn prepare(&self, k: usize) -> Result<Option<Arc<operator::OwnBackend>>> {
        let (_device, operator) = self.kept.enter()?;
        operator.device().agreed(operator.prepare(k))?;
        Ok(operator.chosen_for(k))
    }

    fn run(
        &self,
        problem: &RankProblem<'_>,
        each: Option<Each<'_>>,
        rule: &StoppingRule,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Vec<Ranking>> {
        let (_device, operator) = self.kept.enter()?;
        power_each(operator.clone(), problem, (self.extrapolate, each), rule, observers)
    }
}

/// The method of Gauss and Seidel.
pub(super) struct GaussSeidel {
    pub cpu: Arc<Shared<Cpu>>,
    pub parts: Parts,
}

impl Iterate for GaussSeidel {
    fn prepare(&self, _: usize) -> Result<Option<Arc<operator::OwnBackend>>> {
        Ok(None)
    }

    fn run(
        &self,
        problem: &RankProblem<'_>,
        _: Option<Each<'_>>,
        rule: &StoppingRule,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Vec<Ranking>> {
        gauss_seidel(&*self.cpu.acquire()?, &self.parts, problem, rule, observers).map(|one| vec![one])
    }
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
