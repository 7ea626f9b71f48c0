//! The distributions that a ranking is given, and the parts of them that each rank gets.

use super::ranks::RankingFacts;
use super::{RankMethod, Settings};
use crate::device::Ranks;
use crate::device::distributed::Halo;
use crate::engine::graph::Names;
use crate::engine::ranks::agreed;
use crate::engine::weights::{Unmatched, Weights};
use crate::error::{Error, Result};
use crate::solve::pagerank::Jumps;

/// The setting of several distributions.
const EACH: &str = "personalise-each";

/// The distributions of the surfer's jumps, and the initial ranks. Over ranks, only the first rank reads
/// them, because it has the names of the vertices; the other ranks are given as many.
#[derive(Default)]
pub(super) struct Given {
    /// The distribution of the jumps; none for a uniform one.
    pub personalise: Option<Weights>,
    /// The distributions that are ranked in one run.
    pub each: Vec<Weights>,
    pub x0: Option<Weights>,
}

impl Given {
    /// Refuses settings that several personalisations do not support.
    pub(crate) fn check(&self, settings: &Settings) -> Result<()> {
        if self.each.is_empty() {
            return Ok(());
        }
        if settings.method != RankMethod::Power {
            let reason = "several personalisations are ranked by power iteration; use method power";
            return Err(Error::setting("method", settings.method.name(), reason));
        }
        if self.x0.is_some() {
            let reason = "several personalisations start at their own distributions; leave out the start";
            return Err(Error::setting("x0", "", reason));
        }
        if self.personalise.is_some() {
            let reason = "there is one for each column; leave out the other";
            return Err(Error::setting("personalise", "", reason));
        }
        Ok(())
    }

    /// Fails unless `each` is empty.
    pub(crate) fn require_one(&self) -> Result<()> {
        match self.each.is_empty() {
            true => Ok(()),
            false => Err(Error::setting(EACH, "", "call solve_each for several personalisations")),
        }
    }

    /// Fails if `each` is empty.
    pub(crate) fn require_each(&self) -> Result<()> {
        match self.each.is_empty() {
            true => Err(Error::setting(EACH, 0, "there must be at least one personalisation")),
            false => Ok(()),
        }
    }

    /// Refuses numbers of personalisations that differ between ranks. All ranks call this together.
    pub(crate) fn check_count(&self, ranks: &Ranks) -> Result<()> {
        let count = self.each.len();
        let first = ranks.list_of_first(vec![count as u64])?[0];
        ranks.agreed(match first == count as u64 {
            true => Ok(()),
            false => {
                let reason = format!("this rank has {count} personalisations, and the first rank has {first}; give all ranks the same");
                Err(Error::setting(EACH, count, reason))
            }
        })
    }

    /// Checks everything that a solve refuses in one process.
    pub(crate) fn check_all(&self, facts: &RankingFacts) -> Result<()> {
        self.check(&facts.settings)?;
        self.columns(None, facts)?;
        self.vectors(None, facts).map(drop)
    }

    /// Returns the distribution of the jumps and the initial ranks for the vertices of this process, if they
    /// are given. Over ranks, all ranks call this together.
    pub(crate) fn vectors(&self, halo: Option<&Halo>, facts: &RankingFacts) -> Result<[Option<Vec<f64>>; 2]> {
        let vertices = (&facts.graph.names, "vertex");
        let lossy = !facts.settings.dangling.conserves();
        let jumps = |weights: &Weights| {
            part_of(halo, || weights.over("personalise", vertices, Unmatched::Refuse, false))
        };
        let start = |ranks: &Weights| part_of(halo, || ranks.over("x0", vertices, Unmatched::Fill, lossy));
        let jumps = self.personalise.as_ref().map(jumps).transpose()?;
        Ok([jumps, self.x0.as_ref().map(start).transpose()?])
    }

    /// Finds the vertices of all distributions that are ranked in one run, and checks all of them. Over
    /// ranks, all ranks call this together.
    pub(crate) fn columns<'a>(
        &'a self,
        halo: Option<&'a Halo>,
        facts: &'a RankingFacts,
    ) -> Result<Columns<'a>> {
        let (each, names) = (&self.each[..], &facts.graph.names);
        let search = agreed(halo.map(Halo::ranks), names.search())?;
        let of_line = |weights: &Weights| entries_of(halo, || weights.entries(EACH, &search));
        let entries = each.iter().map(of_line).collect::<Result<_>>()?;
        let columns = Columns { each, entries, halo, names };
        for column in (0..each.len()).filter(|&column| columns.entries[column].is_none()) {
            columns.jumps(column)?;
        }
        Ok(columns)
    }
}

/// The vertices that a distribution names, with their probabilities; none if it has a number
/// for every vertex.
type Entries = Option<Vec<(usize, f64)>>;

/// The distributions that are ranked in one run.
pub(super) struct Columns<'a> {
    each: &'a [Weights],
    entries: Vec<Entries>,
    halo: Option<&'a Halo>,
    names: &'a Names,
}

impl Columns<'_> {
    /// Returns a distribution; all probabilities are those of the vertices of this process. Over ranks, all
    /// ranks call this together.
    pub(crate) fn jumps(&self, column: usize) -> Result<Jumps> {
        match &self.entries[column] {
            Some(entries) => Ok(Jumps::Few(entries.clone())),
            None => part_of(self.halo, || {
                self.each[column].over(EACH, (self.names, "vertex"), Unmatched::Refuse, false)
            })
            .map(Jumps::All),
        }
    }
}

/// Returns the part of a vector over all vertices that this process has. Over ranks, the first rank makes the
/// vector.
fn part_of(halo: Option<&Halo>, make: impl FnOnce() -> Result<Vec<f64>>) -> Result<Vec<f64>> {
    let Some(halo) = halo else { return make() };
    let ranks = halo.ranks();
    let whole = ranks.agreed(ranks.is_first().then(make).transpose())?;
    ranks.scatter(whole.as_deref(), halo.rows().len())
}

/// Returns the entries of a distribution. Over ranks, the first rank finds them.
fn entries_of(halo: Option<&Halo>, find: impl FnOnce() -> Result<Entries>) -> Result<Entries> {
    let Some(ranks) = halo.map(Halo::ranks) else { return find() };
    let found = ranks.agreed(ranks.is_first().then(find).transpose())?.flatten();
    let named = ranks.list_of_first(vec![u64::from(found.is_some())])?[0] > 0;
    let found = found.unwrap_or_default();
    let vertices = ranks.list_of_first(found.iter().map(|(vertex, _)| *vertex as u64).collect())?;
    let values = ranks.list_of_first(found.iter().map(|(_, value)| *value).collect())?;
    let entries = vertices.into_iter().map(|vertex| vertex as usize).zip(values).collect();
    Ok(named.then_some(entries))
}
