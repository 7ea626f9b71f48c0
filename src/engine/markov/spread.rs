//! A prepared chain on one device, or on several devices of this process that share the steps.

use super::distributions::{DistributionFacts, Distributions};
use super::{Given, Markov, Settings, files, prepared};
use crate::device::Ranks;
use crate::engine::device::DeviceHandle;
use crate::engine::ranks::RankChain;
use crate::engine::running::Run;
use crate::engine::team::{Team, broken, turn};
use crate::engine::weights::{Unmatched, Weights};
use crate::error::Result;
use crate::observe::Observer;
use crate::solve::markov::chain::Closed;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A prepared chain on one device or several GPUs, for repeated solves. It can be moved to another thread.
pub struct Prepared(Placement);

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Prepared>();
};

enum Placement {
    One(Box<prepared::LocalChain>),
    Several(Box<Several>),
}

/// A chain on several devices.
struct Several {
    devices: Vec<DeviceHandle>,
    /// None after a failure.
    team: Option<Team<prepared::LocalChain>>,
    facts: DistributionFacts,
    closed: Vec<Closed>,
    x0: Option<Weights>,
    cancel: Option<Arc<AtomicBool>>,
}

impl Several {
    fn new(markov: Markov, devices: Vec<DeviceHandle>) -> Result<Several> {
        let Markov { chain, settings, x0, run } = markov;
        let Given::Whole(chain) = chain else { unreachable!("a rank has one device") };
        let make = |ranks: &Ranks, _: &DeviceHandle, run: Run| {
            let chain = RankChain::distribute(ranks, Some(&chain).filter(|_| ranks.is_first()));
            let chain = Given::OverRanks(chain);
            prepared::LocalChain::new(Markov { chain, settings: Settings::clone(&settings), x0: None, run })
        };
        let team = Team::build(&turn()?, &devices, run.split(&devices), make)?;
        let first = &team.states()[0];
        let (facts, closed) = (first.facts().clone(), first.classes().to_vec());
        Ok(Several { devices, team: Some(team), facts, closed, x0, cancel: None })
    }

    /// Checks the start before any rank begins, because an error of a rank ends the others.
    fn check(&self) -> Result<()> {
        let states = (&self.facts.of_chain.names, "state");
        self.x0.iter().try_for_each(|x0| x0.over("x0", states, Unmatched::Refuse, false).map(drop))
    }

    fn solve(&mut self, watch: impl FnMut(&Closed) -> Option<Box<dyn Observer>>) -> Result<Distributions> {
        self.check()?;
        let turn = turn()?;
        let mut team = self.team.take().ok_or_else(|| broken(&self.devices))?;
        let (x0, cancel) = (&self.x0, &self.cancel);
        let found = team.run(
            &turn,
            vec![(); self.devices.len()],
            |_, state, ()| {
                state.x0(x0.clone());
                cancel.iter().for_each(|flag| state.cancel_by(flag));
                state.solve_watched(watch)
            },
            |_, state, ()| {
                cancel.iter().for_each(|flag| state.cancel_by(flag));
                state.solve_watched(|_| None)
            },
        )?;
        self.team = Some(team);
        let Some(first) = found.into_iter().next() else { unreachable!("there are several devices") };
        Ok(first.in_one_process())
    }
}

impl Prepared {
    pub(super) fn new(mut markov: Markov) -> Result<Prepared> {
        let shares = markov.run.shares(markov.settings.host_method())?;
        if shares.is_empty() {
            return Ok(Prepared(Placement::One(Box::new(prepared::LocalChain::new(markov)?))));
        }
        let several = Several::new(markov, Team::<prepared::LocalChain>::open(&shares)?)?;
        several.check()?;
        Ok(Prepared(Placement::Several(Box::new(several))))
    }

    /// Sets the initial distribution of later solves.
    pub fn x0(&mut self, weights: Option<Weights>) {
        match &mut self.0 {
            Placement::One(one) => one.x0(weights),
            Placement::Several(several) => several.x0 = weights,
        }
    }

    /// Sets a flag that ends later solves once it is true.
    pub fn cancel_by(&mut self, flag: &Arc<AtomicBool>) {
        match &mut self.0 {
            Placement::One(one) => one.cancel_by(flag),
            Placement::Several(several) => several.cancel = Some(Arc::clone(flag)),
        }
    }

    /// Returns the device, or the first of several.
    pub fn device(&self) -> &DeviceHandle {
        &self.devices()[0]
    }

    /// Returns the devices that share the steps, or the one device.
    pub fn devices(&self) -> &[DeviceHandle] {
        match &self.0 {
            Placement::One(one) => std::slice::from_ref(one.device()),
            Placement::Several(several) => &several.devices,
        }
    }

    /// Describes the hardware: `cpu (2 threads)`, `2 ranks, each a GPU (NVIDIA H200)`.
    pub fn describe_devices(&self) -> &str {
        match &self.0 {
            Placement::One(one) => &one.facts().device,
            Placement::Several(several) => &several.facts.device,
        }
    }

    /// Returns the closed classes, in the order of their first states. Over ranks, only the
    /// first rank has the states.
    pub fn classes(&self) -> &[Closed] {
        match &self.0 {
            Placement::One(one) => one.classes(),
            Placement::Several(several) => &several.closed,
        }
    }

    /// Returns the most bytes that the file of the distributions takes, in the format of the file extension.
    /// Over ranks, only the first rank knows it.
    pub(crate) fn most_bytes(&self, path: impl AsRef<Path>) -> Result<u64> {
        let facts = match &self.0 {
            Placement::One(one) => one.facts(),
            Placement::Several(several) => &several.facts,
        };
        files::most_bytes(path.as_ref(), &facts.of_chain.names, self.classes().len())
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
        match &mut self.0 {
            Placement::One(one) => one.solve_watched(watch),
            Placement::Several(several) => several.solve(watch),
        }
    }

    /// Drops chain and operator, and returns the device, or the first of several.
    pub fn into_device(self) -> DeviceHandle {
        match self.0 {
            Placement::One(one) => one.into_device(),
            Placement::Several(mut several) => several.devices.swap_remove(0),
        }
    }
}
