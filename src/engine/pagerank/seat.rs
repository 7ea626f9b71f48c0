//! A prepared ranking of one seat: links, device and operator are kept from one solve to the next.

use super::by_target::ByTarget;
use super::each::RanksEach;
use super::given::Given;
use super::iterate::{Each, Iterate, inflow_there, power_iteration};
use super::ranks::{RankingFacts, Ranks};
use super::{Graph, RankMethod, Settings};
use crate::backend::Choice;
use crate::engine::device::{DeviceHandle, Opened, on_device};
use crate::engine::ranks::{Partition, agreed, parts_of};
use crate::engine::running::{BackendOrder, Chosen, Run, Watch};
use crate::engine::transpose::with_copy;
use crate::engine::tune::Choosing;
use crate::engine::watch::Phases;
use crate::error::Result;
use crate::observe::{Observer, Phase, Recorder};
use crate::solve::pagerank::gauss_seidel::Parts;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::power::vectors;
use crate::solve::pagerank::{RankProblem, Ranking, gauss_seidel};
use std::sync::Arc;
use std::time::Instant;

/// The ranking of a process, or of one of several devices of a process. If ranks share the links, all of them
/// call the same functions in the same order.
pub(super) struct Seat {
    links: Links,
    pub device: DeviceHandle,
    ready: Ready,
    /// A second choice of `auto`, for several columns, if the first one multiplies one vector at a time.
    several: Option<Ready>,
    /// How `auto` chooses a backend, if it has chosen that of `ready`.
    auto: Option<(Choice, Choosing)>,
    pub watch: Watch,
}

/// A method with its operator, and the facts for its reports.
struct Ready {
    iterate: Iterate,
    facts: Arc<RankingFacts>,
}

impl Ready {
    /// Iterates until the tolerance is met or a limit is reached. Returns the ranks of the problem, or those
    /// for each of several distributions, with their histories.
    fn run(
        &self,
        watch: &mut Watch,
        problem: &RankProblem<'_>,
        each: Option<Each<'_>>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(Vec<Ranking>, Vec<Recorder>)> {
        let settings = &self.facts.settings;
        let limits = (settings.tol, settings.max_iters, settings.stagnation());
        let columns = each.map_or(1, |(columns, _)| columns);
        watch.begin();
        watch.run_columns(limits, columns, observers, |rule, observers| {
            (self.iterate)(problem, each, rule, observers)
        })
    }
}

impl Seat {
    /// Sorts the links, chooses a backend and builds the operator.
    pub(crate) fn new(graph: Graph, settings: Settings, given: &Given, mut run: Run) -> Result<Seat> {
        let ranks = graph.ranks().cloned();
        let ranks = ranks.as_ref();
        if let Some(ranks) = ranks {
            given.check_count(ranks)?;
            settings.check_over_ranks()?;
        }
        let (device, backend) = agreed(ranks, run.open(settings.host_method()))?;
        let began = Instant::now();
        let sorting = run.phases.begin(Phase::Build, "sorting the links");
        let (columns, precision, choosing) = (run.request.columns, run.request.precision, run.choosing);
        let extrapolate = settings.method == RankMethod::Extrapolated;
        // Includes a teleport vector, as a later solve may be personalised.
        let vectors = vectors(settings.dangling, true, extrapolate) * columns;
        let pulls = (backend.is_auto() && columns == 1) || backend.entry.name == "pull";
        let ByTarget { mut links, graph_facts, kept } = match graph {
            Graph::Whole(graph) => ByTarget::of(graph, &settings, &device, (vectors, pulls))?,
            Graph::OfRank(graph) => ByTarget::over_ranks(graph, &settings, &device)?,
        };
        let (iterate, chosen) = match settings.method {
            RankMethod::GaussSeidel => (by_gauss_seidel(&device, &links)?, Chosen::none()),
            RankMethod::Power | RankMethod::Extrapolated => {
                drop(sorting);
                let order =
                    BackendOrder { backend: &backend, precision, choosing, columns, one_by_one: false };
                let phases = &mut run.phases;
                let (iterate, chosen, inflow) = on_device!(device, precision, |held, D, T| {
                    with_copy(kept, || {
                        let sizes = (vectors, extrapolate);
                        let (iterate, chosen) = power_iteration::<D, T>(held, &links, &order, sizes, phases)?;
                        Ok((iterate, chosen, inflow_there::<D, T>(held, &links, vectors)?))
                    })
                })?;
                if let Some(inflow) = inflow {
                    links.compute_on_device(inflow);
                }
                (iterate, chosen)
            }
        };
        let total = |mine: usize| ranks.map_or(mine as u64, |ranks| ranks.total(mine as u64));
        let facts = Arc::new(RankingFacts {
            graph: graph_facts,
            settings,
            vertices: links.vertices() as u64,
            links: total(links.incoming().nnz()),
            sinks: total(links.count_sinks()),
            reordered: links.are_reordered(),
            device: device.describe_over(ranks),
            chosen,
            precision,
            parts: links.rank_rows().map(|rows| parts_of(rows, Partition::default().to_string(), precision)),
            seconds_setup: began.elapsed().as_secs_f64(),
        });
        let auto = backend.is_auto().then_some((backend, choosing));
        Ok(Seat { links, device, ready: Ready { iterate, facts }, several: None, auto, watch: run.watch })
    }

    /// Returns the facts for the report.
    pub(crate) fn facts(&self) -> &Arc<RankingFacts> {
        &self.ready.facts
    }

    /// Computes the ranks with additional observers.
    pub(crate) fn solve(&mut self, given: &Given, observers: &mut [&mut dyn Observer]) -> Result<Ranks> {
        let Seat { links, ready, watch, .. } = self;
        let [teleport, start] = given.vectors(links.halo(), &ready.facts)?;
        let problem = RankProblem {
            teleport: teleport.as_deref(),
            start: start.as_deref(),
            ..unpersonalised(links, &ready.facts.settings)
        };
        let (mut found, mut recorders) = ready.run(watch, &problem, None, observers)?;
        Ranks::new(found.swap_remove(0), recorders.swap_remove(0), (links, &ready.facts))
    }

    /// Computes the ranks for each of several distributions with additional observers.
    pub(crate) fn solve_each(
        &mut self,
        given: &Given,
        observers: &mut [&mut dyn Observer],
    ) -> Result<RanksEach> {
        let k = given.each.len();
        if let Some(ranks) = self.links.ranks() {
            given.check_count(ranks)?;
        }
        given.check(&self.ready.facts.settings)?;
        given.require_each()?;
        self.prepare_columns(k)?;
        let Seat { links, ready, several, watch, .. } = self;
        let ready = several.as_ref().filter(|_| k > 1).unwrap_or(ready);
        // All lines are checked before the first iteration.
        let columns = given.columns(links.halo(), &ready.facts)?;
        let problem = unpersonalised(links, &ready.facts.settings);
        let teleport = |column: usize| columns.jumps(column);
        let (found, recorders) = ready.run(watch, &problem, Some((k, &teleport)), observers)?;
        RanksEach::new(found, recorders, &given.each, (links, &ready.facts))
    }

    /// Fails if the user named a backend that multiplies one vector at a time, and `k` is larger.
    pub(crate) fn check_columns(&self, k: usize) -> Result<()> {
        let checked = self.facts().chosen.check_columns(k);
        checked.or_else(|error| if self.auto.is_some() { Ok(()) } else { Err(error) })
    }

    /// Makes sure that a backend for `k` columns has the links: the one that has, or another
    /// choice of `auto`.
    fn prepare_columns(&mut self, k: usize) -> Result<()> {
        agreed(self.links.ranks(), self.check_columns(k))?;
        // If the backend of one rank multiplies one vector at a time, all ranks choose again.
        let facts = self.facts();
        let refused = self.links.part().any(facts.chosen.check_columns(k).is_err());
        let wanted = self.auto.as_ref().filter(|_| refused && self.several.is_none());
        let Some((backend, choosing)) = wanted else { return Ok(()) };
        let (precision, choosing) = (facts.precision, *choosing);
        let order = BackendOrder { backend, precision, choosing, columns: k, one_by_one: false };
        let sizes = (vectors(facts.settings.dangling, true, false) * k, false);
        let phases = &mut Phases::default();
        let (iterate, chosen) = on_device!(self.device, precision, |held, D, T| {
            power_iteration::<D, T>(held, &self.links, &order, sizes, phases)
        })?;
        let facts = Arc::new(RankingFacts { chosen, ..RankingFacts::clone(facts) });
        self.several = Some(Ready { iterate, facts });
        Ok(())
    }
}

/// Returns the problem with uniform jumps that begins at their distribution.
fn unpersonalised<'a>(links: &'a Links, settings: &Settings) -> RankProblem<'a> {
    let (damping, dangling) = (settings.damping, settings.dangling);
    RankProblem { links, damping, dangling, teleport: None, start: None }
}

/// Prepares the method of Gauss and Seidel.
fn by_gauss_seidel(device: &DeviceHandle, links: &Links) -> Result<Iterate> {
    let Opened::Cpu(cpu) = &device.0 else { unreachable!("the method runs on the CPU") };
    let (cpu, parts) = (Arc::clone(cpu), Parts::new(links)?);
    Ok(Box::new(move |problem, _, rule, observers| {
        gauss_seidel(&*cpu.acquire()?, &parts, problem, rule, observers).map(|one| vec![one])
    }))
}
