//! A chain over ranks. A chain that the first rank has is analysed there, and the steps into the states of a
//! class are then distributed. A chain whose rows are distributed stays so if it has a single closed class.
//! Otherwise the first rank gets it.

use super::analysis::{analysed, check_classes, named};
use super::class::{Iterate, PreparedClass, Recipe};
use super::distributions::ChainFacts;
use super::{ChainMethod, Settings};
use crate::backend::Pick;
use crate::backend::distributed::RankRows;
use crate::device::Ranks;
use crate::device::distributed::{Halo, Local};
use crate::engine::device::on_device;
use crate::engine::graph::Names;
use crate::engine::ranks::{
    Partition, RankChain, RankOrder, RankSteps, Steps, of_rows, parts_of, scatter, starts_from_first,
};
use crate::engine::running::Chosen;
use crate::engine::shared::Shared;
use crate::engine::watch::Phases;
use crate::error::{Error, Result};
use crate::format::partition;
use crate::observe::{Phase, profile};
use crate::scalar::Scalar;
use crate::solve::markov::chain::{Chain, Closed};
use crate::solve::markov::over_ranks::{self, Found, SoleClass, Why};
use crate::solve::markov::power::VECTORS;
use crate::solve::markov::{Stationary, power};
use std::sync::Arc;

/// Refuses methods that run in one process only.
pub(super) fn check(settings: &Settings) -> Result<()> {
    match settings.method {
        ChainMethod::Power => Ok(()),
        method => {
            let reason = "it runs in one process; over ranks use method power";
            Err(Error::setting("method", method.name(), reason))
        }
    }
}

/// A chain that the first rank has.
pub(super) struct OnFirst {
    ranks: Ranks,
    chain: Option<Chain>,
    /// The classes; their states are known on the first rank only.
    closed: Vec<Closed>,
}

impl OnFirst {
    /// Tells all ranks about the chain of the first rank.
    fn share(ranks: &Ranks, found: Option<(Chain, ChainFacts)>) -> Result<(OnFirst, ChainFacts)> {
        let (chain, facts) = found.unzip();
        let closed = chain.as_ref().map_or_else(Vec::new, |chain| chain.closed().to_vec());
        let periods = ranks.list_of_first(closed.iter().map(|class| class.period as u64).collect())?;
        let of_others =
            |period: u64| Closed { states: Vec::new(), period: usize::try_from(period).unwrap_or(1) };
        let closed = if ranks.is_first() { closed } else { periods.into_iter().map(of_others).collect() };
        let states = chain.as_ref().map_or(0, |chain| chain.steps().rows() as u64);
        let states = ranks.list_of_first(vec![states])?[0] as usize;
        let names = || Names::on_first_rank(states);
        let facts = facts.unwrap_or_else(|| ChainFacts { names: names(), nnz: 0, transient: 0 });
        Ok((OnFirst { ranks: ranks.clone(), chain, closed }, facts))
    }

    /// Distributes the steps within a class, and builds the operator. All ranks call this together.
    fn prepare(&self, recipe: &Recipe, class: &Closed, phases: &mut Phases) -> Result<PreparedClass> {
        let ranks = &self.ranks;
        let extracting = profile::begin(Phase::Build);
        let within = self.chain.as_ref().map(|chain| chain.within(class)).transpose();
        let within = ranks.agreed(within)?;
        let starts = within.as_ref().map_or_else(Vec::new, |m| partition::by_entries(m, ranks.size(), 1));
        let starts = starts_from_first(ranks, starts)?;
        let rows = ranks.agreed(scatter(ranks, within.as_deref(), &starts))?;
        drop(within);
        let rows = Arc::new(RankRows::new(ranks, &starts, rows)?);
        drop(extracting);
        prepared(recipe, rows, phases)
    }
}

/// A chain with a single closed class, of which each rank has the steps into a range of states.
pub(super) struct ByRows {
    rows: Arc<RankRows>,
    /// The class; its states are known on the first rank only.
    closed: [Closed; 1],
}

/// A chain over ranks whose classes are known.
pub(super) enum OverRanks {
    OnFirst(OnFirst),
    ByRows(ByRows),
}

impl OverRanks {
    /// Finds the classes. All ranks call this together.
    pub(crate) fn analysed(chain: RankChain, settings: &Settings) -> Result<(OverRanks, ChainFacts)> {
        let ranks = &chain.ranks;
        let (on_first, facts) = match chain.steps {
            Steps::OnFirst(matrix) => {
                let found = matrix.map(|matrix| analysed(matrix, settings.normalize)).transpose();
                OnFirst::share(ranks, ranks.agreed(found)?)?
            }
            Steps::ByRows(steps) => match found(ranks, steps, settings.normalize)? {
                (Ok(by_rows), facts) => return Ok((OverRanks::ByRows(by_rows), facts)),
                (Err(chain), facts) => OnFirst::share(ranks, chain.map(|chain| (chain, facts)))?,
            },
        };
        check_classes(on_first.closed.len(), settings)?;
        Ok((OverRanks::OnFirst(on_first), facts))
    }

    /// Returns the classes. Only the first rank has their states.
    pub(crate) fn closed(&self) -> &[Closed] {
        match self {
            OverRanks::OnFirst(chain) => &chain.closed,
            OverRanks::ByRows(chain) => &chain.closed,
        }
    }

    /// Returns the ranks.
    pub(crate) fn ranks(&self) -> &Ranks {
        match self {
            OverRanks::OnFirst(chain) => &chain.ranks,
            OverRanks::ByRows(chain) => chain.rows.halo().ranks(),
        }
    }

    /// Builds the operator of a class. All ranks call this together.
    pub(crate) fn prepare(
        &self,
        recipe: &Recipe,
        class: &Closed,
        phases: &mut Phases,
    ) -> Result<PreparedClass> {
        match self {
            OverRanks::OnFirst(chain) => chain.prepare(recipe, class, phases),
            OverRanks::ByRows(chain) => prepared(recipe, Arc::clone(&chain.rows), phases),
        }
    }
}

/// Finds the closed class of a chain whose rows are distributed. If there are several, or if the search takes
/// too long, the first rank gets the chain.
fn found(
    ranks: &Ranks,
    steps: RankSteps,
    normalise: bool,
) -> Result<(std::result::Result<ByRows, Option<Chain>>, ChainFacts)> {
    let RankSteps { starts, rows, names, graph } = steps;
    let nnz = ranks.total(rows.nnz() as u64);
    let mut facts = ChainFacts { names, nnz, transient: 0 };
    let found = match over_ranks::find(ranks, &starts, rows, normalise) {
        // All ranks have the same error; the first one knows the labels.
        Err(error) if graph => {
            return Err(named(error, |row| ranks.text_from_first(&facts.names.name(row)))?);
        }
        found => found?,
    };
    match found {
        Found::Sole(SoleClass { rows, states, period, transient }) => {
            facts.transient = transient as u64;
            Ok((Ok(ByRows { rows, closed: [Closed { states, period }] }), facts))
        }
        Found::Gathered { steps, why } => {
            let chain = steps.map(|steps| Chain::of_steps(Arc::new(steps)));
            facts.transient = chain.as_ref().map_or(0, |chain| chain.transient() as u64);
            let note = chain.as_ref().map(|chain| gathered(chain.closed().len(), why));
            Arc::make_mut(&mut facts.names.origin).notes.extend(note);
            Ok((Err(chain), facts))
        }
    }
}

/// Returns the note on a chain that does not stay distributed.
fn gathered(classes: usize, why: Why) -> String {
    if classes > 1 {
        return format!("the chain has {classes} closed classes, so the first rank has gathered it");
    }
    let reason = match why {
        Why::Classes => "the ranks have not found the closed class".to_owned(),
        Why::Searches(searches) => {
            format!("{searches} searches from different states have not found the closed class")
        }
        Why::Rounds(rounds) => {
            format!("the search for the closed class takes more than {rounds} exchanges between the ranks")
        }
    };
    format!("{reason}, so the first rank has gathered the chain")
}

/// Builds the operator of a class.
fn prepared(recipe: &Recipe, rows: Arc<RankRows>, phases: &mut Phases) -> Result<PreparedClass> {
    let order =
        RankOrder { backend: &recipe.backend, precision: recipe.precision, columns: 1, vectors: VECTORS };
    let (iterate, chosen) = on_device!(recipe.device, recipe.precision, |held, D, T| {
        by_power::<D, T>(held, &rows, order, phases)
    })?;
    let parts = Some(parts_of(&rows, Partition::default().to_string(), recipe.precision));
    Ok(PreparedClass { incoming: Arc::clone(rows.matrix()), rows: Some(rows), parts, iterate, chosen })
}

/// Prepares power iteration.
fn by_power<D: Local + Pick<T>, T: Scalar>(
    held: &Arc<Shared<D>>,
    rows: &Arc<RankRows>,
    order: RankOrder<'_>,
    phases: &mut Phases,
) -> Result<(Iterate, Chosen)> {
    let (retained, chosen) = of_rows::<D, T>(held, rows, order, phases)?;
    let iterate: Iterate = Box::new(move |problem, rule, observers| {
        let (_device, operator) = retained.enter()?;
        power(operator.clone(), problem, rule, observers)
    });
    Ok((iterate, chosen))
}

/// Sends each rank its part of the start of a class, if the first rank has one.
pub(super) fn part_of(halo: &Halo, start: Option<Vec<f64>>) -> Result<Option<Vec<f64>>> {
    let ranks = halo.ranks();
    if ranks.list_of_first(vec![u64::from(start.is_some())])?[0] == 0 {
        return Ok(None);
    }
    ranks.scatter(start.as_deref(), halo.rows().len()).map(Some)
}

/// Collects the probabilities of all states of a class on the first rank.
pub(super) fn collected(ranks: &Ranks, outcome: Stationary) -> Result<Stationary> {
    let probabilities = ranks.collect(&outcome.probabilities)?.unwrap_or_default();
    Ok(Stationary { probabilities, ..outcome })
}
