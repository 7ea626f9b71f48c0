//! A prepared chain: its closed classes and the device are kept from one solve to the next.

use super::analysis::{analysed, check_classes};
use super::class::{Iterate, PreparedClass, Recipe};
use super::distribution::Distribution;
use super::distributions::{DistributionFacts, Distributions};
use super::over_ranks::{self, OverRanks};
use super::{ChainMethod, Given, Markov};
use crate::backend::Pick;
use crate::device::Ranks;
use crate::engine::device::{DeviceHandle, on_device};
use crate::engine::running::{BackendOrder, Chosen, Watch, operator};
use crate::engine::shared::{DeviceValue, Shared};
use crate::engine::transpose::{transposed_there, with_copy};
use crate::engine::watch::Phases;
use crate::engine::weights::{Unmatched, Weights};
use crate::error::Result;
use crate::format::Csr;
use crate::observe::{Observer, Phase, profile};
use crate::scalar::Scalar;
use crate::solve::markov::chain::{Chain, Closed};
use crate::solve::markov::power::VECTORS;
use crate::solve::markov::{StationaryProblem, power, serial};
use crate::solve::part::Part;
use crate::solve::rounding::sum;
use crate::stop::StoppingRule;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Iterations without progress that count as stagnation. Large, as slow chains gain little per iteration.
const STAGNATION: usize = 2000;

/// A prepared chain of this process or rank.
pub(super) struct LocalChain {
    chain: Analysed,
    recipe: Recipe,
    /// The class of a chain with a single closed class. Several classes are prepared one after the other
    /// during the solve, so that only one of them takes memory.
    only: Option<PreparedClass>,
    x0: Option<Weights>,
    watch: Watch,
    facts: Arc<DistributionFacts>,
}

/// Prepares power iteration with an operator of a backend.
fn by_power<D: Pick<T>, T: Scalar>(
    device: &Arc<Shared<D>>,
    order: &BackendOrder<'_>,
    matrix: &Arc<Csr>,
    phases: &mut Phases,
) -> Result<(Iterate, Chosen)> {
    let (operator, chosen) = operator::<D, T>(device, order, matrix, VECTORS, phases)?;
    let retained = DeviceValue::new(device, operator);
    let iterate: Iterate = Box::new(move |problem, rule, observers| {
        let device = retained.acquire()?;
        device.enter()?;
        let Some(operator) = retained.value() else { unreachable!("the operator is never removed") };
        power::<D, T>(operator.clone(), problem, rule, observers)
    });
    Ok((iterate, chosen))
}

impl Analysed {
    /// Prepares a class.
    fn prepare(&self, recipe: &Recipe, class: &Closed, phases: &mut Phases) -> Result<PreparedClass> {
        let chain = match self {
            Analysed::Whole(chain) => chain,
            Analysed::OverRanks(chain) => return chain.prepare(recipe, class, phases),
        };
        let extracting = profile::begin(Phase::Build);
        let steps = chain.steps_within(class)?;
        let there = match recipe.method {
            ChainMethod::Power => transposed_there(&recipe.device, &steps, (VECTORS, true), &mut || ())?,
            ChainMethod::GaussSeidel | ChainMethod::Aggregation => None,
        };
        // The copy of the transpose stays on the device until the operator uses it.
        let (incoming, kept) = match there {
            Some(there) => (there.matrix, Some(there.kept)),
            None => (Arc::new(steps.transposed()?), None),
        };
        drop(steps);
        let (iterate, chosen): (Iterate, Chosen) = match recipe.method {
            ChainMethod::Power => {
                let narrow = recipe.precision.narrow_values();
                let matrix = if narrow { Arc::new(incoming.to_f32()) } else { Arc::clone(&incoming) };
                drop(extracting);
                let order = BackendOrder {
                    backend: &recipe.backend,
                    precision: recipe.precision,
                    choosing: recipe.choosing,
                    columns: 1,
                    one_by_one: false,
                };
                on_device!(recipe.device, recipe.precision, |held, D, T| {
                    with_copy(kept, || by_power::<D, T>(held, &order, &matrix, phases))
                })?
            }
            method @ (ChainMethod::GaussSeidel | ChainMethod::Aggregation) => {
                let aggregation = method == ChainMethod::Aggregation;
                let iterate: Iterate =
                    Box::new(move |problem, rule, observers| serial(problem, aggregation, rule, observers));
                (iterate, Chosen::none())
            }
        };
        Ok(PreparedClass { incoming, rows: None, parts: None, iterate, chosen })
    }
}

/// Returns the initial distribution within a class; none, for a uniform start, if the initial
/// distribution is 0 there.
pub(super) fn within(start: &[f64], class: &Closed) -> Option<Vec<f64>> {
    let within = || class.states.iter().map(|&state| start[state as usize]);
    let total = sum(within());
    total.is_normal().then(|| within().map(|p| p / total).collect())
}

/// A chain whose classes are known.
enum Analysed {
    Whole(Chain),
    OverRanks(OverRanks),
}

impl Analysed {
    fn closed(&self) -> &[Closed] {
        match self {
            Analysed::Whole(chain) => chain.closed(),
            Analysed::OverRanks(chain) => chain.closed(),
        }
    }

    /// Returns the ranks that share the solve.
    fn ranks(&self) -> Option<&Ranks> {
        match self {
            Analysed::Whole(_) => None,
            Analysed::OverRanks(chain) => Some(chain.ranks()),
        }
    }
}

impl LocalChain {
    pub(super) fn new(markov: Markov) -> Result<LocalChain> {
        let Markov { chain: given, settings, x0, mut run } = markov;
        settings.check()?;
        if let Given::OverRanks(_) = given {
            over_ranks::check(&settings)?;
        }
        let opened = run.open(settings.host_method());
        let (device, backend) = match &given {
            Given::OverRanks(chain) => chain.ranks.agreed(opened)?,
            Given::Whole(_) => opened?,
        };
        let began = Instant::now();
        let finding = run.phases.begin(Phase::Analyse, "finding the classes");
        let (chain, of_chain) = match given {
            Given::Whole(matrix) => {
                let (chain, facts) = analysed(matrix, settings.normalize)?;
                check_classes(chain.closed().len(), &settings)?;
                (Analysed::Whole(chain), facts)
            }
            Given::OverRanks(chain) => {
                let (chain, facts) = OverRanks::analysed(chain, &settings)?;
                (Analysed::OverRanks(chain), facts)
            }
        };
        drop(finding);
        let (method, precision) = (settings.method, run.request.precision);
        let choosing = run.choosing;
        let recipe = Recipe { method, device, backend, precision, choosing };
        let only = match chain.closed() {
            [class] => Some(chain.prepare(&recipe, class, &mut run.phases)?),
            _ => None,
        };
        let device = match chain.ranks() {
            Some(ranks) => recipe.device.describe_over(ranks),
            None => recipe.device.describe().to_owned(),
        };
        let seconds_setup = began.elapsed().as_secs_f64();
        let facts = Arc::new(DistributionFacts { of_chain, settings, device, precision, seconds_setup });
        Ok(LocalChain { chain, recipe, only, x0, watch: run.watch, facts })
    }

    /// Sets the initial distribution of later solves.
    pub(crate) fn x0(&mut self, weights: Option<Weights>) {
        self.x0 = weights;
    }

    /// Sets a flag that ends later solves once it is true.
    pub(crate) fn cancel_by(&mut self, flag: &Arc<AtomicBool>) {
        self.watch.cancel = Some(Arc::clone(flag));
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &DeviceHandle {
        &self.recipe.device
    }

    /// Returns the facts for the report.
    pub(crate) fn facts(&self) -> &DistributionFacts {
        &self.facts
    }

    /// Returns the closed classes, in the order of their first states. Over ranks, only the
    /// first rank has the states.
    pub(crate) fn classes(&self) -> &[Closed] {
        self.chain.closed()
    }

    /// Computes the distribution of each closed class. `watch` may return an observer for a class.
    pub(crate) fn solve_watched(
        &mut self,
        mut watch: impl FnMut(&Closed) -> Option<Box<dyn Observer>>,
    ) -> Result<Distributions> {
        let vertices = (&self.facts.of_chain.names, "state");
        // Over ranks, only the first rank knows the names of the states.
        let has_names = self.chain.ranks().is_none_or(Ranks::is_first);
        let start = self.x0.as_ref().filter(|_| has_names);
        let start = start.map(|x0| x0.over("x0", vertices, Unmatched::Refuse, false)).transpose();
        let start = match self.chain.ranks() {
            Some(ranks) => ranks.agreed(start)?,
            None => start?,
        };
        let settings = &self.facts.settings;
        self.watch.begin();
        let mut distributions = Vec::with_capacity(self.chain.closed().len());
        for class in self.chain.closed() {
            let began = Instant::now();
            let temporary = match &self.only {
                Some(_) => None,
                None => Some(self.chain.prepare(&self.recipe, class, &mut Phases::default())?),
            };
            let seconds = if temporary.is_some() { began.elapsed().as_secs_f64() } else { 0.0 };
            let Some(prepared) = self.only.as_ref().or(temporary.as_ref()) else { continue };
            let start = start.as_ref().and_then(|start| within(start, class));
            let start = match &prepared.rows {
                Some(rows) => over_ranks::part_of(rows.halo(), start)?,
                None => start,
            };
            let problem = StationaryProblem {
                incoming: &prepared.incoming,
                part: prepared.rows.as_ref().map_or_else(Part::default, |rows| Part::of_rank(rows.halo())),
                period: class.period,
                start: start.as_deref(),
            };
            let mut observer = watch(class);
            let passed: &mut [&mut dyn Observer] = match &mut observer {
                Some(observer) => &mut [&mut **observer],
                None => &mut [],
            };
            let limits = (settings.tol, settings.max_iters, STAGNATION);
            let solve = |rule: &StoppingRule, observers: &mut [&mut dyn Observer]| {
                (prepared.iterate)(&problem, rule, observers)
            };
            let (mut outcome, recorder) = self.watch.run(limits, passed, solve)?;
            outcome.effort.seconds_setup += seconds;
            if let Some(rows) = &prepared.rows {
                outcome = over_ranks::collected(rows.halo().ranks(), outcome)?;
            }
            distributions.push(Distribution::new(class.clone(), outcome, recorder, prepared));
        }
        Ok(Distributions::new(distributions, Arc::clone(&self.facts), self.chain.ranks().cloned()))
    }

    /// Drops chain and operator, and returns the device.
    pub(crate) fn into_device(self) -> DeviceHandle {
        self.recipe.device
    }
}
