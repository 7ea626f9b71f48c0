//! The closed classes of a chain.
//!
//! Over ranks, a chain that the first rank has is analysed there, and the steps into the states of a class
//! are then distributed. A chain whose rows are distributed stays so if it has a single closed class.
//! Otherwise the first rank gets it.

use super::{Classes, GivenChain, Settings};
use crate::backend::distributed::RankRows;
use crate::device::Ranks;
use crate::engine::graph::Names;
use crate::engine::matrix::Matrix;
use crate::engine::ranks::{self, RankChain, RankGraph};
use crate::error::{ChainError, Error, Result};
use crate::solve::markov::chain::{Chain, Closed};
use crate::solve::markov::over_ranks::{self, Found, SoleClass, Why};
use std::sync::Arc;

/// A chain whose closed classes are known.
pub(super) struct Analysed {
    pub steps: Steps,
    /// The closed classes, in the order of their first states. Over ranks, only the first rank has the
    /// states.
    pub closed: Arc<[Closed]>,
}

/// Facts about a chain.
#[derive(Clone, Debug)]
pub(super) struct ChainFacts {
    pub names: Names,
    pub nnz: u64,
    pub transient: u64,
}

/// The steps that this process has.
pub(super) enum Steps {
    /// All of them; no ranks share the solve.
    Alone(Chain),
    /// All of them on the first rank, and nothing on the others.
    OnFirst(Ranks, Option<Chain>),
    /// Those into a range of states of the single closed class.
    ByRows(Arc<RankRows>),
}

impl Analysed {
    /// Finds the classes. Over ranks, all ranks call this together.
    pub(crate) fn new(chain: GivenChain, settings: &Settings) -> Result<(Analysed, ChainFacts)> {
        let normalise = settings.normalize;
        let (analysed, facts) = match chain {
            GivenChain::Whole(matrix) => {
                let (chain, facts) = analysed(matrix, normalise)?;
                let closed = chain.shared_closed();
                (Analysed { steps: Steps::Alone(chain), closed }, facts)
            }
            GivenChain::OfRanks(RankChain { ranks, steps: ranks::Steps::OnFirst(matrix) }) => {
                let found = matrix.map(|matrix| analysed(matrix, normalise)).transpose();
                Analysed::on_first(&ranks, ranks.agreed(found)?)?
            }
            GivenChain::OfRanks(RankChain { ranks, steps: ranks::Steps::ByRows(steps, graph) }) => {
                Analysed::by_rows(&ranks, (steps, graph), normalise)?
            }
        };
        match settings.classes {
            Classes::Refuse if analysed.closed.len() > 1 => {
                Err(ChainError::Reducible { classes: analysed.closed.len() }.into())
            }
            _ => Ok((analysed, facts)),
        }
    }

    /// Tells all ranks about the chain of the first rank.
    fn on_first(ranks: &Ranks, found: Option<(Chain, ChainFacts)>) -> Result<(Analysed, ChainFacts)> {
        let (chain, facts) = found.unzip();
        let closed = chain.as_ref().map_or_else(Arc::default, Chain::shared_closed);
        let periods = ranks.list_of_first(closed.iter().map(|class| class.period as u64).collect())?;
        let of_others =
            |period: u64| Closed { states: Vec::new(), period: usize::try_from(period).unwrap_or(1) };
        let closed = if ranks.is_first() { closed } else { periods.into_iter().map(of_others).collect() };
        let states = chain.as_ref().map_or(0, |chain| chain.steps().rows() as u64);
        let states = ranks.list_of_first(vec![states])?[0] as usize;
        let names = || Names::on_first_rank(states);
        let facts = facts.unwrap_or_else(|| ChainFacts { names: names(), nnz: 0, transient: 0 });
        Ok((Analysed { steps: Steps::OnFirst(ranks.clone(), chain), closed }, facts))
    }

    /// Finds the closed class of a chain whose rows are distributed. If there are several, or if the search
    /// takes too long, the first rank gets the chain.
    fn by_rows(
        ranks: &Ranks,
        (steps, graph): (RankGraph, bool),
        normalise: bool,
    ) -> Result<(Analysed, ChainFacts)> {
        let RankGraph { starts, links, names, .. } = steps;
        let nnz = ranks.total(links.nnz() as u64);
        let mut facts = ChainFacts { names, nnz, transient: 0 };
        let found = match over_ranks::find(ranks, &starts, links, normalise) {
            // All ranks have the same error; the first one knows the labels.
            Err(error) if graph => {
                return Err(named(error, |row| ranks.text_from_first(&facts.names.name(row)))?);
            }
            found => found?,
        };
        match found {
            Found::Sole(SoleClass { rows, states, period, transient }) => {
                facts.transient = transient as u64;
                let closed = Arc::new([Closed { states, period }]);
                Ok((Analysed { steps: Steps::ByRows(rows), closed }, facts))
            }
            Found::Gathered { steps, why } => {
                let found = steps.map(|steps| {
                    let chain = Chain::of_steps(Arc::new(steps));
                    facts.transient = chain.transient() as u64;
                    let note = gathered(chain.closed().len(), why);
                    Arc::make_mut(&mut facts.names.origin).notes.push(note);
                    (chain, facts)
                });
                Analysed::on_first(ranks, found)
            }
        }
    }

    /// Returns the ranks that share the solve.
    pub(crate) fn ranks(&self) -> Option<&Ranks> {
        match &self.steps {
            Steps::Alone(_) => None,
            Steps::OnFirst(ranks, _) => Some(ranks),
            Steps::ByRows(rows) => Some(rows.halo().ranks()),
        }
    }
}

/// Finds the classes of a chain that this process has.
fn analysed(matrix: Matrix, normalise: bool) -> Result<(Chain, ChainFacts)> {
    let names = Names::of(&matrix, 1);
    let chain = match Chain::new(matrix.csr, normalise) {
        Err(error) if names.origin.is_graph() => return Err(named(error, |row| Ok(names.name(row)))?),
        chain => chain?,
    };
    let (nnz, transient) = (chain.steps().nnz() as u64, chain.transient() as u64);
    Ok((chain, ChainFacts { names, nnz, transient }))
}

/// Replaces row numbers in an error by the labels or ids of vertices.
fn named(error: Error, name: impl Fn(usize) -> Result<String>) -> Result<Error> {
    Ok(match error {
        Error::Chain(ChainError::RowSum { row, sum }) => {
            ChainError::NamedSum { vertex: name(row)?, sum }.into()
        }
        Error::Chain(ChainError::Probability { row, col, value }) => {
            let reason = format!("its weight is {value}, and must not be negative");
            ChainError::NamedWeights { vertex: name(row)?, to: Some(name(col)?), reason }.into()
        }
        other => other,
    })
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
