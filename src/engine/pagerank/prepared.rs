//! A prepared ranking: in this process or rank, or on several devices of this process that share the links.

use super::each::RanksEach;
use super::given::Given;
use super::ranks::{RankingFacts, Ranks};
use super::seat::Seat;
use super::{Graph, Pagerank, files};
use crate::engine::device::DeviceHandle;
use crate::engine::ranks::RankGraph;
use crate::engine::team::{Seats, Team, on_seats, turn};
use crate::engine::tune::Explanation;
use crate::engine::weights::Weights;
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
pub struct Prepared {
    seats: Seats<Seat>,
    facts: Arc<RankingFacts>,
    given: Given,
    cancel: Option<Arc<AtomicBool>>,
}

on_seats!(Prepared, facts.common);

impl Prepared {
    pub(super) fn new(pagerank: Pagerank) -> Result<Prepared> {
        let Pagerank { graph, settings, given, mut run } = pagerank;
        let shares = run.shares(settings.host_method())?;
        settings.check()?;
        given.check(&settings)?;
        graph.check()?;
        let cancel = run.watch.cancel.clone();
        let seats = match graph {
            Graph::Whole(graph) if !shares.is_empty() => {
                let devices = Team::<Seat>::open(&shares)?;
                let graph = graph.without_ones();
                let team = Team::build(&turn()?, &devices, run.split(&devices), |ranks, _, run| {
                    let graph = Graph::OfRank(RankGraph::of_shared(ranks, &graph)?);
                    Seat::new(graph, settings.clone(), &given, run)
                })?;
                Seats::Several(team)
            }
            graph => {
                let seat = Seat::new(graph, settings, &given, run)?;
                let device = seat.device.clone();
                Seats::One(device, seat)
            }
        };
        let facts = Arc::clone(seats.states()[0].facts());
        let prepared = Prepared { seats, facts, given, cancel };
        prepared.check()?;
        Ok(prepared)
    }

    /// Checks the distributions before any of several devices begins, because an error of one ends the
    /// others.
    fn check(&self) -> Result<()> {
        match self.seats.are_several() {
            true => self.given.check_all(&self.facts),
            false => Ok(()),
        }
    }

    /// Solves on all seats. The first gets the observers.
    fn run<R: Send>(
        &mut self,
        observers: &mut [&mut dyn Observer],
        solve: impl Fn(&mut Seat, &Given, &mut [&mut dyn Observer]) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let Prepared { seats, given, cancel, .. } = self;
        let on = |seat: &mut Seat, observers: &mut [&mut dyn Observer]| {
            seat.watch.cancel.clone_from(cancel);
            solve(seat, given, observers)
        };
        seats.run(|seat| on(seat, observers), |seat| on(seat, &mut []))
    }

    /// Sets the distribution of the surfer's jumps for later solves; none for a uniform one.
    pub fn personalise(&mut self, weights: Option<Weights>) {
        self.given.personalise = weights;
    }

    /// Sets the distributions for which later calls of [`solve_each`](Self::solve_each) compute the ranks.
    pub fn personalise_each(&mut self, weights: impl IntoIterator<Item = Weights>) {
        self.given.each = weights.into_iter().collect();
    }

    /// Computes the ranks for each distribution of [`personalise_each`](Self::personalise_each), in one run:
    /// one product of the links with all columns in an iteration.
    pub fn solve_each(&mut self) -> Result<RanksEach> {
        self.solve_each_watched(&mut [])
    }

    /// Computes the ranks for each distribution with additional observers, which receive the
    /// batches of each column.
    pub(crate) fn solve_each_watched(&mut self, observers: &mut [&mut dyn Observer]) -> Result<RanksEach> {
        if self.seats.are_several() {
            self.given.require_each()?;
            self.check()?;
            let k = self.given.each.len();
            self.seats.states().iter().try_for_each(|seat| seat.check_columns(k))?;
        }
        let mut found = self.run(observers, Seat::solve_each)?;
        match self.seats.are_several() {
            true => RanksEach::joined(found),
            false => Ok(found.swap_remove(0)),
        }
    }

    /// Sets the initial ranks of later solves.
    pub fn x0(&mut self, ranks: Option<Weights>) {
        self.given.x0 = ranks;
    }

    /// Sets a flag that ends later solves once it is true.
    pub fn cancel_by(&mut self, flag: &Arc<AtomicBool>) {
        self.cancel = Some(Arc::clone(flag));
    }

    /// Returns the reasons for the backend.
    pub fn explanation(&self) -> &Explanation {
        &self.facts.chosen.explanation
    }

    /// Returns the SpMV backend, with its parameters.
    pub fn backend(&self) -> &str {
        &self.facts.common.backend
    }

    /// Returns the most bytes that the file of the ranks takes, in the format of the file extension. Over
    /// ranks, only the first rank knows it.
    pub(crate) fn most_bytes(&self, path: impl AsRef<Path>) -> Result<u64> {
        files::most_bytes(path.as_ref(), &self.facts.graph.names, &self.given.each)
    }

    /// Computes the ranks.
    pub fn solve(&mut self) -> Result<Ranks> {
        self.solve_watched(&mut [])
    }

    /// Computes the ranks with additional observers.
    pub fn solve_watched(&mut self, observers: &mut [&mut dyn Observer]) -> Result<Ranks> {
        self.given.require_one()?;
        self.check()?;
        let mut found = self.run(observers, Seat::solve)?;
        match self.seats.are_several() {
            true => Ranks::joined(found),
            false => Ok(found.swap_remove(0)),
        }
    }
}
