//! A prepared chain of one seat: its closed classes and the device are kept from one solve to the next.

use super::analysis::Analysed;
use super::class::{PreparedClass, Recipe};
use super::distribution::Distribution;
use super::distributions::{DistributionFacts, Distributions};
use super::{GivenChain, Settings};
use crate::device::Ranks;
use crate::device::distributed::Halo;
use crate::engine::ranks::agreed;
use crate::engine::running::{Run, Watch};
use crate::engine::watch::Phases;
use crate::engine::weights::{Unmatched, Weights};
use crate::error::Result;
use crate::observe::report::Common;
use crate::observe::{Observer, Phase};
use crate::solve::markov::chain::Closed;
use crate::solve::markov::{Stationary, StationaryProblem};
use crate::solve::part::Part;
use crate::solve::rounding::sum;
use crate::stop::StoppingRule;
use std::sync::Arc;
use std::time::Instant;

/// Iterations without progress that count as stagnation. Large, as slow chains gain little per iteration.
const STAGNATION: usize = 2000;

/// The chain of a process, or of one of several devices of a process. If ranks share the steps, all of them
/// call the same functions in the same order.
pub(super) struct Seat {
    pub chain: Analysed,
    pub recipe: Recipe,
    /// The class of a chain with a single closed class. Several classes are prepared one after the other
    /// during the solve, so that only one of them takes memory.
    only: Option<PreparedClass>,
    pub facts: Arc<DistributionFacts>,
    pub watch: Watch,
}

impl Seat {
    /// Finds the classes, and builds the operator of a single one.
    pub(crate) fn new(chain: GivenChain, settings: Settings, mut run: Run) -> Result<Seat> {
        let ranks = chain.ranks().cloned();
        let ranks = ranks.as_ref();
        if ranks.is_some() {
            settings.check_over_ranks()?;
        }
        let (device, backend) = agreed(ranks, run.open(settings.host_method()))?;
        let began = Instant::now();
        let finding = run.phases.begin(Phase::Analyse, "finding the classes");
        let (chain, of_chain) = Analysed::new(chain, &settings)?;
        drop(finding);
        let (method, precision, choosing) = (settings.method, run.request.precision, run.choosing);
        let recipe = Recipe { method, device, backend, precision, choosing };
        let only = match &*chain.closed {
            [class] => Some(PreparedClass::new(&chain, &recipe, class, &mut run.phases)?),
            _ => None,
        };
        let common = Common {
            solver: "markov".to_owned(),
            device: recipe.device.describe_over(ranks),
            precision: precision.name().to_owned(),
            seconds_setup: began.elapsed().as_secs_f64(),
            ..Common::default()
        };
        let facts = Arc::new(DistributionFacts { of_chain, settings, common, precision });
        Ok(Seat { chain, recipe, only, facts, watch: run.watch })
    }

    /// Computes the distribution of each closed class. `watch` may return an observer for a class. Over
    /// ranks, the first rank reads the start, because it has the names of the states.
    pub(crate) fn solve(
        &mut self,
        x0: Option<&Weights>,
        mut watch: impl FnMut(&Closed) -> Option<Box<dyn Observer>>,
    ) -> Result<Distributions> {
        let (ranks, states) = (self.chain.ranks(), (&self.facts.of_chain.names, "state"));
        let start = x0.filter(|_| ranks.is_none_or(Ranks::is_first));
        let start = start.map(|x0| x0.over("x0", states, Unmatched::Refuse, false)).transpose();
        let start = agreed(ranks, start)?;
        let settings = &self.facts.settings;
        self.watch.begin();
        let mut distributions = Vec::with_capacity(self.chain.closed.len());
        for class in &*self.chain.closed {
            let began = Instant::now();
            let temporary = match &self.only {
                Some(_) => None,
                None => Some(PreparedClass::new(&self.chain, &self.recipe, class, &mut Phases::default())?),
            };
            let seconds = if temporary.is_some() { began.elapsed().as_secs_f64() } else { 0.0 };
            let Some(prepared) = self.only.as_ref().or(temporary.as_ref()) else { continue };
            let halo = prepared.rows.as_ref().map(|rows| rows.halo());
            let start = start.as_ref().and_then(|start| within(start, class));
            let start = match halo {
                Some(halo) => part_of(halo, start)?,
                None => start,
            };
            let problem = StationaryProblem {
                incoming: &prepared.incoming,
                part: halo.map_or_else(Part::default, Part::of_rank),
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
            if let Some(ranks) = ranks {
                outcome = collected(ranks, outcome)?;
            }
            distributions.push(Distribution::new(class.clone(), outcome, recorder, prepared));
        }
        Ok(Distributions::new(distributions, Arc::clone(&self.facts), ranks.cloned()))
    }
}

/// Returns the initial distribution within a class; none, for a uniform start, if the initial
/// distribution is 0 there.
fn within(start: &[f64], class: &Closed) -> Option<Vec<f64>> {
    let within = || class.states.iter().map(|&state| start[state as usize]);
    let total = sum(within());
    total.is_normal().then(|| within().map(|p| p / total).collect())
}

/// Sends each rank its part of the start of a class, if the first rank has one.
fn part_of(halo: &Halo, start: Option<Vec<f64>>) -> Result<Option<Vec<f64>>> {
    let ranks = halo.ranks();
    if ranks.list_of_first(vec![u64::from(start.is_some())])?[0] == 0 {
        return Ok(None);
    }
    ranks.scatter(start.as_deref(), halo.rows().len()).map(Some)
}

/// Collects the probabilities of all states of a class on the first rank.
fn collected(ranks: &Ranks, outcome: Stationary) -> Result<Stationary> {
    let probabilities = ranks.collect(&outcome.probabilities)?.unwrap_or_default();
    Ok(Stationary { probabilities, ..outcome })
}
