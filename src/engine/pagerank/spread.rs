//! A prepared ranking on one device, or on several devices of this process that share the links.

use super::each::RanksEach;
use super::ranks::{RankingFacts, Ranks};
use super::{Graph, Pagerank, Settings, files, prepared};
use crate::device;
use crate::engine::device::DeviceHandle;
use crate::engine::ranks::RankGraph;
use crate::engine::running::Run;
use crate::engine::team::{Team, broken, turn};
use crate::engine::tune::Explanation;
use crate::engine::weights::{Unmatched, Weights};
use crate::error::Result;
use crate::observe::Observer;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A prepared ranking of one graph on one device or several GPUs, for repeated solves. It can be
/// moved to another thread.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::prelude::*;
/// let graph = Matrix::open_graph("rmat:scale=8,factor=8")?;
/// let mut prepared = Pagerank::new(&graph).prepare()?;
/// for vertex in ["3", "17"] {
///     prepared.personalise(Some(Weights::from_vertices([vertex])));
///     assert!(prepared.solve()?.converged());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Prepared(Placement);

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Prepared>();
};

enum Placement {
    One(Box<prepared::LocalRanking>),
    Several(Box<Several>),
}

/// A ranking on several devices.
struct Several {
    devices: Vec<DeviceHandle>,
    /// None after a failure.
    team: Option<Team<prepared::LocalRanking>>,
    facts: RankingFacts,
    personalise: Option<Weights>,
    each: Vec<Weights>,
    x0: Option<Weights>,
    cancel: Option<Arc<AtomicBool>>,
}

impl Several {
    fn new(pagerank: Pagerank, devices: Vec<DeviceHandle>) -> Result<Several> {
        let Pagerank { graph, settings, personalise, each, x0, run } = pagerank;
        graph.check()?;
        let Graph::Whole(graph) = graph else { unreachable!("a rank has one device") };
        let graph = graph.without_ones();
        let make = |ranks: &device::Ranks, _: &DeviceHandle, run: Run| {
            let graph = RankGraph::of_shared(ranks, &graph)?;
            let settings = Settings::clone(&settings);
            let (personalise, x0) = (None, None);
            let own =
                Pagerank { graph: Graph::OfRank(graph), settings, personalise, each: Vec::new(), x0, run };
            prepared::LocalRanking::new(own)
        };
        let team = Team::build(&turn()?, &devices, run.split(&devices), make)?;
        let facts = team.states()[0].facts().clone();
        Ok(Several { devices, team: Some(team), facts, personalise, each, x0, cancel: None })
    }

    /// Checks the distributions before any rank begins, because an error of a rank ends the others.
    fn check(&self) -> Result<()> {
        let (names, settings) = (&self.facts.graph.names, &self.facts.settings);
        prepared::check_each(settings, self.each.len(), self.x0.is_some(), self.personalise.is_some())?;
        let over = |weights: &Weights, setting, unmatched| {
            weights.over(setting, (names, "vertex"), unmatched, true).map(drop)
        };
        let search = names.search()?;
        for weights in &self.each {
            if weights.entries("personalise-each", &search)?.is_none() {
                over(weights, "personalise-each", Unmatched::Refuse)?;
            }
        }
        self.personalise.iter().try_for_each(|weights| over(weights, "personalise", Unmatched::Refuse))?;
        self.x0.iter().try_for_each(|weights| over(weights, "x0", Unmatched::Fill))
    }

    /// Checks that the backend of each rank multiplies as many columns as there are distributions.
    fn check_columns(&self) -> Result<()> {
        let k = self.each.len();
        self.team.iter().flat_map(Team::states).try_for_each(|state| state.check_columns(k))
    }

    /// Solves on all ranks. The first rank gets the distributions; the other ranks learn that there are some.
    fn solve<R: Send>(
        &mut self,
        observers: &mut [&mut dyn Observer],
        solve: impl Fn(&mut prepared::LocalRanking, &mut [&mut dyn Observer]) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let turn = turn()?;
        let mut team = self.team.take().ok_or_else(|| broken(&self.devices))?;
        let parts = vec![(); self.devices.len()];
        let (personalise, x0) = (&self.personalise, &self.x0);
        let (each, cancel) = (&self.each, &self.cancel);
        let begin = |state: &mut prepared::LocalRanking, own: bool| {
            let known = |weights: &Weights| if own { weights.clone() } else { Weights::from(Vec::new()) };
            state.personalise(personalise.as_ref().map(known));
            state.x0(x0.as_ref().map(known));
            state.personalise_each(each.iter().map(known));
            cancel.iter().for_each(|flag| state.cancel_by(flag));
        };
        let found = team.run(
            &turn,
            parts,
            |_, state, ()| {
                begin(state, true);
                solve(state, observers)
            },
            |_, state, ()| {
                begin(state, false);
                solve(state, &mut [])
            },
        )?;
        self.team = Some(team);
        Ok(found)
    }
}

impl Prepared {
    pub(super) fn new(mut pagerank: Pagerank) -> Result<Prepared> {
        let shares = pagerank.run.shares(pagerank.settings.host_method())?;
        if shares.is_empty() {
            return Ok(Prepared(Placement::One(Box::new(prepared::LocalRanking::new(pagerank)?))));
        }
        pagerank.settings.check()?;
        let several = Several::new(pagerank, Team::<prepared::LocalRanking>::open(&shares)?)?;
        several.check()?;
        Ok(Prepared(Placement::Several(Box::new(several))))
    }

    /// Sets the distribution of the surfer's jumps for later solves; none for a uniform one.
    pub fn personalise(&mut self, weights: Option<Weights>) {
        match &mut self.0 {
            Placement::One(one) => one.personalise(weights),
            Placement::Several(several) => several.personalise = weights,
        }
    }

    /// Sets the distributions for which later calls of [`solve_each`](Self::solve_each) compute the ranks.
    pub fn personalise_each(&mut self, weights: impl IntoIterator<Item = Weights>) {
        match &mut self.0 {
            Placement::One(one) => one.personalise_each(weights),
            Placement::Several(several) => several.each = weights.into_iter().collect(),
        }
    }

    /// Computes the ranks for each distribution of [`personalise_each`](Self::personalise_each), in one run:
    /// one product of the links with all columns in an iteration.
    pub fn solve_each(&mut self) -> Result<RanksEach> {
        self.solve_each_watched(&mut [])
    }

    /// Computes the ranks for each distribution with additional observers, which receive the
    /// batches of each column.
    pub fn solve_each_watched(&mut self, observers: &mut [&mut dyn Observer]) -> Result<RanksEach> {
        match &mut self.0 {
            Placement::One(one) => one.solve_each_watched(observers),
            Placement::Several(several) => {
                if several.each.is_empty() {
                    return Err(prepared::no_personalisation());
                }
                several.check()?;
                several.check_columns()?;
                let found =
                    several.solve(observers, |state, observers| state.solve_each_watched(observers))?;
                RanksEach::joined(found)
            }
        }
    }

    /// Sets the initial ranks of later solves.
    pub fn x0(&mut self, ranks: Option<Weights>) {
        match &mut self.0 {
            Placement::One(one) => one.x0(ranks),
            Placement::Several(several) => several.x0 = ranks,
        }
    }

    /// Sets a flag that ends later solves once it is true.
    pub fn cancel_by(&mut self, flag: &Arc<AtomicBool>) {
        match &mut self.0 {
            Placement::One(one) => one.cancel_by(flag),
            Placement::Several(several) => several.cancel = Some(Arc::clone(flag)),
        }
    }

    fn facts(&self) -> &RankingFacts {
        match &self.0 {
            Placement::One(one) => one.facts(),
            Placement::Several(several) => &several.facts,
        }
    }

    /// Returns the reasons for the backend.
    pub fn explanation(&self) -> &Explanation {
        &self.facts().chosen.explanation
    }

    /// Returns the device, or the first of several.
    pub fn device(&self) -> &DeviceHandle {
        &self.devices()[0]
    }

    /// Returns the devices that share the links, or the one device.
    pub fn devices(&self) -> &[DeviceHandle] {
        match &self.0 {
            Placement::One(one) => std::slice::from_ref(one.device()),
            Placement::Several(several) => &several.devices,
        }
    }

    /// Describes the hardware: `cpu (2 threads)`, `2 ranks, each a GPU (NVIDIA H200)`.
    pub fn describe_devices(&self) -> &str {
        &self.facts().device
    }

    /// Returns the SpMV backend, with its parameters.
    pub fn backend(&self) -> &str {
        &self.facts().chosen.backend
    }

    /// Returns the most bytes that the file of the ranks takes, in the format of the file extension. Over
    /// ranks, only the first rank knows it.
    pub(crate) fn most_bytes(&self, path: impl AsRef<Path>) -> Result<u64> {
        let each = match &self.0 {
            Placement::One(one) => one.each(),
            Placement::Several(several) => &several.each,
        };
        files::most_bytes(path.as_ref(), &self.facts().graph.names, each)
    }

    /// Computes the ranks.
    pub fn solve(&mut self) -> Result<Ranks> {
        self.solve_watched(&mut [])
    }

    /// Computes the ranks with additional observers.
    pub fn solve_watched(&mut self, observers: &mut [&mut dyn Observer]) -> Result<Ranks> {
        match &mut self.0 {
            Placement::One(one) => one.solve_watched(observers),
            Placement::Several(several) => {
                if !several.each.is_empty() {
                    return Err(prepared::several_personalisations());
                }
                several.check()?;
                let found = several.solve(observers, |state, observers| state.solve_watched(observers))?;
                Ranks::joined(found)
            }
        }
    }

    /// Drops links and operator, and returns the device, or the first of several.
    pub fn into_device(self) -> DeviceHandle {
        match self.0 {
            Placement::One(one) => one.into_device(),
            Placement::Several(mut several) => several.devices.swap_remove(0),
        }
    }
}
