//! A prepared chain: in this process or rank, or on several devices of this process that share the steps.

use super::distributions::{DistributionFacts, Distributions};
use super::seat::Seat;
use super::{GivenChain, Markov, files};
use crate::engine::device::DeviceHandle;
use crate::engine::ranks::RankChain;
use crate::engine::team::{Seats, Team, on_seats, turn};
use crate::engine::weights::{Unmatched, Weights};
use crate::error::Result;
use crate::observe::Observer;
use crate::solve::markov::chain::Closed;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A prepared chain on one device or several GPUs, for repeated solves. It can be moved to another thread.
pub struct Prepared {
    seats: Seats<Seat>,
    facts: Arc<DistributionFacts>,
    closed: Arc<[Closed]>,
    x0: Option<Weights>,
    cancel: Option<Arc<AtomicBool>>,
}

on_seats!(Prepared, facts.common);

impl Prepared {
    pub(super) fn new(markov: Markov) -> Result<Prepared> {
        let Markov { chain, settings, x0, mut run } = markov;
        let shares = run.shares(settings.host_method())?;
        settings.check()?;
        let cancel = run.watch.cancel.clone();
        let seats = match chain {
            GivenChain::Whole(chain) if !shares.is_empty() => {
                let devices = Team::<Seat>::open(&shares)?;
                let team = Team::build(&turn()?, &devices, run.split(&devices), |ranks, _, run| {
                    let chain = RankChain::distribute(ranks, Some(&chain).filter(|_| ranks.is_first()));
                    Seat::new(GivenChain::OfRanks(chain), settings.clone(), run)
                })?;
                Seats::Several(team)
            }
            chain => {
                let seat = Seat::new(chain, settings, run)?;
                let device = seat.recipe.device.clone();
                Seats::One(device, seat)
            }
        };
        let first = &seats.states()[0];
        let (facts, closed) = (Arc::clone(&first.facts), Arc::clone(&first.chain.closed));
        let prepared = Prepared { seats, facts, closed, x0, cancel };
        prepared.check()?;
        Ok(prepared)
    }

    /// Checks the start before any of several devices begins, because an error of one ends the others.
    fn check(&self) -> Result<()> {
        let states = (&self.facts.of_chain.names, "state");
        let start = self.x0.as_ref().filter(|_| self.seats.are_several());
        start.map_or(Ok(()), |x0| x0.over("x0", states, Unmatched::Refuse, false).map(drop))
    }

    /// Sets the initial distribution of later solves.
    pub fn x0(&mut self, weights: Option<Weights>) {
        self.x0 = weights;
    }

    /// Sets a flag that ends later solves once it is true.
    pub fn cancel_by(&mut self, flag: &Arc<AtomicBool>) {
        self.cancel = Some(Arc::clone(flag));
    }

    /// Returns the closed classes, in the order of their first states. Over ranks, only the
    /// first rank has the states.
    pub fn classes(&self) -> &[Closed] {
        &self.closed
    }

    /// Returns the most bytes that the file of the distributions takes, in the format of the file extension.
    /// Over ranks, only the first rank knows it.
    pub(crate) fn most_bytes(&self, path: impl AsRef<Path>) -> Result<u64> {
        files::most_bytes(path.as_ref(), &self.facts.of_chain.names, self.closed.len())
    }

    /// Computes the distribution of each closed class. Over ranks, the first rank gets the probabilities.
    pub fn solve(&mut self) -> Result<Distributions> {
        self.solve_watched(|_| None)
    }

    /// Computes the distribution of each closed class. `watch` may return an observer for a class.
    pub fn solve_watched(
        &mut self,
        watch: impl FnMut(&Closed) -> Option<Box<dyn Observer>>,
    ) -> Result<Distributions> {
        self.check()?;
        let Prepared { seats, x0, cancel, .. } = self;
        let begin = |seat: &mut Seat| seat.watch.cancel.clone_from(cancel);
        let mut found = seats.run(
            |seat| {
                begin(seat);
                seat.solve(x0.as_ref(), watch)
            },
            |seat| {
                begin(seat);
                seat.solve(x0.as_ref(), |_| None)
            },
        )?;
        let first = found.swap_remove(0);
        Ok(if seats.are_several() { first.in_one_process() } else { first })
    }
}
